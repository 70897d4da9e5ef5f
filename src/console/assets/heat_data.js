// What ReadHeat says, as a grid: columns are times, rows are ranges of keys.
import { compare, escape, fromBase64 } from "./bytes.js";
import { bytesText, countText } from "./formats.js";

const seconds = (text) => Number((text ?? "0s").slice(0, -1));
const count = (sum, name) => Number(sum[name] ?? 0);
const rows = (sum) => count(sum, "rowsRead") + count(sum, "rowsWritten");

function meanMs(sum, latency, requests) {
  const asked = count(sum, requests);
  return asked > 0 ? (1000 * seconds(sum[latency])) / asked : 0;
}

function rateText(value) {
  if (value === 0) return "0";
  if (value >= 100) return countText(Math.round(value));
  return value >= 0.01 ? Number(value.toPrecision(2)).toString() : "less than 0.01";
}

const perSecond = (value, column) => value / column.seconds;
const asRate = (what) => (value) => `${rateText(value)} ${what}/s`;
const asBytes = (value) => `${bytesText(Math.round(value))}/s`;
const asMs = (value) => `${rateText(value)} ms`;

// Each: what it is called, its number for a sum of a column, how that is said, and whether several
// are added up (a rate) or the greatest counts.
export const METRICS = {
  rows: {
    title: "Rows read and written",
    of: (sum, column) => perSecond(rows(sum), column),
    say: asRate("rows"),
  },
  written: {
    title: "Rows written",
    of: (sum, column) => perSecond(count(sum, "rowsWritten"), column),
    say: asRate("rows"),
  },
  read: {
    title: "Rows read",
    of: (sum, column) => perSecond(count(sum, "rowsRead"), column),
    say: asRate("rows"),
  },
  "bytes-written": {
    title: "Bytes written",
    of: (sum, column) => perSecond(count(sum, "bytesWritten"), column),
    say: asBytes,
  },
  "bytes-read": {
    title: "Bytes read",
    of: (sum, column) => perSecond(count(sum, "bytesRead"), column),
    say: asBytes,
  },
  "write-latency": {
    title: "Time of a write, mean",
    of: (sum) => meanMs(sum, "writeLatency", "writeRequests"),
    say: asMs,
    isMost: true,
  },
  "read-latency": {
    title: "Time of a read, mean",
    of: (sum) => meanMs(sum, "readLatency", "readRequests"),
    say: asMs,
    isMost: true,
  },
  cpu: {
    title: "Processors, estimated",
    of: (sum, column) => (column.rows > 0 ? (column.cpu * rows(sum)) / column.rows : 0),
    say: (value) => `${rateText(value)} %`,
  },
  "largest-row": {
    title: "Largest row read",
    of: (sum) => count(sum, "largestRow"),
    say: (value) => bytesText(value),
    isMost: true,
  },
};

function columnOf(time) {
  const from = Date.parse(time.startTime),
    to = Math.max(from + 1, Date.parse(time.endTime));
  const sums = new Map((time.sums ?? []).map((sum) => [sum.range ?? 0, sum]));
  let all = 0;
  for (const sum of sums.values()) all += rows(sum);
  return {
    from,
    to,
    seconds: (to - from) / 1000,
    cpu: time.cpuPercent ?? 0,
    isOpen: time.isOpen === true,
    rows: all,
    sums,
  };
}

// {starts, columns, from, to, counts, signs}: keys as bytes, times in milliseconds.
export function gridOf(heat) {
  return {
    starts: (heat.startKeys ?? [""]).map(fromBase64),
    columns: (heat.times ?? []).map(columnOf),
    from: Date.parse(heat.startTime),
    to: Date.parse(heat.endTime),
    counts: heat.counts === true,
    signs: (heat.signs ?? []).map((sign) => ({
      kind: sign.kind,
      sentence: sign.sentence,
      start: fromBase64(sign.startKey),
      end: fromBase64(sign.endKey),
    })),
  };
}

// For each column an array of numbers by range; undefined where nothing was counted.
export function valuesOf(grid, metric) {
  return grid.columns.map((column) => {
    const values = new Array(grid.starts.length);
    for (const [range, sum] of column.sums) values[range] = metric.of(sum, column);
    return values;
  });
}

// What a range comes to over all columns: its mean rate, or its greatest value.
export function totalsOf(grid, values, metric) {
  const span = grid.columns.reduce((sum, column) => sum + column.seconds, 0);
  return grid.starts.map((_, range) => {
    let total = 0;
    values.forEach((column, i) => {
      const value = column[range] ?? 0;
      total = metric.isMost
        ? Math.max(total, value)
        : total + (value * grid.columns[i].seconds) / span;
    });
    return total;
  });
}

const BUSY = 1 / 3; // of the busiest range's

// Neighbouring ranges that are busy make one: [{first, past, value}], the busiest first.
export function busiestOf(totals, metric) {
  const least = BUSY * totals.reduce((a, b) => Math.max(a, b), 0);
  const runs = [];
  totals.forEach((value, range) => {
    if (value < least || value === 0) return;
    const last = runs.at(-1);
    if (last?.past !== range) {
      runs.push({ first: range, past: range + 1, value });
      return;
    }
    last.past = range + 1;
    last.value = metric.isMost ? Math.max(last.value, value) : last.value + value;
  });
  return runs.sort((a, b) => b.value - a.value);
}

export const endOf = (grid, range) => grid.starts[range + 1] ?? new Uint8Array(0);

// The ranges that [start, end) touches, as {first, past}; an empty end is the table's.
export function rangesIn(grid, start, end) {
  const { starts } = grid;
  let first = 0,
    past = starts.length;
  while (first + 1 < starts.length && compare(starts[first + 1], start) <= 0) first++;
  while (end.length > 0 && past - 1 > first && compare(starts[past - 1], end) >= 0) past--;
  return { first, past };
}

export const startText = (key) => (key.length === 0 ? "the first row" : escape(key));
export const endText = (key) => (key.length === 0 ? "the last row" : escape(key));

export function rangeText(start, end) {
  if (start.length === 0 && end.length === 0) return "all rows";
  return `from ${startText(start)} ${end.length === 0 ? "to" : "up to"} ${endText(end)}`;
}

// --- what keys begin with ---

function sharedLength(keys, first, past) {
  let size = keys[first].length;
  for (let i = first + 1; i < past; i++) {
    let same = 0;
    while (same < size && same < keys[i].length && keys[i][same] === keys[first][same]) same++;
    size = same;
  }
  return size;
}

// Up to behind the last separator after `least`, if there is one: prefixes end where words do.
function atSeparator(key, size, least) {
  for (let at = size; at > least; at--)
    if (/[#/:|@._~-]/.test(String.fromCharCode(key[at - 1]))) return at;
  return size;
}

// Neighbouring ranges, from `first` up to `past`, whose starts have the byte at `depth` in common:
// [{first, past, prefix, size}]: what its starts begin with, up to a separator if there is one,
// and how long all of it is. (A table's first range begins with nothing: it goes to the next.)
export function groupsOf(starts, first, past, depth) {
  const groups = [];
  const begin = first === 0 && past > 1 && starts[0].length === 0 ? 1 : first;
  for (let at = begin, end; at < past; at = end) {
    for (end = at + 1; end < past && starts[end][depth] === starts[at][depth]; end++);
    const size = end > at + 1 ? sharedLength(starts, at, end) : starts[at].length;
    const prefix = starts[at].slice(0, atSeparator(starts[at], size, depth));
    groups.push({ first: at === begin ? first : at, past: end, prefix, size });
  }
  return groups;
}
