// What was read and written of a table, and how it has grown: out of what the server remembers.
import * as api from "./api.js";
import { fill, h, note } from "./dom.js";
import { bytesText, shortCount } from "./formats.js";
import { HOUR, historyChart, historyText, rangeField, readHistory } from "./metric_history.js";

const CHARTS = [
  {
    title: "Rows",
    note: "A second, looked for and written.",
    format: shortCount,
    lines: [
      { key: "rows_read", name: "read" },
      { key: "rows_written", name: "written" },
    ],
  },
  {
    title: "Bytes",
    note: "A second, of the rows that were found and of what was written.",
    format: bytesText,
    base: 1024,
    lines: [
      { key: "read_bytes", name: "read" },
      { key: "written_bytes", name: "written" },
    ],
  },
  {
    title: "Size",
    note: "On the disk and in write buffers, estimated.",
    format: bytesText,
    base: 1024,
    lines: [{ key: "bytes", name: "size" }],
  },
];

const POINTS = 90; // the charts are a third of the page

async function charts(name, seconds, signal) {
  const path = `/v1/${api.pathOf(name).slice("/v2/".length)}:metricHistory`;
  const past = await readHistory(path, seconds, Date.now(), signal, { points: POINTS });
  if (past.samples.length === 0) return note(`${historyText(past)} There is nothing yet.`);
  const drawn = CHARTS.map((chart) => historyChart(chart, past));
  return [note(historyText(past)), h("div", { class: "charts" }, drawn)];
}

export function tableHistory(name, signal) {
  const place = h("div", null);
  const show = (seconds) =>
    fill(place, "Asking what is remembered", () => charts(name, seconds, signal));
  show(HOUR);
  return [rangeField(show), place];
}
