// The messages of the current conversation, kept at the end while a reply grows, unless the reader
// has scrolled away.
import { h } from "../base/dom.ts";
import type { Conversation } from "./conversation.ts";
import { MessageView, type MessageActions } from "./message_view.ts";

const nearEnd = 60; // pixels

export class LogView {
  private views: MessageView[] = [];
  private follows = true;
  private pending = 0; // a frame that was asked for

  constructor(
    private readonly scroller: HTMLElement,
    private readonly log: HTMLElement,
    private readonly toEnd: HTMLButtonElement,
    private readonly actions: MessageActions,
  ) {
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    toEnd.addEventListener("click", () => {
      this.scrollToEnd();
      this.views[this.views.length - 1]?.element.focus({ preventScroll: true });
    });
  }

  /** Everything anew. */
  show(conversation: Conversation, running: boolean): void {
    this.views = conversation.messages.map(
      (message, index) => new MessageView(message, index, this.actions),
    );
    this.log.replaceChildren(...this.views.map((view) => view.element));
    if (this.views.length === 0) this.log.append(this.empty());
    this.views.forEach((view, index) => this.showOne(view, conversation, index, running));
    this.scrollToEnd();
  }

  /** The last message has grown: shown at the next frame, or at once if it grows no more. */
  showLast(conversation: Conversation, running: boolean): void {
    cancelAnimationFrame(this.pending);
    const show = () => {
      const index = conversation.messages.length - 1;
      const view = this.views[index];
      if (!view) return;
      this.showOne(view, conversation, index, running);
      if (this.follows) this.scrollToEnd();
    };
    if (running) this.pending = requestAnimationFrame(show);
    else show();
  }

  private showOne(
    view: MessageView,
    conversation: Conversation,
    index: number,
    running: boolean,
  ): void {
    const message = conversation.messages[index];
    const last = index === conversation.messages.length - 1;
    if (message) view.show(message, running && last, last);
  }

  private empty(): HTMLElement {
    return h(
      "div",
      { class: "empty" },
      h("p", {}, "Ask something."),
      h(
        "p",
        { class: "hint" },
        "Enter sends, Shift+Enter starts a new line, Escape stops a reply.",
      ),
    );
  }

  private scrollToEnd(): void {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.scrolled();
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.follows = scrollHeight - scrollTop - clientHeight <= nearEnd;
    this.toEnd.hidden = this.follows;
  }
}
