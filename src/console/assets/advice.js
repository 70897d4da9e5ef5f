// What the schema advisor says of an instance's tables, of one, or of a database of Datastore:
// findings, the most severe first. Tables are asked one by one, so that what is found can be read
// while others are looked at.
//
// A place is {project, instance}, with a table or without, or {project, database}.
import * as api from "./api.js";
import { escape, fromBase64, toUrl } from "./bytes.js";
import { databaseHead, databaseUrl } from "./datastore_parts.js";
import { download, failure, h, link, notice } from "./dom.js";
import { bytesText, plural } from "./formats.js";
import { instanceHead, rowsUrl, tableHead, tableUrl } from "./parts.js";

export const SEVERITIES = ["critical", "warning", "info"];
const TITLES = { critical: "Critical", warning: "Warnings", info: "To know" };

// --- documents ---

// A key as it came, and as a person reads it. Of a database it is text already.
const keyOf = (base64) => {
  const bytes = fromBase64(base64);
  return { bytes, text: escape(bytes) };
};

function findingOf(found) {
  const { range, keys, betterKeys, severity, isMuted, ...rule } = found;
  return {
    ...rule,
    isMuted: isMuted ?? false,
    severity: severity.toLowerCase(),
    range: range && { start: keyOf(range.startKey), end: keyOf(range.endKey) },
    keys: (keys ?? []).map(keyOf),
    better: (betterKeys ?? []).map((pair) => ({
      key: keyOf(pair.key),
      better: keyOf(pair.betterKey),
    })),
  };
}

const muteOf = ({ rule, reason, principal, muteTime }) => ({
  rule,
  reason,
  principal: principal ?? "",
  time: muteTime,
});

const documentOf = ({ id, tableBytes, sample, findings, mutes, note }) => ({
  table: id,
  sample: {
    rows: Number(sample.rows ?? 0),
    places: Number(sample.places ?? 0),
    bytes: Number(sample.bytes ?? 0),
    isCut: sample.isCut ?? false,
    isLittle: sample.isLittle ?? false,
    hasHotTablets: true,
    isByServer: true,
  },
  tableBytes: Number(tableBytes ?? 0),
  findings: (findings ?? []).map(findingOf),
  mutes: (mutes ?? []).map(muteOf),
  note: note ?? "",
});

// With keys as text: what `trestle advise --format json` writes.
const isKey = (value) => value?.bytes instanceof Uint8Array;
const toJson = (documents) =>
  JSON.stringify(documents, (_name, value) => (isKey(value) ? value.text : value), 2);

// --- findings ---

// Leads to the row, where there are rows.
function code(of, key) {
  const text = h("code", null, key.text);
  return of.table ? link(rowsUrl(of, { key: toUrl(key.bytes) }), text) : text;
}

const edge = (key, none) => (key.text === "" ? h("em", null, none) : h("code", null, key.text));

function fact(name, ...content) {
  return h("div", null, h("dt", null, name), h("dd", null, ...content));
}

function list(items) {
  return h(
    "ul",
    { class: "keys-of" },
    items.map((item) => h("li", null, item)),
  );
}

function better(of, pairs) {
  return list(
    pairs.map((pair) => [
      h("code", null, pair.better.text),
      h("span", { class: "soft" }, " for "),
      code(of, pair.key),
    ]),
  );
}

function range(of, { start, end }) {
  const words = [edge(start, "the first key"), " up to ", edge(end, "the last key")];
  if (!of.table) return words;
  const parameters = {};
  if (start.text !== "") parameters.from = toUrl(start.bytes);
  if (end.text !== "") parameters.to = toUrl(end.bytes);
  return [...words, " · ", link(rowsUrl(of, parameters), "its rows")];
}

function finding(place, table, found) {
  const of = place.database ? place : { ...place, table };
  return h(
    "article",
    { class: `finding ${found.severity}` },
    h("h3", null, found.title),
    h(
      "p",
      { class: "of" },
      place.instance && !place.table && [link(tableUrl(of), table), " · "],
      h("span", { class: `severity ${found.severity}` }, found.severity),
    ),
    h("p", { class: "evidence" }, found.evidence),
    h(
      "dl",
      null,
      found.range && fact("Where", range(of, found.range)),
      found.keys.length > 0 && fact("Keys", list(found.keys.map((key) => code(of, key)))),
      fact("Why it matters", found.why),
      fact("What to do", found.remedy),
      found.better.length > 0 && fact("Better keys", better(of, found.better)),
    ),
    h(
      "details",
      null,
      h("summary", null, `The rule ${found.rule}`),
      h("p", null, h("strong", null, "Found when: "), found.when),
    ),
  );
}

// --- what is muted ---

function muted(document, mute) {
  const found = document.findings.find(({ rule }) => rule === mute.rule);
  const by = mute.principal === "" ? "" : `${mute.principal}, `;
  return h(
    "li",
    null,
    h("strong", null, found ? found.title : mute.rule),
    h("span", { class: "soft" }, found ? ` (${mute.rule}): ` : ", of which nothing was found: "),
    mute.reason,
    h("span", { class: "soft" }, ` (${by}${mute.time})`),
    found && h("p", { class: "evidence soft" }, found.evidence),
  );
}

function mutedSection(documents) {
  const items = documents.flatMap((document) =>
    document.mutes.map((mute) => muted(document, mute)),
  );
  return (
    items.length > 0 &&
    h(
      "section",
      { "aria-label": "Muted", class: "muted" },
      h("h2", null, "Muted", h("small", null, items.length)),
      h("ul", null, items),
    )
  );
}

const noteLines = (documents) =>
  documents
    .filter(({ note }) => note !== "")
    .map(({ table, note }) => h("p", { class: "note" }, `${table}: ${note}`));

function groups(place, documents) {
  const all = documents.flatMap((document) =>
    document.findings
      .filter(({ isMuted }) => !isMuted)
      .map((found) => ({ table: document.table, found })),
  );
  return SEVERITIES.map((severity) => {
    const these = all.filter(({ found }) => found.severity === severity);
    return (
      these.length > 0 &&
      h(
        "section",
        { "aria-label": TITLES[severity] },
        h("h2", null, TITLES[severity], h("small", null, these.length)),
        these.map(({ table, found }) => finding(place, table, found)),
      )
    );
  }).filter(Boolean);
}

// --- looking ---

// Ids of tables; of a database what stands for it.
async function subjectsOf(place, signal) {
  if (place.database) return [place.database];
  if (place.table) return [place.table];
  const path = `${api.pathOf(api.instanceName(place))}/tables?view=NAME_ONLY`;
  const { items } = await api.list(path, "tables", { signal });
  return items.map((item) => api.idOf(item.name));
}

const segment = encodeURIComponent;

function pathOf(place, subject) {
  if (place.database)
    return `/v1/projects/${segment(place.project)}/databases/${segment(subject)}:advise`;
  const instance = api.instanceName(place).split("/").map(segment).join("/");
  return `/v1/${instance}:advise?tables=${segment(subject)}`;
}

// One that has gone meanwhile is none any more.
async function lookAt(place, subject, signal) {
  try {
    return ((await api.get(pathOf(place, subject), { signal })).tables ?? []).map(documentOf);
  } catch (error) {
    if (error.code === 404 && place.instance && !place.table) return [];
    throw error;
  }
}

// What is said of one table, to be shown elsewhere: findings are the most severe first.
export async function documentOfTable(place, signal) {
  const [document] = await lookAt(place, place.table, signal);
  return document;
}

export async function findingsOf(place, signal) {
  const { findings } = await documentOfTable(place, signal);
  return findings.filter(({ isMuted }) => !isMuted);
}

function sampleText(place, documents) {
  const sum = (count) => documents.reduce((all, document) => all + count(document), 0);
  const rows = sum((document) => document.sample.rows);
  const size = sum((document) => document.sample.bytes);
  const what = place.database
    ? plural(rows, "entity", "entities")
    : `${plural(rows, "row")} of ${plural(documents.length, "table")}`;
  return `${what} sampled, ${bytesText(size)} read.`;
}

// Where that is so, it means little that nothing was found.
const littleSeen = (tables) =>
  notice(
    "empty",
    "Too little was seen",
    `The rows of ${tables.join(", ")} are too large, or were read too slowly, for a sample that ` +
      "says something.",
  );

function conclusion(place, documents) {
  const found = groups(place, documents);
  const rest = [noteLines(documents), mutedSection(documents)].flat().filter(Boolean);
  if (found.length > 0) return [found, rest].flat();
  if (documents.length === 0) return notice("empty", "There is no table to look at");
  const tables = documents.filter(({ sample }) => sample.isLittle).map(({ table }) => table);
  if (tables.length > 0) return [littleSeen(tables), rest].flat();
  const nothing = notice(
    "empty",
    "Nothing was found",
    "No rule of the advisor has something to say. It goes by a sample, and by what was asked " +
      "for lately.",
  );
  return [nothing, rest].flat();
}

// --- the page ---

const titleOf = (place) => place.table ?? place.instance ?? `${place.project} ${place.database}`;

function headOf(place) {
  if (place.database) return databaseHead(place, "advice");
  return place.table ? tableHead(place, "advice") : instanceHead(place, "advice");
}

// The project's databases of Datastore have pages of their own; who may not list them has none.
async function databaseLinks(place, signal) {
  let found;
  try {
    const path = `/v1/projects/${segment(place.project)}/databases`;
    found = (await api.get(path, { signal })).databases ?? [];
  } catch (error) {
    if (error.code === 403) return null;
    throw error;
  }
  if (found.length === 0) return null;
  const names = found.map(({ name }) => name.split("/")[3]);
  return h(
    "section",
    { class: "databases-of", "aria-label": "Databases of Datastore" },
    h("h2", null, "Datastore"),
    h(
      "p",
      null,
      "Databases of the project are looked at by themselves: ",
      names.map((database, i) => [
        i > 0 && ", ",
        link(databaseUrl({ project: place.project, database }, "/advice"), database),
      ]),
      ".",
    ),
  );
}

export async function advice(place, _parameters, signal) {
  const progress = h("progress", { "aria-label": "Tables that were looked at" });
  const state = h("span", { class: "note", role: "status" });
  const save = h("button", { type: "button", onclick: () => store() }, "Save as JSON");
  const again = h("button", { type: "button", onclick: () => look() }, "Look again");
  const results = h("div", { class: "advice" });
  let documents = [];

  function store() {
    download(`advice-${titleOf(place)}.json`, "application/json", toJson(documents));
  }

  function show(text) {
    state.textContent = text;
    results.replaceChildren(...[groups(place, documents)].flat());
  }

  async function lookAtAll() {
    const subjects = await subjectsOf(place, signal);
    progress.max = Math.max(subjects.length, 1);
    for (const [i, subject] of subjects.entries()) {
      show(`Looking at ${subject}, ${i + 1} of ${subjects.length}`);
      progress.value = i;
      documents.push(...(await lookAt(place, subject, signal)));
    }
    state.textContent = sampleText(place, documents);
    results.replaceChildren(...[conclusion(place, documents)].flat());
  }

  async function look() {
    documents = [];
    again.disabled = save.disabled = true;
    progress.hidden = false;
    progress.removeAttribute("value");
    results.replaceChildren();
    try {
      await lookAtAll();
      save.disabled = false;
    } catch (error) {
      if (signal.aborted) return;
      state.textContent = "";
      results.append(failure(error, look));
    }
    again.disabled = false;
    progress.hidden = true;
  }

  look();
  return {
    title: `Advice on ${titleOf(place)}`,
    content: [
      headOf(place),
      h("div", { class: "controls looking" }, again, save, progress, state),
      results,
      place.instance && !place.table && (await databaseLinks(place, signal)),
    ],
  };
}
