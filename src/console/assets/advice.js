// What the schema advisor says of an instance's tables, or of one: findings, the most severe first.
// Tables are asked one by one, so that what is found can be read while others are looked at.
import * as api from "./api.js";
import { download, failure, h, link, notice } from "./dom.js";
import { bytesText, plural } from "./formats.js";
import { instanceHead, tableHead, tableUrl } from "./parts.js";

const SEVERITIES = ["critical", "warning", "info"];
const TITLES = { critical: "Critical", warning: "Warnings", info: "To know" };

// --- findings ---

const code = (text, edge) => (text === "" ? h("em", null, edge) : h("code", null, text));

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

function better(pairs) {
  return list(
    pairs.map((pair) => [code(pair.better), h("span", { class: "soft" }, " for "), code(pair.key)]),
  );
}

function range({ start, end }) {
  return [code(start, "the first key"), " up to ", code(end, "the last key")];
}

function finding(place, table, found) {
  const of = { ...place, table };
  return h(
    "article",
    { class: `finding ${found.severity}` },
    h("h3", null, found.title),
    h(
      "p",
      { class: "of" },
      !place.table && [link(tableUrl(of), table), " · "],
      h("span", { class: `severity ${found.severity}` }, found.severity),
    ),
    h("p", { class: "evidence" }, found.evidence),
    h(
      "dl",
      null,
      found.range && fact("Where", range(found.range)),
      found.keys.length > 0 && fact("Keys", list(found.keys.map((key) => code(key)))),
      fact("Why it matters", found.why),
      fact("What to do", found.remedy),
      found.better.length > 0 && fact("Better keys", better(found.better)),
    ),
    h(
      "details",
      null,
      h("summary", null, `The rule ${found.rule}`),
      h("p", null, h("strong", null, "Found when: "), found.when),
    ),
  );
}

function groups(place, documents) {
  const all = documents.flatMap((document) =>
    document.findings.map((found) => ({ table: document.table, found })),
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

async function tablesOf(place, signal) {
  if (place.table) return [place.table];
  const path = `${api.pathOf(api.instanceName(place))}/tables?view=NAME_ONLY`;
  const { items } = await api.list(path, "tables", { signal });
  return items.map((item) => api.idOf(item.name));
}

async function ask(place, table, signal) {
  const instance = api.instanceName(place).split("/").map(encodeURIComponent).join("/");
  const path = `/v1/${instance}:advise?tables=${encodeURIComponent(table)}`;
  const { json } = await api.get(path, { signal });
  return JSON.parse(json).tables;
}

// One that has gone meanwhile is none any more.
async function lookAt(place, table, signal) {
  try {
    return await ask(place, table, signal);
  } catch (error) {
    if (error.code === 404 && !place.table) return [];
    throw error;
  }
}

function sampleText(documents) {
  const sum = (count) => documents.reduce((all, document) => all + count(document), 0);
  const rows = sum((document) => document.sample.rows);
  const size = sum((document) => document.sample.bytes);
  return (
    `${plural(rows, "row", "rows")} of ${plural(documents.length, "table", "tables")} ` +
    `sampled, ${bytesText(size)} read.`
  );
}

function conclusion(place, documents) {
  const found = groups(place, documents);
  if (found.length > 0) return found;
  if (documents.length === 0) return notice("empty", "There is no table to look at");
  return notice(
    "empty",
    "Nothing was found",
    "No rule of the advisor has something to say. It goes by a sample, and by what was asked " +
      "for lately.",
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
    const name = place.table ?? place.instance;
    download(`advice-${name}.json`, "application/json", JSON.stringify(documents, null, 2));
  }

  function show(text) {
    state.textContent = text;
    results.replaceChildren(...[groups(place, documents)].flat());
  }

  async function lookAtAll() {
    const tables = await tablesOf(place, signal);
    progress.max = Math.max(tables.length, 1);
    for (const [i, table] of tables.entries()) {
      show(`Looking at ${table}, ${i + 1} of ${tables.length}`);
      progress.value = i;
      documents.push(...(await lookAt(place, table, signal)));
    }
    state.textContent = sampleText(documents);
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
    title: `Advice on ${place.table ?? place.instance}`,
    content: [
      place.table ? tableHead(place, "advice") : instanceHead(place, "advice"),
      h("div", { class: "controls looking" }, again, save, progress, state),
      results,
    ],
  };
}
