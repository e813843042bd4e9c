// Where conversations are kept: the browser's storage, an item each, so that two tabs do not undo
// each other's work.
import { conversationOf } from "./archive.ts";
import type { Conversation } from "./conversation.ts";

const prefix = "heddle.conversation.";

/** The part of localStorage that is used: tests bring their own. */
export type Items = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

export class ConversationStore {
  private readonly cache = new Map<string, Conversation>();

  /** `failed` is told, once for each kind, why something could not be kept. */
  constructor(
    private readonly items: Items | null,
    private readonly failed: (why: string) => void,
  ) {
    if (!items) failed("This browser keeps nothing for this page: conversations end with it.");
    this.reload();
  }

  /** Newest first. */
  all(): Conversation[] {
    return [...this.cache.values()].sort((a, b) => b.updated - a.updated);
  }

  get(id: string): Conversation | undefined {
    return this.cache.get(id);
  }

  put(conversation: Conversation): void {
    this.cache.set(conversation.id, conversation);
    try {
      this.items?.setItem(prefix + conversation.id, JSON.stringify(conversation));
    } catch {
      this.failed("The browser's storage is full: delete or export old conversations.");
    }
  }

  remove(id: string): void {
    this.cache.delete(id);
    try {
      this.items?.removeItem(prefix + id);
    } catch {
      // It cannot be read either, then.
    }
  }

  clear(): void {
    for (const id of [...this.cache.keys()]) this.remove(id);
  }

  /** Takes in what another tab changed; null: everything. Returns whether it concerns us. */
  changedElsewhere(key: string | null): boolean {
    if (key !== null && !key.startsWith(prefix)) return false;
    if (key === null) this.reload();
    else this.load(key);
    return true;
  }

  private reload(): void {
    this.cache.clear();
    const keys = Array.from({ length: this.items?.length ?? 0 }, (_, index) =>
      this.items?.key(index),
    );
    for (const key of keys) if (key?.startsWith(prefix)) this.load(key);
  }

  private load(key: string): void {
    const id = key.slice(prefix.length);
    const text = this.items?.getItem(key);
    if (text === null || text === undefined) {
      this.cache.delete(id);
      return;
    }
    try {
      this.cache.set(id, { ...conversationOf(JSON.parse(text), "The conversation"), id });
    } catch {
      this.failed("A stored conversation cannot be read and is left out.");
    }
  }
}

/** The browser's storage; null if it is switched off. */
export function browserItems(): Items | null {
  try {
    localStorage.setItem("heddle.probe", "1");
    localStorage.removeItem("heddle.probe");
    return localStorage;
  } catch {
    return null;
  }
}
