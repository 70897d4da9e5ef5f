// ReadRows: from chunks to rows, so many and so much at most.
import * as api from "./api.js";
import { escape, fromBase64, joined } from "./bytes.js";

// FeatureFlags with reverse_scans set: without it the server refuses them.
const FEATURES = { "bigtable-features": "CAE=" };
export const MOST_BYTES = 16 << 20;

// Takes chunks in their order, and has whole rows:
// {key, cells: [{family, qualifier, time, value}]}.
class Assembly {
  constructor() {
    this.rows = [];
    this.bytes = 0;
    this.begin();
  }

  begin() {
    this.row = null;
    this.parts = [];
  }

  take(chunk) {
    if (chunk.resetRow) {
      this.begin();
      return;
    }
    if (chunk.rowKey && !this.row) this.row = { key: fromBase64(chunk.rowKey), cells: [] };
    if (chunk.familyName !== undefined) this.family = chunk.familyName;
    if (chunk.qualifier !== undefined) this.qualifier = fromBase64(chunk.qualifier);
    if (this.parts.length === 0) this.time = chunk.timestampMicros ?? "0";
    this.parts.push(fromBase64(chunk.value));
    this.bytes += this.parts.at(-1).length;
    if (!chunk.valueSize) this.endCell();
    if (chunk.commitRow) {
      this.rows.push(this.row);
      this.begin();
    }
  }

  endCell() {
    this.row.cells.push({
      family: this.family,
      qualifier: this.qualifier,
      time: this.time,
      value: joined(this.parts),
    });
    this.parts = [];
  }
}

// {rows, isCut}: cut is what would have been more than the page can well hold. In reverse, keys
// descend.
export async function readRows(name, request, signal) {
  const assembly = new Assembly();
  const path = `${api.pathOf(name)}:readRows`;
  for await (const message of api.stream("POST", path, request, { signal, headers: FEATURES })) {
    for (const chunk of message.chunks ?? []) assembly.take(chunk);
    if (assembly.bytes > MOST_BYTES) return { rows: assembly.rows, isCut: true };
  }
  return { rows: assembly.rows, isCut: false };
}

export const columnText = (cell) => `${cell.family}:${escape(cell.qualifier)}`;
