// Looking at one cell, in all the ways in which its value can be read, and choosing the one in
// which its column is shown from now on.
import { escape, show } from "./bytes.js";
import { button, dialog, facts, field, h, toast } from "./dom.js";
import { bytesText, timeText } from "./formats.js";
import { treeOf } from "./proto_show.js";
import { columnText } from "./read_rows.js";
import { isMessageWay } from "./value_ways.js";

const SHOWN_MOST = 1 << 20; // characters of a value
const SHOWN_CHARACTERS = 160; // of it in a list

export const cellFacts = (row, cell) =>
  facts([
    ["Row", escape(row.key)],
    ["Column", columnText(cell)],
    ["Time (UTC)", timeText(cell.time)],
    ["Size", bytesText(cell.value.length)],
  ]);

function textShown(text) {
  const words = text.length > SHOWN_MOST ? `${text.slice(0, SHOWN_MOST)}…` : text;
  return h("pre", { tabindex: "0", "aria-label": "Value" }, words);
}

// The value in that way, or null if its bytes do not allow it.
function shownAs(ways, cell, way) {
  if (isMessageWay(way)) {
    const message = ways.messageOf(cell, way);
    return message && treeOf(message);
  }
  const { kind, text } = show(cell.value, way, SHOWN_MOST + 1);
  return kind === way || kind === "empty" ? textShown(text) : null;
}

// A chooser of the ways that the value allows.
function chooserOf(ways, cell, chosen) {
  const option = ([way, text]) => h("option", { value: way, selected: way === chosen }, text);
  const groups = ways
    .choices()
    .map(([title, group]) => [title, group.filter(([way]) => ways.allows(cell, way))])
    .filter(([, group]) => group.length > 0);
  return h(
    "select",
    null,
    groups.map(([title, group]) => h("optgroup", { label: title }, group.map(option))),
  );
}

function columnButtons(ways, cell, chooser, refresh) {
  const name = columnText(cell);
  const choose = (way, words) => {
    ways.choose(cell, way);
    toast(words);
    refresh();
  };
  const remembered = ways.choiceOf(cell) !== "auto";
  return h(
    "div",
    { class: "controls" },
    button("Show the column so", () =>
      choose(chooser.value, `${name} is shown so from now on.`),
    ),
    remembered &&
      button("As found again", () => choose("auto", `${name} is shown as found.`)),
  );
}

async function showCell({ ways, view, refresh, signal }, row, cell) {
  await ways.loadBundles(signal);
  const way = ways.wayOf(cell, view.way);
  const first = ways.allows(cell, way) ? way : show(cell.value, way, SHOWN_MOST).kind;
  const chooser = chooserOf(ways, cell, first);
  const shown = h("div", null);
  const choose = () => shown.replaceChildren(shownAs(ways, cell, chooser.value) ?? textShown(""));
  chooser.addEventListener("change", choose);
  choose();
  dialog({
    title: "A cell",
    body: [
      cellFacts(row, cell),
      h(
        "div",
        { class: "shown-as" },
        field("Shown as", chooser),
        columnButtons(ways, cell, chooser, refresh),
      ),
      shown,
    ],
  });
}

// --- in a list ---

function shorten(text) {
  const most = 2 * SHOWN_CHARACTERS;
  const line = text.slice(0, most).replaceAll(/\s+/g, " ");
  const isCut = text.length > most || line.length > SHOWN_CHARACTERS;
  return isCut ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line;
}

// The value's beginning, which opens the dialog.
export function valueButton(page, row, cell) {
  const { kind, text } = page.ways.show(cell, page.view.way, SHOWN_CHARACTERS);
  const words = kind === "empty" ? h("em", null, "empty") : shorten(text);
  return button(words, () => showCell(page, row, cell), { class: `value ${kind}`, title: kind });
}
