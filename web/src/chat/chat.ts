// What a person can do with conversations, without the page: the view shows what this holds.
import type { Client, Model } from "../api/client.ts";
import {
  before,
  newConversation,
  withLast,
  withMessage,
  type Conversation,
} from "./conversation.ts";
import { Reply } from "./reply.ts";
import { continuationFor, requestFor, type Settings } from "./settings.ts";
import type { ConversationStore } from "./store.ts";

/** What changed: which conversations there are; the current one as a whole; its last message. */
export type Change = "list" | "conversation" | "reply" | "ended";

const savedEvery = 1000; // milliseconds, while a reply grows

export class Chat {
  model: Model | null = null;
  private current_: Conversation;
  private readonly replies = new Map<string, Reply>();

  constructor(
    private readonly client: Pick<Client, "reply">,
    readonly store: ConversationStore,
    private readonly settings: () => Settings,
    private readonly changed: (change: Change, conversation: Conversation) => void,
  ) {
    this.current_ = store.all()[0] ?? this.fresh();
  }

  get current(): Conversation {
    return this.current_;
  }

  isRunning(id: string = this.current_.id): boolean {
    return this.replies.has(id);
  }

  select(id: string): void {
    const found = this.store.get(id);
    if (found) this.show(found);
  }

  /** An empty conversation; it is kept once something is in it. */
  create(): void {
    this.show(this.fresh());
  }

  remove(id: string): void {
    this.replies.get(id)?.stop();
    this.store.remove(id);
    if (id === this.current_.id) this.show(this.store.all()[0] ?? this.fresh());
    else this.changed("list", this.current_);
  }

  removeAll(): void {
    for (const reply of this.replies.values()) reply.stop();
    this.store.clear();
    this.create();
  }

  rename(id: string, title: string): void {
    const found = this.store.get(id);
    if (found) this.keep({ ...found, title: title.trim() });
    this.changed("list", this.current_);
  }

  setSystem(system: string): void {
    this.current_ = { ...this.current_, system };
    if (this.store.get(this.current_.id)) this.store.put(this.current_);
  }

  /** Conversations from a file; those that are there already are replaced. */
  takeIn(conversations: Conversation[]): void {
    for (const conversation of conversations) {
      this.replies.get(conversation.id)?.stop();
      this.store.put(conversation);
    }
    const first = conversations[0];
    if (first) this.show(first);
  }

  send(text: string): void {
    if (this.isRunning() || text.trim() === "") return;
    this.ask(withMessage(this.current_, { role: "user", content: text }, Date.now()));
  }

  /** Asks again for the last reply, and forgets the one that is there. */
  regenerate(): void {
    const last = this.current_.messages.length - 1;
    if (this.isRunning() || last < 0) return;
    const isReply = this.current_.messages[last]?.role === "assistant";
    this.ask(isReply ? before(this.current_, last) : this.current_);
  }

  /** Replaces message `index`, forgets what came after it, and asks for a reply. */
  resend(index: number, text: string): void {
    if (this.isRunning() || this.current_.messages[index]?.role !== "user" || text.trim() === "")
      return;
    this.ask(
      withMessage(before(this.current_, index), { role: "user", content: text }, Date.now()),
    );
  }

  stop(): void {
    this.replies.get(this.current_.id)?.stop();
  }

  /** Another tab changed what is stored under this key. */
  changedElsewhere(key: string | null): void {
    if (!this.store.changedElsewhere(key)) return;
    const stored = this.store.get(this.current_.id);
    // Showing it anew would end an edit that is under way: only if it is another.
    const isNew = JSON.stringify(stored) !== JSON.stringify(this.current_);
    if (!this.isRunning() && stored && isNew) this.show(stored);
    else this.changed("list", this.current_);
  }

  /** Stores what has come of replies under way: the page may be left. */
  keepGrown(): void {
    for (const [id, reply] of this.replies) this.grow(id, reply, true);
  }

  private fresh(): Conversation {
    return newConversation(this.settings().system, Date.now());
  }

  private show(conversation: Conversation): void {
    this.current_ = conversation;
    this.changed("conversation", conversation);
  }

  private keep(conversation: Conversation): void {
    this.store.put(conversation);
    if (conversation.id === this.current_.id) this.current_ = conversation;
  }

  private ask(asked: Conversation): void {
    const reply = new Reply(this.client);
    this.replies.set(asked.id, reply);
    const make = this.model?.chats === false ? continuationFor : requestFor;
    const request = make(asked, this.settings(), this.model);
    this.keep(withMessage(asked, reply.message, Date.now()));
    this.changed("conversation", this.current_);
    let saved = performance.now();
    const grown = () => {
      const due = performance.now() - saved >= savedEvery;
      if (due) saved = performance.now();
      this.grow(asked.id, reply, due);
    };
    void reply.run(request, grown).then(() => this.end(asked.id, reply));
  }

  /** The conversation of a reply under way, unless it was deleted or replaced meanwhile. */
  private answered(id: string, reply: Reply): Conversation | undefined {
    return this.replies.get(id) === reply ? this.store.get(id) : undefined;
  }

  private grow(id: string, reply: Reply, save: boolean): void {
    const stored = id === this.current_.id ? this.current_ : this.answered(id, reply);
    if (!stored || !this.answered(id, reply)) return;
    if (id !== this.current_.id && !save) return;
    const grown = withLast(stored, reply.message, Date.now());
    if (save) this.store.put(grown);
    if (id !== this.current_.id) return;
    this.current_ = grown;
    this.changed("reply", grown);
  }

  private end(id: string, reply: Reply): void {
    const stored = this.answered(id, reply);
    if (this.replies.get(id) === reply) this.replies.delete(id);
    if (!stored) return;
    const base = id === this.current_.id ? this.current_ : stored;
    const ended = withLast(base, reply.message, Date.now());
    this.keep(ended);
    this.changed("ended", ended);
  }
}
