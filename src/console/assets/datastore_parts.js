// What Datastore's pages share: addresses, heads, and tables of entities.
import { h, link, note, table } from "./dom.js";
import { isNumber, keyName, keyPath, valueText } from "./datastore_api.js";
import { crumbs, tabs } from "./parts.js";

const segment = encodeURIComponent;
const COLUMNS_MOST = 10;
const CHARACTERS_MOST = 120;

export function databaseUrl(place, more = "", parameters = {}) {
  const search = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined),
  ).toString();
  const base = `#/d/${segment(place.project)}/${segment(place.database)}${more}`;
  return search ? `${base}?${search}` : base;
}

export const kindUrl = (place, namespace, kind, more) =>
  databaseUrl(place, "/entities", { namespace, kind, ...more });

export const entityUrl = (place, key) =>
  databaseUrl(place, "/entity", {
    namespace: key.partitionId?.namespaceId ?? "",
    path: JSON.stringify(key.path),
  });

export function databaseHead(place, current) {
  return [
    crumbs([["#/datastore", "Datastore"]]),
    h("h1", null, place.database, h("small", null, place.project)),
    tabs(
      [
        ["kinds", databaseUrl(place), "Kinds"],
        ["entities", databaseUrl(place, "/entities"), "Entities"],
        ["gql", databaseUrl(place, "/gql"), "GQL"],
        ["indexes", databaseUrl(place, "/indexes"), "Indexes"],
        ["advice", databaseUrl(place, "/advice"), "Advice"],
      ],
      current,
    ),
  ];
}

export const namespaceText = (namespace) => (namespace === "" ? "(default)" : namespace);

const shorten = (text) =>
  text.length > CHARACTERS_MOST ? `${text.slice(0, CHARACTERS_MOST)}…` : text;

function cell(value) {
  if (value === undefined) return "";
  const kind = isNumber(value) ? "number" : undefined;
  const text = shorten(valueText(value));
  return h("td", { class: kind }, "nullValue" in value ? h("em", null, text) : text);
}

// The properties that most of them have come first, the others are left out: {names, left}.
function columnsOf(results) {
  const counts = new Map();
  for (const { entity } of results)
    for (const name of Object.keys(entity.properties ?? {}))
      counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts.keys()].sort(
    (a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1),
  );
  return { names: names.slice(0, COLUMNS_MOST), left: names.length - COLUMNS_MOST };
}

// Entities that a query has found, a column for each property.
export function entityTable(place, results) {
  const { names, left } = columnsOf(results);
  const isRoot = results.every(({ entity }) => (entity.key?.path ?? []).length === 1);
  const rows = results.map(({ entity }) => [
    h(
      "td",
      { class: "key" },
      entity.key?.path
        ? link(entityUrl(place, entity.key), isRoot ? keyName(entity.key) : keyPath(entity.key))
        : "",
    ),
    ...names.map((name) => cell(entity.properties?.[name])),
  ]);
  const isOfNumbers = (name) =>
    results.every(({ entity }) => {
      const value = entity.properties?.[name];
      return value === undefined || isNumber(value);
    });
  const columns = names.map((name) => ({ title: name, number: isOfNumbers(name) }));
  return [
    table("Entities", [{ title: "Key" }, ...columns], rows, "entities"),
    left > 0 && note(`${left} more properties are shown with each entity only.`),
  ];
}
