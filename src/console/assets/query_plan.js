// A plan as a tree: the operator that comes last at its root, below each what it gets its rows
// from. Of a query that was run it says what was read, how long all of it took, and of each
// operator how many rows it gave, and how long that took by itself.
import { h } from "./dom.js";
import { countText, plural, secondsText } from "./formats.js";

const OPERATORS =
  "AGGREGATE|DISTINCT|FILTER|LEFT UNNEST|LIMIT|ONE ROW|PROJECT|SCAN|SORT|UNNEST|UNPACK|WINDOW";
const OPERATOR = new RegExp(`^(${OPERATORS})\\b(.*)$`, "s");
const READ = /^read: (\d+) rows, (\d+) cells$/;
const GAVE = /^gave: (\d+) rows in ([\d.]+) s$/; // an operator, by itself
const RESULT = /^result: (\d+) rows in ([\d.]+) s, (\d+) KB kept$/;

// [{depth, text}] of lines that are indented by two for each level.
const indented = (lines) =>
  lines.map((line) => {
    const text = line.trimStart();
    return { depth: (line.length - text.length) / 2, text };
  });

// The lines from `at` on that belong to the level, as nodes: {text, children}.
function nodesOf(lines, depth, from) {
  const nodes = [];
  let at = from;
  while (at < lines.length && lines[at].depth >= depth) {
    const [children, next] = nodesOf(lines, depth + 1, at + 1);
    nodes.push({ text: lines[at].text, children });
    at = next;
  }
  return [nodes, at];
}

function countsOf(lines) {
  const find = (pattern) => lines.map((line) => pattern.exec(line)).find(Boolean);
  const [read, result] = [find(READ), find(RESULT)];
  if (!read || !result) return null;
  return {
    read: Number(read[1]),
    cells: Number(read[2]),
    rows: Number(result[1]),
    seconds: Number(result[2]),
    kilobytes: Number(result[3]),
  };
}

const badge = (text) => h("span", { class: "badge" }, text);

const scanText = ({ read, cells }) => `${plural(read, "row")} and ${plural(cells, "cell")} read`;

// The server tells times as thousandths of a second, or as millionths: of less it says 0.
const tookText = (seconds, least) =>
  seconds > 0 ? `in ${secondsText(seconds)}` : `in less than ${secondsText(least)}`;

const rootText = ({ rows, seconds, kilobytes }) =>
  `in all ${plural(rows, "row")} ${tookText(seconds, 1e-3)}, ${countText(kilobytes)} KB kept`;

const gaveText = ([, rows, seconds]) =>
  `${plural(Number(rows), "row")} ${tookText(Number(seconds), 1e-6)}`;

function nodeOf({ text, children: below }, counts, isRoot) {
  const gave = below.map((child) => GAVE.exec(child.text)).find(Boolean);
  const children = below.filter((child) => !GAVE.test(child.text));
  const [, operator, rest] = OPERATOR.exec(text) ?? [null, "", text];
  const isScan = operator === "SCAN";
  return h(
    "li",
    null,
    operator && h("strong", null, operator),
    operator && " ",
    h("code", null, rest.trimStart()),
    gave && badge(gaveText(gave)),
    counts && isRoot && badge(rootText(counts)),
    counts && isScan && badge(scanText(counts)),
    children.length > 0 &&
      h(
        "ul",
        null,
        children.map((child) => nodeOf(child, counts, false)),
      ),
  );
}

export function planTree(lines) {
  const counts = countsOf(lines);
  const [nodes] = nodesOf(
    indented(lines.filter((line) => !READ.test(line) && !RESULT.test(line))),
    0,
    0,
  );
  return [
    h(
      "div",
      { class: "plan scroll", tabindex: "0", role: "region", "aria-label": "Plan" },
      h(
        "ul",
        null,
        nodes.map((node) => nodeOf(node, counts, true)),
      ),
    ),
    h(
      "details",
      { class: "asked" },
      h("summary", null, "As text"),
      h("pre", { tabindex: "0", role: "region", "aria-label": "Plan as text" }, lines.join("\n")),
    ),
  ];
}
