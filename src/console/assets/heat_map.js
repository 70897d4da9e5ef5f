// The picture of the heat: time goes right, keys go down, colour is how much. It draws a grid of
// heat_data.js into a canvas, moves over it (mouse, wheel, touch, keys), and tells what the cursor
// is at.
//
// What is seen is a part of the whole: from `x0` to `x1` in milliseconds, and from range `y0` to
// `y1`, both with fractions.
import { escape } from "./bytes.js";
import { h } from "./dom.js";
import { coloursOf, schemeOfPage, stepOf } from "./heat_scale.js";
import { groupsOf, rangesIn, startText } from "./heat_data.js";

const AXIS = 26; // pixels of the times below
const LABEL = 15; // of a line of text
const LEAST_ROWS = 4; // that are seen at least
const LEAST_MS = 2000;
const ZOOM = 1.5;
const BAR = 4; // pixels, of a finding's
const MOST_BARS = 3; // side by side
const SEVERITY_COLOURS = { critical: "--bad", warning: "--warn", info: "--accent" };
const MINUTE = 60_000,
  HOUR = 60 * MINUTE,
  DAY = 24 * HOUR;
const TICKS = [
  [1000, 5000, 15_000, 30_000],
  [1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  [1, 2, 6, 12].map((count) => count * HOUR),
  [1, 2, 7].map((count) => count * DAY),
].flat();

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

// Widths of the two columns of prefixes and of the one of keys.
const guttersFor = (width) =>
  width < 560 ? [0, 0, 84] : width < 1000 ? [0, 76, 120] : [110, 84, Math.min(300, width / 7)];

function tickText(time, step) {
  const text = new Date(time).toISOString();
  if (step >= DAY) return text.slice(5, 10);
  if (time % DAY === 0) return text.slice(5, 10);
  return step >= MINUTE ? text.slice(11, 16) : text.slice(11, 19);
}

export class HeatMap {
  // `onCell(cell, isHover)` is told what the cursor is at, or null, and gives lines about it;
  // `onOpen(range)` is what was asked to be opened.
  constructor({ onCell, onOpen }) {
    Object.assign(this, { onCell, onOpen });
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.tip = h("div", { class: "tip heat-tip", hidden: true });
    this.element = h(
      "div",
      {
        class: "heat-map",
        tabindex: "0",
        role: "application",
        "aria-label":
          "Heat map. Arrow keys move over ranges and times, plus and minus zoom, 0 shows all, " +
          "Enter opens the rows.",
      },
      this.canvas,
      this.tip,
    );
    this.look = { brightness: 0, contrast: 0.6 };
    this.view = null;
    this.cell = null;
    this.marked = null; // {first, past}: a range that somebody was pointed to
    this.findings = []; // the advisor's, of parts of the table: {range, severity}
    this.isMoved = false;
    this.pointers = new Map();
    this.listen();
  }

  // --- what is shown ---

  show(grid, values, most) {
    const before = this.grid;
    Object.assign(this, { grid, values, most });
    const isSame = before && before.starts.length === grid.starts.length;
    if (!this.view || !this.isMoved) this.view = this.whole();
    else if (!isSame) Object.assign(this.view, { y0: 0, y1: grid.starts.length });
    if (this.cell && (!isSame || this.cell.column >= grid.columns.length)) this.cell = null;
    this.draw();
  }

  setLook(look) {
    Object.assign(this.look, look);
    this.draw();
  }

  setFindings(findings) {
    this.findings = findings;
    this.draw();
  }

  mark(ranges) {
    this.marked = ranges;
    this.draw();
  }

  // From what was counted first: a table that is young fills the picture.
  whole() {
    const { grid } = this;
    const from = grid.columns[0]?.from ?? grid.from;
    const to = Math.max(grid.to, grid.columns.at(-1)?.to ?? grid.to, from + LEAST_MS);
    return { x0: from, x1: to, y0: 0, y1: grid.starts.length };
  }

  showAll() {
    this.isMoved = false;
    this.view = this.whole();
    this.draw();
  }

  // --- places ---

  get area() {
    const [a, b, c] = guttersFor(this.width);
    const left = a + b + c;
    return { left, width: Math.max(1, this.width - left), height: this.height - AXIS };
  }

  xOf(time) {
    const { left, width } = this.area;
    return left + ((time - this.view.x0) / (this.view.x1 - this.view.x0)) * width;
  }

  yOf(range) {
    return ((range - this.view.y0) / (this.view.y1 - this.view.y0)) * this.area.height;
  }

  timeAt(x) {
    const { left, width } = this.area;
    return this.view.x0 + ((x - left) / width) * (this.view.x1 - this.view.x0);
  }

  rangeAt(y) {
    return this.view.y0 + (y / this.area.height) * (this.view.y1 - this.view.y0);
  }

  // {column, range} there; column -1 where there is none.
  cellAt(x, y) {
    const { left, height } = this.area;
    if (!this.grid || x < 0 || x > this.width || y < 0 || y >= height) return null;
    const time = this.timeAt(Math.max(x, left));
    const range = clamp(Math.floor(this.rangeAt(y)), 0, this.grid.starts.length - 1);
    const column =
      x < left ? -1 : this.grid.columns.findIndex((each) => each.from <= time && time < each.to);
    return { column, range, x, time: x < left ? 0 : time };
  }

  // --- moving ---

  move(view) {
    const whole = this.whole();
    const span = clamp(view.x1 - view.x0, LEAST_MS, whole.x1 - whole.x0);
    const rows = clamp(view.y1 - view.y0, Math.min(LEAST_ROWS, whole.y1), whole.y1);
    const x0 = clamp(view.x0, whole.x0, whole.x1 - span),
      y0 = clamp(view.y0, 0, whole.y1 - rows);
    this.view = { x0, x1: x0 + span, y0, y1: y0 + rows };
    this.isMoved = span < whole.x1 - whole.x0 || rows < whole.y1;
    this.draw();
  }

  // By a factor, so that what is at (x, y) stays there.
  zoom(factor, x, y) {
    const { x0, x1, y0, y1 } = this.view;
    const time = this.timeAt(x),
      range = this.rangeAt(y);
    this.move({
      x0: time - (time - x0) / factor,
      x1: time + (x1 - time) / factor,
      y0: range - (range - y0) / factor,
      y1: range + (y1 - range) / factor,
    });
  }

  zoomAtCursor(factor) {
    const { left, width, height } = this.area;
    const at = this.cell && this.placeOf(this.cell);
    this.zoom(factor, at?.x ?? left + width / 2, at?.y ?? height / 2);
  }

  pan(dx, dy) {
    const { width, height } = this.area;
    const time = (dx / width) * (this.view.x1 - this.view.x0),
      rows = (dy / height) * (this.view.y1 - this.view.y0);
    const { x0, x1, y0, y1 } = this.view;
    this.move({ x0: x0 - time, x1: x1 - time, y0: y0 - rows, y1: y1 - rows });
  }

  placeOf(cell) {
    const column = this.grid.columns[cell.column];
    return {
      x: cell.x ?? (column ? this.xOf((column.from + column.to) / 2) : this.area.left),
      y: this.yOf(cell.range + 0.5),
    };
  }

  // Brings the ranges into sight, with some of what is around them.
  reveal({ first, past }) {
    const around = Math.max(LEAST_ROWS, (past - first) * 2);
    const { x0, x1 } = this.view;
    this.marked = { first, past };
    this.move({ x0, x1, y0: first - around, y1: past + around });
    const column = this.hottestColumn(first, past);
    this.setCell({ column, range: this.hottestRange(column, first, past) });
  }

  hottestColumn(first, past) {
    let best = this.grid.columns.length - 1,
      most = -1;
    this.values.forEach((column, i) => {
      for (let range = first; range < past; range++)
        if ((column[range] ?? -1) > most) [best, most] = [i, column[range]];
    });
    return best;
  }

  hottestRange(column, first, past) {
    const values = this.values[column] ?? [];
    let best = first;
    for (let range = first; range < past; range++)
      if ((values[range] ?? -1) > (values[best] ?? -1)) best = range;
    return best;
  }

  // --- the cursor ---

  setCell(cell, isHover = false) {
    this.cell = cell;
    this.draw();
    const lines = this.onCell(cell, isHover);
    this.tip.hidden = !cell || !lines;
    if (this.tip.hidden) return;
    this.tip.replaceChildren(...lines.map((line, i) => h(i === 0 ? "strong" : "div", null, line)));
    const { x, y } = this.placeOf(cell);
    const isRight = x > this.width / 2;
    const wide = this.tip.offsetWidth + 14,
      high = this.tip.offsetHeight + 14;
    this.tip.style.left = `${clamp(isRight ? x - wide : x + 14, 0, this.width - wide + 14)}px`;
    this.tip.style.top = `${clamp(y + 14, 0, Math.max(0, this.height - high))}px`;
  }

  step(columns, ranges) {
    const { grid, view } = this;
    if (!grid || grid.columns.length === 0) return;
    const cell = this.cell ?? {
      column: grid.columns.length - (columns === 0 ? 1 : columns > 0 ? 1 : 0),
      range: Math.floor(view.y0) - (ranges > 0 ? 1 : 0),
    };
    const column = clamp(Math.max(0, cell.column) + columns, 0, grid.columns.length - 1);
    const range = clamp(cell.range + ranges, 0, grid.starts.length - 1);
    this.keepInSight(column, range);
    this.setCell({ column, range });
  }

  keepInSight(column, range) {
    const { x0, x1, y0, y1 } = this.view;
    const { from, to } = this.grid.columns[column];
    const dx = from < x0 ? from - x0 : to > x1 ? to - x1 : 0;
    const dy = range < y0 ? range - y0 : range + 1 > y1 ? range + 1 - y1 : 0;
    if (dx !== 0 || dy !== 0) this.move({ x0: x0 + dx, x1: x1 + dx, y0: y0 + dy, y1: y1 + dy });
  }

  // --- what somebody does ---

  listen() {
    const on = (name, act, more) => this.element.addEventListener(name, act, more);
    on("keydown", (event) => this.onKey(event));
    on("wheel", (event) => this.onWheel(event), { passive: false });
    on("pointerdown", (event) => this.onDown(event));
    on("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) on(name, (event) => this.onUp(event));
    on("pointerleave", (event) => {
      if (event.pointerType === "mouse" && this.pointers.size === 0) this.setCell(null, true);
    });
    on("blur", () => this.setCell(null, true));
    on("dblclick", (event) => {
      const { x, y } = this.pointOf(event);
      this.zoom(event.shiftKey ? 1 / ZOOM : ZOOM * ZOOM, x, y);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.grid) return;
    const far = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowLeft: () => this.step(-far, 0),
      ArrowRight: () => this.step(far, 0),
      ArrowUp: () => this.step(0, -far),
      ArrowDown: () => this.step(0, far),
      PageUp: () => this.step(0, -20),
      PageDown: () => this.step(0, 20),
      Home: () => this.step(-this.grid.columns.length, 0),
      End: () => this.step(this.grid.columns.length, 0),
      "+": () => this.zoomAtCursor(ZOOM),
      "=": () => this.zoomAtCursor(ZOOM),
      "-": () => this.zoomAtCursor(1 / ZOOM),
      0: () => this.showAll(),
      Enter: () => this.cell && this.onOpen(this.cell.range),
      Escape: () => {
        this.marked = null;
        this.setCell(null);
      },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // Where nobody has gone into the map the wheel scrolls the page.
  onWheel(event) {
    if (!this.grid || (!event.ctrlKey && document.activeElement !== this.element)) return;
    event.preventDefault();
    const { x, y } = this.pointOf(event);
    if (event.shiftKey) this.pan(-event.deltaX - event.deltaY, 0);
    else this.zoom(2 ** (-event.deltaY / 300), x, y);
  }

  pointOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  onDown(event) {
    if (!this.grid) return;
    this.element.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.pointOf(event));
    if (event.pointerType !== "mouse") this.hover(event);
  }

  onMove(event) {
    if (!this.grid) return;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.hover(event);
      return;
    }
    const now = this.pointOf(event);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (other) this.pinch(before, now, other);
    else this.pan(now.x - before.x, now.y - before.y);
    this.hover(event);
  }

  pinch(before, now, other) {
    const far = (a, b) => Math.max(10, Math.hypot(a.x - b.x, a.y - b.y));
    const factor = far(now, other) / far(before, other);
    this.zoom(factor, (now.x + other.x) / 2, (now.y + other.y) / 2);
  }

  onUp(event) {
    this.pointers.delete(event.pointerId);
  }

  hover(event) {
    const { x, y } = this.pointOf(event);
    this.setCell(this.cellAt(x, y), true);
  }

  // --- drawing ---

  draw() {
    if (this.isDue || !this.element.isConnected) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      if (this.element.isConnected) this.drawNow();
    });
  }

  get width() {
    return this.element.clientWidth;
  }

  get height() {
    return this.element.clientHeight;
  }

  drawNow() {
    const { canvas, width, height } = this;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue(name).trim();
    const brush = canvas.getContext("2d");
    brush.scale(ratio, ratio);
    brush.font = `${style.getPropertyValue("--heat-font")} ${style.fontFamily}`.trim();
    brush.textBaseline = "middle";
    this.element.classList.toggle("zoomed", this.isMoved);
    if (!this.grid) return;
    this.drawCells(brush, colour);
    this.drawTimes(brush, colour);
    this.drawKeys(brush, colour);
    this.drawMarks(brush, colour);
    this.drawFindings(brush, colour);
  }

  // One picture of a pixel a cell, stretched: no lines between cells at any size.
  drawCells(brush, colour) {
    const { grid, view, look } = this;
    const { left, width, height } = this.area;
    const colours = coloursOf(schemeOfPage());
    const picture = document.createElement("canvas");
    const first = Math.floor(view.y0),
      past = Math.min(grid.starts.length, Math.ceil(view.y1));
    picture.width = 1;
    picture.height = Math.max(1, past - first);
    const pen = picture.getContext("2d");
    brush.fillStyle = colour("--sunk");
    brush.fillRect(left, 0, width, height);
    brush.save();
    brush.beginPath();
    brush.rect(left, 0, width, height);
    brush.clip();
    brush.imageSmoothingEnabled = false;
    grid.columns.forEach((column, i) => {
      const x0 = Math.round(this.xOf(column.from)),
        x1 = Math.max(x0 + 1, Math.round(this.xOf(column.to)));
      if (x1 < left || x0 > this.width) return;
      const pixels = pen.createImageData(1, picture.height);
      for (let range = first; range < past; range++) {
        const value = this.values[i][range];
        const [r, g, b] = colours[stepOf(value ?? 0, this.most, look)];
        pixels.data.set([r, g, b, 255], 4 * (range - first));
      }
      pen.putImageData(pixels, 0, 0);
      brush.drawImage(picture, x0, this.yOf(first), x1 - x0, this.yOf(past) - this.yOf(first));
    });
    brush.restore();
  }

  drawTimes(brush, colour) {
    const { x0, x1 } = this.view;
    const { left, width, height } = this.area;
    const wanted = ((x1 - x0) / width) * 78;
    const step = TICKS.find((each) => each >= wanted) ?? TICKS.at(-1);
    brush.fillStyle = colour("--soft");
    brush.strokeStyle = colour("--line");
    brush.textAlign = "center";
    for (let time = Math.ceil(x0 / step) * step; time <= x1; time += step) {
      const x = this.xOf(time);
      brush.fillRect(Math.round(x), height, 1, 5);
      if (x > left + 18 && x < this.width - 22)
        brush.fillText(tickText(time, step), x, height + AXIS / 2 + 3);
    }
  }

  // Cut to the width, at its end or, where ends tell texts apart, at its beginning.
  text(brush, words, x, y, width, isEndKept = false) {
    const cut = (size) =>
      size >= words.length
        ? words
        : isEndKept
          ? `…${words.slice(words.length - size)}`
          : `${words.slice(0, size)}…`;
    let low = 0,
      high = words.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (brush.measureText(cut(middle)).width <= width) low = middle;
      else high = middle - 1;
    }
    brush.fillText(cut(low), x, y);
  }

  drawKeys(brush, colour) {
    const { grid, view } = this;
    const [wide, narrow, keys] = guttersFor(this.width);
    const past = Math.min(grid.starts.length, Math.ceil(view.y1));
    brush.textAlign = "left";
    if (narrow > 0) this.drawGroups(brush, colour, wide, narrow);
    brush.fillStyle = colour("--text");
    let free = 0;
    for (let range = Math.max(0, Math.floor(view.y0)); range < past; range++) {
      const y = Math.max(LABEL / 2, this.yOf(range) + Math.min(LABEL / 2, this.rowHeight / 2));
      if (y < free || y > this.area.height - LABEL / 2) continue;
      const words = startText(grid.starts[range]);
      this.text(brush, words, wide + narrow + 6, y, keys - 12, grid.starts[range].length > 0);
      free = y + LABEL + 1;
    }
  }

  get rowHeight() {
    return this.area.height / (this.view.y1 - this.view.y0);
  }

  // What keys begin with: where it is one thing for all that is seen there is no second column.
  drawGroups(brush, colour, wide, narrow) {
    const { starts } = this.grid;
    const groups = groupsOf(starts, 0, starts.length, 0);
    for (const group of groups) {
      const words = escape(group.prefix);
      if (wide > 0) this.drawGroup(brush, colour, group, words, 0, wide);
      else this.drawGroup(brush, colour, group, words, 0, narrow);
      if (wide === 0 || group.past - group.first < 2) continue;
      for (const inner of groupsOf(starts, group.first, group.past, group.size)) {
        const rest = escape(inner.prefix.slice(group.prefix.length));
        this.drawGroup(brush, colour, inner, rest, wide, narrow);
      }
    }
  }

  drawGroup(brush, colour, { first, past }, words, x, width) {
    const { height } = this.area;
    const y0 = clamp(this.yOf(first), 0, height),
      y1 = clamp(this.yOf(past), 0, height);
    if (y1 - y0 < 3) return;
    brush.fillStyle = colour("--sunk");
    brush.fillRect(x, y0 + 0.5, width - 2, y1 - y0 - 1);
    if (y1 - y0 < LABEL || words === "") return;
    brush.fillStyle = colour("--soft");
    this.text(brush, words, x + 5, Math.min(y0 + (y1 - y0) / 2, y1 - LABEL / 2), width - 12);
  }

  // A bar before the cells for each; those of one range lie side by side.
  drawFindings(brush, colour) {
    const { left, height } = this.area;
    const ends = []; // of the bars in each column, in pixels
    for (const { range, severity } of this.findings) {
      const { first, past } = rangesIn(this.grid, range.start.bytes, range.end.bytes);
      const y0 = clamp(this.yOf(first), 0, height - BAR),
        y1 = clamp(this.yOf(past), y0 + BAR, height);
      let column = ends.findIndex((end) => end <= y0);
      if (column < 0) column = ends.length;
      if (column >= MOST_BARS) continue;
      ends[column] = y1;
      brush.fillStyle = colour(SEVERITY_COLOURS[severity]);
      brush.fillRect(left - (BAR + 1) * (column + 1), y0, BAR, y1 - y0);
    }
  }

  drawMarks(brush, colour) {
    const { left, width, height } = this.area;
    if (this.marked) {
      const y0 = clamp(this.yOf(this.marked.first), 0, height - 2),
        y1 = clamp(this.yOf(this.marked.past), y0 + 2, height);
      brush.strokeStyle = colour("--accent");
      brush.lineWidth = 2;
      brush.strokeRect(left + 1, y0, width - 2, y1 - y0);
      brush.fillStyle = colour("--accent");
      brush.fillRect(left - 5, y0, 4, y1 - y0);
    }
    if (!this.cell) return;
    const y = this.yOf(this.cell.range),
      tall = Math.max(3, this.rowHeight);
    const column = this.grid.columns[this.cell.column];
    const x0 = column ? Math.max(left, this.xOf(column.from)) : left,
      x1 = column ? Math.min(left + width, this.xOf(column.to)) : left + width;
    brush.lineWidth = 3;
    brush.strokeStyle = colour("--raised");
    brush.strokeRect(x0 - 1, y - 1, Math.max(4, x1 - x0) + 2, tall + 2);
    brush.lineWidth = 1.5;
    brush.strokeStyle = colour("--text");
    brush.strokeRect(x0 - 1, y - 1, Math.max(4, x1 - x0) + 2, tall + 2);
  }
}
