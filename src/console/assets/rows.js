// The data browser: rows of a key range, page by page, and changes of them.
//
// The address says what is shown (prefix, from, to: keys in base64; family, versions, way, limit),
// and where the page begins (after, before), so that it can be kept, sent, and gone back to. Of one
// row alone (key) it says whether it is shown by time (by), or as it was at one (until).
import * as api from "./api.js";
import { WAYS, afterPrefix, compare, escape, fromUrl, toBase64, toUrl, unescape } from "./bytes.js";
import { valueButton } from "./cell_dialog.js";
import { button, fill, field, h, link, note, notice, rowButton, select } from "./dom.js";
import { plural, timeText } from "./formats.js";
import { jumps } from "./key_jump.js";
import { keySchemaOf, partsOfKey } from "./key_schema.js";
import { go, rowsUrl, step, tableHead, tabs } from "./parts.js";
import { columnText, readRows, MOST_BYTES } from "./read_rows.js";
import { addRow, deleteCell, deleteColumn, deleteRow, editCell } from "./row_dialogs.js";
import { rowHistory } from "./row_history.js";
import { ValueWays, isMessageWay } from "./value_ways.js";

const LIMITS = [25, 50, 100, 250];
const CELLS_A_ROW = 100; // of one row among others; a row by itself shows more
const CELLS_ALONE = 1000;

// --- what is asked for ---

const keyOf = (parameters, name) => (parameters.get(name) ? fromUrl(parameters.get(name)) : null);

function viewOf(parameters) {
  return {
    prefix: keyOf(parameters, "prefix"),
    from: keyOf(parameters, "from"),
    to: keyOf(parameters, "to"),
    key: keyOf(parameters, "key"), // one row alone
    after: keyOf(parameters, "after"),
    before: keyOf(parameters, "before"),
    isByTime: parameters.get("by") === "time",
    until: /^\d+$/.test(parameters.get("until") ?? "") ? BigInt(parameters.get("until")) : null,
    family: parameters.get("family") ?? "",
    versions: Math.max(1, Number(parameters.get("versions")) || 1),
    way: parameters.get("way") ?? "auto",
    limit: LIMITS.includes(Number(parameters.get("limit")))
      ? Number(parameters.get("limit"))
      : 50,
  };
}

const later = (a, b) => (a === null || (b !== null && compare(b, a) > 0) ? b : a);
const earlier = (a, b) => (a === null || (b !== null && compare(b, a) < 0) ? b : a);

// The range of the view, met with where the page begins; null if nothing can be in it.
function rangeOf(view) {
  const start = later(view.from, view.prefix);
  const end = earlier(view.to, view.prefix && afterPrefix(view.prefix));
  const range = {};
  if (view.after) range.startKeyOpen = toBase64(view.after);
  else if (start) range.startKeyClosed = toBase64(start);
  if (view.before) range.endKeyOpen = toBase64(view.before);
  else if (end) range.endKeyOpen = toBase64(end);
  const low = view.after ?? start,
    high = view.before ?? end;
  return low && high && compare(low, high) >= 0 ? null : range;
}

function filterOf(view) {
  const filters = [];
  if (view.family)
    filters.push({ familyNameRegexFilter: view.family.replaceAll(/[^a-zA-Z0-9_]/g, "\\$&") });
  if (view.until !== null)
    filters.push({ timestampRangeFilter: { endTimestampMicros: String(view.until + 1n) } });
  // One more than is shown tells whether there are more.
  filters.push({ cellsPerColumnLimitFilter: view.isByTime ? CELLS_ALONE + 1 : view.versions });
  filters.push({ cellsPerRowLimitFilter: (view.key ? CELLS_ALONE : CELLS_A_ROW) + 1 });
  return { chain: { filters } };
}

function requestOf(view, range) {
  const rows = view.key ? { rowKeys: [toBase64(view.key)] } : { rowRanges: [range] };
  return {
    rows,
    filter: filterOf(view),
    rowsLimit: String(view.limit + 1),
    reversed: view.before !== null,
  };
}

async function load(place, view, signal) {
  const range = rangeOf(view);
  if (range === null) return { rows: [], hasMore: false, isCut: false };
  const { rows, isCut } = await readRows(api.tableName(place), requestOf(view, range), signal);
  const hasMore = isCut || rows.length > view.limit;
  const page = rows.slice(0, view.limit);
  return { rows: view.before ? page.reverse() : page, hasMore, isCut };
}

// --- how it is shown ---

// That in which the value is edited: messages are by their bytes.
function typedWay({ ways, view }, cell) {
  const way = ways.wayOf(cell, view.way);
  return isMessageWay(way) ? "hex" : way;
}

// What the key has in its parts, where keys are structured.
function keyParts({ keySchema }, key) {
  const parts = keySchema && partsOfKey(keySchema, key);
  if (!parts) return null;
  return h(
    "span",
    { class: "key-parts" },
    parts.map(([name, text]) => h("span", null, h("b", null, name), " ", text)),
  );
}

function cellRow(page, row, cell, isFirst, span) {
  const { place, view, refresh } = page;
  const name = columnText(cell);
  const about = { place, row, cell, step: page.step, refresh };
  return h(
    "tr",
    { class: isFirst && "first" },
    isFirst &&
      h(
        "th",
        { scope: "rowgroup", class: "key", rowspan: String(span) },
        link(rowsUrl(place, { key: toUrl(row.key), versions: "10" }), escape(row.key)),
        keyParts(page, row.key),
        h(
          "span",
          { class: "row-actions" },
          rowButton("Add cell", `Add a cell to row ${escape(row.key)}`, () =>
            addRow({ ...page, row }),
          ),
          rowButton("Delete row", `Delete row ${escape(row.key)}`, () => deleteRow(about)),
        ),
      ),
    h("td", { class: "column" }, name),
    h("td", { class: "value" }, valueButton(page, row, cell)),
    h("td", { class: "time" }, timeText(cell.time)),
    h(
      "td",
      { class: "narrow" },
      h(
        "span",
        { class: "row-actions" },
        rowButton("Edit", `Edit ${name} of row ${escape(row.key)}`, () =>
          editCell({ ...about, way: typedWay(page, cell) }),
        ),
        rowButton("Delete", `Delete this version of ${name} of row ${escape(row.key)}`, () =>
          deleteCell(about),
        ),
        view.key &&
          rowButton("Delete column", `Delete all versions of ${name}`, () => deleteColumn(about)),
      ),
    ),
  );
}

function rowGroup(page, row) {
  const most = page.view.key ? CELLS_ALONE : CELLS_A_ROW;
  const cells = row.cells.slice(0, most);
  const isCut = row.cells.length > most;
  const span = cells.length + (isCut ? 1 : 0);
  return h(
    "tbody",
    null,
    cells.map((cell, i) => cellRow(page, row, cell, i === 0, span)),
    isCut &&
      h(
        "tr",
        null,
        h(
          "td",
          { colspan: "4", class: "note" },
          `The row has more cells than these ${most}. `,
          !page.view.key &&
            link(rowsUrl(page.place, { key: toUrl(row.key) }), "Show the row alone"),
        ),
      ),
  );
}

function dataTable(page, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" },
    h(
      "table",
      { class: "data stacked" },
      h("caption", { class: "hidden" }, "Rows"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Row key", "Column", "Value"].map((title) => h("th", { scope: "col" }, title)),
          h("th", { scope: "col", class: "time" }, "Time (UTC)"),
          h("th", { scope: "col", class: "narrow" }, h("span", { class: "hidden" }, "Actions")),
        ),
      ),
      rows.map((row) => rowGroup(page, row)),
    ),
  );
}

// Forwards and back, by the keys at the page's edges.
function pager(place, parameters, view, rows, hasMore) {
  const move = (name, row) => {
    const next = new URLSearchParams(parameters);
    next.delete("after");
    next.delete("before");
    if (row) next.set(name, toUrl(row.key));
    return () => go(rowsUrl(place, Object.fromEntries(next)));
  };
  const isFirst = view.before ? !hasMore : !view.after;
  const isLast = view.before ? rows.length === 0 : !hasMore;
  const isSome = rows.length > 0;
  const count = rows.reduce((sum, row) => sum + row.cells.length, 0);
  return h(
    "div",
    { class: "pager" },
    step("First page", !isFirst, move()),
    step("Previous", !isFirst && isSome, move("before", rows[0]), "previous"),
    step("Next", !isLast && isSome, move("after", rows.at(-1)), "next"),
    note(`${plural(rows.length, "row")}, ${plural(count, "cell")} on this page`),
  );
}

const cutNote = () =>
  notice(
    "warning",
    "This page is not whole",
    `It stopped after ${MOST_BYTES >> 20} MiB: the rest of it is on the next one.`,
  );

async function results(page, parameters, signal) {
  const { place, view } = page;
  const [{ rows, hasMore, isCut }] = await Promise.all([
    load(place, view, signal),
    page.ways.prepare(signal),
  ]);
  if (rows.length === 0 && isCut) {
    return notice(
      "warning",
      "The first row alone is too large for a page",
      "A client library, or SQL that asks for some of its columns, gets at it.",
    );
  }
  if (rows.length === 0)
    return [
      notice(
        "empty",
        "No row is here",
        view.key
          ? "The row is not there any more, or has no cells left."
          : "No row has a cell that fits what was asked for.",
      ),
      (view.after || view.before) && pager(place, parameters, view, rows, false),
    ];
  if (view.key && view.isByTime) return rowHistory(page, rows[0], CELLS_ALONE);
  return [
    isCut && cutNote(),
    dataTable(page, rows),
    !view.key && pager(place, parameters, view, rows, hasMore),
  ];
}

// --- what one may ask for ---

function keyInput(name, value) {
  return h("input", {
    name,
    value: value ? escape(value) : "",
    spellcheck: "false",
    autocomplete: "off",
  });
}

function controls(place, view, families) {
  const wrong = h("div", { class: "wrong" });
  const inputs = {
    prefix: keyInput("prefix", view.prefix),
    from: keyInput("from", view.from),
    to: keyInput("to", view.to),
    family: select([["", "all"], ...families.map((name) => [name, name])], view.family),
    versions: h("input", {
      type: "number",
      min: "1",
      max: "1000",
      value: String(view.versions),
      class: "short",
    }),
    way: select(WAYS, view.way),
    limit: select(
      LIMITS.map((limit) => [limit, limit]),
      view.limit,
    ),
  };
  const submit = (event) => {
    event.preventDefault();
    const wanted = {};
    try {
      for (const name of ["prefix", "from", "to"])
        if (inputs[name].value !== "") wanted[name] = toUrl(unescape(inputs[name].value));
    } catch (error) {
      wrong.replaceChildren(notice("error", "A key cannot be read", error.message));
      return;
    }
    for (const name of ["family", "versions", "way", "limit"]) wanted[name] = inputs[name].value;
    go(rowsUrl(place, wanted));
  };
  return h(
    "form",
    { class: "controls", onsubmit: submit, "aria-label": "Which rows" },
    field("Key prefix", inputs.prefix, "\\xNN is a byte by number"),
    field("From key", inputs.from, "with it"),
    field("To key", inputs.to, "without it"),
    field("Family", inputs.family),
    field("Versions", inputs.versions),
    field("Show values as", inputs.way),
    field("Rows a page", inputs.limit),
    h("button", { type: "submit", class: "primary" }, "Read"),
    wrong,
  );
}

// Where there is little room it is folded, unless something is chosen in it.
function whichRows(place, view, families) {
  const isChosen = view.prefix || view.from || view.to || view.family || view.versions > 1;
  const open = Boolean(isChosen) || matchMedia("(min-width: 641px)").matches;
  return h(
    "details",
    { class: "which", open },
    h("summary", null, "Range, family, versions"),
    controls(place, view, families),
  );
}

// What is above one row alone: the ways in which it is shown.
function rowHead({ place, view }) {
  const way = (more) => rowsUrl(place, { key: toUrl(view.key), ...more });
  const current = view.isByTime ? "time" : view.until === null ? "columns" : "";
  const words =
    view.until === null
      ? `The row ${escape(view.key)}`
      : `The row ${escape(view.key)} as it was at ${timeText(view.until)}: of each column the ` +
        "newest version of then, without what has been deleted since";
  return [
    h(
      "p",
      { class: "controls" },
      link(rowsUrl(place), "All rows"),
      h("span", { class: "note" }, words),
    ),
    tabs(
      [
        ["columns", way({ versions: "10" }), "By column"],
        ["time", way({ by: "time" }), "History"],
      ],
      current,
      "Ways to show the row",
    ),
  ];
}

export async function rows(place, parameters, signal) {
  const view = viewOf(parameters);
  const found = await api.get(`${api.pathOf(api.tableName(place))}?view=SCHEMA_VIEW`, { signal });
  const families = Object.keys(found.columnFamilies ?? {}).sort();
  const keySchema = keySchemaOf(found);
  const shown = h("div", { class: "results" });
  const refresh = () => fill(shown, "Reading rows", () => results(page, parameters, signal));
  const ways = new ValueWays(place, found.columnFamilies ?? {});
  const step = found.granularity === "MICROS" ? 1n : 1000n; // microseconds
  const page = { place, view, families, keySchema, step, ways, signal, refresh };
  refresh();
  return {
    title: `Data of ${place.table}`,
    content: [
      tableHead(place, "rows"),
      view.key
        ? rowHead(page)
        : [jumps(place, keySchema), whichRows(place, view, families)],
      h(
        "div",
        { class: "controls" },
        button(view.key ? "Add a cell" : "Add a row", () => addRow(page)),
        button("Refresh", refresh),
      ),
      shown,
    ],
  };
}
