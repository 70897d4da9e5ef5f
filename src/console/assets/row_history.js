// One row by time: what was written at each timestamp, the newest first, and what stood there
// before.
import { toUrl } from "./bytes.js";
import { valueButton } from "./cell_dialog.js";
import { h, link, note } from "./dom.js";
import { plural, timeText } from "./formats.js";
import { rowsUrl } from "./parts.js";
import { columnText } from "./read_rows.js";

const byTime = (a, b) => (BigInt(a.time) < BigInt(b.time) ? 1 : -1);

// [{time, cells: [{cell, before}]}]; `before` is the next older version of the column, if it is
// known.
function momentsOf(cells) {
  const moments = new Map();
  cells.forEach((cell, i) => {
    const next = cells[i + 1];
    const before = next && columnText(next) === columnText(cell) ? next : null;
    const moment = moments.get(cell.time) ?? { time: cell.time, cells: [] };
    moment.cells.push({ cell, before });
    moments.set(cell.time, moment);
  });
  return [...moments.values()].sort(byTime);
}

const asOf = (page, row, time) =>
  link(
    rowsUrl(page.place, { key: toUrl(row.key), until: time }),
    "The row as it was then",
    { "aria-label": `The row as it was at ${timeText(time)}` },
  );

function cellRow(page, row, { time, cells }, i) {
  const { cell, before } = cells[i];
  return h(
    "tr",
    { class: i === 0 && "first" },
    i === 0 &&
      h(
        "th",
        { scope: "rowgroup", class: "key", rowspan: String(cells.length) },
        timeText(time),
        h("span", { class: "row-actions" }, asOf(page, row, time)),
      ),
    h("td", { class: "column" }, columnText(cell)),
    h("td", { class: "value" }, valueButton(page, row, cell)),
    h(
      "td",
      { class: "value", "data-title": "before" },
      before ? valueButton(page, row, before) : h("em", null, "nothing that is known"),
    ),
  );
}

// `most`: cells of the row that were asked for.
export function rowHistory(page, row, most) {
  const moments = momentsOf(row.cells.slice(0, most));
  return [
    note(
      `${plural(moments.length, "timestamp")}, the newest first. What garbage collection has ` +
        "removed, and what was deleted, is not there any more.",
      row.cells.length > most && ` The row has more cells than these ${most}.`,
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "History of the row" },
      h(
        "table",
        { class: "data history stacked" },
        h("caption", { class: "hidden" }, "History of the row"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["Time (UTC)", "Column", "Written", "Before"].map((title) =>
              h("th", { scope: "col" }, title),
            ),
          ),
        ),
        moments.map((moment) =>
          h(
            "tbody",
            null,
            moment.cells.map((_, i) => cellRow(page, row, moment, i)),
          ),
        ),
      ),
    ),
  ];
}
