// The tablets of a table as a strip: each as wide as it is large, and in the colour of its load.
// And how much that is, for the list below it.
import * as api from "./api.js";
import { compare } from "./bytes.js";
import { h, put } from "./dom.js";
import { bytesText, plural } from "./formats.js";
import { METRICS, endOf, rangeText, startsOf } from "./heat_data.js";
import { coloursOf, schemeOfPage, stepOf } from "./heat_scale.js";

const SPAN_MS = 600_000;
const FIELDS = "startKeys,counts,times(startTime,endTime,sums(range,rowsRead,rowsWritten))";
const LOOK = { brightness: 0, contrast: 0.5 };

const isBefore = (a, end) => end.length === 0 || compare(a, end) < 0;
const overlap = (start, end, tablet) => isBefore(start, tablet.to) && isBefore(tablet.from, end);

// Rows a second of each range.
function ratesOf({ times: [time] = [] }, ranges) {
  const rates = new Array(ranges).fill(0);
  const seconds = time ? (Date.parse(time.endTime) - Date.parse(time.startTime)) / 1000 : 0;
  for (const { range = 0, rowsRead = 0, rowsWritten = 0 } of time?.sums ?? [])
    rates[range] = (Number(rowsRead) + Number(rowsWritten)) / Math.max(seconds, 0.001);
  return rates;
}

const sizeOf = ({ start, end }) => end - start;

// What was counted over several tablets, by their sizes: an empty one has nothing of it.
function shareOut(total, its, loads, tablets) {
  const size = its.reduce((sum, i) => sum + sizeOf(tablets[i]), 0);
  for (const i of its) {
    const value = total * (size > 0 ? sizeOf(tablets[i]) / size : 1 / its.length);
    loads[i].value += value;
    loads[i].shared += its.length > 1 ? value : 0;
    loads[i].isShared ||= its.length > 1;
  }
}

// Of each tablet {value, shared, isShared}: rows a second in the last ten minutes, and how many of
// these are its share of what was counted over several, as where these are small or little was
// asked of them. Null: nothing is counted.
export async function loadsOf(name, tablets, signal) {
  const from = new Date(Date.now() - SPAN_MS).toISOString();
  const path = api.pathOf(name).replace("/v2/", "/v1/");
  const query = new URLSearchParams({ startTime: from, maxTimes: 1, fields: FIELDS });
  const heat = await api.get(`${path}:heat?${query}`, { signal });
  if (!heat.counts) return null;
  const grid = { starts: startsOf(heat) };
  const totals = ratesOf(heat, grid.starts.length);
  const loads = tablets.map(() => ({ value: 0, shared: 0, isShared: false }));
  totals.forEach((total, range) => {
    if (!(total > 0)) return;
    const end = endOf(grid, range);
    const its = tablets.flatMap((each, i) => (overlap(grid.starts[range], end, each) ? [i] : []));
    shareOut(total, its, loads, tablets);
  });
  return loads;
}

// Nothing was counted of it alone.
const isGuessed = ({ value, shared, isShared }) => isShared && value === shared;

export const areGuessed = (loads) => loads.some(isGuessed);

export const loadText = (load) =>
  `${load.isShared ? "about " : ""}${METRICS.rows.say(load.value)}` +
  (isGuessed(load) ? ", by its size" : "");

const mostOf = (loads) => Math.max(0, ...loads.map(({ value }) => value));

function segment(tablet, load, colour) {
  const element = h("span", {
    title:
      `${rangeText(tablet.from, tablet.to)}: ${bytesText(tablet.end - tablet.start)}` +
      (load === undefined ? "" : `, ${loadText(load)}`),
  });
  element.style.flexGrow = String(Math.max(tablet.end - tablet.start, 1));
  if (colour) element.style.backgroundColor = colour;
  return element;
}

// The one of which more was counted, of it alone, than all others have.
function busiestText(tablets, loads) {
  const most = mostOf(loads);
  if (most === 0) return "none had a request in the last ten minutes";
  const busiest = loads.findIndex(({ value }) => value === most);
  const own = most - loads[busiest].shared;
  const isSure = loads.every(({ value }, i) => i === busiest || value < own);
  if (!isSure) return "of which none is known to be the busiest";
  const { from, to } = tablets[busiest];
  return `the busiest, ${rangeText(from, to)}, has ${loadText(loads[busiest])}`;
}

// `loads`: of each, or null. What the picture shows is in the list, too: it is one thing to whom
// hears it.
export function tabletStrip(tablets, loads, signal) {
  const bar = h("div", { class: "strip" });
  const words = loads ? `, ${busiestText(tablets, loads)}` : "";
  const draw = () => {
    const colours = coloursOf(schemeOfPage()).map((rgb) => `rgb(${rgb.join(" ")})`);
    const most = loads ? mostOf(loads) : 0;
    const parts = tablets.map((each, i) =>
      segment(each, loads?.[i], loads && colours[stepOf(loads[i].value, most, LOOK)]),
    );
    put(bar, parts);
  };
  draw();
  const theme = new MutationObserver(draw);
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  signal.addEventListener("abort", () => theme.disconnect());
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `${plural(tablets.length, "tablet")} by size${words}`);
  return bar;
}
