// A small chart of lines over time, in SVG, and the same as a table of figures. A cursor goes from
// time to time, by the mouse and by keys, and what is there is told: beside it, and to who does not
// see it.
import { h, note, put, table } from "./dom.js";
import { momentText } from "./formats.js";

const WIDTH = 360;
const HEIGHT = 132;
const LEFT = 72; // room for "1,023 bytes"
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const LEAST_MS = 30_000; // what the axis of time shows, at least
const STEPS = [1, 2, 2.5, 5, 10];

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat(Infinity));
  return element;
}

// The next number that is round, so that half of it is readable, too; bytes, in units of 1,024.
export function roundUp(value, base) {
  if (value <= 0) return base === 1024 ? 1024 : 1;
  const unit = base === 1024 ? 1024 ** Math.floor(Math.log(value) / Math.log(1024)) : 1;
  const scaled = value / unit;
  const power = 10 ** Math.floor(Math.log10(scaled));
  return STEPS.find((step) => step * power >= scaled) * power * unit;
}

function agoText(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 2 * 3600 + 60) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 2 * 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

const isThere = (value) => value !== undefined && value !== null;

// Where there is no value the line is broken; a value between two such places is a dot.
function pathOf(samples, key, x, y) {
  const hasValue = (sample) => sample !== undefined && isThere(sample.values[key]);
  return samples
    .map((sample, i) => {
      if (!hasValue(sample)) return "";
      const isFirst = !hasValue(samples[i - 1]);
      const place = `${x(sample.time).toFixed(1)} ${y(sample.values[key]).toFixed(1)}`;
      return `${isFirst ? "M" : "L"}${place}${isFirst && !hasValue(samples[i + 1]) ? "h0" : ""}`;
    })
    .join("");
}

const valuesOf = (samples, key) => samples.map(({ values }) => values[key]).filter(isThere);

// Of each line its name, and what it is now, at least, on average and at most.
function figuresOf(lines, samples, format) {
  return lines.map(({ key, name }) => {
    const values = valuesOf(samples, key);
    if (values.length === 0) return [name, "–", "–", "–", "–"];
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return [name, ...[values.at(-1), Math.min(...values), mean, Math.max(...values)].map(format)];
  });
}

export class LineChart {
  // `format` says a value in words; `base` is 1024 for bytes, `most` the least top of the axis.
  constructor({ title, note: words, format, base, most = 0 }) {
    Object.assign(this, { title, format, base, most, lines: [], samples: [], time: null });
    this.picture = h("div", null);
    this.tip = h("div", { class: "tip", hidden: true });
    this.drawing = h(
      "div",
      {
        class: "drawing",
        tabindex: "0",
        role: "application",
        "aria-label":
          `${title} by time. The left and right arrows go from time to time, ` +
          "Home and End to the first and the last.",
      },
      this.picture,
      this.tip,
    );
    this.said = h("p", { class: "hidden", "aria-live": "polite" });
    this.legend = h("ul", { class: "legend" });
    this.figures = h("div", null);
    this.details = h("details", null, h("summary", null, "In figures"), this.figures);
    this.details.addEventListener("toggle", () => this.showFigures());
    this.element = h(
      "section",
      { class: "card chart", "aria-label": title },
      h("h2", null, title),
      note(words),
      this.drawing,
      this.said,
      this.legend,
      this.details,
    );
    this.listen();
  }

  // lines: [{key, name}], of which at most six can be told apart; samples: [{time, values}].
  show(lines, samples) {
    Object.assign(this, { lines, samples });
    this.rows = figuresOf(lines, samples, this.format);
    this.setScales();
    this.draw();
    this.showLegend();
    this.showFigures();
    this.showTip();
  }

  setScales() {
    const values = this.lines.flatMap(({ key }) => valuesOf(this.samples, key));
    const largest = Math.max(this.most, ...values);
    const until = this.samples.at(-1)?.time ?? Date.now();
    const from = Math.min(this.samples[0]?.time ?? until, until - LEAST_MS);
    const isWithin = this.most > 0 && largest <= this.most;
    this.top = isWithin ? this.most : roundUp(largest, this.base);
    this.span = until - from;
    this.x = (time) => LEFT + ((time - from) / this.span) * (WIDTH - LEFT - RIGHT);
    this.y = (value) => HEIGHT - BOTTOM - (value / this.top) * (HEIGHT - TOP - BOTTOM);
  }

  // --- the drawing ---

  axes() {
    const at = (x, y, text, anchor) =>
      svg("text", { class: "axis", x, y, "text-anchor": anchor }, text);
    return [
      ...[0, this.top / 2, this.top].map((value) => {
        const y = this.y(value);
        return [
          svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
          at(LEFT - 6, y + 4, this.format(value), "end"),
        ];
      }),
      at(LEFT, HEIGHT - 4, agoText(this.span), "start"),
      at(WIDTH - RIGHT, HEIGHT - 4, "now", "end"),
    ];
  }

  draw() {
    const summary = this.rows.map((row) => `${row[0]} ${row[1]}, most ${row[4]}`).join("; ");
    const paths = this.lines.map(({ key }, i) =>
      svg("path", {
        class: `line line-${i + 1}`,
        d: pathOf(this.samples, key, this.x, this.y),
      }),
    );
    this.pointer = svg("line", { class: "pointer", y1: TOP, y2: HEIGHT - BOTTOM });
    const label = `${this.title}: ${summary}`;
    const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label };
    this.picture.replaceChildren(svg("svg", size, this.axes(), paths, this.pointer));
  }

  showLegend() {
    const item = ([name, last], i) =>
      h(
        "li",
        null,
        h("span", { class: `swatch line-${i + 1}`, "aria-hidden": "true" }),
        name,
        " ",
        h("b", null, last),
      );
    put(this.legend, this.rows.map(item));
  }

  showFigures() {
    if (!this.details.open) return;
    const columns = [
      { title: "Line" },
      ...["Now", "Least", "Mean", "Most"].map((each) => ({ title: each, number: true })),
    ];
    put(this.figures, table(`${this.title}, in figures`, columns, this.rows));
  }

  // --- the cursor ---

  // The index of the sample at which the cursor is; -1: there is none, or it has gone.
  get at() {
    return this.samples.findIndex(({ time }) => time === this.time);
  }

  words({ time, values }) {
    const told = this.lines
      .filter(({ key }) => isThere(values[key]))
      .map(({ key, name }) => `${name} ${this.format(values[key])}`);
    return [`${momentText(time)} UTC`, ...(told.length > 0 ? told : ["nothing"])];
  }

  showTip() {
    const sample = this.samples[this.at];
    this.tip.hidden = sample === undefined;
    this.pointer?.classList.toggle("shown", sample !== undefined);
    if (!sample) return;
    const x = this.x(sample.time);
    this.pointer.setAttribute("x1", x);
    this.pointer.setAttribute("x2", x);
    put(this.tip, this.words(sample).map((line) => h("div", null, line)));
    this.tip.classList.toggle("left", x > WIDTH / 2);
  }

  goTo(index, isSaid) {
    const sample = this.samples[clamp(index, 0, this.samples.length - 1)];
    this.time = sample?.time ?? null;
    this.showTip();
    if (isSaid && sample) this.said.textContent = this.words(sample).join(", ");
  }

  leave() {
    this.time = null;
    this.showTip();
  }

  onKey(event) {
    const at = this.at < 0 ? this.samples.length : this.at;
    const places = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: this.samples.length - 1,
    };
    if (event.key === "Escape") this.leave();
    if (!(event.key in places)) return;
    event.preventDefault();
    this.goTo(places[event.key], true);
  }

  // The nearest sample.
  onPointer(event) {
    const box = this.drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const distances = this.samples.map(({ time }) => Math.abs(this.x(time) - x));
    this.goTo(distances.indexOf(Math.min(...distances)), false);
  }

  listen() {
    this.drawing.addEventListener("keydown", (event) => this.onKey(event));
    this.drawing.addEventListener("pointermove", (event) => this.onPointer(event));
    this.drawing.addEventListener("pointerleave", () => this.leave());
    this.drawing.addEventListener("blur", () => this.leave());
  }
}
