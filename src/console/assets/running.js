// The requests that run now, the longest first. Each can be ended.
import * as api from "./api.js";
import {
  button,
  dialog,
  every,
  failure,
  field,
  h,
  note,
  notice,
  put,
  rowButton,
  status,
  table,
  toast,
} from "./dom.js";
import { bytesText, countText, plural, secondsOf, secondsText } from "./formats.js";
import { hasWords } from "./parts.js";

const PATH = "/v1/servers/self/runningRequests?pageSize=1000";
const REFRESH_MS = 5000;
const OWN = "/ListRunningRequests"; // by which this page asks

const STATES = {
  run: "runs",
  receive: "comes in",
  delay: "is delayed",
  read: "reads",
  query: "runs a query",
  commit: "waits for the commit",
  wait_for_commit: "waits for the commit",
  wait_for_lock: "waits for a row’s lock",
  wait_for_thread: "waits for a thread",
  wait_for_loop: "waits for its loop",
  wait_for_client: "waits for its client",
  wait_for_changes: "waits for changes",
  wait_for_room: "waits for room in memory",
};

const methodOf = (request) => api.idOf(request.method);

const has = (request, search) =>
  hasWords(search, [
    request.method,
    request.resource,
    request.principal,
    request.address,
    request.state,
    request.id,
  ]);

function rowsText({ rows = 0, rowsSeen = 0 }) {
  return Number(rowsSeen) > Number(rows)
    ? `${countText(rows)} of ${countText(rowsSeen)} read`
    : countText(rows);
}

function ask(request, refresh) {
  dialog({
    title: `End this ${methodOf(request)}?`,
    body: [
      h(
        "p",
        null,
        "Its client gets CANCELLED. What it has already ",
        "handed over to be written is written all the same.",
      ),
      h("p", { class: "note" }, `${request.id}, from ${request.address}`),
    ],
    yes: "End it",
    isDangerous: true,
    act: async () => {
      await api.call("POST", "/v1/servers/self:cancelRequest", { id: request.id });
      toast("The request has been cancelled.");
      refresh();
    },
  });
}

function row(request, refresh) {
  const state = STATES[request.state] ?? request.state;
  return [
    [
      h("strong", null, methodOf(request)),
      h("div", { class: "note" }, api.idOf(request.resource ?? "")),
    ],
    request.isCancelled ? `cancelled, ${state}` : state,
    secondsText(secondsOf(request.age)),
    rowsText(request),
    bytesText(request.answerBytes ?? 0),
    request.principal || h("em", null, "nobody known"),
    request.address,
    rowButton("End", `End ${methodOf(request)} ${request.id}`, () => ask(request, refresh)),
  ];
}

const COLUMNS = [
  { title: "Request" },
  { title: "State" },
  { title: "For", number: true },
  { title: "Rows", number: true },
  { title: "Answered", number: true },
  { title: "Principal", class: "code" },
  { title: "Address", class: "code" },
  { title: "", class: "narrow" },
];

function listing(requests, isEmpty, refresh) {
  if (isEmpty) return notice("empty", "Nothing runs", "Requests are here as long as they take.");
  if (requests.length === 0)
    return notice("empty", "No request is like that", "The field above says which are sought.");
  const rows = requests.map((request) => row(request, refresh));
  return table("Running requests", COLUMNS, rows, "running stacked");
}

const silence = ({ silentLoops = 0, loops }) =>
  silentLoops > 0 &&
  notice(
    "warning",
    `${silentLoops} of ${plural(loops, "event loop")} did not answer within two seconds`,
    "What they have in hand is not shown.",
  );

export async function running(_place, parameters, signal) {
  const input = h("input", { type: "search", name: "search", value: parameters.get("q") ?? "" });
  const count = status();
  const results = h("div", { class: "results" });
  let found = await api.get(PATH, { signal });
  const show = () => {
    const all = (found.requests ?? []).filter(({ method }) => !method.endsWith(OWN));
    const shown = all.filter((request) => has(request, input.value));
    const text = plural(all.length, "request");
    count.textContent = shown.length === all.length ? text : `${shown.length} of ${text}`;
    put(results, [silence(found), listing(shown, all.length === 0, refresh)]);
  };
  const refresh = async () => {
    try {
      found = await api.get(PATH, { signal });
      show();
    } catch (error) {
      if (!signal.aborted) put(results, failure(error, refresh));
    }
  };
  input.addEventListener("input", show);
  show();
  every(REFRESH_MS, refresh, signal);
  return {
    title: "Running requests",
    content: [
      h("h1", null, "Running requests"),
      note("What the server has in hand now, the longest first; looked at again every 5 seconds."),
      h(
        "div",
        { class: "controls" },
        field("Search", input),
        button("Refresh", refresh),
        count,
      ),
      results,
    ],
  };
}
