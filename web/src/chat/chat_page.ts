// Puts the chat on the page: list, messages, composer, import and export, and the keys.
import type { Client, Model } from "../api/client.ts";
import { alarm, announce } from "../base/announce.ts";
import { byId, h } from "../base/dom.ts";
import { exported, imported } from "./archive.ts";
import { Chat, type Change } from "./chat.ts";
import { splitReasoning, titleOf, type Conversation } from "./conversation.ts";
import { ListView } from "./list_view.ts";
import { LogView } from "./log_view.ts";
import type { Preferences } from "./preferences.ts";
import { browserItems, ConversationStore } from "./store.ts";

const readOutAtMost = 300; // characters of a reply that are announced as a whole

/** What a screen reader hears when a reply has ended. */
export function endAnnouncement(conversation: Conversation): string {
  const last = conversation.messages[conversation.messages.length - 1];
  if (!last || last.error) return "";
  const text = splitReasoning(last.content).answer.trim();
  if (last.finish === "aborted") return "Reply stopped.";
  if (text.length <= readOutAtMost) return `Reply: ${text}`;
  return `Reply complete, ${text.split(/\s+/).length} words.`;
}

export class ChatPage {
  private readonly chat: Chat;
  private readonly log: LogView;
  private readonly list: ListView;
  private readonly form = byId("composer", HTMLFormElement);
  private readonly field = byId("message", HTMLTextAreaElement);
  private readonly sendButton = byId("send", HTMLButtonElement);
  private readonly stopButton = byId("stop", HTMLButtonElement);
  private readonly system = byId("system", HTMLTextAreaElement);
  private readonly notice = byId("notice", HTMLElement);
  private readonly sidebar = byId("sidebar", HTMLElement);
  private readonly sidebarButton = byId("open-sidebar", HTMLButtonElement);

  constructor(
    client: Client,
    preferences: Preferences,
    private readonly titled: () => void,
  ) {
    const items = browserItems();
    const store = new ConversationStore(items, (why) => this.say(why));
    this.chat = new Chat(
      client,
      store,
      () => preferences.settings,
      (change, which) => this.changed(change, which),
    );
    this.log = new LogView(
      byId("log-scroll", HTMLElement),
      byId("log", HTMLElement),
      byId("to-end", HTMLButtonElement),
      {
        regenerate: () => this.asking(() => this.chat.regenerate()),
        resend: (index, text) => this.asking(() => this.chat.resend(index, text)),
      },
    );
    this.list = new ListView(byId("conversations", HTMLElement), this.chat, () => this.chosen());
    this.listen();
    this.list.show();
    this.showCurrent();
    byId("conversation-title", HTMLElement).textContent = this.title;
  }

  get title(): string {
    return titleOf(this.chat.current);
  }

  set model(model: Model | null) {
    this.chat.model = model;
    this.field.placeholder =
      model?.chats === false ? "A text to continue: this model has no chat template" : "Message";
  }

  private listen(): void {
    this.form.addEventListener("submit", (event) => (event.preventDefault(), this.send()));
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.fit());
    this.stopButton.addEventListener("click", () => this.stop());
    this.system.addEventListener("input", () => this.chat.setSystem(this.system.value));
    byId("new-conversation", HTMLButtonElement).addEventListener("click", () => {
      this.chat.create();
      this.chosen();
    });
    byId("export", HTMLButtonElement).addEventListener("click", () => this.exportAll());
    byId("delete-all", HTMLButtonElement).addEventListener("click", () => this.removeAll());
    const file = byId("import-file", HTMLInputElement);
    byId("import", HTMLButtonElement).addEventListener("click", () => file.click());
    file.addEventListener("change", () => void this.importFrom(file));
    this.sidebarButton.addEventListener("click", () => this.showSidebar(true));
    byId("close-sidebar", HTMLButtonElement).addEventListener("click", () =>
      this.showSidebar(false),
    );
    byId("sidebar-shade", HTMLElement).addEventListener("click", () => this.showSidebar(false));
    byId("chat-view", HTMLElement).addEventListener("keydown", (event) => this.escape(event));
    addEventListener("pagehide", () => this.chat.keepGrown());
    addEventListener("storage", (event) => this.chat.changedElsewhere(event.key));
    this.notice
      .querySelector("button")
      ?.addEventListener("click", () => (this.notice.hidden = true));
  }

  private changed(change: Change, which: Conversation): void {
    const { current } = this.chat;
    const running = this.chat.isRunning();
    if (change !== "reply") {
      this.list.show();
      this.showTitle();
    }
    if (change === "conversation") this.showCurrent();
    if (which.id === current.id && (change === "reply" || change === "ended"))
      this.log.showLast(current, running);
    if (change === "ended") this.ended(which);
    this.sendButton.hidden = running;
    this.stopButton.hidden = !running;
  }

  private showTitle(): void {
    byId("conversation-title", HTMLElement).textContent = this.title;
    this.titled();
  }

  private showCurrent(): void {
    const { current } = this.chat;
    this.log.show(current, this.chat.isRunning());
    this.system.value = current.system;
    byId("system-box", HTMLDetailsElement).open =
      current.system !== "" && current.messages.length === 0;
  }

  private ended(which: Conversation): void {
    const last = which.messages[which.messages.length - 1];
    const elsewhere = which.id === this.chat.current.id ? "" : `In “${titleOf(which)}”: `;
    if (last?.error) alarm(elsewhere + last.error);
    else announce(elsewhere + endAnnouncement(which));
  }

  /** Does what asks for a reply; the focus goes back to the composer, as its cause may vanish. */
  private asking(ask: () => void): void {
    if (this.chat.isRunning()) return;
    ask();
    announce("Waiting for the reply");
    this.field.focus();
  }

  private send(): void {
    const text = this.field.value;
    if (text.trim() === "" || this.chat.isRunning()) return;
    this.asking(() => this.chat.send(text));
    this.field.value = "";
    this.fit();
  }

  private stop(): void {
    this.chat.stop();
    this.field.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.send();
  }

  private escape(event: KeyboardEvent): void {
    if (event.key !== "Escape") return;
    if (this.sidebar.classList.contains("shown")) this.showSidebar(false);
    else if (this.chat.isRunning()) this.stop();
  }

  /** As high as its text, within what the style allows. */
  private fit(): void {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }

  private chosen(): void {
    this.showSidebar(false);
    this.field.focus();
  }

  private showSidebar(shown: boolean): void {
    const was = this.sidebar.classList.contains("shown");
    this.sidebar.classList.toggle("shown", shown);
    this.sidebarButton.setAttribute("aria-expanded", String(shown));
    if (shown) byId("close-sidebar", HTMLButtonElement).focus();
    else if (was) this.sidebarButton.focus();
  }

  private exportAll(): void {
    const conversations = this.chat.store.all();
    const url = URL.createObjectURL(
      new Blob([exported(conversations)], { type: "application/json" }),
    );
    h("a", { href: url, download: "heddle-conversations.json" }).click();
    URL.revokeObjectURL(url);
    announce("Exported all conversations");
  }

  private async importFrom(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    try {
      const conversations = imported(await file.text());
      this.chat.takeIn(conversations);
      announce(`Imported ${conversations.length} conversations`);
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
    }
  }

  private removeAll(): void {
    if (!confirm("Delete all conversations? This cannot be undone.")) return;
    this.chat.removeAll();
    announce("Deleted all conversations");
  }

  /** Shows a trouble that belongs to no reply; "": that it is over. */
  say(text: string): void {
    const place = this.notice.querySelector("span");
    if (place) place.textContent = text;
    this.notice.hidden = text === "";
    if (text) alarm(text);
  }
}
