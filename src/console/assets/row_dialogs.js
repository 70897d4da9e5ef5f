// Changing and deleting what is in a row. What deletes asks first.
import * as api from "./api.js";
import { WAYS, asText, escape, parse, show, toBase64, unescape } from "./bytes.js";
import { cellFacts } from "./cell_dialog.js";
import { dialog, facts, field, h, select, toast } from "./dom.js";
import { columnText } from "./read_rows.js";

const INPUT_WAYS = WAYS.filter(([way]) => way !== "auto");

async function mutate(place, key, mutations) {
  await api.call("POST", `${api.pathOf(api.tableName(place))}:mutateRow`, {
    rowKey: toBase64(key),
    mutations,
  });
}

// --- writing ---

// How a value is typed, as {kind, text}. JSON is as it is written. A field for text makes one kind
// of line's end of all, so that text with others is typed by its bytes.
function typed(value, way) {
  const shown = show(value, way);
  if (shown.kind === "empty") return { kind: "text", text: "" };
  if (shown.kind !== "text" && shown.kind !== "json") return shown;
  const text = asText(value);
  return text.includes("\r") ? show(value, "hex") : { kind: shown.kind, text };
}

// The fields of a value, and what they come to. What nobody has changed stays, byte for byte.
function valueFields(value, way) {
  const given = value ? typed(value, way) : { kind: "text", text: "" };
  const as = select(INPUT_WAYS, given.kind);
  const text = h("textarea", { rows: "6", spellcheck: "false", class: "code" });
  text.value = given.text;
  const before = text.value;
  const isAsBefore = () => value && as.value === given.kind && text.value === before;
  return {
    fields: [field("Value", text), field("Written as", as)],
    read: () => (isAsBefore() ? value : parse(text.value, as.value)),
  };
}

export function editCell({ place, row, cell, way, refresh }) {
  const value = valueFields(cell.value, way);
  const when = select(
    [
      ["now", "a new version, of now"],
      ["same", "this version, replaced"],
    ],
    "now",
  );
  dialog({
    title: "Edit a cell",
    body: [cellFacts(row, cell), value.fields, field("Write it as", when)],
    yes: "Write",
    act: async () => {
      await mutate(place, row.key, [
        {
          setCell: {
            familyName: cell.family,
            columnQualifier: toBase64(cell.qualifier),
            timestampMicros: when.value === "same" ? cell.time : "-1",
            value: toBase64(value.read()),
          },
        },
      ]);
      toast("The cell has been written.");
      refresh();
    },
  });
}

// A new row, or a further cell of `row`.
export function addRow({ place, families, row, view, refresh }) {
  const known = row?.key ?? view.key;
  const key = h("input", {
    required: true,
    spellcheck: "false",
    value: known ? escape(known) : "",
    readOnly: known !== null,
  });
  const family = select(
    families.map((name) => [name, name]),
    view.family,
  );
  const qualifier = h("input", { spellcheck: "false" });
  const value = valueFields(null, "text");
  dialog({
    title: known ? "Add a cell" : "Add a row",
    body: [
      field("Row key", key, "\\xNN is a byte by number"),
      field("Family", family),
      field("Column", qualifier),
      value.fields,
    ],
    yes: "Write",
    act: async () => {
      await mutate(place, unescape(key.value), [
        {
          setCell: {
            familyName: family.value,
            columnQualifier: toBase64(unescape(qualifier.value)),
            timestampMicros: "-1",
            value: toBase64(value.read()),
          },
        },
      ]);
      toast("The cell has been written.");
      refresh();
    },
  });
}

// --- deleting ---

function confirm({ title, words, yes, done, act, refresh }) {
  dialog({
    title,
    yes,
    isDangerous: true,
    body: words,
    act: async () => {
      await act();
      toast(done);
      refresh();
    },
  });
}

export function deleteCell({ place, row, cell, step, refresh }) {
  confirm({
    title: "Delete this version?",
    words: [
      cellFacts(row, cell),
      h("p", null, "An older version, if there is one, is what readers see then."),
    ],
    yes: "Delete the cell",
    done: "The cell has been deleted.",
    refresh,
    act: () =>
      mutate(place, row.key, [
        {
          deleteFromColumn: {
            familyName: cell.family,
            columnQualifier: toBase64(cell.qualifier),
            timeRange: {
              startTimestampMicros: cell.time,
              endTimestampMicros: endOf(cell.time, step),
            },
          },
        },
      ]),
  });
}

// A range of times ends where the next version could begin: `step` microseconds later, the least
// that two versions of the table can differ by.
const endOf = (time, step) => (BigInt(time) + step).toString();

export function deleteColumn({ place, row, cell, refresh }) {
  confirm({
    title: `Delete ${columnText(cell)}?`,
    words: h(
      "p",
      null,
      `All versions of this column in the row ${escape(row.key)} are gone then.`,
    ),
    yes: "Delete the column",
    done: "The column has been deleted.",
    refresh,
    act: () =>
      mutate(place, row.key, [
        {
          deleteFromColumn: {
            familyName: cell.family,
            columnQualifier: toBase64(cell.qualifier),
          },
        },
      ]),
  });
}

export function deleteRow({ place, row, refresh }) {
  confirm({
    title: "Delete the row?",
    words: [
      facts([["Row", escape(row.key)]]),
      h(
        "p",
        null,
        "All its cells are gone then, with all their versions, and with those that are not shown.",
      ),
    ],
    yes: "Delete the row",
    done: "The row has been deleted.",
    refresh,
    act: () => mutate(place, row.key, [{ deleteFromRow: {} }]),
  });
}
