// The picture of the plan: drawn at most once a frame, moved by mouse, fingers and keys.
import { fitted, panned, revealing, zoomed, type Camera } from "./camera.ts";
import { colours, type Colours } from "./colours.ts";
import { draw } from "./drawing.ts";
import type { GraphModel } from "./graph_model.ts";
import { boxAt, boxHeight, boxWidth, neighbour, type Direction } from "./layout.ts";

export interface CanvasActions {
  selected(byKeyboard: boolean): void;
  toggle(): void;
}

const keyStep = 60; // pixels
const zoomStep = 1.25;
const readableScale = 0.85;
const controlsHeight = 48; // pixels, of the buttons over the lower edge
const clickSlack = 5; // pixels that a pointer may move in a click

const directions: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

export class GraphCanvas {
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private palette: Colours | null = null;
  private frame = 0;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private moved = 0;
  private readonly context: CanvasRenderingContext2D;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: GraphModel,
    private readonly actions: CanvasActions,
  ) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws on no canvas");
    this.context = context;
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event, true));
    canvas.addEventListener("pointercancel", (event) => this.release(event, false));
    canvas.addEventListener("dblclick", () => this.actions.toggle());
  }

  private get window() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  private resize(): void {
    this.canvas.width = Math.round(this.canvas.clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(this.canvas.clientHeight * devicePixelRatio);
    this.redraw();
  }

  coloursChanged(): void {
    this.palette = null;
    this.redraw();
  }

  redraw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      this.draw(now);
    });
  }

  private draw(now: number): void {
    const { model } = this;
    if (!model.layout) this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!model.layout || this.canvas.clientWidth === 0) return;
    this.palette ??= colours();
    draw(this.context, {
      scene: model.scene,
      layout: model.layout,
      camera: this.camera,
      window: this.window,
      colours: this.palette,
      selected: model.selectedBox,
      matches: model.matchingBoxes,
      headings: model.headings(),
      state: (box) => model.boxState(box, now),
    });
    if (model.isLit(now)) this.redraw();
  }

  /** All of the plan, or as much as stays readable. */
  fit(): void {
    if (this.model.layout) this.camera = fitted(this.model.layout, this.window);
    this.redraw();
  }

  zoom(closer: boolean): void {
    const { width, height } = this.window;
    this.camera = zoomed(this.camera, closer ? zoomStep : 1 / zoomStep, width / 2, height / 2);
    this.redraw();
  }

  /** Moves as little as needed to show a box. */
  reveal(box: number | null): void {
    const { layout } = this.model;
    if (!layout || box === null || this.canvas.clientWidth === 0) return this.redraw();
    const size = { width: boxWidth, height: boxHeight };
    this.camera = revealing(this.camera, layout.x[box] ?? 0, layout.y[box] ?? 0, size, {
      ...this.window,
      height: this.window.height - controlsHeight,
    });
    this.redraw();
  }

  /** As `reveal`, and close enough to read. */
  show(box: number | null): void {
    const { width, height } = this.window;
    const factor = readableScale / this.camera.scale;
    if (factor > 1) this.camera = zoomed(this.camera, factor, width / 2, height / 2);
    this.reveal(box);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = directions[event.key];
    if (direction) {
      if (event.shiftKey) this.pan(direction);
      else this.step(direction);
    } else if (event.key === "+" || event.key === "=") this.zoom(true);
    else if (event.key === "-") this.zoom(false);
    else if (event.key === "0") this.fit();
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.model.scene.boxes.length - 1);
    else if (event.key === "Enter" || event.key === " ") this.actions.toggle();
    else return;
    event.preventDefault();
  }

  private pan(direction: Direction): void {
    const along = { up: [0, 1], down: [0, -1], left: [1, 0], right: [-1, 0] }[direction];
    this.camera = panned(this.camera, (along[0] ?? 0) * keyStep, (along[1] ?? 0) * keyStep);
    this.redraw();
  }

  private step(direction: Direction): void {
    const { layout, selectedBox } = this.model;
    if (!layout) return;
    this.choose(selectedBox === null ? 0 : neighbour(layout, selectedBox, direction));
  }

  private choose(box: number): void {
    if (!this.model.scene.boxes[box]) return;
    this.model.selectBox(box);
    this.reveal(box);
    this.actions.selected(true);
  }

  /** The wheel zooms; sideways it pans, as two fingers on a touchpad do. */
  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.camera = panned(this.camera, -(event.deltaX || event.deltaY) * unit, 0);
    } else {
      this.camera = zoomed(
        this.camera,
        Math.exp(-event.deltaY * unit * 0.0015),
        event.offsetX,
        event.offsetY,
      );
    }
    this.redraw();
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = this.pointers.size > 1 ? Infinity : 0;
  }

  private move(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.offsetX, y: event.offsetY };
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    this.moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (other) {
      const apart = (from: { x: number; y: number }) =>
        Math.max(1, Math.hypot(from.x - other.x, from.y - other.y));
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
      this.camera = zoomed(this.camera, apart(now) / apart(before), middle.x, middle.y);
      this.camera = panned(this.camera, (now.x - before.x) / 2, (now.y - before.y) / 2);
    } else {
      this.camera = panned(this.camera, now.x - before.x, now.y - before.y);
    }
    this.redraw();
  }

  private release(event: PointerEvent, isClick: boolean): void {
    const known = this.pointers.delete(event.pointerId);
    if (!known || !isClick || this.moved > clickSlack || !this.model.layout) return;
    const { x, y, scale } = this.camera;
    this.model.selectBox(
      boxAt(this.model.layout, x + event.offsetX / scale, y + event.offsetY / scale),
    );
    this.actions.selected(false);
    this.redraw();
  }
}
