// Draws a plan on a canvas: only what the window shows, and only as much as its size lets one read.
import { microseconds } from "../base/format.ts";
import type { Camera, Size } from "./camera.ts";
import type { Colours } from "./colours.ts";
import {
  boxHeight,
  boxWidth,
  rankHeight,
  visibleRanks,
  type Frame,
  type Layout,
} from "./layout.ts";
import type { Edge, Scene } from "./scene.ts";
import type { Phase } from "./timeline.ts";

/** What a box shows beyond its names. */
export interface BoxState {
  phase: Phase | "unknown"; // unknown: no run is shown
  time: number | null; // microseconds
  heat: number; // 0 to 1: its time, by the longest
  glow: number; // 0 to 1: ran just now
  trouble: boolean; // values that are not finite
}

export interface Picture {
  scene: Scene;
  layout: Layout;
  camera: Camera;
  window: Size;
  colours: Colours;
  selected: number | null;
  matches: ReadonlySet<number> | null; // boxes that a search found; null: no search
  headings: ReadonlyMap<number, string>; // of the splits' frames
  state: (box: number) => BoxState;
}

const readable = { title: 0.38, subtitle: 0.6 }; // least zoom
const font = (size: number, weight = "") => `${weight} ${size}px system-ui, sans-serif`.trim();

const shortened = new Map<string, string>();
const mostShortened = 20000;

/** Text cut to a width, with an ellipsis. Remembered, as measuring takes long. */
function fit(context: CanvasRenderingContext2D, text: string, width: number): string {
  const key = `${context.font}|${width}|${text}`;
  const known = shortened.get(key);
  if (known !== undefined) return known;
  let result = text;
  if (context.measureText(text).width > width) {
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    result = `${text.slice(0, low)}…`;
  }
  if (shortened.size >= mostShortened) shortened.clear();
  shortened.set(key, result);
  return result;
}

export function draw(context: CanvasRenderingContext2D, picture: Picture): void {
  const { camera, window, colours, layout } = picture;
  const pixels = devicePixelRatio;
  context.setTransform(pixels, 0, 0, pixels, 0, 0);
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, window.width, window.height);
  const zoom = camera.scale * pixels;
  context.setTransform(zoom, 0, 0, zoom, -camera.x * zoom, -camera.y * zoom);
  const top = camera.y;
  const bottom = camera.y + window.height / camera.scale;
  for (const frame of layout.frames) drawFrame(context, picture, frame);
  drawEdges(context, picture, top, bottom);
  for (const frame of layout.frames) drawHeading(context, picture, frame);
  const [first, end] = visibleRanks(layout, top, bottom);
  for (let rank = first; rank < end; ++rank) {
    for (const box of layout.ranks[rank] ?? []) drawBox(context, picture, box);
  }
}

function drawFrame(context: CanvasRenderingContext2D, picture: Picture, frame: Frame): void {
  const { colours } = picture;
  context.beginPath();
  context.roundRect(frame.x, frame.y, frame.width, frame.height, 12);
  context.fillStyle = colours.raised;
  context.fill();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.stroke();
}

/** Readable from afar, and on a ground of its own, as edges pass here. */
function drawHeading(
  context: CanvasRenderingContext2D,
  { colours, camera, headings }: Picture,
  frame: Frame,
): void {
  const size = Math.min(44, Math.max(13, 10 / camera.scale));
  const heading = headings.get(frame.split) ?? "";
  context.font = font(size, "600");
  context.fillStyle = colours.ground;
  context.fillRect(frame.x, frame.y - size - 8, context.measureText(heading).width + 4, size + 6);
  context.fillStyle = colours.text;
  context.fillText(heading, frame.x + 2, frame.y - 7);
}

function drawEdges(
  context: CanvasRenderingContext2D,
  picture: Picture,
  top: number,
  bottom: number,
): void {
  const { scene, layout, colours, selected, camera } = picture;
  const y = (box: number) => layout.y[box] ?? 0;
  const seen = ({ from, to }: Edge) =>
    Math.max(y(from), y(to)) >= top - boxHeight && Math.min(y(from), y(to)) <= bottom;
  const chosen = (edge: Edge) => edge.from === selected || edge.to === selected;
  // What inputs feed would cover everything: shown for the selected box only.
  const quiet = ({ from }: Edge) => scene.boxes[from]?.split === -1;
  context.lineWidth = Math.max(1.2, 0.7 / camera.scale);
  context.strokeStyle = colours.control;
  context.beginPath();
  for (const edge of scene.edges)
    if (seen(edge) && !quiet(edge) && !chosen(edge)) edgePath(context, layout, edge);
  context.stroke();
  if (selected === null) return;
  context.lineWidth = Math.max(2.4, 1.4 / camera.scale);
  context.strokeStyle = colours.focus;
  context.beginPath();
  for (const edge of scene.edges) if (chosen(edge) && seen(edge)) edgePath(context, layout, edge);
  context.stroke();
}

/** Edges over more than a rank pass by the boxes between: on the right, or on the side they come from. */
function edgePath(context: CanvasRenderingContext2D, layout: Layout, { from, to }: Edge): void {
  const startX = (layout.x[from] ?? 0) + boxWidth / 2;
  const endX = (layout.x[to] ?? 0) + boxWidth / 2;
  const startY = (layout.y[from] ?? 0) + boxHeight;
  const endY = layout.y[to] ?? 0;
  const ranks = Math.abs((layout.rankOf[to] ?? 0) - (layout.rankOf[from] ?? 0));
  context.moveTo(startX, startY);
  if (ranks <= 1) {
    const bend = Math.max(14, Math.abs(endY - startY) / 2);
    context.bezierCurveTo(startX, startY + bend, endX, endY - bend, endX, endY);
    return;
  }
  const side = startX < endX - boxWidth ? -1 : 1;
  const out = endX + side * (boxWidth / 2 + 8 + Math.min(10, ranks));
  const turn = Math.abs(startX - endX) > boxWidth ? rankHeight : 30;
  context.bezierCurveTo(startX, startY + turn * 0.6, out, startY + turn * 0.15, out, startY + turn);
  context.lineTo(out, endY - 30);
  context.bezierCurveTo(out, endY - 4, endX, endY - 18, endX, endY);
}

function drawBox(context: CanvasRenderingContext2D, picture: Picture, box: number): void {
  const { scene, layout, colours, camera, selected, matches } = picture;
  const x = layout.x[box] ?? 0;
  const y = layout.y[box] ?? 0;
  const { folded, title, subtitle } = scene.boxes[box] ?? {
    folded: false,
    title: "",
    subtitle: "",
  };
  const state = picture.state(box);
  const running = state.phase === "running";
  context.globalAlpha = matches && !matches.has(box) ? 0.3 : 1;
  if (folded) outline(context, x + 4, y + 4, colours.ground, colours.control);
  const ground = running ? colours.accent : state.phase === "done" ? colours.soft : colours.ground;
  outline(context, x, y, ground, state.trouble ? colours.error : colours.control);
  if (state.glow > 0.02 && !running) {
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * state.glow * 0.45;
    outline(context, x, y, colours.accent, null);
    context.globalAlpha = alpha;
  }
  if (state.heat > 0) {
    context.fillStyle = running ? colours.onAccent : colours.accent;
    context.fillRect(x + 8, y + boxHeight - 6, (boxWidth - 16) * state.heat, 3);
  }
  if (camera.scale >= readable.title)
    drawText(context, picture, box, running, state.time, title, subtitle);
  if (box === selected) {
    context.strokeStyle = colours.focus;
    context.lineWidth = Math.max(3, 2 / camera.scale);
    context.beginPath();
    context.roundRect(x - 3, y - 3, boxWidth + 6, boxHeight + 6, 10);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function outline(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  fill: string,
  stroke: string | null,
): void {
  context.beginPath();
  context.roundRect(x, y, boxWidth, boxHeight, 8);
  context.fillStyle = fill;
  context.fill();
  if (!stroke) return;
  context.strokeStyle = stroke;
  context.lineWidth = 1;
  context.stroke();
}

function drawText(
  context: CanvasRenderingContext2D,
  { layout, colours, camera }: Picture,
  box: number,
  running: boolean,
  time: number | null,
  title: string,
  subtitle: string,
): void {
  const x = (layout.x[box] ?? 0) + 10;
  const y = layout.y[box] ?? 0;
  const width = boxWidth - 20;
  let timeWidth = 0;
  if (time !== null && camera.scale >= readable.subtitle) {
    context.font = font(11);
    context.fillStyle = running ? colours.onAccent : colours.text;
    const label = microseconds(time);
    timeWidth = context.measureText(label).width + 8;
    context.fillText(label, x + width - timeWidth + 8, y + 18);
  }
  context.font = font(13, "600");
  context.fillStyle = running ? colours.onAccent : colours.text;
  context.fillText(fit(context, title, Math.round(width - timeWidth)), x, y + 18);
  if (camera.scale < readable.subtitle) return;
  context.font = font(11);
  context.fillStyle = running ? colours.onAccent : colours.text;
  context.fillText(fit(context, subtitle, width), x, y + 34);
}
