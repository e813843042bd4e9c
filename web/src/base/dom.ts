// Elements made without ever parsing HTML from data.

type Child = Node | string | null | undefined | false;
type Handler = (event: never) => void;
export type Attributes = Record<string, string | number | boolean | Handler | null | undefined>;

function setAttribute(element: Element, name: string, value: Attributes[string]): void {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") {
    element.addEventListener(name, value as EventListener);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

/** An element with attributes (functions are listeners) and children (strings are text). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** The element of index.html with this id; it must be there, and of this kind. */
export function byId<E extends HTMLElement>(id: string, kind: new () => E): E {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`);
  return element;
}

/** Icons are of 24 by 24 units, in strokes. */
const iconPaths = {
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  again: "M20 12a8 8 0 1 1-2.3-5.7M20 3v5h-5",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  half: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 3v18M12 7h6M12 11h8.6M12 15h7.8",
} as const;
export type Icon = keyof typeof iconPaths;

export function icon(name: Icon): SVGSVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: iconPaths[name] }),
  );
}

/** A button that shows an icon, with a name for those who do not see it. */
export function iconButton(
  name: Icon,
  label: string,
  attributes: Attributes = {},
): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, ...attributes },
    icon(name),
  );
}
