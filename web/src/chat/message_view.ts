// A message as an article: who said it, its text, its figures, and what can be done with it.
import { announce } from "../base/announce.ts";
import { copyText } from "../base/clipboard.ts";
import { h, iconButton } from "../base/dom.ts";
import { count, short } from "../base/format.ts";
import { splitReasoning, type Message } from "./conversation.ts";
import { MarkdownView } from "./markdown.ts";

export interface MessageActions {
  regenerate(): void;
  resend(index: number, text: string): void;
}

export function figuresText(message: Message): string {
  const { figures } = message;
  if (!figures) return "";
  const parts: string[] = [];
  if (figures.completionTokens !== null) parts.push(count(figures.completionTokens, "token"));
  if (figures.tokensPerSecond !== null) parts.push(`${short(figures.tokensPerSecond)} tokens/s`);
  const cached = figures.cachedTokens ? ` (${figures.cachedTokens} known before)` : "";
  if (figures.promptTokens !== null)
    parts.push(`prompt of ${count(figures.promptTokens, "token")}${cached}`);
  return parts.join(" · ");
}

/** Why a reply ended, where that is not as expected. */
export function endText(message: Message, running: boolean): string {
  if (running || message.error || message.role === "user") return "";
  if (message.finish === "length") return "The reply reached the limit of tokens.";
  if (message.finish === "aborted") return "Stopped.";
  if (message.finish === "content_filter") return "The server left out the rest.";
  return message.finish ? "" : "This reply was interrupted.";
}

export class MessageView {
  readonly element: HTMLElement;
  private readonly text = new MarkdownView();
  private readonly reasoning = new MarkdownView();
  private readonly thoughts = h(
    "details",
    { class: "thoughts", hidden: true },
    h("summary", {}, "Thoughts"),
  );
  private readonly plain = h("div", { class: "plain" });
  private readonly note = h("p", { class: "note", hidden: true });
  private readonly figures = h("p", { class: "figures" });
  private readonly tools = h("div", { class: "tools" });
  private readonly body: HTMLElement;

  constructor(
    private message: Message,
    private readonly index: number,
    private readonly actions: MessageActions,
  ) {
    const mine = message.role === "user";
    this.thoughts.append(this.reasoning.element);
    this.body = h(
      "div",
      { class: "body" },
      ...(mine ? [this.plain] : [this.thoughts, this.text.element]),
      this.note,
    );
    this.tools.append(...this.makeTools(mine));
    this.element = h(
      "article",
      { class: `message ${message.role}`, tabindex: -1 },
      h("h3", {}, mine ? "You" : "Reply"),
      this.body,
      h("div", { class: "foot" }, this.tools, mine ? null : this.figures),
    );
  }

  private makeTools(mine: boolean): HTMLElement[] {
    const copy = iconButton("copy", mine ? "Copy your message" : "Copy reply", {
      click: () => void this.copy(),
    });
    const change = mine
      ? iconButton("edit", "Edit and send again", { click: () => this.edit() })
      : iconButton("again", "Ask again", {
          class: "icon-button again",
          click: () => this.actions.regenerate(),
        });
    return [copy, change];
  }

  /** `last`: nothing comes after it, so that it can be asked for again. */
  show(message: Message, running: boolean, last: boolean): void {
    this.message = message;
    const { reasoning, answer, open } = splitReasoning(message.content);
    if (message.role === "user") this.plain.textContent = message.content;
    else this.text.show(answer);
    this.showThoughts(
      [message.reasoning ?? "", reasoning].join(""),
      open || (running && answer === ""),
    );
    const note = message.error ?? endText(message, running);
    this.note.textContent = note;
    this.note.hidden = note === "";
    this.note.classList.toggle("error", message.error !== undefined);
    this.figures.textContent = figuresText(message);
    this.element.classList.toggle("running", running);
    this.element.classList.toggle(
      "waiting",
      running && message.content === "" && !message.reasoning,
    );
    this.element.setAttribute("aria-busy", String(running));
    this.tools.hidden = running;
    this.tools.querySelector<HTMLElement>(".again")?.toggleAttribute("hidden", !last);
  }

  private showThoughts(thoughts: string, open: boolean): void {
    const was = this.thoughts.hidden;
    this.thoughts.hidden = thoughts.trim() === "";
    this.reasoning.show(thoughts);
    if (was && !this.thoughts.hidden && open) this.thoughts.open = true;
    if (!open && this.element.classList.contains("running")) this.thoughts.open = false;
  }

  private async copy(): Promise<void> {
    const { content, role } = this.message;
    const copied = await copyText(role === "user" ? content : splitReasoning(content).answer);
    announce(copied ? "Copied" : "Could not be copied");
  }

  private edit(): void {
    const field = h("textarea", { "aria-label": "Your message", rows: 4 });
    field.value = this.message.content;
    const close = () => {
      form.replaceWith(this.body);
      this.tools.hidden = false;
      this.tools.querySelector<HTMLElement>("[aria-label^=Edit]")?.focus();
    };
    const send = () => {
      if (field.value.trim() === "") return field.focus();
      this.actions.resend(this.index, field.value);
    };
    const keys = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    const form = h(
      "form",
      { class: "edit", submit: (event: Event) => (event.preventDefault(), send()), keydown: keys },
      field,
      h("p", { class: "hint" }, "What came after this message is replaced."),
      h("button", { class: "primary" }, "Send"),
      h("button", { type: "button", click: close }, "Cancel"),
    );
    this.body.replaceWith(form);
    this.tools.hidden = true;
    field.focus();
  }
}
