// The materialized views of a table: how they are, made and deleted.
import * as api from "./api.js";
import { button, dialog, every, failure, field, h, note, put, rowButton, table } from "./dom.js";
import { bytesText, countText, secondsOf, secondsText } from "./formats.js";
import { rowsWords, whenKnown } from "./table_shape.js";

const REFRESH_MS = 3000;
const STATES = {
  POPULATING: "is being populated",
  READY: "up to date",
  RECONCILING: "is looked through anew",
  FAILED: "FAILED",
};

// --- what there is ---

function progressText({ rowsDone = 0, rows = 0 }) {
  const share = Number(rows) > 0 ? Math.floor((100 * Number(rowsDone)) / Number(rows)) : 0;
  return `${share} %`;
}

function stateText(view) {
  const lag = secondsOf(view.lag);
  if (view.state !== "READY") {
    const progress = view.state === "FAILED" ? "" : `, ${progressText(view)}`;
    return `${STATES[view.state] ?? view.state}${progress}`;
  }
  return lag > 0 ? `${secondsText(lag)} behind` : STATES.READY;
}

// Rows and groups that are in no view: an expression fails, a sum overflows.
function leftOutText(view) {
  const parts = [
    [view.excludedRows, "rows"],
    [view.excludedGroups, "groups"],
  ].filter(([count]) => Number(count ?? 0) > 0);
  return parts.map(([count, what]) => `${countText(count)} ${what}`).join(", ") || "none";
}

const VIEWS = [
  { title: "View", class: "key" },
  { title: "Query", class: "code" },
  { title: "State" },
  { title: "Left out" },
  { title: "Size, about", number: true },
  { title: "Kept beside", number: true },
  { title: "", class: "narrow" },
];

function askDeletion(view) {
  dialog({
    title: `Delete the view ${api.idOf(view.name)}?`,
    body: h(
      "p",
      { class: "will" },
      `Its rows go with it, about ${bytesText(Number(view.bytes ?? 0))}, and queries that read ` +
        "it fail. The table stays as it is; the same view made anew reads all of it once more.",
    ),
    yes: "Delete",
    isDangerous: true,
    act: () => api.call("DELETE", api.pathOf(view.name)),
  });
}

const viewRow = (view) => [
  api.idOf(view.name),
  view.query ?? "",
  h("td", null, stateText(view), view.text && h("p", { class: "note" }, view.text)),
  leftOutText(view),
  bytesText(Number(view.bytes ?? 0)),
  bytesText(Number(view.intermediateBytes ?? 0)),
  rowButton("Delete", api.idOf(view.name), () => askDeletion(view)),
];

async function load(instance, source, signal) {
  const [{ views = [] }, defined] = await Promise.all([
    api.get(`${api.pathOf(instance).replace("/v2/", "/v1/")}/viewUpkeep`, { signal }),
    api.list(`${api.pathOf(instance)}/materializedViews`, "materializedViews", { signal }),
  ]);
  const queries = new Map(defined.items.map(({ name, query }) => [name, query]));
  return views
    .filter((view) => view.source === source)
    .map((view) => ({ ...view, query: queries.get(view.name) }));
}

// --- making one ---

const ID = { required: true, maxLength: 128, pattern: "[_a-zA-Z0-9][\\-_.a-zA-Z0-9]*" };

function make(instance, id, query) {
  const path = `${api.pathOf(instance)}/materializedViews`;
  return api.call("POST", `${path}?materializedViewId=${encodeURIComponent(id)}`, { query });
}

function askView(instance, source, shape) {
  const id = h("input", ID);
  const query = h("textarea", { required: true, rows: 6, class: "code", spellcheck: false });
  query.value = `SELECT _key, COUNT(*) AS n FROM \`${api.idOf(source)}\` GROUP BY _key`;
  dialog({
    title: "New materialized view",
    body: [
      h("p", null, "One GROUP BY, or an ORDER BY that ends with _key."),
      h(
        "p",
        { class: "will", role: "status" },
        "It reads the whole table once, ",
        whenKnown(shape, (found) => `${rowsWords(found)}, ${bytesText(found.bytes)}`),
        "; from then on it follows each write, behind it, and takes room of its own beside the " +
          "table.",
      ),
      field("Name", id),
      field("Query", query),
    ],
    yes: "Make",
    act: () => make(instance, id.value, query.value),
  });
}

// --- the section ---

async function refresh(place, instance, source, state, signal) {
  if (state.isBusy) return;
  state.isBusy = true;
  try {
    const found = await load(instance, source, signal);
    put(
      place,
      found.length > 0
        ? table("Materialized views", VIEWS, found.map(viewRow), "views stacked")
        : note("None: nothing is kept beside the table."),
    );
  } catch (error) {
    if (!signal.aborted) put(place, failure(error));
  }
  state.isBusy = false;
}

// Of the table `source`, a full name, with its shape.
export function materializedViews(instance, { name: source, shape }, signal) {
  const place = h("div", { class: "materialized-views" });
  const state = {};
  const act = () => refresh(place, instance, source, state, signal);
  act();
  every(REFRESH_MS, act, signal);
  return [
    place,
    h("div", { class: "controls" }, button("New view", () => askView(instance, source, shape))),
  ];
}
