// How the data grows, and when the disk is full if it goes on like that.
import { bytesText } from "./formats.js";

const DAY_MS = 86_400_000;
const LEAST_MS = 3_600_000; // before that nothing is said
const FAR_DAYS = 3650;

// What is on the disk. (What write buffers have is in the log, too.)
const sizeOf = ({ values }) => values.table_bytes + values.log_bytes;
const dayText = (time) => new Date(time).toISOString().slice(0, 10);

// From the first point to the last; `free` bytes are left now.
export function growthText(samples, free, now) {
  const known = samples.filter(({ values }) => typeof values.table_bytes === "number");
  const [first, last] = [known[0], known.at(-1)];
  if (!first || last.time - first.time < LEAST_MS) return "known after an hour";
  const perDay = ((sizeOf(last) - sizeOf(first)) / (last.time - first.time)) * DAY_MS;
  if (perDay < 1) return "does not grow";
  const days = free / perDay;
  const full =
    days > FAR_DAYS ? "full in more than ten years" : `full on ${dayText(now + days * DAY_MS)}`;
  return `${bytesText(perDay)} a day; at that rate the disk is ${full}`;
}
