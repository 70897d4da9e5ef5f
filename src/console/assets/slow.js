// Requests that took too long: the latest, and the slowest of the last hour. Each opens with what
// it asked for and did.
import * as api from "./api.js";
import {
  button,
  facts,
  failure,
  field,
  h,
  note,
  notice,
  put,
  select,
  status,
  table,
} from "./dom.js";
import {
  bytesText,
  codeText,
  countText,
  dateText,
  durationText,
  plural,
  secondsOf,
  secondsText,
} from "./formats.js";

const PATH = "/v1/servers/self/slowRequests?pageSize=1000";

const ORDERS = {
  time: (a, b) => (a.startTime < b.startTime ? 1 : -1),
  duration: (a, b) => servedOf(b) - servedOf(a),
  rows: (a, b) => Number(b.rowsSeen ?? 0) - Number(a.rowsSeen ?? 0),
};

const servedOf = (request) => secondsOf(request.duration) - secondsOf(request.clientDuration);
const methodOf = (request) => api.idOf(request.method);

// --- one of them ---

function rowsText(request) {
  const [rows, seen] = [request.rows ?? 0, request.rowsSeen ?? 0];
  return Number(seen) > Number(rows)
    ? `${countText(rows)} of ${countText(seen)} read`
    : countText(rows);
}

function details(request) {
  const waited = secondsOf(request.clientDuration);
  return [
    h("pre", { tabindex: "0", "aria-label": "Plan" }, request.plan || "Nothing is known of it."),
    facts([
      ["Method", request.method],
      ["Resource", request.resource],
      ["App profile", request.appProfile],
      ["Principal", request.principal],
      ["Waited for the client", waited > 0 && secondsText(waited)],
      ["Request", bytesText(request.requestBytes)],
      ["Answer", bytesText(request.answerBytes)],
      ["Trace", request.traceId],
    ]),
  ];
}

// Opens a row, or closes it.
function toggle(opener, request) {
  const at = opener.closest("tr");
  const isOpen = opener.getAttribute("aria-expanded") === "true";
  opener.setAttribute("aria-expanded", String(!isOpen));
  const more = h("td", { colspan: String(COLUMNS.length) }, details(request));
  if (isOpen) at.nextElementSibling.remove();
  else at.after(h("tr", { class: "more" }, more));
}

// The first line of the plan says what was asked; the rest is a click away.
function row(request) {
  const [first] = (request.plan ?? "").split("\n");
  const open = (event) => toggle(event.currentTarget, request);
  return [
    button([h("strong", null, methodOf(request)), h("span", null, first)], open, {
      class: "value",
      "aria-expanded": "false",
    }),
    secondsText(servedOf(request)),
    rowsText(request),
    api.idOf(request.resource ?? ""),
    h("span", { class: request.code ? "state failed" : null }, codeText(request.code)),
    dateText(request.startTime),
  ];
}

// --- all of them ---

const COLUMNS = [
  { title: "Request", class: "what" },
  { title: "Took", number: true },
  { title: "Rows", number: true },
  { title: "On", class: "on" },
  { title: "Ended" },
  { title: "Began (UTC)", class: "time" },
];

function listing(requests, threshold) {
  if (!threshold)
    return notice("empty", "No request counts as slow", "The setting slow-request is 0.");
  if (requests.length === 0)
    return notice(
      "empty",
      "No request was slow",
      `None has taken ${durationText(threshold)} or longer since the server started.`,
    );
  return table("Slow requests", COLUMNS, requests.map(row), "slow stacked");
}

export async function slow(_place, parameters, signal) {
  const order = select(
    [
      ["time", "latest first"],
      ["duration", "slowest first"],
      ["rows", "most rows read first"],
    ],
    parameters.get("order") ?? "time",
  );
  const count = status();
  const results = h("div", { class: "results" });
  let found = {};
  const show = () => {
    const requests = [...(found.requests ?? [])].sort(ORDERS[order.value]);
    count.textContent = plural(requests.length, "request");
    put(results, listing(requests, found.threshold));
  };
  const refresh = async () => {
    try {
      found = await api.get(PATH, { signal });
      show();
    } catch (error) {
      if (!signal.aborted) put(results, failure(error, refresh));
    }
  };
  order.addEventListener("change", show);
  found = await api.get(PATH, { signal });
  show();
  return {
    title: "Slow requests",
    content: [
      h("h1", null, "Slow requests"),
      note(
        "Requests that took the server ",
        found.threshold ? durationText(found.threshold) : "long",
        " or longer (slow-request): the latest, and the slowest of the last hour.",
      ),
      h(
        "div",
        { class: "controls" },
        field("Order", order),
        button("Refresh", refresh),
        count,
      ),
      results,
    ],
  };
}
