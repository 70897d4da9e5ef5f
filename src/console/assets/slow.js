// Requests that took too long: the latest, and the slowest of the last hour. Each opens with what
// it asked for and did.
import * as api from "./api.js";
import { bytesText, countText, dateText } from "./bytes.js";
import { failure, field, h, notice, select, table } from "./dom.js";
import { durationText } from "./parts.js";

const PATH = "/v1/servers/self/slowRequests?pageSize=1000";
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

const ORDERS = {
  time: (a, b) => (a.startTime < b.startTime ? 1 : -1),
  duration: (a, b) => servedOf(b) - servedOf(a),
  rows: (a, b) => Number(b.rowsSeen ?? 0) - Number(a.rowsSeen ?? 0),
};

const secondsOf = (duration) => Number((duration ?? "0s").replace(/s$/, ""));
const servedOf = (request) => secondsOf(request.duration) - secondsOf(request.clientDuration);
const methodOf = (request) => api.idOf(request.method);
const codeOf = (request) => CODES[request.code ?? 0] ?? String(request.code);

function secondsText(seconds) {
  if (seconds >= 10) return `${seconds.toFixed(1)} s`;
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  if (seconds >= 0.001) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 2 : 0)} ms`;
  return `${Math.round(seconds * 1e6)} µs`;
}

const thresholdText = (duration) =>
  secondsOf(duration) < 1 ? secondsText(secondsOf(duration)) : durationText(duration);

// --- one of them ---

function rowsText(request) {
  const [rows, seen] = [request.rows ?? 0, request.rowsSeen ?? 0];
  return Number(seen) > Number(rows)
    ? `${countText(rows)} of ${countText(seen)} read`
    : countText(rows);
}

const fact = (title, text) => text && h("div", null, h("dt", null, title), h("dd", null, text));

function details(request) {
  const waited = secondsOf(request.clientDuration);
  return [
    h("pre", { tabindex: "0", "aria-label": "Plan" }, request.plan || "Nothing is known of it."),
    h(
      "dl",
      { class: "facts" },
      fact("Method", request.method),
      fact("Resource", request.resource),
      fact("App profile", request.appProfile),
      fact("Principal", request.principal),
      fact("Waited for the client", waited > 0 && secondsText(waited)),
      fact("Request", bytesText(Number(request.requestBytes ?? 0))),
      fact("Answer", bytesText(Number(request.answerBytes ?? 0))),
      fact("Trace", request.traceId),
    ),
  ];
}

// The first line of the plan says what was asked; the rest is a click away.
function row(request) {
  const [first] = (request.plan ?? "").split("\n");
  return [
    h(
      "td",
      { class: "what" },
      h(
        "button",
        { type: "button", class: "value", "aria-expanded": "false" },
        h("strong", null, methodOf(request)),
        h("span", null, first),
      ),
    ),
    h("td", { class: "number", "data-title": "Took" }, secondsText(servedOf(request))),
    h("td", { class: "number", "data-title": "Rows" }, rowsText(request)),
    h("td", { class: "on", "data-title": "On" }, api.idOf(request.resource ?? "")),
    h(
      "td",
      { "data-title": "Ended", class: request.code ? "state failed" : null },
      codeOf(request),
    ),
    h("td", { class: "time", "data-title": "Began" }, dateText(request.startTime)),
  ];
}

// Opens a row, or closes it.
function toggle(button, request, columns) {
  const at = button.closest("tr");
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  const more = h("td", { colspan: String(columns) }, details(request));
  if (isOpen) at.nextElementSibling.remove();
  else at.after(h("tr", { class: "more" }, more));
}

// --- all of them ---

const COLUMNS = [
  { title: "Request" },
  { title: "Took", number: true },
  { title: "Rows", number: true },
  { title: "On" },
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
      `None has taken ${thresholdText(threshold)} or longer since the server started.`,
    );
  const shown = table("Slow requests", COLUMNS, requests.map(row));
  shown.querySelector("table").classList.add("slow");
  shown.querySelectorAll("td.what button").forEach((button, i) => {
    button.addEventListener("click", () => toggle(button, requests[i], COLUMNS.length));
  });
  return shown;
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
  const count = h("span", { class: "note", role: "status" });
  const results = h("div", { class: "results" });
  let found = {};
  const draw = () => {
    const requests = [...(found.requests ?? [])].sort(ORDERS[order.value]);
    count.textContent = requests.length === 1 ? "1 request" : `${requests.length} requests`;
    results.replaceChildren(listing(requests, found.threshold));
  };
  const refresh = async () => {
    try {
      found = await api.get(PATH, { signal });
      draw();
    } catch (error) {
      if (!signal.aborted) results.replaceChildren(failure(error, refresh));
    }
  };
  order.addEventListener("change", draw);
  found = await api.get(PATH, { signal });
  draw();
  return {
    title: "Slow requests",
    content: [
      h("h1", null, "Slow requests"),
      h(
        "p",
        { class: "note" },
        "Requests that took the server ",
        found.threshold ? thresholdText(found.threshold) : "long",
        " or longer (slow-request): the latest, and the slowest of the last hour.",
      ),
      h(
        "div",
        { class: "controls found" },
        field("Order", order),
        h("button", { type: "button", onclick: refresh }, "Refresh"),
        count,
      ),
      results,
    ],
  };
}
