// The SQL editor: a query, its rows, as a table, a chart or a file, or its plan; and the queries of
// before.
import * as api from "./api.js";
import { fromBase64, joined } from "./bytes.js";
import { cellText, isNumber, rowsOf, toCsv, toJson } from "./sql_values.js";
import {
  button,
  download,
  failure,
  field,
  h,
  loading,
  note,
  notice,
  put,
  select,
  status,
  table,
} from "./dom.js";
import { countText, plural } from "./formats.js";
import { keep, kept } from "./kept.js";
import { instanceHead, onCtrlEnter, step } from "./parts.js";
import { resultChart } from "./query_chart.js";
import { completion, identifier } from "./query_complete.js";
import { QueryHistory } from "./query_history.js";
import { planTree } from "./query_plan.js";

const LIMITS = [100, 1000, 10000, 100000];
const ROWS_A_PAGE = 200; // on the screen: more would make the page slow
const CELL_CHARACTERS = 300;
const MEMBERS_SHOWN = 10;

// --- asking ---

async function prepare(instance, sql, explain, signal) {
  const headers = explain ? { "trestle-explain": explain } : {};
  const answer = await api.call(
    "POST",
    `${api.pathOf(instance)}:prepareQuery`,
    { query: sql, protoFormat: {} },
    { signal, headers },
  );
  return { columns: answer.metadata.protoSchema?.columns ?? [], prepared: answer.preparedQuery };
}

// A batch comes in parts, of which the last has a checksum; `reset` takes back what was sent since
// the last resume token.
async function execute(instance, { columns, prepared }, most, signal, progress) {
  let rows = [],
    parts = [],
    sure = 0;
  const path = `${api.pathOf(instance)}:executeQuery`;
  for await (const { results } of api.stream(
    "POST",
    path,
    { preparedQuery: prepared },
    { signal },
  )) {
    if (!results) continue;
    if (results.reset) [rows, parts] = [rows.slice(0, sure), []];
    if (results.protoRowsBatch) parts.push(fromBase64(results.protoRowsBatch.batchData));
    if (results.batchChecksum !== undefined) {
      for (const row of rowsOf(joined(parts), columns)) {
        rows.push(row);
        if (rows.length > most) break;
        await api.breathe();
      }
      parts = [];
      progress(rows.length);
    }
    if (results.resumeToken) sure = rows.length;
    if (rows.length > most) return { rows: rows.slice(0, most), isCut: true };
  }
  return { rows, isCut: false };
}

// --- showing ---

const shorten = (text) =>
  text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text;

// A map or a struct is a line for each of its members.
function lines(found) {
  const members = Object.entries(found);
  const more = members.length - MEMBERS_SHOWN;
  return h(
    "div",
    { class: "lines" },
    members
      .slice(0, MEMBERS_SHOWN)
      .map(([name, value]) => h("div", null, h("b", null, name), shorten(cellText(value)))),
    more > 0 && h("div", null, h("em", null, `and ${countText(more)} more`)),
  );
}

function cell(found) {
  if (found === null) return h("em", null, "NULL");
  if (typeof found === "object" && !Array.isArray(found)) return lines(found);
  return shorten(cellText(found));
}

function pageOf(columns, rows, first) {
  const heads = columns.map((column, i) => ({
    title: column.name || `_${i}`,
    number: isNumber(column),
  }));
  return table(
    "Rows of the result",
    heads,
    rows.slice(first, first + ROWS_A_PAGE).map((row) => row.map(cell)),
  );
}

function exports_(place, columns, rows) {
  const name = `${place?.instance ?? "server"}-query`;
  const csv = () => download(`${name}.csv`, "text/csv", toCsv(columns, rows));
  const json = () => download(`${name}.json`, "application/json", toJson(columns, rows));
  return [button("Export CSV", csv), button("Export JSON", json)];
}

// A button that shows the rows as a chart, and that there is none again.
function chartButton(columns, rows, place) {
  const chart = resultChart(columns, rows);
  if (!chart) return null;
  const toggle = button("Chart", () => {
    const isShown = place.contains(chart);
    put(place, isShown ? [] : [chart]);
    toggle.setAttribute("aria-pressed", String(!isShown));
  });
  toggle.setAttribute("aria-pressed", "false");
  return toggle;
}

function showRows(place, columns, { rows, isCut }, millis) {
  const chart = h("div", null);
  const shown = h("div", null);
  const where = h("span", { class: "note" });
  let first = 0;
  const go = (to) => {
    first = to;
    shown.replaceChildren(pageOf(columns, rows, first));
    previous.disabled = first === 0;
    next.disabled = first + ROWS_A_PAGE >= rows.length;
    const last = Math.min(rows.length, first + ROWS_A_PAGE);
    where.textContent = `rows ${countText(first + 1)} to ${countText(last)}`;
  };
  const previous = step("Previous", true, () => go(first - ROWS_A_PAGE), "previous");
  const next = step("Next", true, () => go(first + ROWS_A_PAGE), "next");
  const summary = status(
    `${plural(rows.length, "row")} in ${countText(millis)} ms`,
    isCut && ", and there are more: it was stopped there",
  );
  if (rows.length === 0) return [summary, notice("empty", "The result has no rows")];
  go(0);
  return [
    h(
      "div",
      { class: "controls" },
      summary,
      h("span", { class: "space" }),
      h(
        "span",
        { class: "row-actions" },
        chartButton(columns, rows, chart),
        exports_(place, columns, rows),
      ),
    ),
    chart,
    shown,
    rows.length > ROWS_A_PAGE && h("div", { class: "pager" }, previous, next, where),
  ];
}

// --- the page ---

// Of an instance; null: of the server, which has nothing but what it remembers of itself. That any
// instance has, also one that is not there.
const SERVER = { project: "-", instance: "-" };
const OWN_TABLES = new Map([["system/metrics", ["line", "method", "latency"]]]);

const serverHead = () => [
  h("h1", null, "Query"),
  note("Of the server: what it remembers of its metrics. Tables are queried in their instance."),
];

export const serverQuery = (_place, ...more) => query(null, ...more);

export async function query(place, parameters, signal) {
  const instance = api.instanceName(place ?? SERVER);
  const key = `trestle-query ${instance}`;
  const from = parameters.get("table");
  const ready = from ? `SELECT * FROM ${identifier(from)} LIMIT 100` : parameters.get("sql");
  const editor = h("textarea", {
    class: "code",
    rows: "7",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "SELECT _key FROM …",
  });
  const draft = from ? `${key} of ${from}` : key; // what was typed, for who leaves and comes back
  const typed = parameters.has("sql") ? "" : kept("session", draft);
  editor.value = typed || (ready ?? "");
  editor.addEventListener("input", () => keep("session", draft, editor.value));
  const most = select(
    LIMITS.map((limit) => [limit, countText(limit)]),
    1000,
  );
  const shown = h("div", { class: "results" });
  let running = null;

  const run = async (explain) => {
    const sql = editor.value.trim();
    if (sql === "" || running) return;
    keep("session", draft, editor.value);
    running = new AbortController();
    signal.addEventListener("abort", () => running?.abort());
    const status = h("span", null, "Running");
    shown.replaceChildren(loading(status));
    stop.disabled = false;
    const begun = performance.now();
    try {
      const query = await prepare(instance, sql, explain, running.signal);
      const progress = (count) => (status.textContent = `${countText(count)} rows so far`);
      const limit = explain ? Infinity : Number(most.value);
      const result = await execute(instance, query, limit, running.signal, progress);
      const millis = Math.round(performance.now() - begun);
      const lines = () => result.rows.map(([line]) => line);
      put(shown, explain ? planTree(lines()) : showRows(place, query.columns, result, millis));
      if (!explain) past.add(sql, result.rows.length, millis);
    } catch (error) {
      put(shown, error.name === "AbortError" ? notice("empty", "Stopped") : failure(error));
    }
    running = null;
    stop.disabled = true;
  };

  const past = new QueryHistory(instance, (sql) => {
    editor.value = sql;
    editor.focus();
  });
  const stop = button("Stop", () => running?.abort(), { disabled: true });
  onCtrlEnter(editor, () => run());
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  return {
    title: place ? `Query ${place.instance}` : "Query",
    content: [
      place ? instanceHead(place, "query") : serverHead(),
      h(
        "form",
        { onsubmit: submit },
        field(
          "SQL",
          editor,
          "Ctrl + Enter runs it, Ctrl + Space completes a name. Tab leaves the field.",
        ),
        completion(editor, instance, signal, place ? null : OWN_TABLES),
        h(
          "div",
          { class: "controls" },
          h("button", { type: "submit", class: "primary" }, "Run"),
          button("Plan", () => run("plan")),
          button("Run and explain", () => run("analyze")),
          stop,
          field("Rows at most", most),
        ),
      ),
      past.element,
      shown,
    ],
  };
}
