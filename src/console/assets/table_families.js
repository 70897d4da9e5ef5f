// The column families of a table: what each takes, how its rows have it, how old it is; and they
// are made, changed and dropped.
import { button, h, notice, rowButton, table as listing } from "./dom.js";
import { ageText, bytesText, percentText } from "./formats.js";
import { askDrop, askNewFamily, askRule } from "./family_dialogs.js";
import { gcText, typeText } from "./parts.js";
import { perRowText, wholeBytes, whenKnown } from "./table_shape.js";

const COLUMNS = [
  { title: "Family" },
  { title: "Values" },
  { title: "Garbage collection removes" },
  { title: "Size, about", number: true },
  { title: "Of rows", number: true },
  { title: "Cells a row", number: true },
  { title: "Ages of cells" },
  { title: "", class: "narrow" },
];

const since = (time) => ageText(Date.now() - Date.parse(time));

function agesText({ cells, oldestTime, medianTime, newestTime }) {
  if (!cells) return "–";
  if (!oldestTime) return "timestamps are no times";
  return `${since(newestTime)} to ${since(oldestTime)}, half over ${since(medianTime)}`;
}

const shareText = (part, all) => (all > 0 ? percentText((100 * part) / all) : "–");

function rowOf({ name, shape, reload }, [id, family]) {
  const told = (words) => whenKnown(shape, (found) => words(found.families[id] ?? {}, found));
  return [
    id,
    typeText(family.valueType),
    gcText(family.gcRule),
    told(({ bytes = 0 }, found) => bytesText(wholeBytes(found, bytes))),
    told(({ rows = 0 }, { sampledRows }) => shareText(rows, sampledRows)),
    told(({ cells = 0 }, found) => perRowText(found, cells)),
    told(agesText),
    h(
      "span",
      { class: "row-actions" },
      rowButton("Change", `Change the rule of ${id}`, () =>
        askRule({ name, id, family, reload }),
      ),
      rowButton("Drop", `Drop the family ${id}`, () => askDrop({ name, id, shape, reload })),
    ),
  ];
}

// `page`: {name (of the table), shape (a promise), reload}.
export function families(page, found) {
  const all = Object.entries(found.columnFamilies ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = all.map((each) => rowOf(page, each));
  return [
    all.length > 0
      ? listing("Column families", COLUMNS, rows, "families stacked")
      : notice("empty", "There is no column family", "Nothing can be written without one."),
    h(
      "div",
      { class: "controls" },
      button("New family", () => askNewFamily(page)),
    ),
  ];
}
