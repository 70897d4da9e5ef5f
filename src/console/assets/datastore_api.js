// Datastore's requests, and how its keys and values are shown and typed. A place is {project,
// database}; a database without a name is called "(default)", as in addresses and names.
import * as api from "./api.js";
import { escape, fromBase64, toBase64, unescape } from "./bytes.js";

export const DEFAULT = "(default)";
const MOST_RESULTS = 1000;

const segment = encodeURIComponent;
const databaseId = (place) => (place.database === DEFAULT ? "" : place.database);

export const partition = (place, namespace) => ({
  projectId: place.project,
  databaseId: databaseId(place),
  namespaceId: namespace,
});

export const ask = (place, method, body, signal) =>
  api.call(
    "POST",
    `/v1/projects/${segment(place.project)}:${method}`,
    { databaseId: databaseId(place), ...body },
    { signal },
  );

export const groupsPath = (place) =>
  `/v1/projects/${segment(place.project)}/databases/${segment(place.database)}/collectionGroups/-`;

// All results of a query, in however many batches they come, up to so many: {results, hasMore,
// endCursor}. `body` has query or gqlQuery, and what else RunQuery takes.
export async function runQuery(place, namespace, body, signal, most = MOST_RESULTS) {
  const results = [];
  const partitionId = partition(place, namespace);
  let asked = body;
  for (;;) {
    const answer = await ask(place, "runQuery", { partitionId, ...asked }, signal);
    const batch = answer.batch ?? {};
    results.push(...(batch.entityResults ?? []));
    const query = answer.query ?? asked.query;
    const isWhole = batch.moreResults !== "NOT_FINISHED";
    if (isWhole || results.length >= most || !query) {
      return {
        results,
        hasMore: batch.moreResults !== undefined && batch.moreResults !== "NO_MORE_RESULTS",
        endCursor: batch.endCursor,
        metrics: answer.explainMetrics,
      };
    }
    const offset = Math.max(0, (query.offset ?? 0) - (batch.skippedResults ?? 0));
    const limit = query.limit === undefined ? undefined : query.limit - batch.entityResults.length;
    asked = { query: { ...query, startCursor: batch.endCursor, offset, limit } };
  }
}

// --- keys ---

const lastOf = (key) => key.path?.at(-1) ?? {};
const idText = (element) => (element.name !== undefined ? element.name : (element.id ?? "?"));

export const keyName = (key) => idText(lastOf(key));
export const keyPath = (key) =>
  (key.path ?? []).map((element) => `${element.kind} ${idText(element)}`).join(" / ");

const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
const kindName = (kind) =>
  /^[A-Za-z_][\w$]*$/.test(kind) ? kind : `\`${kind.replaceAll("`", "\\`")}\``;

// As GQL has it.
export function keyLiteral(key) {
  const space = key.partitionId?.namespaceId;
  const parts = (key.path ?? []).flatMap((element) => [
    kindName(element.kind),
    element.name !== undefined ? quoted(element.name) : element.id,
  ]);
  return `KEY(${[...(space ? [`NAMESPACE(${quoted(space)})`] : []), ...parts].join(", ")})`;
}

// --- values ---

export const TYPES = [
  ["stringValue", "text"],
  ["integerValue", "integer"],
  ["doubleValue", "double"],
  ["booleanValue", "boolean"],
  ["timestampValue", "timestamp"],
  ["keyValue", "key"],
  ["blobValue", "bytes"],
  ["geoPointValue", "geo point"],
  ["entityValue", "entity"],
  ["arrayValue", "array"],
  ["nullValue", "null"],
];
const NAMES = Object.fromEntries(TYPES);

export const typeOf = (value) => TYPES.find(([type]) => type in value)?.[0] ?? "nullValue";
export const typeName = (value) => NAMES[typeOf(value)];
export const isNumber = (value) => ["integerValue", "doubleValue"].includes(typeOf(value));

// In one line.
export function valueText(value) {
  const type = typeOf(value),
    found = value[type];
  switch (type) {
    case "keyValue":
      return keyPath(found);
    case "blobValue":
      return escape(fromBase64(found));
    case "geoPointValue":
      return `${found.latitude ?? 0}, ${found.longitude ?? 0}`;
    case "arrayValue":
      return `[${(found.values ?? []).map(innerText).join(", ")}]`;
    case "entityValue":
      return `{${Object.entries(found.properties ?? {})
        .map(([name, each]) => `${name}: ${innerText(each)}`)
        .join(", ")}}`;
    case "nullValue":
      return "null";
    default:
      return String(found);
  }
}

const innerText = (value) =>
  typeOf(value) === "stringValue" ? JSON.stringify(value.stringValue) : valueText(value);

// With a line for each element of an array and each property of an entity, indented.
export function valueLines(value, indent = "") {
  const members = value.arrayValue
    ? (value.arrayValue.values ?? []).map((each) => ["-", each])
    : Object.entries(value.entityValue.properties ?? {}).map(([name, each]) => [`${name}:`, each]);
  return members.flatMap(([name, each]) =>
    each.arrayValue || each.entityValue
      ? [`${indent}${name}`, ...valueLines(each, `${indent}  `)]
      : `${indent}${name} ${innerText(each)}`,
  );
}

// Those that are typed as the API's own JSON.
const isStructured = (type) => ["keyValue", "entityValue", "arrayValue"].includes(type);

export function editText(value) {
  const type = typeOf(value);
  if (isStructured(type)) return JSON.stringify(value[type], null, 2);
  return type === "nullValue" ? "" : valueText(value);
}

const REALS = ["NaN", "Infinity", "-Infinity"];

function parseReal(text) {
  if (REALS.includes(text)) return text;
  if (text === "" || !Number.isFinite(Number(text)))
    throw new Error("A double is a number, NaN, Infinity or -Infinity.");
  return Number(text);
}

function parsePoint(text) {
  const found = /^\s*(-?[\d.]+)\s*,\s*(-?[\d.]+)\s*$/.exec(text);
  if (!found) throw new Error("A geo point is its latitude, a comma, and its longitude.");
  return { latitude: parseReal(found[1]), longitude: parseReal(found[2]) };
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`It is not JSON: ${error.message}`);
  }
}

function parseBoolean(text) {
  if (text !== "true" && text !== "false") throw new Error("A boolean is true or false.");
  return text === "true";
}

function parseInteger(text) {
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text))
    throw new Error("An integer is digits, of 64 bits at most, with a minus if it is negative.");
  return text;
}

// What somebody has typed, as a value of that type. Throws an Error with words for the person; what
// else is wrong with it the server says.
export function parseValue(type, text) {
  const trimmed = text.trim();
  const parsers = {
    stringValue: () => text,
    integerValue: () => parseInteger(trimmed),
    doubleValue: () => parseReal(trimmed),
    booleanValue: () => parseBoolean(trimmed),
    timestampValue: () => trimmed,
    blobValue: () => toBase64(unescape(text)),
    geoPointValue: () => parsePoint(text),
    nullValue: () => null,
  };
  return { [type]: isStructured(type) ? parseJson(text) : parsers[type]() };
}
