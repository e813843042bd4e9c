// The list of conversations, with what can be done to each.
import { announce } from "../base/announce.ts";
import { h, iconButton } from "../base/dom.ts";
import type { Chat } from "./chat.ts";
import { titleOf, type Conversation } from "./conversation.ts";

export class ListView {
  constructor(
    private readonly list: HTMLElement,
    private readonly chat: Chat,
    private readonly chosen: () => void,
  ) {}

  show(): void {
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const place = focused?.closest("li")?.dataset["id"];
    const button = focused?.getAttribute("data-does");
    this.list.replaceChildren(
      ...this.chat.store.all().map((conversation) => this.item(conversation)),
    );
    if (place && button) {
      this.list
        .querySelector<HTMLElement>(`li[data-id="${place}"] [data-does="${button}"]`)
        ?.focus();
    }
  }

  private item(conversation: Conversation): HTMLElement {
    const { id } = conversation;
    const title = titleOf(conversation);
    const open = h(
      "button",
      {
        type: "button",
        class: "open",
        "data-does": "open",
        "aria-current": id === this.chat.current.id ? "true" : null,
        click: () => {
          this.chat.select(id);
          this.chosen();
        },
      },
      h("span", { class: "title" }, title),
      this.chat.isRunning(id)
        ? h("span", { class: "busy", role: "img", "aria-label": "replying" })
        : null,
    );
    const rename = iconButton("edit", `Rename “${title}”`, {
      "data-does": "rename",
      click: () => this.rename(conversation),
    });
    const remove = iconButton("trash", `Delete “${title}”`, {
      "data-does": "remove",
      click: () => this.remove(conversation),
    });
    return h("li", { "data-id": id }, open, rename, remove);
  }

  private rename(conversation: Conversation): void {
    const item = this.list.querySelector(`li[data-id="${conversation.id}"]`);
    const field = h("input", {
      "aria-label": "Title",
      value: titleOf(conversation),
      maxlength: 200,
    });
    let done = false;
    const finish = (keep: boolean, event?: Event) => {
      event?.preventDefault();
      event?.stopPropagation();
      if (done) return;
      done = true;
      if (keep && field.value.trim() !== titleOf(conversation))
        this.chat.rename(conversation.id, field.value);
      else this.show();
      if (event)
        this.list
          .querySelector<HTMLElement>(`li[data-id="${conversation.id}"] [data-does=rename]`)
          ?.focus();
    };
    const keys = (event: KeyboardEvent) => {
      if (event.isComposing) return;
      if (event.key === "Enter") finish(true, event);
      if (event.key === "Escape") finish(false, event);
    };
    field.addEventListener("keydown", keys);
    field.addEventListener("blur", () => finish(true));
    item?.replaceChildren(field);
    field.select();
    field.focus();
  }

  private remove(conversation: Conversation): void {
    const title = titleOf(conversation);
    if (!confirm(`Delete “${title}”? This cannot be undone.`)) return;
    const all = this.chat.store.all();
    const index = all.findIndex(({ id }) => id === conversation.id);
    this.chat.remove(conversation.id);
    announce(`Deleted “${title}”`);
    const next = all[index + 1] ?? all[index - 1];
    const focus = next && this.list.querySelector<HTMLElement>(`li[data-id="${next.id}"] .open`);
    (focus ?? document.getElementById("new-conversation"))?.focus();
  }
}
