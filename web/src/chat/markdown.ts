// Markdown as DOM nodes. Nothing is parsed as HTML and nothing is fetched: tags in the text show as
// text, pictures as links, and links go to the web or to mail only.
import MarkdownIt, { type Env, type Token } from "markdown-it";
import { h } from "../base/dom.ts";
import { codeBlock } from "./code_block.ts";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false });

/** Tags that Markdown can make; a token that asks for another one becomes a span. */
const allowed = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote hr em strong s code table thead tbody tr th td".split(
    " ",
  ),
);

function isSafeLink(target: string): boolean {
  return /^(https?:|mailto:)/i.test(target);
}

function link(target: string, ...children: (Node | string)[]): HTMLElement {
  if (!isSafeLink(target)) return h("span", {}, ...children);
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/** Headings of a message come below the page's own, which end at the third level. */
function headingTag(tag: string): keyof HTMLElementTagNameMap {
  return `h${Math.min(6, Number(tag.slice(1)) + 3)}` as keyof HTMLElementTagNameMap;
}

function element(token: Token): HTMLElement {
  if (token.type === "link_open") return link(String(token.attrGet("href") ?? ""));
  if (!allowed.has(token.tag)) return h("span");
  if (/^h[1-6]$/.test(token.tag)) return h(headingTag(token.tag));
  const made = h(token.tag as keyof HTMLElementTagNameMap);
  const start = token.tag === "ol" ? token.attrGet("start") : null;
  if (start !== null) made.setAttribute("start", String(start));
  const align = /^text-align:(left|right|center)$/.exec(String(token.attrGet("style") ?? ""));
  if (align?.[1]) made.classList.add(`align-${align[1]}`);
  return made;
}

function leaf(token: Token): Node[] {
  switch (token.type) {
    case "inline":
      return nodes(token.children ?? []);
    case "fence":
      return [codeBlock(token.content, token.info.trim().split(/\s+/)[0] ?? "")];
    case "code_block":
      return [codeBlock(token.content, "")];
    case "code_inline":
      return [h("code", {}, token.content)];
    case "image":
      return [link(String(token.attrGet("src") ?? ""), `picture: ${token.content || "untitled"}`)];
    case "softbreak":
      return [document.createTextNode("\n")];
    case "hardbreak":
      return [h("br")];
    case "hr":
      return [h("hr")];
    default:
      return [document.createTextNode(token.content)];
  }
}

/** A table may be wider than the window: it scrolls in a region of its own, by keyboard too. */
function finished(made: HTMLElement): HTMLElement {
  if (made.tagName !== "TABLE") return made;
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table" },
    made,
  );
}

function nodes(tokens: Token[]): Node[] {
  const root: Node[] = [];
  const open: { element: HTMLElement | null; children: Node[] }[] = [
    { element: null, children: root },
  ];
  for (const token of tokens) {
    const top = open[open.length - 1];
    if (!top) break;
    if (token.nesting === 1) {
      // Paragraphs of tight lists are hidden: their text stands in the item itself.
      if (token.hidden) open.push({ element: null, children: top.children });
      else open.push({ element: element(token), children: [] });
    } else if (token.nesting === -1) {
      open.pop();
      const parent = open[open.length - 1];
      if (!top.element || !parent) continue;
      top.element.append(...top.children);
      parent.children.push(finished(top.element));
    } else {
      top.children.push(...leaf(token));
    }
  }
  return root;
}

/** A block at the top level: its tokens and the text it comes from. */
interface Block {
  source: string;
  tokens: Token[];
}

function blocksOf(text: string): Block[] {
  const environment: Env = {};
  const tokens = parser.parse(text, environment);
  // Links may be defined anywhere: when a definition comes, every block may look different.
  const references = environment.references ? JSON.stringify(environment.references) : "";
  const lines = text.split("\n");
  const blocks: Block[] = [];
  let first = 0;
  let depth = 0;
  tokens.forEach((token, index) => {
    depth += token.nesting;
    if (depth !== 0) return;
    const [from = 0, to = 0] = tokens[first]?.map ?? [];
    blocks.push({
      source: lines.slice(from, to).join("\n") + references,
      tokens: tokens.slice(first, index + 1),
    });
    first = index + 1;
  });
  return blocks;
}

/** Shows a text that grows: blocks that stay the same keep their elements, and so a selection in them. */
export class MarkdownView {
  readonly element = h("div", { class: "markdown" });
  private shown: string[] = [];

  show(text: string): void {
    const blocks = blocksOf(text);
    let same = 0;
    while (same < blocks.length && this.shown[same] === blocks[same]?.source) ++same;
    while (this.element.children.length > same) this.element.lastElementChild?.remove();
    for (const { tokens } of blocks.slice(same)) {
      const made = nodes(tokens);
      // One element a block, so that blocks and elements can be counted against each other.
      const only =
        made.length === 1 && made[0] instanceof HTMLElement ? made[0] : h("div", {}, ...made);
      this.element.append(only);
    }
    this.shown = blocks.map((block) => block.source);
  }
}
