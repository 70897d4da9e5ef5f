// What the advisor finds in parts of a table, beside its heat: marks on the map, and a list of them
// below it. Findings of the table as a whole have no place on a map: a line leads to them.
import { findingsOf } from "./advice.js";
import { h, link } from "./dom.js";
import { plural } from "./formats.js";
import { rangeText, rangesIn } from "./heat_data.js";
import { tableUrl } from "./parts.js";

const ORDER = ["critical", "warning", "info"];

const isOfAll = ({ range }) => !range || (range.start.text === "" && range.end.text === "");

const bySeverity = (a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity);

function item({ title, severity, range }, reveal) {
  const where = rangeText(range.start.bytes, range.end.bytes);
  return h(
    "li",
    { class: severity },
    h("p", null, h("strong", null, title), ` ${where}`),
    h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `Show on the map: ${title}, ${where}`,
        onclick: () => reveal(range.start.bytes, range.end.bytes),
      },
      "Show on the map",
    ),
  );
}

function whole(place, count) {
  const of = plural(count, "finding");
  return h("p", { class: "note" }, link(tableUrl(place, "/advice"), `${of} of the whole table`));
}

// A list of those that have a place, and the way to the others; nothing where nothing was found.
function listOf(place, findings, reveal) {
  const placed = findings.filter((found) => !isOfAll(found));
  const others = findings.length - placed.length;
  return [
    findings.length > 0 && h("h2", null, "Advice"),
    placed.length > 0 &&
      h(
        "ul",
        { class: "heat-signs", "aria-label": "What the advisor found" },
        placed.map((found) => item(found, reveal)),
      ),
    others > 0 && whole(place, others),
  ].filter(Boolean);
}

// Titles of the findings that touch a range of the grid.
export function titlesAt({ grid, findings }, range) {
  const touches = ({ range: { start, end } }) => {
    const { first, past } = rangesIn(grid, start.bytes, end.bytes);
    return first <= range && range < past;
  };
  return findings.filter(touches).map(({ title }) => title);
}

// Asks the advisor about the page's table: its findings go onto the map, and what is to be read
// into `element`. Who may see the heat but not ask the advisor sees the heat.
export async function showFindings(page, element, reveal, signal) {
  let found;
  try {
    found = (await findingsOf(page.place, signal)).sort(bySeverity);
  } catch {
    return; // the page of advice says what is wrong
  }
  page.findings = found.filter((each) => !isOfAll(each));
  page.map.setFindings(page.findings);
  element.replaceChildren(...listOf(page.place, found, reveal));
}
