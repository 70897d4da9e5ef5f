// One table: what it keeps, how it lies, and how much is asked of it.
import * as api from "./api.js";
import { escape, toUrl } from "./bytes.js";
import { changeStream } from "./change_stream.js";
import { facts, fill, h, link, note, rowButton, table as listing } from "./dom.js";
import { askProtection } from "./family_dialogs.js";
import { bytesText, durationText, plural } from "./formats.js";
import { go, rowsUrl, tableHead } from "./parts.js";
import { whenSeen } from "./seen.js";
import { adviceSummary } from "./table_advice.js";
import { families } from "./table_families.js";
import { tableHistory } from "./table_history.js";
import { askShape, perRowText, rowBytesText, rowsText, whenKnown } from "./table_shape.js";
import { areGuessed, loadText, loadsOf, tabletStrip } from "./tablet_strip.js";
import { sampleTablets } from "./tablets.js";
import { materializedViews } from "./views.js";

const TABLETS_SHOWN = 500;

function protectionOf({ name, reload }, isOn) {
  const words = isOn ? "on: it cannot be deleted" : "off";
  const change = rowButton("Change", "Change deletion protection", () =>
    askProtection({ name, isOn, reload }),
  );
  return h("span", null, words, change);
}

// What is asked of the sample comes later than the rest.
function shapeFacts(shape) {
  const told = (words) => whenKnown(shape, words);
  const cells = (found) =>
    Object.values(found.families).reduce((sum, each) => sum + each.cells, 0);
  return [
    ["Rows", told(rowsText)],
    ["Bytes a row", told(rowBytesText)],
    ["Cells a row", told((found) => perRowText(found, cells(found)))],
    ["Size", told(({ bytes }) => bytesText(bytes))],
  ];
}

function factsOf(page, found) {
  const policy = found.effectiveAutomatedBackupPolicy ?? found.automatedBackupPolicy;
  return facts([
    ...shapeFacts(page.shape),
    ["Timestamps", found.granularity === "MICROS" ? "microseconds" : "milliseconds"],
    ["Deletion protection", protectionOf(page, found.deletionProtection === true)],
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

function tabletRow(place, tablet, load) {
  const from = tablet.from.length > 0 ? { from: toUrl(tablet.from) } : {};
  return [
    h("td", { class: "key" }, keyText(tablet.from, "the first key")),
    h("td", { class: "key" }, keyText(tablet.to, "the last key")),
    bytesText(tablet.end - tablet.start),
    load === undefined ? "–" : loadText(load),
    link(rowsUrl(place, from), "Data"),
  ];
}

// Null where nothing is counted, or somebody may not see it.
async function knownLoads(name, found, signal) {
  try {
    return await loadsOf(name, found, signal);
  } catch (error) {
    if (error.code === 403) return null;
    throw error;
  }
}

async function tablets(place, signal) {
  const name = api.tableName(place);
  const found = await sampleTablets(name, signal);
  const loads = await knownLoads(name, found, signal);
  const columns = [
    { title: "From" },
    { title: "To (exclusive)" },
    { title: "Size, about", number: true },
    { title: "Load of ten minutes", number: true },
    { title: "", class: "narrow" },
  ];
  const total = found.at(-1)?.end ?? 0;
  return [
    note(
      `${bytesText(total)} in ${plural(found.length, "tablet")}` +
        (found.length > TABLETS_SHOWN ? `, of which the first ${TABLETS_SHOWN}` : "") +
        ".",
    ),
    loads &&
      areGuessed(loads) &&
      note("The load of some is counted together: it is shared out by their sizes."),
    tabletStrip(found, loads, signal),
    listing(
      "Tablets",
      columns,
      found.slice(0, TABLETS_SHOWN).map((tablet, i) => tabletRow(place, tablet, loads?.[i])),
      "stacked",
    ),
  ];
}

// They lie below all else, and of a large table they are more than the rest of the page.
function tabletsWhenSeen(place, signal) {
  const below = h("div", null);
  const ask = () => fill(below, "Asking for the tablets", () => tablets(place, signal));
  whenSeen(below, ask, signal);
  return below;
}

export async function table(place, _parameters, signal) {
  const name = api.tableName(place);
  const found = await api.get(`${api.pathOf(name)}?view=FULL`, { signal });
  const page = { name, shape: askShape(name, signal), reload: () => go(location.hash) };
  const advice = h("div", null);
  fill(advice, "Asking the advisor", () => adviceSummary(place, signal));
  return {
    title: place.table,
    content: [
      tableHead(place, "table"),
      factsOf(page, found),
      h("h2", null, "Advice"),
      advice,
      h("h2", null, "Traffic and size"),
      tableHistory(name, signal),
      h("h2", null, "Column families"),
      families(page, found),
      h("h2", null, "Change stream"),
      changeStream(name, found, page.reload, signal),
      h("h2", null, "Materialized views"),
      materializedViews(api.instanceName(place), page, signal),
      h("h2", null, "Tablets"),
      tabletsWhenSeen(place, signal),
    ],
  };
}
