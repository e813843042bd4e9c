// Plays a run: a slider over its time, and a button that moves it.
import { h, icon } from "../base/dom.ts";
import { microseconds } from "../base/format.ts";
import type { GraphModel } from "./graph_model.ts";

const playFor = 8000; // milliseconds, however short the run was
const positions = 1000;

export class Player {
  readonly element: HTMLElement;
  private readonly slider = h("input", {
    type: "range",
    min: 0,
    max: positions,
    step: 1,
    "aria-label": "Time in the run",
  });
  private readonly button = h("button", { type: "button", class: "icon-button" });
  private readonly label = h("span", { class: "time" });
  private frame = 0;
  private from = 0; // the position and the moment at which playing began
  private began = 0;

  constructor(
    private readonly model: GraphModel,
    private readonly moved: () => void,
  ) {
    this.slider.addEventListener("input", () => {
      this.stop();
      this.move(Number(this.slider.value));
    });
    this.button.addEventListener("click", () => (this.frame ? this.stop() : this.play()));
    this.element = h("div", { class: "player" }, this.button, this.slider, this.label);
    this.showButton();
  }

  /** Another run: it is shown as it ended. There is nothing to play while the server is watched. */
  reset(isWatching: boolean): void {
    this.stop();
    this.element.hidden = isWatching || !this.model.run || this.model.run.records.length === 0;
    this.slider.value = String(positions);
    this.showTime();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.showButton();
  }

  private play(): void {
    this.from = Number(this.slider.value) >= positions ? 0 : Number(this.slider.value);
    this.began = performance.now();
    const step = (now: number) => {
      const position = this.from + (Math.max(0, now - this.began) / playFor) * positions;
      this.slider.value = String(Math.min(positions, position));
      this.move(Math.min(positions, position));
      if (position < positions) this.frame = requestAnimationFrame(step);
      else this.stop();
    };
    this.frame = requestAnimationFrame(step);
    this.showButton();
  }

  private move(position: number): void {
    const { run, end } = this.model;
    if (!run) return;
    const time = run.begin + ((end - run.begin) * position) / positions;
    this.model.setTime(position >= positions ? null : time);
    this.showTime();
    this.moved();
  }

  private showTime(): void {
    const { run, end, time } = this.model;
    if (!run) return;
    const total = microseconds(end - run.begin);
    const text = `${microseconds((time ?? end) - run.begin)} of ${total}`;
    this.label.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  private showButton(): void {
    const name = this.frame ? "Pause" : "Play the run";
    this.button.replaceChildren(icon(this.frame ? "pause" : "play"));
    this.button.setAttribute("aria-label", name);
    this.button.title = name;
  }
}
