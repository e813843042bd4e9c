// The server's API, as far as the page uses it.
import { describe, messageIn, isAbort, ServerError, unreachable } from "./errors.ts";
import { events, type ServerEvent } from "./sse.ts";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ChatRequest {
  messages: ChatMessage[];
  [setting: string]: unknown;
}

export interface CompletionRequest {
  prompt: string;
  [setting: string]: unknown;
}

export interface Model {
  id: string;
  chats: boolean; // false: it has no chat template, and continues texts
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number | null;
}

/** What one event of a streamed reply adds. */
export interface ChatDelta {
  content: string;
  reasoning: string;
  finish: string | null; // "stop", "length", ...
  usage: Usage | null;
}

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function usageOf(value: unknown): Usage | null {
  const usage = fields(value);
  const { prompt_tokens: prompt, completion_tokens: completion } = usage;
  if (typeof prompt !== "number" || typeof completion !== "number") return null;
  const cached = fields(usage["prompt_tokens_details"])["cached_tokens"];
  return {
    promptTokens: prompt,
    completionTokens: completion,
    cachedTokens: typeof cached === "number" ? cached : null,
  };
}

/** Reads one event of a stream of either kind of completion. Throws what the server reports in the stream. */
export function deltaOf(data: string): ChatDelta {
  let parsed: unknown;
  try {
    parsed = JSON.parse(data);
  } catch {
    throw new ServerError("The server sent an event that is not JSON.", null);
  }
  const chunk = fields(parsed);
  if (chunk["error"] !== undefined) {
    const said = messageIn(chunk) ?? "it gave no reason";
    throw new ServerError(`The server stopped the reply: ${said}`, null);
  }
  const choice = fields(Array.isArray(chunk["choices"]) ? chunk["choices"][0] : null);
  const delta = fields(choice["delta"]);
  return {
    content: text(delta["content"]) || text(choice["text"]),
    reasoning: text(delta["reasoning_content"]),
    finish: text(choice["finish_reason"]) || null,
    usage: usageOf(chunk["usage"]),
  };
}

/** Paths are relative to the page, which may be served below another address. */
export class Client {
  constructor(private readonly apiKey: () => string) {}

  /** Throws ServerError if there is no good answer, and AbortError if `signal` says stop. */
  private async ask(path: string, init: RequestInit): Promise<Response> {
    const key = this.apiKey();
    const headers = new Headers(init.headers);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers });
    } catch (error) {
      throw isAbort(error) ? error : unreachable(error);
    }
    if (response.ok) return response;
    const body = await response.text().catch(() => "");
    throw describe(response.status, body, response.headers.get("Retry-After"));
  }

  async models(): Promise<Model[]> {
    const response = await this.ask("v1/models", {});
    const { data } = fields(await response.json().catch(() => null));
    if (!Array.isArray(data))
      throw new ServerError("The server's list of models makes no sense.", response.status);
    const models = data.map((model) => ({
      id: text(fields(model)["id"]),
      chats: fields(fields(model)["meta"])["chat_template"] !== false,
    }));
    return models.filter(({ id }) => id !== "");
  }

  /** The events of a stream; it may end at any time, and then throws ServerError. */
  async *stream(path: string, init: RequestInit): AsyncGenerator<ServerEvent> {
    const response = await this.ask(path, init);
    const type = response.headers.get("Content-Type") ?? "";
    if (!response.body || !type.startsWith("text/event-stream")) {
      throw new ServerError(
        `The server answered ${path} with ${type || "nothing"} instead of a stream.`,
        response.status,
      );
    }
    try {
      yield* events(response.body);
    } catch (error) {
      throw isAbort(error) ? error : unreachable(error);
    }
  }

  /** A reply as it is written. Throws if the stream ends before it says that it is done. */
  async *reply(
    request: ChatRequest | CompletionRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ChatDelta> {
    const path = "messages" in request ? "v1/chat/completions" : "v1/completions";
    const body = JSON.stringify({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    const init = { method: "POST", body, signal, headers: { "Content-Type": "application/json" } };
    for await (const { data } of this.stream(path, init)) {
      if (data === "[DONE]") return;
      yield deltaOf(data);
    }
    throw new ServerError("The server broke off the reply.", null);
  }
}
