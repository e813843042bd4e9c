// Conversations as a file: what "Export" writes and "Import" reads.
import type { Conversation, Figures, Message } from "./conversation.ts";

const format = "heddle-conversations";

export function exported(conversations: Conversation[]): string {
  return JSON.stringify({ format, version: 1, conversations }, null, 2);
}

/** The conversations of a file. Throws Error saying what is wrong with it. */
export function imported(text: string): Conversation[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("This file is not JSON: choose one that this page exported.");
  }
  if (!isObject(file) || file["format"] !== format || !Array.isArray(file["conversations"])) {
    throw new Error("This file has no heddle conversations: choose one that this page exported.");
  }
  if (file["version"] !== 1) {
    throw new Error(
      `This file is of version ${String(file["version"])}; this page reads version 1.`,
    );
  }
  return file["conversations"].map((item, index) =>
    conversationOf(item, `Conversation ${index + 1}`),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whatever `value` is, checked. `where` names it in errors. */
export function conversationOf(value: unknown, where: string): Conversation {
  if (!isObject(value)) throw new Error(`${where} is not an object.`);
  const { id, title, system, messages, updated } = value;
  if (typeof id !== "string" || !/^[\w-]{1,64}$/.test(id))
    throw new Error(`${where} has no usable id.`);
  if (typeof title !== "string" || typeof system !== "string") {
    throw new Error(`${where} has no title or system prompt.`);
  }
  if (typeof updated !== "number" || !Number.isFinite(updated))
    throw new Error(`${where} has no date.`);
  if (!Array.isArray(messages)) throw new Error(`${where} has no messages.`);
  return {
    id,
    title,
    system,
    updated,
    messages: messages.map((item, index) =>
      messageOf(item, `Message ${index + 1} of ${where.toLowerCase()}`),
    ),
  };
}

function messageOf(value: unknown, where: string): Message {
  if (!isObject(value)) throw new Error(`${where} is not an object.`);
  const { role, content, figures } = value;
  if (role !== "user" && role !== "assistant")
    throw new Error(`${where} has the role ${JSON.stringify(role)}.`);
  if (typeof content !== "string") throw new Error(`${where} has no content.`);
  const message: Message = { role, content };
  for (const name of ["reasoning", "error", "finish"] as const) {
    const text = value[name];
    if (typeof text === "string") message[name] = text;
  }
  if (isObject(figures)) message.figures = figuresOf(figures);
  return message;
}

function figuresOf(value: Record<string, unknown>): Figures {
  const number = (name: keyof Figures) => (typeof value[name] === "number" ? value[name] : null);
  return {
    promptTokens: number("promptTokens"),
    cachedTokens: number("cachedTokens"),
    completionTokens: number("completionTokens"),
    tokensPerSecond: number("tokensPerSecond"),
  };
}
