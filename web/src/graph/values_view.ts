// The statistics of an output: figures, a histogram, and some of its values as a picture and as text.
import { h, svg } from "../base/dom.ts";
import { count, quantity } from "../base/format.ts";
import type { Value } from "./trace.ts";

/** What a screen reader hears in place of the bars. */
export function histogramText(value: Value): string {
  if (value.histogram.length === 0 || value.min === null || value.max === null)
    return "No histogram";
  const most = value.histogram.indexOf(Math.max(...value.histogram));
  const width = (value.max - value.min) / value.histogram.length;
  const from = value.min + most * width;
  return `Histogram from ${quantity(value.min)} to ${quantity(value.max)}: most values from ${quantity(from)} to ${quantity(from + width)}`;
}

function histogram(value: Value): Node | null {
  const { histogram: counts, min, max } = value;
  const most = Math.max(...counts);
  if (counts.length === 0 || most <= 0 || min === null || max === null) return null;
  const height = 60;
  const bars = counts.map((amount, index) => {
    const size = amount === 0 ? 0 : Math.max(1, (amount / most) * height);
    return svg("rect", { x: index * 10 + 1, y: height - size, width: 8, height: size });
  });
  const picture = svg(
    "svg",
    {
      class: "histogram",
      viewBox: `0 0 ${counts.length * 10} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": histogramText(value),
    },
    ...bars,
  );
  const ends = h(
    "div",
    { class: "ends", "aria-hidden": "true" },
    h("span", {}, quantity(min)),
    h("span", {}, quantity(max)),
  );
  return h("div", { class: "histogram-box" }, picture, ends);
}

/** Values by colour: one hue above zero, another below, stronger with the magnitude. */
function heatMap(value: Value): Node {
  const most = value.sample
    .flat()
    .reduce<number>((size, entry) => Math.max(size, Math.abs(entry ?? 0)), 0);
  const columns = Math.max(...value.sample.map((row) => row.length));
  const cells = value.sample.flatMap((row, y) =>
    row.map((entry, x) =>
      svg("rect", {
        x,
        y,
        width: 1.02,
        height: 1.02,
        class: entry === null ? "not-finite" : entry >= 0 ? "positive" : "negative",
        "fill-opacity": entry === null || most === 0 ? 1 : (Math.abs(entry) / most).toFixed(3),
      }),
    ),
  );
  const label = `Picture of ${value.sample.length} rows of ${columns} values, chosen evenly`;
  return svg(
    "svg",
    {
      class: "heat-map",
      viewBox: `0 0 ${columns} ${value.sample.length}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    ...cells,
  );
}

function sampleText(value: Value): Node {
  const rows = value.sample.map((row) =>
    h(
      "tr",
      {},
      ...row.map((entry) => h("td", {}, entry === null ? "not finite" : quantity(entry))),
    ),
  );
  return h(
    "details",
    {},
    h("summary", {}, "As numbers"),
    h(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Values as numbers" },
      h("table", { class: "numbers" }, h("tbody", {}, ...rows)),
    ),
  );
}

function figure(name: string, value: string): Node {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

export function valueView(value: Value, title: string): HTMLElement {
  const optional = (amount: number | null) => (amount === null ? "–" : quantity(amount));
  const trouble = value.nan > 0 || value.inf > 0;
  return h(
    "section",
    { class: "value" },
    h("h3", {}, title),
    trouble
      ? h("p", { class: "error" }, `Not finite: ${value.nan} NaN, ${value.inf} infinite.`)
      : null,
    h(
      "dl",
      { class: "figures-grid" },
      figure("min", optional(value.min)),
      figure("max", optional(value.max)),
      figure("mean", optional(value.mean)),
      figure("mean magnitude", optional(value.meanMagnitude)),
    ),
    histogram(value) as HTMLElement | null,
    value.sample.length > 0 ? heatMap(value) : null,
    value.sample.length > 0 ? sampleText(value) : null,
    h(
      "p",
      { class: "hint" },
      `of ${count(value.count, "element")}${value.rows === null ? "" : ` in ${count(value.rows, "row")} that count`}`,
    ),
  );
}
