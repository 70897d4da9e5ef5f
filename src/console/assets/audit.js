// The audit log: the latest administrative calls, who made them and what came of them.
import * as api from "./api.js";
import { dateText } from "./bytes.js";
import { field, h, notice, select, table } from "./dom.js";

const PATH = "/v1/servers/self/auditEntries?pageSize=1000";
const READS = /^(Get|List|Read|Query|Test|Check|Describe|Advise|Wait)/;
const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

const codeOf = (entry) => CODES[entry.code ?? 0] ?? String(entry.code);
const nameOf = (method) => method.slice(method.lastIndexOf("/") + 1);
const serviceOf = (method) => method.slice(0, method.lastIndexOf("/"));

const KINDS = {
  all: () => true,
  changes: (entry) => !READS.test(nameOf(entry.method)),
  failed: (entry) => codeOf(entry) !== "OK",
};

function has(entry, words) {
  const parts = [entry.principal, entry.method, entry.resource, codeOf(entry), entry.address];
  const text = [...parts, dateText(entry.time)].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function row(entry) {
  const code = codeOf(entry);
  const nobody = () => h("em", null, "nobody known");
  return [
    dateText(entry.time),
    entry.principal || nobody(),
    h("span", { title: serviceOf(entry.method) }, nameOf(entry.method)),
    entry.resource || h("em", null, "none"),
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
  const shown = table("Audit log", COLUMNS, entries.map(row));
  shown.querySelector("table").classList.add("audit");
  return shown;
}

function about({ since, logFile }) {
  return h(
    "p",
    { class: "note" },
    `Calls of administration, reading ones too, since the server was started (${dateText(since)}`,
    " UTC), at most the latest 1,000. All of them, those before it too, are in ",
    logFile ? h("code", null, logFile) : "the server’s log",
    ".",
  );
}

const off = () => ({
  title: "Audit log",
  content: [
    h("h1", null, "Audit log"),
    notice(
      "empty",
      "Nothing is audited",
      "Access control is off, so nobody can be told apart. With the setting auth=on each " +
        "administrative call is noted: who made it, what it was about, and what came of it.",
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
  const count = h("span", { class: "note", role: "status" });
  const results = h("div", { class: "results" });
  const show = () => {
    const { entries = [] } = answer;
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = entries.filter((entry) => KINDS[kind.value](entry) && has(entry, words));
    count.textContent =
      shown.length === entries.length
        ? `${entries.length} calls`
        : `${shown.length} of ${entries.length} calls`;
    results.replaceChildren(listing(shown, entries.length === 0));
  };
  const refresh = async () => {
    answer = await api.get(PATH, { signal });
    show();
  };
  input.addEventListener("input", show);
  kind.addEventListener("change", show);
  show();
  return {
    title: "Audit log",
    content: [
      h("h1", null, "Audit log"),
      about(answer),
      h(
        "div",
        { class: "controls found" },
        field("Search", input),
        field("Calls", kind),
        h("button", { type: "button", onclick: refresh }, "Refresh"),
        count,
      ),
      results,
    ],
  };
}
