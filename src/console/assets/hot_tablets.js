// The tablets that were hot within a day, as ListHotTablets tells them, and where their heat is.
import * as api from "./api.js";
import { toUrl, unescape } from "./bytes.js";
import { tableUrl } from "./parts.js";

const MOST = 10000;
const HOUR_MS = 3_600_000;

// Keys come as text; those that are no text have their bytes as \xNN.
function keyOf(text) {
  try {
    return /\\x[0-9a-f]{2}/.test(text) ? unescape(text) : new TextEncoder().encode(text);
  } catch {
    return new TextEncoder().encode(text);
  }
}

const hotTablet = (told) => ({
  table: told.tableName,
  start: keyOf(told.startKey ?? ""),
  end: keyOf(told.endKey ?? ""),
  percent: told.nodeCpuUsagePercent ?? 0, // of all processors
  startTime: told.startTime,
  endTime: told.endTime,
});

// Those of an instance's tables, the hottest first. All clusters are one.
export async function hotTabletsOf(instance, signal) {
  const { clusters = [] } = await api.get(`${api.pathOf(instance)}/clusters`, { signal });
  if (clusters.length === 0) return [];
  const path = `${api.pathOf(clusters[0].name)}/hotTablets`;
  const { items } = await api.list(path, "hotTablets", { signal, most: MOST });
  return items.map(hotTablet);
}

// The page that shows the range on the table's map, over a time that it is in.
export function heatUrl(place, { start, end, endTime }) {
  const span = Date.now() - Date.parse(endTime) < HOUR_MS ? "1h" : "4d";
  const search = new URLSearchParams({ span, from: toUrl(start), to: toUrl(end) });
  return tableUrl(place, `/heat?${search}`);
}
