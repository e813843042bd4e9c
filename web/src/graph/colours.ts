// The page's colours for drawing on canvases, which know no CSS variables.

const names = {
  ground: "--ground",
  raised: "--raised",
  sunk: "--sunk",
  text: "--text",
  faint: "--faint",
  line: "--line",
  control: "--control-line",
  accent: "--accent",
  onAccent: "--on-accent",
  soft: "--accent-soft",
  error: "--error",
  focus: "--focus",
  positive: "--positive",
  negative: "--negative",
} as const;

export type Colours = Record<keyof typeof names, string>;

/** As they are now, in the scheme that is chosen: "rgb(...)". */
export function colours(): Colours {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (variable: string) => {
    probe.style.color = `var(${variable})`;
    return getComputedStyle(probe).color;
  };
  const entries = Object.entries(names).map(([name, variable]) => [name, read(variable)]);
  probe.remove();
  return Object.fromEntries(entries) as Colours;
}
