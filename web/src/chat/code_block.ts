// A block of code: its language, its text, and a button that copies it.
import { announce } from "../base/announce.ts";
import { copyText } from "../base/clipboard.ts";
import { h, icon } from "../base/dom.ts";

export function codeBlock(code: string, language: string): HTMLElement {
  const label = h("span", {}, "Copy");
  const copy = async () => {
    const copied = await copyText(code);
    label.textContent = copied ? "Copied" : "Not copied";
    announce(copied ? "Code copied" : "The code could not be copied");
    setTimeout(() => (label.textContent = "Copy"), 2000);
  };
  const button = h(
    "button",
    { type: "button", class: "text-button", click: () => void copy() },
    icon("copy"),
    label,
  );
  const name = language || "code";
  return h(
    "div",
    { class: "code-block" },
    h("div", { class: "code-head" }, h("span", {}, name), button),
    h(
      "pre",
      { tabindex: 0, role: "region", "aria-label": `Code, ${name}` },
      h("code", {}, code.replace(/\n$/, "")),
    ),
  );
}
