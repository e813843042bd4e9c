// What went wrong between the page and the server, in words that say what to do.

export class ServerError extends Error {
  override name = "ServerError";
  constructor(
    message: string,
    readonly status: number | null, // null: no answer at all, or one that broke off
  ) {
    super(message);
  }
}

/** The message inside an OpenAI error body ({"error": {"message": ...}}), or of simpler ones. */
export function messageIn(body: unknown): string | null {
  if (typeof body !== "object" || body === null) return null;
  const { error, message } = body as { error?: unknown; message?: unknown };
  if (typeof error === "string" && error !== "") return error;
  if (error !== undefined) return messageIn(error);
  return typeof message === "string" && message !== "" ? message : null;
}

const advice: Record<number, string> = {
  401: "Enter the API key in the settings.",
  403: "Check the API key in the settings.",
  404: "Is this page served by the same program?",
  413: "The conversation is too long for the server: start a new one, or shorten it.",
  503: "The server is still starting or is shutting down: try again soon.",
};

function retry(after: string | null): string {
  const seconds = Number(after);
  return after !== null && Number.isFinite(seconds)
    ? `Too much is asked of the server now: try again in ${Math.max(1, Math.ceil(seconds))} s.`
    : "Too much is asked of the server now: try again in a while.";
}

/** For a response that is not OK. `text` is its body. */
export function describe(status: number, text: string, retryAfter: string | null): ServerError {
  let said: string | null = null;
  try {
    said = messageIn(JSON.parse(text));
  } catch {
    said =
      text.length > 0 && text.length <= 500 && !text.trimStart().startsWith("<")
        ? text.trim()
        : null;
  }
  const what = said ?? "it gave no reason";
  const help = status === 429 ? retry(retryAfter) : (advice[status] ?? "");
  return new ServerError(
    `The server refused (${status}): ${what}${/[.!?]$/.test(what) ? "" : "."} ${help}`.trim(),
    status,
  );
}

/** For what fetch and reading a stream throw. */
export function unreachable(error: unknown): ServerError {
  if (error instanceof ServerError) return error;
  const detail = error instanceof Error && error.message ? ` (${error.message})` : "";
  return new ServerError(
    `The server does not answer${detail}. Is heddle serve still running?`,
    null,
  );
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
