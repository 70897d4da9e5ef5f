// The key visualizer of a table: its heat by ranges of keys and times, what that means in
// sentences, the busiest ranges as a table, and the hot tablets.
//
// The address says which number is shown (metric) and of how long (span), and may name a range of
// keys (from, to: keys in base64) that is shown first.
import * as api from "./api.js";
import { compare, fromUrl, toUrl } from "./bytes.js";
import { failure, field, fill, h, link, notice, select, table as listing } from "./dom.js";
import { dateText, momentText } from "./formats.js";
import {
  METRICS,
  SIGNS,
  aboutText,
  busiestOf,
  endOf,
  endText,
  gridOf,
  gridQuery,
  rangeText,
  rangesIn,
  signsOf,
  startText,
  totalsOf,
  valuesOf,
} from "./heat_data.js";
import { showFindings, titlesAt } from "./heat_advice.js";
import { HeatMap } from "./heat_map.js";
import { coloursOf, schemeOfPage, valueAt } from "./heat_scale.js";
import { hotTabletsOf } from "./hot_tablets.js";
import { rowsUrl, tableHead, tableUrl } from "./parts.js";

const SECOND = 1000,
  HOUR = 3600 * SECOND;
const SPANS = {
  "1h": { title: "The last hour", words: "the last hour", ms: HOUR, every: 5 * SECOND },
  "6h": { title: "6 hours", words: "six hours", ms: 6 * HOUR, every: 15 * SECOND },
  "4d": { title: "4 days", words: "four days", ms: 96 * HOUR, every: 60 * SECOND },
  "28d": { title: "28 days", words: "28 days", ms: 28 * 24 * HOUR, every: 60 * SECOND },
};
const LATE_MS = 180 * SECOND;
// Of the map: it is as fine as a small answer lets it be, and finest where few ranges are busy.
const MOST = { maxRanges: 256, maxTimes: 240, maxCells: 3500 };
const BUSIEST = 10;
const HOT_TABLETS = 20;
const HOT_EVERY_MS = 20 * SECOND;
const KINDS = {
  WRITE_FRONTIER: "Write frontier",
  HOT_WRITES: "Hot range",
  HOT_READS: "Hot range",
  HOT_KEY: "Hot key",
  READ_PRESSURE: "Read pressure",
  LARGE_ROWS: "Large rows",
  FEW_RANGES: "Too few ranges",
};

function dataUrl(place, start, end) {
  const parameters = {};
  if (start.length > 0) parameters.from = toUrl(start);
  if (end.length > 0) parameters.to = toUrl(end);
  return rowsUrl(place, parameters);
}

const edgeCell = (key, say) =>
  h("td", { class: "key" }, key.length === 0 ? h("em", null, say(key)) : say(key));

// --- what the page knows ---

function viewOf(parameters) {
  const metric = parameters.get("metric"),
    span = parameters.get("span");
  return { metric: metric in METRICS ? metric : "rows", span: span in SPANS ? span : "1h" };
}

// The range that the address names; null: none.
function rangeOf(parameters) {
  const key = (name) => fromUrl(parameters.get(name) ?? "");
  return parameters.has("from") ? { start: key("from"), end: key("to") } : null;
}

async function ask(page, ms, query, signal) {
  const startTime = new Date(Date.now() - ms).toISOString();
  const path = api.pathOf(api.tableName(page.place)).replace("/v2/", "/v1/");
  return api.get(`${path}:heat?${new URLSearchParams({ startTime, ...query })}`, { signal });
}

const overlaps = (a, b) =>
  (a.end.length === 0 || compare(b.start, a.end) < 0) &&
  (b.end.length === 0 || compare(a.start, b.end) < 0);

// The map, and what stands out in it: of late first, then in all of that time.
async function load(page, signal) {
  const metric = METRICS[page.view.metric];
  const [heat, { signs: found }] = await Promise.all([
    ask(page, SPANS[page.view.span].ms, { ...MOST, ...gridQuery(metric) }, signal),
    ask(page, LATE_MS, { maxRanges: 1, maxTimes: 1, fields: SIGNS }, signal),
  ]);
  const grid = { ...gridOf(heat), metric };
  const late = signsOf({ signs: found });
  const isNew = (sign) =>
    !late.some((each) => each.kind === sign.kind && overlaps(each, sign));
  grid.signs = [
    ...late.map((sign) => ({ ...sign, isLate: true })),
    ...grid.signs.filter(isNew),
  ];
  return grid;
}

// Of what is drawn: what was chosen since then is still being asked for.
const metricOf = (page) => page.grid.metric;

function reveal({ map }, ranges) {
  map.reveal(ranges);
  map.element.focus({ preventScroll: true });
  map.element.scrollIntoView({ block: "nearest" });
}

// --- sentences ---

function signs(page) {
  const { grid, place } = page;
  if (grid.signs.length === 0)
    return h(
      "p",
      { class: "note" },
      "Nothing stands out: the load is spread, or there is little of it.",
    );
  return h(
    "ul",
    { class: "heat-signs", "aria-label": "What stands out" },
    grid.signs.map((sign) => {
      const [title, ...rest] = sign.sentence.split(": ");
      return h(
        "li",
        null,
        h(
          "p",
          null,
          h("strong", null, KINDS[sign.kind] ?? title),
          ` ${rest.join(": ")} `,
          h("em", null, sign.isLate ? "Now." : `Of ${SPANS[page.view.span].words}.`),
        ),
        h(
          "span",
          { class: "row-actions" },
          h(
            "button",
            {
              type: "button",
              class: "small",
              "aria-label": `Show on the map: ${title}, ${rangeText(sign.start, sign.end)}`,
              onclick: () => reveal(page, rangesIn(page.grid, sign.start, sign.end)),
            },
            "Show on the map",
          ),
          link(dataUrl(place, sign.start, sign.end), "Data", {
            "aria-label": `Data ${rangeText(sign.start, sign.end)}`,
          }),
        ),
      );
    }),
  );
}

// --- the cursor in words ---

function wordsOf(page, cell) {
  const { grid, values } = page;
  const column = grid.columns[cell.column];
  const range = rangeText(grid.starts[cell.range], endOf(grid, cell.range));
  if (!column) return cell.time ? ["nothing", range, `${momentText(cell.time)} UTC`] : [range];
  const metric = metricOf(page),
    value = values[cell.column][cell.range];
  const until = column.isOpen ? "now" : momentText(column.to).slice(11);
  return [
    value === undefined ? "nothing" : aboutText(metric, value),
    range,
    `${momentText(column.from)} to ${until} UTC`,
    ...titlesAt(page, cell.range),
  ];
}

// --- the busiest ranges ---

function busiest(page) {
  const { grid, values, place } = page;
  const metric = metricOf(page);
  const totals = totalsOf(grid, values, metric);
  const all = totals.reduce((sum, value) => sum + value, 0);
  const order = busiestOf(totals, metric).slice(0, BUSIEST);
  if (order.length === 0)
    return h("p", { class: "note" }, `There is nothing of “${metric.title}” in this time.`);
  const columns = [
    { title: "From" },
    { title: "To (exclusive)" },
    { title: metric.isMost ? "At most" : "On average", number: true },
    { title: metric.isMost ? "" : "Of all", number: true },
    { title: "", class: "narrow" },
  ];
  const rows = order.map(({ value, first, past }) => {
    const start = grid.starts[first],
      end = endOf(grid, past - 1);
    return [
      edgeCell(start, startText),
      edgeCell(end, endText),
      aboutText(metric, value),
      metric.isMost ? "" : `about ${Number(((100 * value) / all).toPrecision(2))} %`,
      h(
        "span",
        { class: "row-actions" },
        h(
          "button",
          {
            type: "button",
            class: "small quiet",
            "aria-label": `Show on the map: ${rangeText(start, end)}`,
            onclick: () => reveal(page, { first, past }),
          },
          "Show",
        ),
        link(dataUrl(place, start, end), "Data", { "aria-label": `Data ${rangeText(start, end)}` }),
      ),
    ];
  });
  const shown = metric.isMost ? columns.filter((_, i) => i !== 3) : columns;
  return listing(
    `Busiest ranges: ${metric.title}`,
    shown,
    metric.isMost ? rows.map((row) => row.filter((_, i) => i !== 3)) : rows,
  );
}

// --- hot tablets ---

async function hotTablets(page, signal) {
  const { place } = page;
  const found = await hotTabletsOf(api.instanceName(place), signal);
  const own = found.filter((hot) => hot.table === api.tableName(place));
  if (own.length === 0)
    return h(
      "p",
      { class: "note" },
      "None in the last day. A tablet is hot when it takes a tenth of the machine's processors " +
        "or more, for a quarter of a minute at least.",
    );
  const columns = [
    { title: "From" },
    { title: "To (exclusive)" },
    { title: "Processors", number: true },
    { title: "When (UTC)", class: "time" },
    { title: "", class: "narrow" },
  ];
  const rows = own
    .toSorted((a, b) => Date.parse(b.startTime) - Date.parse(a.startTime))
    .slice(0, HOT_TABLETS)
    .map(({ start, end, percent, startTime, endTime }) => {
      const when = `${dateText(startTime)} to ${dateText(endTime).slice(11)}`;
      return [
        edgeCell(start, startText),
        edgeCell(end, endText),
        `${percent.toFixed(0)} %`,
        when,
        link(dataUrl(place, start, end), "Data", { "aria-label": `Data ${rangeText(start, end)}` }),
      ];
    });
  return listing("Hot tablets", columns, rows);
}

// --- the controls ---

function legend(page) {
  const canvas = h("canvas", { class: "heat-scale", width: 256, height: 1, "aria-hidden": "true" });
  const words = h("span", { class: "heat-legend-words" });
  const draw = () => {
    if (!page.grid) return;
    const brush = canvas.getContext("2d");
    coloursOf(schemeOfPage()).forEach(([r, g, b], i) => {
      brush.fillStyle = `rgb(${r} ${g} ${b})`;
      brush.fillRect(i, 0, 1, 1);
    });
    const say = (part) => metricOf(page).say(valueAt(part, page.most, page.map.look));
    words.replaceChildren(
      ...(page.most > 0
        ? [h("span", null, "0"), h("span", null, say(0.5)), h("span", null, say(1))]
        : [h("span", null, "nothing")]),
    );
  };
  return { element: h("div", { class: "heat-legend" }, canvas, words), draw };
}

function slider(name, { min, max, step, value }, act) {
  const input = h("input", { type: "range", value: String(value) });
  Object.assign(input, { min, max, step, value });
  input.addEventListener("input", () => act(Number(input.value)));
  return field(name, input);
}

function controls(page, again) {
  const metric = select(
    Object.entries(METRICS).map(([id, { title }]) => [id, title]),
    page.view.metric,
  );
  const span = select(
    Object.entries(SPANS).map(([id, { title }]) => [id, title]),
    page.view.span,
  );
  const choose = (isNewTime) => {
    page.view = { metric: metric.value, span: span.value };
    const search = new URLSearchParams(page.view).toString();
    history.replaceState(null, "", tableUrl(page.place, `/heat?${search}`));
    if (isNewTime) page.map.isMoved = false;
    again();
  };
  metric.addEventListener("change", () => choose(false));
  span.addEventListener("change", () => choose(true));
  const refreshes = h("input", { type: "checkbox", checked: true });
  refreshes.addEventListener("change", () => (page.isLive = refreshes.checked));
  const look = (name) => (value) => {
    page.map.setLook({ [name]: value });
    page.legend.draw();
  };
  const { brightness, contrast } = page.map.look;
  return h(
    "div",
    { class: "controls heat-controls", role: "group", "aria-label": "What is shown" },
    field("Shown", metric),
    field("Of", span),
    slider("Brightness", { min: -4, max: 8, step: 0.25, value: brightness }, look("brightness")),
    slider("Contrast", { min: 0.2, max: 2, step: 0.05, value: contrast }, look("contrast")),
    h("label", { class: "check" }, refreshes, " Refresh by itself"),
  );
}

function buttons(map) {
  const act = (text, label, onclick) =>
    h("button", { type: "button", class: "small", "aria-label": label, onclick }, text);
  return h(
    "div",
    { class: "heat-buttons" },
    act("+", "Zoom in", () => map.grid && map.zoomAtCursor(1.5)),
    act("−", "Zoom out", () => map.grid && map.zoomAtCursor(1 / 1.5)),
    act("All", "Show all of it", () => map.grid && map.showAll()),
  );
}

// --- what is there if there is no heat ---

function emptyNotice(page) {
  if (!page.grid.counts)
    return notice(
      "warning",
      "Nothing is counted",
      "The server was started with --heat=false. Without it reads and writes are counted by " +
        "ranges of keys.",
    );
  return notice(
    "empty",
    "Nobody has read or written rows in this time",
    "Do either, and it shows here within seconds; this page refreshes by itself. " +
      "examples/hotspots of the source tree has three loads that are worth a look.",
    page.view.span !== "28d" && h("p", null, "Or choose a longer time above."),
  );
}

// --- the page ---

// What is the same as before stays, and with it who is at a button of it.
function drawBelow(page, parts) {
  const told = page.grid.signs.map((sign) => [sign.sentence, sign.isLate]);
  const text = JSON.stringify([told, page.view.span]);
  if (text !== page.signsText) parts.signs.replaceChildren(signs(page));
  page.signsText = text;
  if (!parts.busiest.contains(document.activeElement)) parts.busiest.replaceChildren(busiest(page));
}

function draw(page, parts) {
  const metric = metricOf(page);
  page.values = valuesOf(page.grid, metric);
  page.most = page.values.reduce(
    (most, column) => column.reduce((a, b) => Math.max(a, b ?? 0), most),
    0,
  );
  const isEmpty = page.grid.columns.length === 0;
  parts.empty.replaceChildren(isEmpty ? emptyNotice(page) : "");
  parts.picture.hidden = parts.below.hidden = isEmpty;
  parts.signs.hidden = isEmpty;
  if (isEmpty) return;
  page.map.show(page.grid, page.values, page.most);
  page.legend.draw();
  drawBelow(page, parts);
  parts.when.textContent = `As of ${momentText(page.grid.to)} UTC`;
}

function partsOf(page) {
  const parts = {
    wrong: h("div", null),
    empty: h("div", null),
    signs: h("div", { class: "heat-sentences" }),
    when: h("span", { class: "note" }),
    busiest: h("div", null),
    hot: h("div", null),
    advice: h("div", { class: "heat-advice" }),
    cursor: h("p", { class: "hidden", "aria-live": "polite" }),
  };
  parts.picture = h(
    "div",
    { class: "heat-picture", hidden: true },
    page.map.element,
    h("div", { class: "heat-foot" }, page.legend.element, parts.when, buttons(page.map)),
    h(
      "p",
      { class: "note heat-help" },
      "Drag to move, double-click or pinch to zoom; the wheel zooms once the map was clicked. " +
        "By keys: arrows, with Shift ten at a time, + and −, 0 for all, Enter for the rows.",
    ),
    parts.cursor,
  );
  parts.below = h(
    "div",
    { hidden: true },
    parts.advice,
    h("h2", null, "Busiest ranges"),
    parts.busiest,
    h("h2", null, "Hot tablets"),
    parts.hot,
  );
  return parts;
}

function mapOf(page) {
  return new HeatMap({
    onCell: (cell, isHover) => {
      if (!cell) return null;
      const words = wordsOf(page, cell);
      if (!isHover) page.parts.cursor.textContent = words.join(", ");
      return words;
    },
    onOpen: (range) => {
      location.hash = dataUrl(page.place, page.grid.starts[range], endOf(page.grid, range));
    },
  });
}

// Asks again and again while the page is to be seen.
function refreshing(page, refresh, signal) {
  const timer = setInterval(() => {
    const isDue = Date.now() - page.loadedAt >= SPANS[page.view.span].every;
    if (page.isLive && isDue && document.visibilityState === "visible") refresh();
  }, SECOND);
  const hot = setInterval(() => {
    if (!page.isLive || document.visibilityState !== "visible") return;
    if (page.parts.hot.contains(document.activeElement)) return;
    hotTablets(page, signal).then(
      (found) => page.parts.hot.replaceChildren(found),
      () => {}, // what was shown stays, and the map says what is wrong
    );
  }, HOT_EVERY_MS);
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    clearInterval(hot);
  });
}

// The colours are the theme's.
function redrawing(page, signal) {
  const redraw = () => {
    page.map.draw();
    page.legend.draw();
  };
  const root = new MutationObserver(redraw);
  root.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  signal.addEventListener("abort", () => root.disconnect());
}

// Once the map is to be seen.
function revealFirst(page, range) {
  if (range === null || !page.grid || page.grid.columns.length === 0) return;
  requestAnimationFrame(() => reveal(page, rangesIn(page.grid, range.start, range.end)));
}

export async function heat(place, parameters, signal) {
  const page = { place, view: viewOf(parameters), isLive: true, loadedAt: 0, grid: null };
  page.findings = [];
  page.map = mapOf(page);
  page.legend = legend(page);
  const parts = (page.parts = partsOf(page));
  let turn = 0; // of the requests, which may overtake one another
  const refresh = async () => {
    const own = ++turn;
    page.loadedAt = Date.now();
    try {
      const grid = await load(page, signal);
      if (own !== turn || signal.aborted) return;
      page.grid = grid;
      parts.wrong.replaceChildren();
      draw(page, parts);
    } catch (error) {
      if (signal.aborted || own !== turn) return;
      parts.wrong.replaceChildren(failure(error, refresh));
    }
  };
  await refresh();
  refreshing(page, refresh, signal);
  redrawing(page, signal);
  revealFirst(page, rangeOf(parameters));
  fill(parts.hot, "Asking for hot tablets", () => hotTablets(page, signal));
  showFindings(
    page,
    parts.advice,
    (start, end) => page.grid && reveal(page, rangesIn(page.grid, start, end)),
    signal,
  );
  return {
    title: `Heat of ${place.table}`,
    content: [
      tableHead(place, "heat"),
      controls(page, refresh),
      parts.wrong,
      parts.empty,
      parts.signs,
      parts.picture,
      parts.below,
    ],
  };
}
