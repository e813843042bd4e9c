// A reply under way: asks for it, gathers it, and says how it ended. Never throws.
import type { ChatRequest, Client, CompletionRequest, Usage } from "../api/client.ts";
import { isAbort, unreachable } from "../api/errors.ts";
import type { Message } from "./conversation.ts";
import { Rate } from "./rate.ts";

export class Reply {
  message: Message = { role: "assistant", content: "" };
  readonly rate = new Rate();
  private readonly abort = new AbortController();

  constructor(private readonly client: Pick<Client, "reply">) {}

  stop(): void {
    this.abort.abort();
  }

  /** Calls `changed` whenever `message` has. Ends when the reply has, in whatever way. */
  async run(request: ChatRequest | CompletionRequest, changed: () => void): Promise<void> {
    try {
      for await (const delta of this.client.reply(request, this.abort.signal)) {
        if (delta.content || delta.reasoning) this.rate.piece(performance.now());
        const { content, reasoning = "" } = this.message;
        this.message = { ...this.message, content: content + delta.content };
        if (reasoning + delta.reasoning) this.message.reasoning = reasoning + delta.reasoning;
        if (delta.finish) this.message.finish = delta.finish;
        this.countTokens(delta.usage);
        changed();
      }
    } catch (error) {
      if (isAbort(error)) this.message = { ...this.message, finish: "aborted" };
      else this.message = { ...this.message, error: unreachable(error).message };
    }
    changed();
  }

  private countTokens(usage: Usage | null): void {
    const known = usage ?? this.message.figures;
    const completionTokens = known?.completionTokens ?? null;
    this.message.figures = {
      promptTokens: known?.promptTokens ?? null,
      cachedTokens: known?.cachedTokens ?? null,
      completionTokens,
      tokensPerSecond: this.rate.perSecond(completionTokens),
    };
  }
}
