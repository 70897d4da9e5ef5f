// What is the matter with the server, above every page: red where it takes no writes, amber where
// it only needs looking after. Asked for with each page, and now and then while one is open.
import * as api from "./api.js";
import { h, put } from "./dom.js";
import { dateText } from "./formats.js";

const REFRESH_MS = 10000;

const TITLES = {
  no_writes: "The server takes no writes.",
  degraded: "The server needs looking after.",
};

// It stays while pages come and go, so that a change is read out, and only that.
const place = h("div", { class: "health", "aria-live": "polite" });
let shown = "";

function banner({ level, reasons }) {
  return h(
    "aside",
    { class: `banner ${level === "no_writes" ? "bad" : ""}`, "aria-label": "Health" },
    h("strong", null, TITLES[level]),
    h(
      "ul",
      null,
      reasons.map(({ name, text, since }) =>
        h("li", { "data-reason": name }, text, h("small", null, ` since ${dateText(since)} UTC`)),
      ),
    ),
  );
}

const watchers = new Set();

// Calls `told` with what the server says each time that it was asked, or null if it did not answer,
// until the page is left.
export function watchHealth(signal, told) {
  watchers.add(told);
  signal.addEventListener("abort", () => watchers.delete(told));
}

// A server that cannot be asked has told last what the banner shows.
async function refresh() {
  const health = await api.health().catch(() => null);
  for (const told of watchers) told(health);
  if (!health) return;
  const now = JSON.stringify(health);
  if (now !== shown) put(place, TITLES[health.level] ? banner(health) : []);
  shown = now;
}

// The place of the banner, for a page that begins.
export function health() {
  refresh();
  return place;
}

function refreshIfSeen() {
  if (!document.hidden && place.isConnected) refresh();
}

setInterval(refreshIfSeen, REFRESH_MS);
document.addEventListener("visibilitychange", refreshIfSeen);
