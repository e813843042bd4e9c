// The colour scheme: the system's, unless the switch says otherwise.
import { icon, type Icon } from "./dom.ts";

const key = "heddle.theme";
const order = ["auto", "light", "dark"] as const;
type Theme = (typeof order)[number];

const words: Record<Theme, { icon: Icon; name: string }> = {
  auto: { icon: "half", name: "as the system's" },
  light: { icon: "sun", name: "light" },
  dark: { icon: "moon", name: "dark" },
};

function remembered(): Theme {
  try {
    const stored = localStorage.getItem(key);
    return order.find((theme) => theme === stored) ?? "auto";
  } catch {
    return "auto"; // storage is off
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(key, theme);
  } catch {
    // storage is off or full: the choice holds until the page is left
  }
}

/** Makes the button cycle through the schemes; `changed` is called whenever colours change. */
export function startTheme(button: HTMLButtonElement, changed: () => void): void {
  let theme = remembered();
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    const label = `Colour scheme: ${words[theme].name}`;
    button.replaceChildren(icon(words[theme].icon));
    button.setAttribute("aria-label", label);
    button.title = label;
    changed();
  };
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length] ?? "auto";
    remember(theme);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  show();
}
