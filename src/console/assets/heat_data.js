// What ReadHeat says, as a grid: columns are times, rows are ranges of keys.
import { compare, escape, fromBase64 } from "./bytes.js";
import { bytesText, countText } from "./formats.js";

function rateText(value) {
  if (value === 0) return "0";
  if (value >= 100) return countText(Math.round(value));
  return value >= 0.01 ? Number(value.toPrecision(2)).toString() : "less than 0.01";
}

const perSecond = (value, column) => value / column.seconds;
const asIs = (value) => value;
const asRate = (what) => (value) => `${rateText(value)} ${what}/s`;
const asBytes = (value) => `${bytesText(Math.round(value))}/s`;
const asMs = (value) => `${rateText(value)} ms`;

// Each: what it is called, of which of ReadHeat's numbers it is, what it is for one of a column,
// how that is said, and whether several are added up (a rate) or the greatest counts.
export const METRICS = {
  rows: { title: "Rows read and written", number: "ROWS", of: perSecond, say: asRate("rows") },
  written: { title: "Rows written", number: "ROWS_WRITTEN", of: perSecond, say: asRate("rows") },
  read: { title: "Rows read", number: "ROWS_READ", of: perSecond, say: asRate("rows") },
  "bytes-written": {
    title: "Bytes written",
    number: "BYTES_WRITTEN",
    of: perSecond,
    say: asBytes,
  },
  "bytes-read": { title: "Bytes read", number: "BYTES_READ", of: perSecond, say: asBytes },
  "write-latency": {
    title: "Time of a write, mean",
    number: "WRITE_LATENCY",
    of: (seconds) => 1000 * seconds,
    say: asMs,
    isMost: true,
  },
  "read-latency": {
    title: "Time of a read, mean",
    number: "READ_LATENCY",
    of: (seconds) => 1000 * seconds,
    say: asMs,
    isMost: true,
  },
  cpu: {
    title: "Processors, estimated",
    number: "ROWS",
    of: (rows, column) => (column.cpu * rows) / column.all,
    say: (value) => `${rateText(value)} %`,
  },
  "largest-row": {
    title: "Largest row read",
    number: "LARGEST_ROW",
    of: asIs,
    say: (value) => bytesText(value),
    isMost: true,
  },
};

// Of what comes from levels, which are a tenth off at most.
export const aboutText = (metric, value) =>
  value > 0 ? `about ${metric.say(Number(value.toPrecision(2)))}` : metric.say(0);

const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// By range; undefined where nothing was counted.
function numbersOf(levels, { mostLevel = 0, levelRatio = 1 }) {
  return Array.from(levels, (character) => {
    const level = LEVELS.indexOf(character);
    return level > 0 ? mostLevel * levelRatio ** (level - LEVELS.length + 1) : undefined;
  });
}

function columnOf(time, heat) {
  const from = Date.parse(time.startTime),
    to = Math.max(from + 1, Date.parse(time.endTime));
  const numbers = numbersOf(time.levels ?? "", heat);
  return {
    from,
    to,
    seconds: (to - from) / 1000,
    cpu: time.cpuPercent ?? 0,
    isOpen: time.isOpen === true,
    all: numbers.reduce((sum, each) => sum + (each ?? 0), 0),
    numbers,
  };
}

// Where ranges begin, as bytes.
export const startsOf = (heat) => (heat.startKeys ?? [""]).map(fromBase64);

// What is asked for to draw a metric.
export function gridQuery(metric) {
  const times = `startTime,endTime,isOpen,levels${metric === METRICS.cpu ? ",cpuPercent" : ""}`;
  const fields = `startKeys,counts,startTime,endTime,mostLevel,levelRatio,times(${times})`;
  return { levelsOf: metric.number, fields: `${fields},${SIGNS}` };
}

export const SIGNS = "signs(kind,sentence,startKey,endKey)";

export const signsOf = (heat) =>
  (heat.signs ?? []).map((sign) => ({
    kind: sign.kind,
    sentence: sign.sentence,
    start: fromBase64(sign.startKey),
    end: fromBase64(sign.endKey),
  }));

// {starts, columns, from, to, counts, signs}: keys as bytes, times in milliseconds.
export function gridOf(heat) {
  return {
    starts: startsOf(heat),
    columns: (heat.times ?? []).map((time) => columnOf(time, heat)),
    from: Date.parse(heat.startTime),
    to: Date.parse(heat.endTime),
    counts: heat.counts === true,
    signs: signsOf(heat),
  };
}

// For each column an array of numbers by range; undefined where nothing was counted.
export function valuesOf(grid, metric) {
  return grid.columns.map((column) =>
    column.numbers.map((each) => (each === undefined ? undefined : metric.of(each, column))),
  );
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
