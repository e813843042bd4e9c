// A table that sorts by any column and shows a page at a time, so that thousands of rows stay light.
import { announce } from "../base/announce.ts";
import { h } from "../base/dom.ts";

export interface Column<Row> {
  name: string;
  numeric?: boolean;
  text: (row: Row) => string;
  key?: (row: Row) => number | string; // to sort by; the text, unless given
}

export interface TableOptions<Row> {
  caption: string;
  columns: Column<Row>[]; // the first names the row
  choose: (row: Row) => void;
  isChosen: (row: Row) => boolean;
}

const pageSize = 100;

export class PagedTable<Row> {
  readonly element = h("div", { class: "paged-table" });
  private rows: Row[] = [];
  private sorted: { column: number; down: boolean } | null = null;
  private page = 0;
  private readonly body = h("tbody");
  private readonly heads: HTMLTableCellElement[];
  private readonly place = h("span", { class: "hint" });
  private readonly back = h(
    "button",
    { type: "button", class: "text-button", click: () => this.turn(-1) },
    "Previous",
  );
  private readonly next = h(
    "button",
    { type: "button", class: "text-button", click: () => this.turn(1) },
    "Next",
  );

  constructor(private readonly options: TableOptions<Row>) {
    this.heads = options.columns.map((column, index) =>
      h(
        "th",
        { scope: "col", class: column.numeric ? "numeric" : null },
        h(
          "button",
          { type: "button", class: "sort", click: () => this.sortBy(index) },
          column.name,
        ),
      ),
    );
    const table = h(
      "table",
      {},
      h("caption", { class: "visually-hidden" }, options.caption),
      h("thead", {}, h("tr", {}, ...this.heads)),
      this.body,
    );
    this.element.append(
      h(
        "div",
        { class: "table-scroll", tabindex: 0, role: "region", "aria-label": options.caption },
        table,
      ),
      h("div", { class: "pager" }, this.back, this.next, this.place),
    );
  }

  show(rows: readonly Row[]): void {
    this.rows = [...rows];
    this.sort();
    this.page = Math.min(this.page, this.pages - 1);
    this.render();
  }

  /** Turns to the page of the first row that is chosen. */
  reveal(): void {
    const at = this.rows.findIndex((row) => this.options.isChosen(row));
    if (at >= 0) this.page = Math.floor(at / pageSize);
    this.render();
  }

  private get pages(): number {
    return Math.max(1, Math.ceil(this.rows.length / pageSize));
  }

  private sortBy(column: number): void {
    // Figures are most wanted from the largest down.
    const numeric = this.options.columns[column]?.numeric === true;
    const down = this.sorted?.column === column ? !this.sorted.down : numeric;
    this.sorted = { column, down };
    this.page = 0;
    this.sort();
    this.render();
    announce(
      `Sorted by ${this.options.columns[column]?.name ?? ""}, ${down ? "descending" : "ascending"}`,
    );
  }

  private sort(): void {
    if (!this.sorted) return;
    const { column, down } = this.sorted;
    const { key, text } = this.options.columns[column] ?? {};
    const read = key ?? text;
    if (!read) return;
    this.rows.sort((a, b) => {
      const left = read(a);
      const right = read(b);
      const order = left < right ? -1 : left > right ? 1 : 0;
      return down ? -order : order;
    });
  }

  private turn(by: number): void {
    this.page = Math.min(this.pages - 1, Math.max(0, this.page + by));
    this.render();
    announce(this.place.textContent);
  }

  private render(): void {
    const first = this.page * pageSize;
    const shown = this.rows.slice(first, first + pageSize);
    this.body.replaceChildren(...shown.map((row) => this.row(row)));
    this.heads.forEach((head, index) => {
      if (this.sorted?.column === index)
        head.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const total = this.rows.length;
    this.place.textContent =
      total === 0 ? "No rows" : `${first + 1} to ${first + shown.length} of ${total}`;
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page >= this.pages - 1;
  }

  private row(row: Row): HTMLElement {
    const { columns, choose, isChosen } = this.options;
    const cells = columns.map(({ text, numeric }, index) => {
      if (index > 0) return h("td", { class: numeric ? "numeric" : null }, text(row));
      const button = h(
        "button",
        { type: "button", class: "link", click: () => choose(row) },
        text(row),
      );
      return h("th", { scope: "row" }, button);
    });
    return h("tr", { "aria-current": isChosen(row) ? "true" : null }, ...cells);
  }
}
