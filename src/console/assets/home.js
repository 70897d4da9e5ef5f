// Whether the server is well, in one look: what it says of itself, the last hour, how the disk
// fills, and what waits for somebody. What is remembered can be asked for by SQL, too: the queries
// stand below.
import * as api from "./api.js";
import { facts, h, link, note, notice } from "./dom.js";
import { ageText, bytesText, countText, plural, secondsText, shortCount } from "./formats.js";
import { beginnings } from "./home_begin.js";
import { growthText } from "./home_growth.js";
import { HOUR, historyChart, historyText, readHistory } from "./metric_history.js";
import { read } from "./metric_samples.js";
import { runningOperations } from "./operations.js";

const METRICS = "/v1/servers/self/metrics";
const HISTORY = "/v1/servers/self/metricHistory";
const GROWTH_SECONDS = 14 * 86_400;
const LEAST_POINTS = 8; // of fewer a day is shown instead, more finely
const ADVISED_INSTANCES = 5; // of more the advisor is not asked unasked

const VERDICTS = {
  OK: ["ok", "All is well."],
  DEGRADED: ["degraded", "The server needs looking after."],
  NO_WRITES: ["no_writes", "The server takes no writes."],
};

function verdict(answer, now) {
  const [kind, words] = VERDICTS[answer.health?.level] ?? VERDICTS.OK;
  const age = ageText(now.time - now.started);
  return h(
    "p",
    { class: `verdict ${kind}` },
    h("strong", null, words),
    h("span", { class: "note" }, `trestle ${now.version}, up ${age}`),
  );
}

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

// --- what waits ---

const ago = (seconds, now) => `${ageText(now - seconds * 1000)} ago`;

function backupsText(look) {
  const [table, whole] = [
    "backup_newest_timestamp_seconds",
    "whole_backup_newest_timestamp_seconds",
  ].map((name) => look.byName.get(name)?.[0]?.value ?? 0);
  if (!table && !whole) return "there is none";
  return [
    whole > 0 && `of the whole server ${ago(whole, look.time)}`,
    table > 0 && `of a table ${ago(table, look.time)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

const hotText = (count) => (count > 0 ? `${plural(count, "tablet")} in the last day` : "none");

// What somebody may not see, and what fails, is told where it would stand.
function later(load) {
  const place = h("span", null, "…");
  load().then(
    (content) => place.replaceChildren(content),
    (error) => {
      if (error.name !== "AbortError")
        place.replaceChildren(error.code === 403 ? "you may not see these" : error.message);
    },
  );
  return place;
}

async function slowText(signal) {
  const { requests = [], threshold } = await api.get("/v1/servers/self/slowRequests", { signal });
  if (!threshold) return "none counts as slow";
  const words = requests.length === 0 ? "none" : plural(requests.length, "request");
  return link("#/slow", words);
}

async function operationsText(signal) {
  const running = await runningOperations(signal);
  return link("#/operations", running.length === 0 ? "none runs" : `${running.length} run`);
}

const waiting = ({ tables = [] }) =>
  tables
    .flatMap(({ findings = [] }) => findings)
    .filter(({ severity, isMuted }) => severity !== "INFO" && !isMuted);

async function adviceText(signal) {
  const { instances = [] } = await api.get("/v2/projects/-/instances", { signal });
  if (instances.length > ADVISED_INSTANCES)
    return link("#/instances", `of ${countText(instances.length)} instances, by each`);
  const asked = instances.map(({ name }) => api.get(`/v1/${name}:advise`, { signal }));
  const found = (await Promise.all(asked)).map(waiting);
  const count = found.flat().length;
  if (count === 0) return "none";
  const at = found.findIndex(({ length }) => length > 0);
  const [, project, , instance] = instances[at].name.split("/");
  return link(`#/p/${project}/i/${instance}/advice`, plural(count, "finding"));
}

function factsOf(look, growth, signal) {
  const value = (name) => look.byName.get(name)?.[0]?.value ?? 0;
  const free = value("disk_free_bytes");
  return h(
    "div",
    { class: "home-facts" },
    facts([
      ["Data", bytesText(value("store_table_bytes") + value("store_log_bytes"))],
      ["Free on the disk", bytesText(free)],
      ["Growth", growthText(growth.samples, free, look.time)],
      ["Newest backup", backupsText(look)],
      ["Hot ranges", link("#/instances", hotText(value("hot_tablets")))],
      ["Slow requests", later(() => slowText(signal))],
      ["Advice that waits", later(() => adviceText(signal))],
      ["Operations", later(() => operationsText(signal))],
    ]),
  );
}

// --- the queries ---

const number = (line) => `CAST(CAST(line['${line}'] AS STRING) AS FLOAT64) AS ${line}`;

function queryOf(level, from, lines) {
  const columns = [...lines.map(number)].join(",\n       ");
  const start = new Date(from).toISOString().slice(0, 16);
  return (
    `SELECT _key,\n       ${columns}\n` +
    `FROM \`system/metrics\`\n` +
    `WHERE STARTS_WITH(_key, b'${level}#server#')\n` +
    `  AND _key >= b'${level}#server#${start}'`
  );
}

const QUERIES = [
  ["1m", HOUR, ["requests", "errors", "p50_seconds", "p99_seconds", "slow_requests"]],
  ["1h", GROWTH_SECONDS, ["table_bytes", "log_bytes", "write_buffer_bytes", "disk_free_bytes"]],
  [
    "1m",
    HOUR,
    ["hot_tablets", "backup_newest_seconds", "whole_backup_newest_seconds", "health"],
  ],
];

const queries = (now) =>
  h(
    "details",
    { class: "asked" },
    h("summary", null, "The same by SQL"),
    note("In any instance; it takes the right to see the server’s metrics."),
    QUERIES.map(([level, seconds, lines], i) =>
      h(
        "pre",
        { tabindex: "0", role: "region", "aria-label": `Query ${i + 1}` },
        queryOf(level, now - 1000 * seconds, lines),
      ),
    ),
  );

// --- the page ---

async function board(signal) {
  const answer = await api.get(METRICS, { signal });
  const look = read(answer);
  const past = (seconds) => readHistory(HISTORY, seconds, look.time, signal);
  const [hour, fortnight] = await Promise.all([past(HOUR), past(GROWTH_SECONDS)]);
  const isYoung = fortnight.samples.length < LEAST_POINTS;
  const growth = isYoung ? await past(24 * HOUR) : fortnight;
  const tables = look.byName.get("tables")?.[0]?.value ?? 0;
  return [
    verdict(answer, look),
    tables === 0 && beginnings(METRICS, signal),
    factsOf(look, growth, signal),
    note(historyText(hour)),
    h("div", { class: "charts" }, [
      ...CHARTS.map((chart) => historyChart(chart, hour)),
      historyChart(SIZE, growth),
    ]),
    queries(look.time),
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
