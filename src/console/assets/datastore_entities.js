// Entities of a kind, page by page, and with a condition on one property. The address says which:
// kind, namespace, property, operator, type, value, limit, and the cursor at which the page begins.
import { TYPES, parseValue, runQuery } from "./datastore_api.js";
import { newEntity } from "./datastore_new.js";
import { databaseHead, databaseUrl, entityTable, kindUrl } from "./datastore_parts.js";
import { button, field, fill, h, link, note, notice, select } from "./dom.js";
import { plural } from "./formats.js";
import { go, step } from "./parts.js";

const LIMITS = [25, 50, 100, 250];
const OPERATORS = [
  ["EQUAL", "="],
  ["NOT_EQUAL", "≠"],
  ["LESS_THAN", "<"],
  ["LESS_THAN_OR_EQUAL", "≤"],
  ["GREATER_THAN", ">"],
  ["GREATER_THAN_OR_EQUAL", "≥"],
];
const FILTER_TYPES = TYPES.filter(([type]) => !["entityValue", "arrayValue"].includes(type));

const NAMES = ["kind", "namespace", "property", "operator", "type", "value"];

function viewOf(parameters) {
  const view = Object.fromEntries(NAMES.map((name) => [name, parameters.get(name) ?? ""]));
  const limit = Number(parameters.get("limit"));
  return {
    ...view,
    operator: view.operator || "EQUAL",
    type: view.type || "stringValue",
    limit: LIMITS.includes(limit) ? limit : 50,
    cursor: parameters.get("cursor") ?? "",
  };
}

function queryOf(view) {
  const query = { kind: [{ name: view.kind }], limit: view.limit };
  if (view.cursor) query.startCursor = view.cursor;
  if (view.property)
    query.filter = {
      propertyFilter: {
        property: { name: view.property },
        op: view.operator,
        value: parseValue(view.type, view.value),
      },
    };
  return query;
}

function addressOf(place, view, cursor = "") {
  const filter = view.property ? view : { ...view, operator: "", type: "", value: "" };
  const { kind, namespace, ...more } = filter;
  return kindUrl(place, namespace, kind, { ...more, cursor });
}

function pager(place, view, { results, hasMore, endCursor }) {
  const edge = (text, isThere, cursor, key) =>
    step(text, isThere, () => go(addressOf(place, view, cursor)), key);
  return h(
    "div",
    { class: "pager" },
    edge("First page", view.cursor !== "", "", "previous"),
    edge("Next", hasMore, endCursor, "next"),
    note(plural(results.length, "entity", "entities"), " on this page"),
  );
}

// What is typed wrongly is no answer of the server's, and is said the same way.
function queryOrWords(view) {
  try {
    return { query: queryOf(view) };
  } catch (error) {
    return { words: notice("error", "The value cannot be read", error.message) };
  }
}

async function results(place, view, signal) {
  const { query, words } = queryOrWords(view);
  if (words) return words;
  const found = await runQuery(place, view.namespace, { query }, signal, view.limit);
  if (found.results.length === 0)
    return [
      notice(
        "empty",
        "No entity is here",
        view.property
          ? "None fits. A property that is excluded from indexes is not found by its value."
          : "The kind has none in this namespace, or none after those before.",
      ),
      view.cursor !== "" && pager(place, view, { ...found, hasMore: false }),
    ];
  return [entityTable(place, found.results), pager(place, view, found)];
}

function inputsOf(view) {
  const text = (name, more) =>
    h("input", {
      name,
      value: view[name],
      spellcheck: "false",
      autocomplete: "off",
      ...more,
    });
  return {
    kind: text("kind", { required: true }),
    namespace: text("namespace"),
    property: text("property"),
    operator: select(OPERATORS, view.operator),
    type: select(FILTER_TYPES, view.type),
    value: text("value"),
    limit: select(
      LIMITS.map((limit) => [limit, limit]),
      view.limit,
    ),
  };
}

function controls(place, view) {
  const inputs = inputsOf(view);
  const submit = (event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(
      Object.entries(inputs).map(([name, input]) => [name, input.value]),
    );
    go(addressOf(place, wanted));
  };
  return h(
    "form",
    { class: "controls", onsubmit: submit, "aria-label": "Which entities" },
    field("Kind", inputs.kind),
    field("Namespace", inputs.namespace, "empty: the default one"),
    field("Property", inputs.property, "empty: all entities"),
    field("Is", inputs.operator),
    field("Value", inputs.value),
    field("Of type", inputs.type),
    field("A page", inputs.limit),
    h("button", { type: "submit", class: "primary" }, "Read"),
  );
}

export async function entities(place, parameters, signal) {
  const view = viewOf(parameters);
  const shown = h("div", { class: "results" });
  const refresh = () => fill(shown, "Reading entities", () => results(place, view, signal));
  if (view.kind) refresh();
  else
    shown.append(
      notice(
        "empty",
        "Which kind?",
        h("p", null, link(databaseUrl(place), "Kinds"), " lists those that are there."),
      ),
    );
  return {
    title: view.kind ? `${view.kind} of ${place.project}` : "Entities",
    content: [
      databaseHead(place, "entities"),
      controls(place, view),
      h(
        "div",
        { class: "controls" },
        button("New entity", () => newEntity(place, view)),
        view.kind && button("Refresh", refresh),
      ),
      shown,
    ],
  };
}
