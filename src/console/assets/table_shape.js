// What the rows of a table are like, by a sample of them: asked once for all of a page, and again
// for what a rule would remove.
import * as api from "./api.js";
import { h, put } from "./dom.js";
import { bytesText, countText, plural } from "./formats.js";

const NUMBERS = ["rows", "cells", "bytes", "removedCells", "removedBytes"];
const TIMES = ["oldestTime", "medianTime", "newestTime"];
const FIELDS =
  "rows,isExact,tableBytes,sampledRows,sampledBytes,cutRows," +
  `families(${["id", ...NUMBERS, ...TIMES].join(",")})`;

function familyOf(told) {
  const numbers = NUMBERS.map((name) => [name, Number(told[name] ?? 0)]);
  return { ...told, ...Object.fromEntries(numbers) };
}

// {rows, isExact, bytes (of the table), sampledRows, sampledBytes, isCut, families: {id: …}}: where
// rows were cut not all of their cells were looked at. `proposal`: {family, gcRule}, whose
// removedCells and removedBytes are wanted.
export async function askShape(name, signal, proposal = {}) {
  const path = `/v1/${api.pathOf(name).slice("/v2/".length)}:shape?fields=${FIELDS}`;
  const told = await api.call("POST", path, { ...proposal, roughTimes: true }, { signal });
  const families = (told.families ?? []).map(familyOf);
  return {
    rows: Number(told.rows ?? 0),
    isExact: told.isExact === true,
    bytes: Number(told.tableBytes ?? 0),
    sampledRows: Number(told.sampledRows ?? 0),
    sampledBytes: Number(told.sampledBytes ?? 0),
    isCut: Number(told.cutRows ?? 0) > 0,
    families: Object.fromEntries(families.map((family) => [family.id, family])),
  };
}

// Bytes of the sample as those of the whole table.
export const wholeBytes = ({ bytes, sampledBytes }, part) =>
  sampledBytes > 0 ? (bytes * part) / sampledBytes : 0;

export const rowsText = ({ rows, isExact }) =>
  isExact ? countText(rows) : `about ${countText(Number(rows.toPrecision(2)))}`;

export const rowsWords = (shape) =>
  shape.isExact ? plural(shape.rows, "row") : `${rowsText(shape)} rows`;

const perRow = ({ sampledRows }, count) =>
  sampledRows > 0 ? Number((count / sampledRows).toPrecision(3)) : 0;

// Before what was counted of the sample.
export const leastText = ({ isCut }) => (isCut ? "at least " : "");

export const perRowText = (shape, count) => leastText(shape) + countText(perRow(shape, count));

export const rowBytesText = (shape) =>
  shape.sampledRows > 0
    ? leastText(shape) + bytesText(shape.sampledBytes / shape.sampledRows)
    : "–";

// A place for what follows from the shape, when that is there.
export function whenKnown(shape, words) {
  const place = h("span", null, "…");
  shape.then(
    (found) => put(place, words(found)),
    (error) => {
      if (error.name !== "AbortError") put(place, error.code === 403 ? "not for you" : "unknown");
    },
  );
  return place;
}
