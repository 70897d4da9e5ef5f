// One table: what it keeps, and how it lies.
import * as api from "./api.js";
import { escape, toUrl } from "./bytes.js";
import { changeStream } from "./change_stream.js";
import { facts, fill, h, link, note, notice, table as listing } from "./dom.js";
import { bytesText, durationText, plural } from "./formats.js";
import { gcText, go, rowsUrl, tableHead, typeText } from "./parts.js";
import { adviceSummary } from "./table_advice.js";
import { tableHistory } from "./table_history.js";
import { sampleTablets } from "./tablets.js";
import { materializedViews } from "./views.js";

const TABLETS_SHOWN = 500;

function families(found) {
  const all = Object.entries(found.columnFamilies ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (all.length === 0)
    return notice("empty", "There is no column family", "Nothing can be written without one.");
  const columns = [
    { title: "Family" },
    { title: "Values" },
    { title: "Garbage collection removes" },
  ];
  return listing(
    "Column families",
    columns,
    all.map(([name, family]) => [name, typeText(family.valueType), gcText(family.gcRule)]),
  );
}

function factsOf(found) {
  const policy = found.effectiveAutomatedBackupPolicy ?? found.automatedBackupPolicy;
  const protection = found.deletionProtection ? "on: it cannot be deleted" : "off";
  return facts([
    ["Timestamps", found.granularity === "MICROS" ? "microseconds" : "milliseconds"],
    ["Deletion protection", protection],
    [
      "Automated backups",
      policy && !policy.disabled
        ? `every ${durationText(policy.frequency ?? "86400s")}, ` +
          `kept for ${durationText(policy.retentionPeriod ?? "604800s")}`
        : "off",
    ],
    ["Restored from", found.restoreInfo?.backupInfo?.backup],
  ]);
}

const keyText = (key, edge) => (key.length === 0 ? h("em", null, edge) : escape(key));

function tabletRow(place, tablet) {
  const from = tablet.from.length > 0 ? { from: toUrl(tablet.from) } : {};
  return [
    h("td", { class: "key" }, keyText(tablet.from, "the first key")),
    h("td", { class: "key" }, keyText(tablet.to, "the last key")),
    bytesText(tablet.end - tablet.start),
    link(rowsUrl(place, from), "Data"),
  ];
}

async function tablets(place, signal) {
  const found = await sampleTablets(api.tableName(place), signal);
  const columns = [
    { title: "From" },
    { title: "To (exclusive)" },
    { title: "Size, about", number: true },
    { title: "", class: "narrow" },
  ];
  const total = found.at(-1)?.end ?? 0;
  return [
    note(
      `${bytesText(total)} in ${plural(found.length, "tablet")}` +
        (found.length > TABLETS_SHOWN ? `, of which the first ${TABLETS_SHOWN}` : "") +
        ".",
    ),
    listing(
      "Tablets",
      columns,
      found.slice(0, TABLETS_SHOWN).map((tablet) => tabletRow(place, tablet)),
    ),
  ];
}

export async function table(place, _parameters, signal) {
  const found = await api.get(`${api.pathOf(api.tableName(place))}?view=FULL`, { signal });
  const advice = h("div", null);
  const below = h("div", null);
  fill(advice, "Asking the advisor", () => adviceSummary(place, signal));
  fill(below, "Asking for the tablets", () => tablets(place, signal));
  return {
    title: place.table,
    content: [
      tableHead(place, "table"),
      factsOf(found),
      h("h2", null, "Advice"),
      advice,
      h("h2", null, "Traffic and size"),
      tableHistory(api.tableName(place), signal),
      h("h2", null, "Column families"),
      families(found),
      h("h2", null, "Change stream"),
      changeStream(api.tableName(place), found, () => go(location.hash), signal),
      h("h2", null, "Materialized views"),
      materializedViews(api.instanceName(place), api.tableName(place), signal),
      h("h2", null, "Tablets"),
      below,
    ],
  };
}
