// Conversations as data. Functions here return new values and change nothing.

export interface Message {
  role: "user" | "assistant";
  content: string;
  reasoning?: string; // what the model thought before it answered, if the server tells
  error?: string; // why the reply is missing or incomplete
  finish?: string; // "stop", "length", "aborted" (by the stop button)
  figures?: Figures;
}

export interface Figures {
  promptTokens: number | null;
  cachedTokens: number | null; // of the prompt: what did not have to be computed
  completionTokens: number | null;
  tokensPerSecond: number | null;
}

export interface Conversation {
  id: string;
  title: string; // "" until someone names it: then the first words stand for it
  system: string;
  messages: Message[];
  updated: number; // milliseconds since 1970
}

export function newConversation(
  system: string,
  now: number,
  id: string = randomId(),
): Conversation {
  return { id, title: "", system, messages: [], updated: now };
}

/** crypto.randomUUID is missing where a page is served without TLS from another machine. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const longestTitle = 60;

export function titleOf(conversation: Conversation): string {
  if (conversation.title) return conversation.title;
  const words = (conversation.messages[0]?.content ?? "").trim().replace(/\s+/g, " ");
  if (!words) return "New conversation";
  const characters = Array.from(words);
  return characters.length <= longestTitle
    ? words
    : `${characters.slice(0, longestTitle - 1).join("")}…`;
}

/** The conversation up to message `index`, without it. */
export function before(conversation: Conversation, index: number): Conversation {
  return { ...conversation, messages: conversation.messages.slice(0, index) };
}

export function withMessage(
  conversation: Conversation,
  message: Message,
  now: number,
): Conversation {
  return { ...conversation, messages: [...conversation.messages, message], updated: now };
}

/** With the last message replaced. */
export function withLast(conversation: Conversation, message: Message, now: number): Conversation {
  return withMessage(before(conversation, conversation.messages.length - 1), message, now);
}

/** Models mark what they think with <think>: what comes before the answer, and the answer. */
export function splitReasoning(content: string): {
  reasoning: string;
  answer: string;
  open: boolean;
} {
  const opening = /^\s*<think>\n?/.exec(content);
  if (!opening) return { reasoning: "", answer: content, open: false };
  const rest = content.slice(opening[0].length);
  const end = rest.indexOf("</think>");
  if (end < 0) return { reasoning: rest, answer: "", open: true };
  return {
    reasoning: rest.slice(0, end),
    answer: rest.slice(end + "</think>".length).trimStart(),
    open: false,
  };
}
