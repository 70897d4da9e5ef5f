// Whether the server is well, in one look: what it says of itself, the last hour, how the disk
// fills, and what waits for somebody. What is remembered can be asked for by SQL, too: beside each
// such number is the way to its query, and all of them stand below.
import * as api from "./api.js";
import { facts, h, link, note, notice, put } from "./dom.js";
import { ageText, bytesText, countText, plural, secondsText, shortCount } from "./formats.js";
import { watchHealth } from "./health.js";
import { beginnings } from "./home_begin.js";
import { growthText } from "./home_growth.js";
import { hotRanges } from "./home_hot.js";
import { HOUR, historyChart, historyText, readHistory } from "./metric_history.js";
import { askMetrics, read } from "./metric_samples.js";
import { newestQuery, queryLink, sinceQuery } from "./metric_queries.js";
import { instanceUrl, placeOf } from "./parts.js";

const HISTORY = "/v1/servers/self/metricHistory";
const METRICS = [
  "advice_waiting",
  "backup_newest_timestamp_seconds",
  "disk_free_bytes",
  "hot_ranges",
  "operations_running",
  "peers",
  "peers_silent",
  "replication_max_delay_seconds",
  "slow_request_threshold_seconds",
  "slow_requests_kept",
  "store_log_bytes",
  "store_table_bytes",
  "tables",
  "whole_backup_newest_timestamp_seconds",
];
const LINES = ["requests", "errors", "p50_seconds", "p99_seconds"];
const SIZE_LINES = ["table_bytes", "log_bytes"];
const POINTS = 60; // of each, so that this page is light
const ALL_DIGITS = 0; // growth is a small difference of large numbers
const GROWTH_SECONDS = 14 * 86_400;
const LEAST_POINTS = 8; // of fewer a day is shown instead, more finely
const ASKED_INSTANCES = 5; // of more hot ranges are not asked for unasked

const VERDICTS = {
  OK: ["ok", "All is well."],
  DEGRADED: ["degraded", "The server needs looking after."],
  NO_WRITES: ["no_writes", "The server takes no writes."],
  GONE: ["no_writes", "The server does not answer."],
};

// It changes while the page is open, as the banner above does: it never says that all is well when
// that is not known.
function verdict(answer, now, asked, signal) {
  const words = h("strong");
  const about = h("span", { class: "note" });
  const place = h("p", { class: "verdict" }, words, about);
  const tell = (level) => {
    const [kind, text] = VERDICTS[level] ?? VERDICTS.OK;
    place.className = `verdict ${kind}`;
    words.textContent = text;
    about.hidden = level === "GONE";
  };
  const age = ageText(now.time - now.started);
  about.append(`trestle ${now.version}, up ${age} when this page was opened `, asked("Health"));
  tell(answer.health?.level);
  watchHealth(signal, (health) => tell(health ? health.level.toUpperCase() : "GONE"));
  return place;
}

// --- the queries ---

const CLUSTERS = ["peers", "peers_silent", "replication_delay_seconds", "replication_queue_bytes"];

// Of each number that is remembered.
function queriesAt(now, hasPeers) {
  const hour = (lines) => sinceQuery("1m", now - 1000 * HOUR, lines);
  const fortnight = (lines) => sinceQuery("1h", now - 1000 * GROWTH_SECONDS, lines);
  const sizes = ["table_bytes", "log_bytes"];
  return {
    Health: newestQuery(["health"]),
    Data: newestQuery(sizes),
    "Free on the disk": newestQuery(["disk_free_bytes"]),
    Growth: fortnight(sizes),
    "Newest backup": newestQuery(["backup_newest_seconds", "whole_backup_newest_seconds"]),
    "Hot ranges": newestQuery(["hot_ranges"]),
    "Slow requests": newestQuery(["slow_requests_kept"]),
    "Advice that waits": newestQuery(["advice_waiting"]),
    Operations: newestQuery(["operations_running"]),
    ...(hasPeers && { Clusters: newestQuery(CLUSTERS) }),
    Requests: hour(["requests", "errors"]),
    Latency: hour(["p50_seconds", "p99_seconds"]),
    Size: fortnight(sizes),
  };
}

// Why there is nothing to query; empty: there is.
function unasked(pasts) {
  if (pasts.some(({ samples }) => samples.length > 0)) return "";
  return pasts[0].retention
    ? "Nothing is remembered yet, so no number here has a query: the first point takes seconds."
    : "This server keeps no history (--metrics-retention 0), so no number here has a query.";
}

// A function that gives the way to the query of what is called so, if there is something to query.
function askedBy(queries, instances, why) {
  const place = instances.length > 0 ? placeOf(instances[0].name) : null;
  return (what) => (why ? null : queryLink(place, what, queries[what]));
}

const allQueries = (queries) =>
  h(
    "details",
    { class: "asked" },
    h("summary", null, "The same by SQL"),
    note("In any instance; it takes the right to see the server’s metrics."),
    Object.entries(queries).map(([what, sql]) => [
      h("h3", null, what),
      h("pre", { tabindex: "0", role: "region", "aria-label": `Query: ${what}` }, sql),
    ]),
  );

// --- charts ---

const CHARTS = [
  {
    title: "Requests",
    note: "A second, and those that failed, in the last hour.",
    format: shortCount,
    lines: [
      { key: "requests", name: "requests" },
      { key: "errors", name: "errors" },
    ],
  },
  {
    title: "Latency",
    note: "How long the calls took that ended, in the last hour.",
    format: secondsText,
    lines: [
      { key: "p50_seconds", name: "median" },
      { key: "p99_seconds", name: "99th percentile" },
    ],
  },
];

const SIZE = {
  title: "Size",
  note: "Tables, and the log, as far back as is remembered.",
  format: bytesText,
  base: 1024,
  lines: [
    { key: "table_bytes", name: "tables" },
    { key: "log_bytes", name: "log" },
  ],
};

const askable = (chart, asked) => ({ ...chart, note: [chart.note, " ", asked(chart.title)] });

// --- what waits ---

const ago = (seconds, now) => `${ageText(now - seconds * 1000)} ago`;

function backupsText(look) {
  const [table, whole] = [
    "backup_newest_timestamp_seconds",
    "whole_backup_newest_timestamp_seconds",
  ].map((name) => look.byName.get(name)?.[0]?.value ?? 0);
  if (!table && !whole) return "none is known";
  return [
    whole > 0 && `of the whole server ${ago(whole, look.time)}`,
    table > 0 && `of a table ${ago(table, look.time)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

const hotText = (count) => (count > 0 ? `${plural(count, "range")} in the last day` : "none");

function slowLink(kept, threshold) {
  if (!threshold) return "none counts as slow";
  return link("#/slow", kept > 0 ? plural(kept, "request") : "none");
}

const operationsLink = (running) =>
  link("#/operations", running > 0 ? `${running} run` : "none runs");

function clustersLink(count, silent, delay) {
  const answers = silent > 0 ? `${silent} silent` : "all answer";
  return [link("#/clusters", countText(count)), `, ${answers}, ${secondsText(delay)} behind`];
}

function adviceUrl(resource) {
  const [, project, kind, name] = resource.split("/");
  if (kind === "instances") return instanceUrl({ project, instance: name }, "/advice");
  return name ? `#/d/${project}/${encodeURIComponent(name)}/advice` : "#/instances";
}

// `found`: how many findings wait of which instance or database, of those that were looked at.
function adviceLink(found, tables) {
  if (found.length === 0) return tables > 0 ? "not looked for yet" : "none";
  const count = found.reduce((sum, { value = 0 }) => sum + value, 0);
  if (count === 0) return "none";
  const most = found.reduce((a, b) => ((b.value ?? 0) > (a.value ?? 0) ? b : a));
  return link(adviceUrl(most.labels.resource), plural(count, "finding"));
}

function factsOf(look, growth, asked) {
  const value = (name) => look.byName.get(name)?.[0]?.value ?? 0;
  const free = value("disk_free_bytes");
  const advice = adviceLink(look.byName.get("advice_waiting") ?? [], value("tables"));
  const slow = slowLink(value("slow_requests_kept"), value("slow_request_threshold_seconds"));
  const remembered = (what, told) => [what, h("span", null, told, " ", asked(what))];
  const peers = value("peers");
  const delay = value("replication_max_delay_seconds");
  return h(
    "div",
    { class: "home-facts" },
    facts([
      remembered("Data", bytesText(value("store_table_bytes") + value("store_log_bytes"))),
      remembered("Free on the disk", bytesText(free)),
      remembered("Growth", growthText(growth.samples, free, look.time)),
      remembered("Newest backup", backupsText(look)),
      remembered("Hot ranges", hotText(value("hot_ranges"))),
      remembered("Slow requests", slow),
      remembered("Advice that waits", advice),
      remembered("Operations", operationsLink(value("operations_running"))),
      [
        "Clusters",
        peers > 0 &&
          remembered("Clusters", clustersLink(peers, value("peers_silent"), delay))[1],
      ],
    ]),
  );
}

// --- the page ---

// Where the hot ranges will stand, if there are some.
function hotPlace(look, instances, signal) {
  const place = h("div", null);
  const count = look.byName.get("hot_ranges")?.[0]?.value ?? 0;
  if (count > 0 && instances.length <= ASKED_INSTANCES)
    hotRanges(instances, signal).then(
      (found) => put(place, found),
      () => {}, // that there are some is told above
    );
  return place;
}

async function board(signal) {
  const [answer, instances] = await Promise.all([
    askMetrics(signal, METRICS),
    api.get("/v2/projects/-/instances", { signal }).then(
      ({ instances: found = [] }) => found,
      () => [], // who may not list them asks the server
    ),
  ]);
  const look = read(answer);
  const past = (seconds, only, digits) =>
    readHistory(HISTORY, seconds, look.time, signal, { only, points: POINTS, digits });
  const growthIn = (seconds) => past(seconds, SIZE_LINES, ALL_DIGITS);
  const [hour, fortnight] = await Promise.all([past(HOUR, LINES), growthIn(GROWTH_SECONDS)]);
  const isYoung = fortnight.samples.length < LEAST_POINTS;
  const growth = isYoung ? await growthIn(24 * HOUR) : fortnight;
  const tables = look.byName.get("tables")?.[0]?.value ?? 0;
  const peers = look.byName.get("peers")?.[0]?.value ?? 0;
  const queries = queriesAt(look.time, peers > 0);
  const why = unasked([hour, fortnight]);
  const asked = askedBy(queries, instances, why);
  return [
    verdict(answer, look, asked, signal),
    tables === 0 && beginnings(signal),
    factsOf(look, growth, asked),
    hotPlace(look, instances, signal),
    note(historyText(hour)),
    h("div", { class: "charts" }, [
      ...CHARTS.map((chart) => historyChart(askable(chart, asked), hour)),
      historyChart(askable(SIZE, asked), growth),
    ]),
    why ? note(why) : allQueries(queries),
  ];
}

export async function home(_place, _parameters, signal) {
  const head = h("h1", null, "Home");
  try {
    return { title: "Home", content: [head, await board(signal)] };
  } catch (error) {
    if (error.code !== 403) throw error;
    const told = notice(
      "empty",
      "You may not see how the server is",
      h("p", null, link("#/instances", "Instances")),
    );
    return { title: "Home", content: [head, told] };
  }
}
