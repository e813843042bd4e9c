// Copying text, also where the page is served without TLS and has no navigator.clipboard.
import { h } from "./dom.ts";

function copyBySelection(text: string): boolean {
  const field = h("textarea", { class: "visually-hidden", "aria-hidden": "true", tabindex: -1 });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}
