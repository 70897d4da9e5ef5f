// The server's metrics as they move, from when the page was opened. It asks every two seconds,
// while somebody may look.
import * as api from "./api.js";
import { button, every, failure, h, notice, table } from "./dom.js";
import {
  ageText,
  bytesText,
  countText,
  percentText,
  secondsText,
  shortCount,
} from "./formats.js";
import { LineChart } from "./line_chart.js";
import { isClients, Look, read, shortName } from "./metric_samples.js";

const PATH = "/v1/servers/self/metrics";
const REFRESH_MS = 2000;
const KEPT = 450; // samples: a quarter of an hour
const METHODS = 5; // that have a line of their own

const orDash = (format) => (value) => (value === null ? "–" : format(value));

// --- charts ---

const share = (part, all) => (part === null || all === 0 ? null : (100 * part) / all);

function hitRate(look) {
  const hits = look.rate("store_cache_hits_total");
  return share(hits, hits + look.rate("store_cache_misses_total"));
}

const stallRate = (look) => {
  const rate = look.rate("store_stall_milliseconds_total");
  return rate === null ? null : Math.min(rate / 10, 100);
};

const line = (key, name, value) => ({ key, name, value });
const rateLine = (metric, name) => line(metric, name, (look) => look.rate(metric));
const valueLine = (metric, name) => line(metric, name, (look) => look.value(metric));

const CHARTS = [
  {
    title: "Latency",
    note: "How long the calls took that ended, of all methods together.",
    format: secondsText,
    lines: [
      line("p50", "median", (look) => look.quantile(0.5, isClients)),
      line("p99", "99th percentile", (look) => look.quantile(0.99, isClients)),
    ],
  },
  {
    title: "Traffic",
    note: "Bytes a second, of all clients.",
    format: bytesText,
    base: 1024,
    lines: [rateLine("received_bytes_total", "received"), rateLine("sent_bytes_total", "sent")],
  },
  {
    title: "Connections",
    note: "Open connections, and requests that run.",
    format: shortCount,
    lines: [valueLine("connections", "connections"), valueLine("rpcs_running", "requests")],
  },
  {
    title: "Cache hits",
    note: "Of the blocks of tables that were asked for. There is no line where none was.",
    format: percentText,
    most: 100,
    lines: [line("hits", "hits", hitRate)],
  },
  {
    title: "Disk",
    note: "What the data takes; write buffers are in memory, and in the log.",
    format: bytesText,
    base: 1024,
    lines: [
      valueLine("store_table_bytes", "tables"),
      valueLine("store_log_bytes", "log"),
      valueLine("store_write_buffer_bytes", "write buffers"),
    ],
  },
  {
    title: "Flushes and compactions",
    note: "Bytes a second that are read and written to keep tables in order.",
    format: bytesText,
    base: 1024,
    lines: [
      rateLine("store_flushed_bytes_total", "flushed"),
      rateLine("store_compaction_read_bytes_total", "read"),
      rateLine("store_compaction_written_bytes_total", "written"),
    ],
  },
  {
    title: "Stalls",
    note: "Share of the time for which the store held writes back.",
    format: percentText,
    most: 100,
    lines: [line("stalled", "held back", stallRate)],
  },
  {
    title: "Queues",
    note: "Tasks that wait for a thread, and how full the commit queue is, in percent.",
    format: shortCount,
    lines: [
      valueLine("pool_queued", "tasks"),
      valueLine("commit_queue_percent", "commit queue"),
    ],
  },
  {
    title: "Processors",
    note: "How many the server keeps busy.",
    format: (value) => (value < 10 ? value.toFixed(2) : shortCount(value)),
    most: 1,
    lines: [rateLine("process_cpu_seconds_total", "processors")],
  },
];

const REQUESTS = "Requests";
const REQUESTS_NOTE = "A second, by method; what this page asks is left out.";

// --- what was seen ---

function sampleOf(look) {
  const values = {};
  for (const { lines } of CHARTS) for (const each of lines) values[each.key] = each.value(look);
  const byMethod = {};
  for (const { method, callRate } of look.methods())
    byMethod[method] = callRate === null ? null : (byMethod[method] ?? 0) + callRate;
  return { time: look.now.time, values, byMethod };
}

// The busiest methods, and the rest of them as one.
function requestSamples(samples) {
  const sums = {};
  for (const { byMethod } of samples)
    for (const [method, rate] of Object.entries(byMethod))
      sums[method] = (sums[method] ?? 0) + (rate ?? 0);
  const names = Object.keys(sums).sort((a, b) => sums[b] - sums[a] || (a < b ? -1 : 1));
  const own = names.slice(0, names.length === METHODS + 1 ? METHODS + 1 : METHODS);
  const others = names.slice(own.length);
  const lines = own.map((method) => line(method, shortName(method)));
  if (others.length > 0) lines.push(line("others", `${others.length} others`));
  const shown = samples.map(({ time, byMethod, isFirst }) => {
    if (isFirst) return { time, values: {} };
    const values = Object.fromEntries(own.map((method) => [method, byMethod[method] ?? 0]));
    values.others = others.reduce((sum, method) => sum + (byMethod[method] ?? 0), 0);
    return { time, values };
  });
  return { lines, samples: shown };
}

function methodTable(look) {
  const methods = look.methods().sort((a, b) => b.callRate - a.callRate || b.calls - a.calls);
  if (methods.length === 0)
    return notice("empty", "No client has called yet", "Each method that is called appears here.");
  const columns = [
    { title: "Method" },
    { title: "App profile" },
    ...["Calls/s", "Errors/s", "Median", "99th percentile", "Calls", "Errors"].map((title) => ({
      title,
      number: true,
    })),
  ];
  const rows = methods.map((each) => [
    shortName(each.method),
    each.profile || h("em", null, "none"),
    orDash(shortCount)(each.callRate),
    orDash(shortCount)(each.errorRate),
    orDash(secondsText)(each.p50),
    orDash(secondsText)(each.p99),
    countText(each.calls),
    countText(each.errors),
  ]);
  return table("Methods", columns, rows, "stacked");
}

// --- the page ---

function headText(look) {
  const age = ageText(look.now.time - look.now.started);
  return `trestle ${look.now.version}, up ${age}. The lines begin when this page was opened.`;
}

class Board {
  constructor() {
    this.samples = [];
    this.before = null;
    this.head = h("p", { class: "note" });
    this.wrong = h("div", { class: "wrong" });
    this.methods = h("div", { class: "results" });
    this.requests = new LineChart({ title: REQUESTS, note: REQUESTS_NOTE, format: shortCount });
    this.charts = CHARTS.map((chart) => ({
      lines: chart.lines,
      chart: new LineChart({ ...chart, format: orDash(chart.format) }),
    }));
  }

  take(answer) {
    const now = read(answer);
    const look = new Look(now, this.before);
    const sample = sampleOf(look);
    sample.isFirst = look.before === null;
    this.samples.push(sample);
    if (this.samples.length > KEPT) this.samples.shift();
    this.before = now;
    this.show(look);
  }

  show(look) {
    this.head.replaceChildren(headText(look));
    this.wrong.replaceChildren();
    const requests = requestSamples(this.samples);
    this.requests.show(requests.lines, requests.samples);
    for (const { chart, lines } of this.charts) chart.show(lines, this.samples);
    this.methods.replaceChildren(methodTable(look));
  }

  elements() {
    const charts = [this.requests, ...this.charts.map(({ chart }) => chart)];
    return [
      this.head,
      this.wrong,
      h("div", { class: "charts" }, charts.map(({ element }) => element)),
      h("h2", null, "Methods"),
      this.methods,
    ];
  }
}

export async function metrics(_place, _parameters, signal) {
  const board = new Board();
  const isPaused = () => pause.getAttribute("aria-pressed") === "true";
  const toggle = () => pause.setAttribute("aria-pressed", String(!isPaused()));
  const pause = button("Pause", toggle, { "aria-pressed": "false" });
  board.take(await api.get(PATH, { signal }));
  let isAsking = false;
  const refresh = async () => {
    if (isAsking) return;
    isAsking = true;
    try {
      board.take(await api.get(PATH, { signal }));
    } catch (error) {
      if (!signal.aborted) board.wrong.replaceChildren(failure(error, refresh));
    }
    isAsking = false;
  };
  every(REFRESH_MS, () => !isPaused() && refresh(), signal);
  return {
    title: "Metrics",
    content: [h("div", { class: "headline" }, h("h1", null, "Metrics"), pause), board.elements()],
  };
}
