// The audit log: the latest administrative calls, who made them and what came of them.
import * as api from "./api.js";
import { button, failure, field, h, note, notice, put, select, status, table } from "./dom.js";
import { codeText, dateText, plural } from "./formats.js";
import { hasWords } from "./parts.js";

const PATH = "/v1/servers/self/auditEntries?pageSize=1000";
const READS = /^(Get|List|Read|Query|Test|Check|Describe|Advise|Wait)/;

const codeOf = (entry) => codeText(entry.code);
const nameOf = (method) => method.slice(method.lastIndexOf("/") + 1);
const serviceOf = (method) => method.slice(0, method.lastIndexOf("/"));

const KINDS = {
  all: () => true,
  changes: (entry) => !READS.test(nameOf(entry.method)),
  failed: (entry) => codeOf(entry) !== "OK",
};

const has = (entry, search) =>
  hasWords(search, [
    entry.principal,
    entry.method,
    entry.resource,
    entry.source,
    entry.changes,
    codeOf(entry),
    entry.address,
    dateText(entry.time),
  ]);

// What was made from what, and what changed, below the resource.
const about = ({ resource, source, changes }) => [
  resource || h("em", null, "none"),
  source && h("div", { class: "note" }, `from ${source}`),
  changes && h("ul", { class: "changes" }, changes.split("; ").map((each) => h("li", null, each))),
];

function row(entry) {
  const code = codeOf(entry);
  return [
    dateText(entry.time),
    entry.principal || h("em", null, "nobody known"),
    h("span", { title: serviceOf(entry.method) }, nameOf(entry.method)),
    about(entry),
    h("span", { class: code === "OK" ? "state done" : "state failed" }, code),
    entry.address,
  ];
}

const COLUMNS = [
  { title: "Ended (UTC)", class: "time" },
  { title: "Principal", class: "code" },
  { title: "Method" },
  { title: "Resource", class: "code" },
  { title: "Status" },
  { title: "Address", class: "code" },
];

function listing(entries, isEmpty) {
  if (isEmpty) return notice("empty", "No administrative call has been made yet");
  if (entries.length === 0)
    return notice("empty", "No call is like that", "The fields above say which are sought.");
  return table("Audit log", COLUMNS, entries.map(row), "audit stacked");
}

const origin = ({ since, logFile }) =>
  note(
    `Calls of administration, reading ones too, since the server was started (${dateText(since)}`,
    " UTC), at most the latest 1,000. All of them, those before it too, are in ",
    logFile ? h("code", null, logFile) : "the server’s log",
    ".",
  );

const off = () => ({
  title: "Audit log",
  content: [
    h("h1", null, "Audit log"),
    notice(
      "empty",
      "Nothing is audited",
      "Access control is off, so nobody can be told apart. With the setting auth=on each " +
        "administrative call is noted: who made it, what it was about, and what came of it. " +
        "With audit-log alone, from where it came.",
    ),
  ],
});

export async function audit(_place, parameters, signal) {
  let answer = await api.get(PATH, { signal });
  if (!answer.isAudited) return off();
  const input = h("input", { type: "search", name: "search", value: parameters.get("q") ?? "" });
  const kind = select(
    [
      ["all", "All"],
      ["changes", "Those that change something"],
      ["failed", "Those that failed"],
    ],
    "all",
  );
  const count = status();
  const results = h("div", { class: "results" });
  const show = () => {
    const { entries = [] } = answer;
    const isShown = (entry) => KINDS[kind.value](entry) && has(entry, input.value);
    const shown = entries.filter(isShown);
    const all = plural(entries.length, "call");
    count.textContent = shown.length === entries.length ? all : `${shown.length} of ${all}`;
    put(results, listing(shown, entries.length === 0));
  };
  const refresh = async () => {
    try {
      answer = await api.get(PATH, { signal });
      show();
    } catch (error) {
      if (!signal.aborted) put(results, failure(error, refresh));
    }
  };
  input.addEventListener("input", show);
  kind.addEventListener("change", show);
  show();
  return {
    title: "Audit log",
    content: [
      h("h1", null, "Audit log"),
      origin(answer),
      h(
        "div",
        { class: "controls" },
        field("Search", input),
        field("Calls", kind),
        button("Refresh", refresh),
        count,
      ),
      results,
    ],
  };
}
