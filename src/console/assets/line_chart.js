// A small chart of lines over time, in SVG, and the same as a table of figures. The drawing is for
// the eye; who cannot see it hears its summary, and finds the figures in the table.
import { h, table } from "./dom.js";

const WIDTH = 360;
const HEIGHT = 132;
const LEFT = 52;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const LEAST_MS = 30_000; // what the axis of time shows, at least
const STEPS = [1, 2, 2.5, 5, 10];

function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat(Infinity));
  return element;
}

// The next number that is round, so that half of it is readable, too; bytes, in units of 1,024.
function roundUp(value, base) {
  if (value <= 0) return base === 1024 ? 1024 : 1;
  const unit = base === 1024 ? 1024 ** Math.floor(Math.log(value) / Math.log(1024)) : 1;
  const scaled = value / unit;
  const power = 10 ** Math.floor(Math.log10(scaled));
  return STEPS.find((step) => step * power >= scaled) * power * unit;
}

function agoText(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s ago`;
  return `${Math.round(seconds / 60)} min ago`;
}

// Where there is no value the line is broken.
function pathOf(samples, key, x, y) {
  let path = "";
  let isBroken = true;
  for (const sample of samples) {
    const value = sample.values[key];
    if (value === undefined || value === null) {
      isBroken = true;
      continue;
    }
    path += `${isBroken ? "M" : "L"}${x(sample.time).toFixed(1)} ${y(value).toFixed(1)}`;
    isBroken = false;
  }
  return path;
}

const valuesOf = (samples, key) =>
  samples.map(({ values }) => values[key]).filter((each) => each !== undefined && each !== null);

function figures(samples, lines, format) {
  const rows = lines.map(({ key, name }) => {
    const values = valuesOf(samples, key);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const cells = values.length
      ? [values.at(-1), Math.min(...values), mean, Math.max(...values)].map(format)
      : ["–", "–", "–", "–"];
    return [name, ...cells];
  });
  return rows;
}

// {title, note, lines: [{key, name}], samples: [{time, values}], format, base, most}
// `most` is the least top of the axis. At most six lines can be told apart.
export function draw(chart, place) {
  const { lines, samples, format } = chart;
  const shown = lines.filter(({ key }) => valuesOf(samples, key).length > 0);
  const until = samples.at(-1)?.time ?? Date.now();
  const from = Math.min(samples[0]?.time ?? until, until - LEAST_MS);
  const largest = Math.max(chart.most ?? 0, ...shown.flatMap(({ key }) => valuesOf(samples, key)));
  const top = chart.most === largest ? largest : roundUp(largest, chart.base);
  const x = (time) => LEFT + ((time - from) / (until - from)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const rows = figures(samples, lines, format);
  const summary = rows.map((row) => `${row[0]} ${row[1]}, most ${row[4]}`).join("; ");
  const grid = [0, top / 2, top].map((value) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "axis", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
  const times = [
    s("text", { class: "axis", x: LEFT, y: HEIGHT - 4 }, agoText(until - from)),
    s("text", { class: "axis", x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, "now"),
  ];
  place.drawing.replaceChildren(
    s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "img",
        "aria-label": `${chart.title}: ${summary}`,
      },
      grid,
      times,
      lines.map(({ key }, i) =>
        s("path", { class: `line line-${i + 1}`, d: pathOf(samples, key, x, y) }),
      ),
    ),
  );
  place.legend.replaceChildren(
    ...rows.map(([name, last], i) =>
      h(
        "li",
        null,
        h("span", { class: `swatch line-${i + 1}`, "aria-hidden": "true" }),
        name,
        " ",
        h("b", null, last),
      ),
    ),
  );
  if (place.details.open) showFigures(chart.title, rows, place);
  place.details.ontoggle = () => place.details.open && showFigures(chart.title, rows, place);
}

function showFigures(title, rows, place) {
  const columns = [
    { title: "Line" },
    ...["Now", "Least", "Mean", "Most"].map((each) => ({ title: each, number: true })),
  ];
  place.figures.replaceChildren(table(`${title}, in figures`, columns, rows));
}

// An empty card, for `draw`.
export function card(title, note) {
  const drawing = h("div", { class: "drawing" });
  const legend = h("ul", { class: "legend" });
  const shown = h("div", null);
  const details = h("details", null, h("summary", null, "In figures"), shown);
  const element = h(
    "section",
    { class: "card chart", "aria-label": title },
    h("h2", null, title),
    h("p", { class: "note" }, note),
    drawing,
    legend,
    details,
  );
  return { element, drawing, legend, details, figures: shown };
}
