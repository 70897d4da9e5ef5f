// Numbers, sizes, times and states in words, for all pages alike.

// --- counts and sizes ---

export const countText = (count) => Number(count).toLocaleString("en-US");

export const plural = (count, one, many = `${one}s`) =>
  `${countText(count)} ${Number(count) === 1 ? one : many}`;

// A number of at most three digits before the point, and one behind it where that says something.
const short = (value) =>
  value >= 100 || Number.isInteger(value) ? countText(Math.round(value)) : value.toFixed(1);

// Where there is little room.
export function shortCount(value) {
  if (value >= 1e6) return `${short(value / 1e6)} M`;
  if (value >= 1e5) return `${short(value / 1e3)} k`;
  return short(value);
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(count) {
  let value = Number(count ?? 0),
    unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${short(unit === 0 ? Math.round(value) : value)} ${UNITS[unit]}`;
}

export const percentText = (value) => `${short(value)} %`;

// --- spans of time ---

// "1.5s", as JSON has a duration, as a number.
export const secondsOf = (text) => Number((text ?? "0s").replace(/s$/, ""));

// What was measured: to three digits.
export function secondsText(seconds) {
  if (seconds === 0) return "0 s";
  const [size, unit] = seconds >= 1 ? [1, "s"] : seconds >= 0.001 ? [1e-3, "ms"] : [1e-6, "µs"];
  const value = seconds / size;
  return `${value >= 100 ? countText(Math.round(value)) : Number(value.toPrecision(3))} ${unit}`;
}

// What was set, as "864000s": as people say it, exactly.
export function durationText(text) {
  const seconds = secondsOf(text);
  if (seconds > 0 && seconds < 1) return secondsText(seconds);
  for (const [unit, size] of [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ]) {
    const count = seconds / size;
    if (Number.isInteger(count) && count > 0) return plural(count, unit);
  }
  return `${seconds} s`;
}

// How long something has been there: its two largest units.
export function ageText(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.max(Math.floor(ms / 1000), 0)} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

// --- moments, in UTC ---

// "2026-11-22T02:25:54.622898Z" without what nobody looks at.
export const dateText = (text) => (text ? text.slice(0, 19).replace("T", " ") : "");

// Milliseconds since 1970, to the second.
export const momentText = (ms) => dateText(new Date(ms).toISOString());

// Microseconds since 1970, with all their digits; a number that is no date as it is.
export function timeText(micros) {
  const value = BigInt(micros ?? 0);
  const millis = Number(value / 1000n),
    rest = Number(value % 1000n);
  const date = new Date(millis);
  if (value < 0n || Number.isNaN(date.getTime()) || millis < 1e11) return value.toString();
  const text = date.toISOString().replace("T", " ").replace("Z", "");
  return rest === 0 ? text : text + String(rest).padStart(3, "0");
}

// --- how calls ended ---

const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

// gRPC's name of a status, which JSON leaves out if it is OK.
export const codeText = (code) => CODES[code ?? 0] ?? String(code);
