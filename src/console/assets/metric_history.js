// What the server remembers of its metrics, or of a table's, as samples of charts; and for how far
// back somebody wants to see them.
import * as api from "./api.js";
import { h, select } from "./dom.js";
import { durationText, secondsOf } from "./formats.js";
import { LineChart } from "./line_chart.js";

const POINTS = 120;
const DIGITS = 3; // of a value: no chart shows more, and they are most of an answer
const FIELDS = "times,step,endTime,retention,trouble,lines(name,values)";
export const HOUR = 3600;
const RANGES = [
  [HOUR, "the last hour"],
  [6 * HOUR, "6 hours"],
  [24 * HOUR, "a day"],
  [7 * 24 * HOUR, "a week"],
  [14 * 24 * HOUR, "two weeks"],
];

// A field with how far back, in seconds; `act` is called with what was chosen.
export function rangeField(act) {
  const chosen = select(RANGES, HOUR);
  chosen.setAttribute("aria-label", "How far back");
  chosen.addEventListener("change", () => act(Number(chosen.value)));
  return h("label", { class: "range" }, "Show ", chosen);
}

const numberOf = (value) => (typeof value === "number" ? value : null); // NaN comes as text

function sampleAt(lines, times, i) {
  const values = {};
  const byMethod = {};
  for (const { name, values: all } of lines) {
    if (name.startsWith("method/")) byMethod[name.slice("method/".length)] = numberOf(all[i]);
    else values[name] = numberOf(all[i]);
  }
  return { time: times[i], values, byMethod };
}

// A sample of nothing breaks the lines where nothing was seen: the server did not run.
function withGaps(samples, step) {
  const found = [];
  for (const sample of samples) {
    const last = found.at(-1);
    if (last && sample.time - last.time > 2.5 * step)
      found.push({ time: last.time + step, values: {}, byMethod: {}, isGap: true });
    found.push(sample);
  }
  return found;
}

// {samples, step (ms), retention (s), trouble}: samples by the names of docs/reference, at the ends
// of what they are about. `now`: what time it is for the page, whose clock may be another one. Of
// `only` these lines, if there are some, in about so many `points`, of so many `digits` (0: all).
export async function readHistory(path, seconds, now, signal, more = {}) {
  const { only = [], points = POINTS, digits = DIGITS } = more;
  const query = new URLSearchParams({ since: `${seconds}s`, points, digits, fields: FIELDS });
  for (const line of only) query.append("lines", line);
  const answer = await api.get(`${path}?${query}`, { signal });
  const step = 1000 * secondsOf(answer.step);
  const shift = now - Date.parse(answer.endTime);
  const lines = answer.lines ?? [];
  const ends = (time) => Math.min(Date.parse(time) + shift + step, now - 1); // the last has begun
  const times = (answer.times ?? []).map(ends);
  const samples = times.map((_, i) => sampleAt(lines, times, i));
  return {
    samples: withGaps(samples, step),
    step,
    retention: secondsOf(answer.retention),
    trouble: answer.trouble ?? "",
  };
}

// Lines of what was read: `lines` are {key, name}, all else is LineChart's.
export function historyChart({ lines, format, ...more }, { samples }) {
  const chart = new LineChart({ ...more, format: (value) => format(value ?? 0) });
  chart.show(lines, samples);
  return chart.element;
}

// What is said of it below a heading.
export function historyText({ retention, trouble }) {
  if (trouble) return `Nothing is remembered at present: ${trouble}.`;
  if (!retention) return "Nothing is remembered (--metrics-retention 0).";
  return `Remembered for ${durationText(`${retention}s`)}, over restarts.`;
}
