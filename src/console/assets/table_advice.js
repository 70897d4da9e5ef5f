// The advisor on the page of a table: how much it found of which severity, the first few of that,
// and the way to all.
import { SEVERITIES, documentOfTable } from "./advice.js";
import { h, link, note } from "./dom.js";
import { plural } from "./formats.js";
import { tableUrl } from "./parts.js";

const SHOWN = 3;
const COUNTED = {
  critical: (count) => `${count} critical`,
  warning: (count) => plural(count, "warning"),
  info: (count) => `${count} to know`,
};

function countText(findings) {
  return SEVERITIES.map((severity) => {
    const { length } = findings.filter((found) => found.severity === severity);
    return length > 0 && COUNTED[severity](length);
  })
    .filter(Boolean)
    .join(", ");
}

const item = ({ severity, title, evidence }) =>
  h("li", { class: severity }, h("strong", null, title), h("p", null, evidence));

function nothingText({ sample }) {
  if (sample.isLittle) return "Too little was seen to say something.";
  return "Nothing was found.";
}

function summary(place, document) {
  const findings = document.findings.filter(({ isMuted }) => !isMuted);
  const muted = document.findings.length - findings.length;
  const way = link(tableUrl(place, "/advice"), "All that the advisor says");
  const words = [
    findings.length > 0 ? `${countText(findings)}.` : nothingText(document),
    muted > 0 && ` ${muted} muted.`,
    " ",
    way,
    ".",
  ];
  return [
    note(words),
    findings.length > 0 &&
      h(
        "ul",
        { class: "advice-summary", "aria-label": "First of what the advisor found" },
        findings.slice(0, SHOWN).map(item),
      ),
    document.note !== "" && note(document.note),
  ];
}

// What stands there. Who may see the table but not its keys sees no advice.
export async function adviceSummary(place, signal) {
  try {
    return summary(place, await documentOfTable(place, signal));
  } catch (error) {
    if (error.code === 403) return note("You may not see what the advisor finds in the table.");
    throw error;
  }
}
