// Tabs as the ARIA practices describe them: one of them is in the tab order, arrows go on.
import { h } from "../base/dom.ts";

export interface Tab {
  name: string;
  panel: HTMLElement;
}

export class Tabs {
  readonly element: HTMLElement;
  private readonly buttons: HTMLButtonElement[];
  private current_ = 0;

  constructor(
    label: string,
    private readonly tabs: Tab[],
    private readonly changed: (index: number) => void,
  ) {
    this.buttons = tabs.map(({ name, panel }, index) => {
      panel.id = `panel-${name.toLowerCase()}`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", `tab-${name.toLowerCase()}`);
      return h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name.toLowerCase()}`,
          "aria-controls": panel.id,
          click: () => this.choose(index),
        },
        name,
      );
    });
    this.element = h(
      "div",
      {
        role: "tablist",
        class: "tabs",
        "aria-label": label,
        keydown: (event: KeyboardEvent) => this.key(event),
      },
      ...this.buttons,
    );
    this.show();
  }

  get current(): number {
    return this.current_;
  }

  choose(index: number): void {
    this.current_ = index;
    this.show();
    this.changed(index);
  }

  private key(event: KeyboardEvent): void {
    const last = this.tabs.length - 1;
    const next = {
      ArrowLeft: Math.max(0, this.current_ - 1),
      ArrowRight: Math.min(last, this.current_ + 1),
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.choose(next);
    this.buttons[next]?.focus();
  }

  private show(): void {
    this.tabs.forEach(({ panel }, index) => {
      const chosen = index === this.current_;
      panel.hidden = !chosen;
      this.buttons[index]?.setAttribute("aria-selected", String(chosen));
      this.buttons[index]?.setAttribute("tabindex", chosen ? "0" : "-1");
    });
  }
}
