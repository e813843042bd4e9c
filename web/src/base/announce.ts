// What a screen reader is told without the focus moving: short sentences, the last one wins.
import { byId } from "./dom.ts";

/** Politely: after what is being read. The same sentence twice in a row is said twice. */
export function announce(text: string): void {
  const status = byId("status", HTMLElement);
  status.textContent = status.textContent === text ? `${text}\u00a0` : text;
}

/** At once: for errors. */
export function alarm(text: string): void {
  const alert = byId("alert", HTMLElement);
  alert.textContent = alert.textContent === text ? `${text}\u00a0` : text;
}
