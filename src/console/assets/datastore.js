// Datastore's databases, and what is in one: namespaces and kinds, with what statistics say of
// them.
import * as api from "./api.js";
import { DEFAULT, runQuery } from "./datastore_api.js";
import { newEntity } from "./datastore_new.js";
import { databaseHead, databaseUrl, kindUrl, namespaceText } from "./datastore_parts.js";
import { button, failure, field, h, link, note, notice, number, select, table } from "./dom.js";
import { bytesText, countText, dateText } from "./formats.js";
import { projectForm } from "./parts.js";

// --- databases ---

// projects/P/databases/D
function placeOf(name) {
  const [, project, , database] = name.split("/");
  return { project, database };
}

function databaseRow(found) {
  const place = placeOf(found.name);
  return [link(databaseUrl(place), place.database), place.project];
}

function databaseTable(found, project) {
  if (found.length === 0)
    return notice(
      "empty",
      "There is no database yet",
      "A database comes into being when a client first writes to it.",
      project && h("p", null, link(databaseUrl({ project, database: DEFAULT }), "The default one")),
    );
  return table("Databases", [{ title: "Database" }, { title: "Project" }], found.map(databaseRow));
}

export async function databases(_place, parameters, signal) {
  const project = parameters.get("project") ?? "";
  const path = `/v1/projects/${encodeURIComponent(project || "-")}/databases`;
  let shown;
  try {
    shown = databaseTable((await api.get(path, { signal })).databases ?? [], project);
  } catch (error) {
    if (error.code !== 403) throw error;
    const title = "You may not list the databases of all projects";
    shown = project
      ? failure(error)
      : notice("empty", title, "Name the project that you work in.");
  }
  const wantsForm = project !== "" || shown.classList.contains("notice");
  return {
    title: "Datastore",
    content: [
      h("h1", null, "Datastore", project && h("small", null, project)),
      wantsForm && projectForm("#/datastore", project, "Show its databases"),
      shown,
    ],
  };
}

// --- kinds ---

const nameOf = ({ entity }) => entity.key.path[0].name;

async function metadata(place, namespace, kind, signal) {
  const query = { kind: [{ name: kind }], projection: [{ property: { name: "__key__" } }] };
  return runQuery(place, namespace, { query }, signal);
}

// The namespace without a name has an id there, and is always one to choose.
async function namespacesOf(place, signal) {
  const { results } = await metadata(place, "", "__namespace__", signal);
  const names = results.map(nameOf).filter((name) => name !== undefined);
  return ["", ...names];
}

// By kind: {count, bytes, time}. Without statistics of namespaces there is only one.
async function statisticsOf(place, namespace, signal) {
  const of = async (kind) =>
    (await runQuery(place, namespace, { query: { kind: [{ name: kind }] } }, signal)).results;
  let found = await of("__Stat_Ns_Kind__");
  if (found.length === 0 && namespace === "") found = await of("__Stat_Kind__");
  return new Map(
    found.map(({ entity: { properties: all } }) => [
      all.kind_name?.stringValue,
      {
        count: all.count?.integerValue,
        bytes: all.entity_bytes?.integerValue,
        time: all.timestamp?.timestampValue,
      },
    ]),
  );
}

function kindTable(place, namespace, kinds, statistics) {
  const columns = [
    { title: "Kind" },
    { title: "Entities, as counted", number: true },
    { title: "Size, without indexes", number: true },
    { title: "Counted (UTC)", class: "time" },
  ];
  const rows = kinds.map((kind) => {
    const found = statistics.get(kind);
    return [
      link(kindUrl(place, namespace, kind), kind),
      number(found ? countText(found.count) : "not yet"),
      number(found ? bytesText(found.bytes) : ""),
      h("td", { class: "time" }, dateText(found?.time)),
    ];
  });
  return table("Kinds", columns, rows, "stacked");
}

function namespaceChooser(place, namespaces, chosen) {
  const chooser = select(
    namespaces.map((name) => [name, namespaceText(name)]),
    chosen,
  );
  chooser.addEventListener(
    "change",
    () => (location.hash = databaseUrl(place, "", { namespace: chooser.value })),
  );
  return h(
    "div",
    { class: "controls" },
    field("Namespace", chooser),
    button("New entity", () => newEntity(place, { namespace: chosen })),
  );
}

export async function kinds(place, parameters, signal) {
  const namespace = parameters.get("namespace") ?? "";
  const [namespaces, { results }, statistics] = await Promise.all([
    namespacesOf(place, signal),
    metadata(place, namespace, "__kind__", signal),
    statisticsOf(place, namespace, signal),
  ]);
  const found = results.map(nameOf).filter((kind) => !kind.startsWith("__"));
  const title = place.database === DEFAULT ? place.project : place.database;
  return {
    title: `Datastore ${title}`,
    content: [
      databaseHead(place, "kinds"),
      namespaceChooser(place, namespaces, namespace),
      found.length > 0
        ? kindTable(place, namespace, found, statistics)
        : notice("empty", "There is no entity here", "No kind has one in this namespace."),
      found.length > 0 &&
        note(
          "Entities are counted once a day, or as --datastore-statistics-interval says.",
        ),
    ],
  };
}
