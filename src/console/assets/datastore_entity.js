// One entity: its key, its properties, and changes of them. Each change is one commit, which is
// made only if the entity still is what the page shows (base_version), so that nobody's change is
// lost.
import { ApiError } from "./api.js";
import {
  ask,
  keyLiteral,
  keyName,
  keyPath,
  partition,
  typeName,
  valueLines,
  valueText,
} from "./datastore_api.js";
import { newEntity } from "./datastore_new.js";
import { databaseHead, entityUrl, kindUrl, namespaceText } from "./datastore_parts.js";
import { valueFields } from "./datastore_value.js";
import {
  button,
  dialog,
  facts,
  field,
  fill,
  h,
  link,
  notice,
  rowButton,
  table,
  toast,
} from "./dom.js";
import { dateText } from "./formats.js";

// --- asking ---

function pathOf(parameters) {
  try {
    const path = JSON.parse(parameters.get("path") ?? "");
    if (Array.isArray(path) && path.length > 0) return path;
  } catch {
    // That is no path either.
  }
  throw new ApiError(400, "INVALID_ARGUMENT", "The address names no entity.");
}

async function lookUp(place, key, signal) {
  const answer = await ask(place, "lookup", { keys: [key] }, signal);
  return answer.found?.[0] ?? null;
}

const CHANGED =
  "Somebody has changed or deleted the entity since this page read it. Nothing was written. " +
  "Close this, refresh the page, and look at what it is now.";

async function commit(page, mutation) {
  const answer = await ask(page.place, "commit", {
    mode: "NON_TRANSACTIONAL",
    mutations: [{ ...mutation, baseVersion: page.found.version }],
  });
  if (answer.mutationResults?.some((result) => result.conflictDetected))
    throw new ApiError(409, "ABORTED", CHANGED);
}

// With `value` undefined the property is left out.
async function writeProperty(page, name, value) {
  const { entity } = page.found;
  const properties = { ...entity.properties };
  delete properties[name];
  if (value !== undefined) properties[name] = value;
  await commit(page, { update: { key: entity.key, properties } });
}

// --- changing ---

function editProperty(page, name) {
  const input = h("input", { required: true, spellcheck: "false", value: name ?? "" });
  const value = valueFields(name === undefined ? null : page.found.entity.properties[name]);
  dialog({
    title: name === undefined ? "Add a property" : `Edit ${name}`,
    body: [name === undefined && field("Name", input), value.fields],
    yes: "Write",
    act: async () => {
      if (name === undefined && input.value in (page.found.entity.properties ?? {}))
        throw new Error("The entity has a property of this name.");
      await writeProperty(page, input.value, value.read());
      toast("The entity has been written.");
      page.refresh();
    },
  });
}

function deleteProperty(page, name) {
  dialog({
    title: `Delete ${name}?`,
    body: h("p", null, `The entity ${keyPath(page.found.entity.key)} is without it then.`),
    yes: "Delete the property",
    isDangerous: true,
    act: async () => {
      await writeProperty(page, name, undefined);
      toast("The property has been deleted.");
      page.refresh();
    },
  });
}

function deleteEntity(page) {
  const { key } = page.found.entity;
  dialog({
    title: "Delete the entity?",
    body: h("p", null, `${keyPath(key)} is gone then. Entities below it in the path stay.`),
    yes: "Delete the entity",
    isDangerous: true,
    act: async () => {
      await commit(page, { delete: key });
      toast("The entity has been deleted.");
      page.refresh();
    },
  });
}

// --- showing ---

const micros = (text) => (text ? `${dateText(text)}${text.slice(19).replace("Z", "")}` : "unknown");

// The key's elements are links to those entities, whether they are there or not.
function pathLinks(place, key) {
  return key.path.map((element, i) => {
    const upTo = { ...key, path: key.path.slice(0, i + 1) };
    const text = `${element.kind} ${keyName(upTo)}`;
    return [
      i > 0 && h("span", { "aria-hidden": "true" }, " / "),
      i + 1 < key.path.length ? link(entityUrl(place, upTo), text) : text,
    ];
  });
}

function factsOf(place, { entity, version, createTime, updateTime }) {
  const { key } = entity;
  const space = key.partitionId?.namespaceId ?? "";
  return facts([
    ["Key", pathLinks(place, key)],
    ["In GQL", keyLiteral(key)],
    ["Namespace", namespaceText(space)],
    ["Version", version],
    ["Created (UTC)", micros(createTime)],
    ["Changed (UTC)", micros(updateTime)],
  ]);
}

function indexedText(value) {
  if (value.arrayValue) {
    const excluded = (value.arrayValue.values ?? []).filter((each) => each.excludeFromIndexes);
    if (excluded.length > 0) return "in part, or not";
  }
  return value.excludeFromIndexes ? "excluded" : "indexed";
}

// A key leads to its entity, what is structured has lines.
function shownValue(place, value) {
  if (value.keyValue) return link(entityUrl(place, value.keyValue), valueText(value));
  if (value.entityValue || value.arrayValue)
    return h("pre", null, valueLines(value).join("\n") || h("em", null, "empty"));
  return value.stringValue === undefined
    ? valueText(value)
    : h("span", { class: "text" }, value.stringValue);
}

function propertyTable(page) {
  const all = Object.entries(page.found.entity.properties ?? {}).sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  if (all.length === 0)
    return notice("empty", "The entity has no property", "It is its key, and nothing more.");
  const columns = [
    { title: "Property", class: "key" },
    { title: "Type" },
    { title: "Value", class: "value" },
    { title: "Indexes" },
    { title: "", class: "narrow" },
  ];
  const rows = all.map(([name, value]) => [
    name,
    typeName(value),
    shownValue(page.place, value),
    indexedText(value),
    h(
      "span",
      { class: "row-actions" },
      rowButton("Edit", `Edit ${name}`, () => editProperty(page, name)),
      rowButton("Delete", `Delete ${name}`, () => deleteProperty(page, name)),
    ),
  ]);
  return table("Properties", columns, rows, "properties stacked");
}

async function shown(page, key, signal) {
  page.found = await lookUp(page.place, key, signal);
  if (!page.found)
    return notice(
      "empty",
      "There is no such entity",
      `${keyPath(key)} is not there, or not any more.`,
    );
  const { kind } = key.path.at(-1);
  const space = key.partitionId.namespaceId;
  return [
    factsOf(page.place, page.found),
    h(
      "div",
      { class: "controls" },
      button("Add a property", () => editProperty(page)),
      button("New entity below it", () => newEntity(page.place, { parent: key })),
      button("Refresh", page.refresh),
      button("Delete the entity", () => deleteEntity(page)),
      h("span", { class: "note" }, link(kindUrl(page.place, space, kind), `All of ${kind}`)),
    ),
    propertyTable(page),
  ];
}

export async function entity(place, parameters, signal) {
  const key = {
    partitionId: partition(place, parameters.get("namespace") ?? ""),
    path: pathOf(parameters),
  };
  const below = h("div", { class: "results" });
  const page = { place };
  page.refresh = () => fill(below, "Reading the entity", () => shown(page, key, signal));
  page.refresh();
  return {
    title: `${keyPath(key)} of ${place.project}`,
    content: [databaseHead(place, "entities"), h("h2", null, keyPath(key)), below],
  };
}
