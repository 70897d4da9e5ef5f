// A result as a chart: columns of numbers along the rows, in their order. What it shows stands in
// the table of the rows, too.
import { field, h, note, put, select } from "./dom.js";
import { countText, shortCount } from "./formats.js";
import { roundUp, svg } from "./line_chart.js";
import { cellText, isNumber } from "./sql_values.js";

const WIDTH = 900;
const HEIGHT = 300;
const LEFT = 70;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 28;
const MOST_ROWS = 2000;
const MOST_LINES = 6;
const FEW_ROWS = 40; // of which each is a bar, as long as nobody wants lines
const LABEL = 22; // characters

const numberOf = (value) => {
  const number = value === null || typeof value === "boolean" ? NaN : Number(value);
  return Number.isFinite(number) ? number : null;
};

const nameOf = (column, i) => column.name || `_${i}`;

const signedUp = (value) => (value < 0 ? -roundUp(-value) : value === 0 ? 0 : roundUp(value));

// The scale from the least to the greatest, with nought in it.
function scaleOf(values) {
  const low = signedUp(Math.min(0, ...values));
  const high = signedUp(Math.max(0, ...values)) || (low === 0 ? 1 : 0);
  const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  return { low, high, y };
}

function axes({ low, high, y }, labels) {
  const text = (at, height, words, anchor) =>
    svg("text", { class: "axis", x: at, y: height, "text-anchor": anchor }, words);
  const lines = [low, (low + high) / 2, high].map((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    text(LEFT - 6, y(value) + 4, shortCount(value), "end"),
  ]);
  const ends = [
    [LEFT, labels[0], "start"],
    [WIDTH - RIGHT, labels.at(-1), "end"],
  ];
  return [lines, ends.map(([at, words, anchor]) => text(at, HEIGHT - 8, words, anchor))];
}

function bars(series, count, scale) {
  const step = (WIDTH - LEFT - RIGHT) / count;
  const width = Math.max(1, (0.8 * step) / series.length);
  return series.map(({ values }, which) =>
    values.map((value, i) => {
      if (value === null) return [];
      const x = LEFT + i * step + 0.1 * step + which * width;
      const [top, end] = [scale.y(Math.max(value, 0)), scale.y(Math.min(value, 0))];
      const shape = { x, y: top, width, height: Math.max(end - top, 0.5) };
      return svg("rect", { class: `bar line-${which + 1}`, ...shape });
    }),
  );
}

function lines(series, count, scale) {
  const step = count > 1 ? (WIDTH - LEFT - RIGHT) / (count - 1) : 0;
  return series.map(({ values }, which) => {
    const place = (value, i) => `${(LEFT + i * step).toFixed(1)} ${scale.y(value).toFixed(1)}`;
    const d = values
      .map((value, i) => {
        if (value === null) return "";
        const begins = i === 0 || values[i - 1] === null;
        return `${begins ? "M" : "L"}${place(value, i)}${begins ? "h0" : ""}`;
      })
      .join("");
    return svg("path", { class: `line line-${which + 1}`, d });
  });
}

const shorten = (text) => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

function summaryOf(series) {
  return series
    .map(({ name, values }) => {
      const known = values.filter((value) => value !== null);
      if (known.length === 0) return `${name}: no number`;
      return `${name}: from ${countText(Math.min(...known))} to ${countText(Math.max(...known))}`;
    })
    .join("; ");
}

function picture({ series, labels, isBars }) {
  const values = series.flatMap((each) => each.values.filter((value) => value !== null));
  const scale = scaleOf(values);
  const draw = isBars ? bars : lines;
  return svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `The result as a chart. ${summaryOf(series)}`,
    },
    axes(scale, labels),
    draw(series, labels.length, scale),
  );
}

const legend = (series) =>
  h(
    "ul",
    { class: "legend" },
    series.map(({ name }, i) =>
      h("li", null, h("span", { class: `swatch line-${i + 1}`, "aria-hidden": "true" }), name),
    ),
  );

// The numbers that are shown: check boxes, of which so many can be told apart.
function chooser(numbers, act) {
  const boxes = numbers.map(({ name }, i) => {
    const box = h("input", { type: "checkbox", checked: i < MOST_LINES });
    box.addEventListener("change", act);
    return { box, element: h("label", { class: "check" }, box, name) };
  });
  return {
    element: h(
      "fieldset",
      { class: "checks" },
      h("legend", null, "Shown"),
      boxes.map(({ element }) => element),
    ),
    chosen: () => numbers.filter((_, i) => boxes[i].box.checked).slice(0, MOST_LINES),
  };
}

// An element with the chart; null: there is no column of numbers, or only one row.
export function resultChart(columns, rows) {
  const named = columns.map((column, i) => ({ name: nameOf(column, i), i, of: column }));
  const numbers = named.filter(({ of }) => isNumber(of));
  if (numbers.length === 0 || rows.length < 2) return null;
  const shown = rows.slice(0, MOST_ROWS);
  const along = select(
    named.map(({ name, i }) => [i, name]),
    named.find(({ of }) => !isNumber(of))?.i ?? 0,
  );
  const way = select(
    [
      ["lines", "lines"],
      ["bars", "bars"],
    ],
    rows.length <= FEW_ROWS ? "bars" : "lines",
  );
  const place = h("div", { class: "drawing" });
  const draw = () => {
    const labels = shown.map((row) => shorten(cellText(row[Number(along.value)])));
    const series = checks
      .chosen()
      .map(({ name, i }) => ({ name, values: shown.map((row) => numberOf(row[i])) }));
    put(place, [picture({ series, labels, isBars: way.value === "bars" }), legend(series)]);
  };
  const checks = chooser(numbers, draw);
  for (const each of [along, way]) each.addEventListener("change", draw);
  draw();
  return h(
    "div",
    { class: "card result-chart" },
    h("div", { class: "controls" }, field("Along", along), field("Drawn as", way), checks.element),
    place,
    note(
      "The rows in their order",
      rows.length > MOST_ROWS && `, the first ${countText(MOST_ROWS)} of them`,
      ".",
    ),
  );
}
