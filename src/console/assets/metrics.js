// The server's metrics as they moved, out of what it remembers, and as they move: it is asked every
// two seconds, while somebody may look.
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
import { HOUR, historyText, rangeField, readHistory } from "./metric_history.js";
import { askMetrics, isClients, Look, read, shortName } from "./metric_samples.js";

const HISTORY = "/v1/servers/self/metricHistory";
const REFRESH_MS = 2000;
const REMEMBERED_MS = 60_000; // between two looks at what is remembered
const KEPT = 450; // samples of our own: a quarter of an hour
const METHODS = 5; // that have a line of their own

const orDash = (format) => (value) => (value === null ? "–" : format(value));

// --- charts ---

const share = (part, all) => (part === null || all === 0 ? null : (100 * part) / all);

// Out of looks, and out of what is remembered: by which names of docs/reference, and what they
// come to.
const value = (name) => ({ names: [name], of: (look) => look.value(name) });
const rate = (name) => ({ names: [name], of: (look) => look.rate(name) });
const quantile = (part) => ({
  names: ["rpc_seconds"],
  of: (look) => look.quantile(part, isClients),
});
const remembered = (name) => ({ names: [name], of: (values) => values[name] ?? null });

const hitRate = {
  names: ["store_cache_hits_total", "store_cache_misses_total"],
  of(look) {
    const hits = look.rate("store_cache_hits_total");
    return share(hits, hits + look.rate("store_cache_misses_total"));
  },
};
const pastHitRate = {
  names: ["cache_hits", "cache_misses"],
  of: ({ cache_hits: hits = null, cache_misses: misses }) => share(hits, hits + misses),
};

const stallShare = (milliseconds) =>
  milliseconds === null ? null : Math.min(milliseconds / 10, 100);
const stallRate = {
  names: ["store_stall_milliseconds_total"],
  of: (look) => stallShare(look.rate("store_stall_milliseconds_total")),
};
const pastStallRate = {
  names: ["stalled_milliseconds"],
  of: (values) => stallShare(values.stalled_milliseconds ?? null),
};

const line = (key, name, now, past) => ({ key, name, now, past });
const rateLine = (metric, name, past) => line(metric, name, rate(metric), remembered(past));
const valueLine = (metric, name, past) => line(metric, name, value(metric), remembered(past));

const CHARTS = [
  {
    title: "Latency",
    note: "How long the calls took that ended, of all methods together.",
    format: secondsText,
    lines: [
      line("p50", "median", quantile(0.5), remembered("p50_seconds")),
      line("p99", "99th percentile", quantile(0.99), remembered("p99_seconds")),
    ],
  },
  {
    title: "Traffic",
    note: "Bytes a second, of all clients.",
    format: bytesText,
    base: 1024,
    lines: [
      rateLine("received_bytes_total", "received", "received_bytes"),
      rateLine("sent_bytes_total", "sent", "sent_bytes"),
    ],
  },
  {
    title: "Connections",
    note: "Open connections, and requests that run.",
    format: shortCount,
    lines: [
      valueLine("connections", "connections", "connections"),
      valueLine("rpcs_running", "requests", "running"),
    ],
  },
  {
    title: "Cache hits",
    note: "Of the blocks of tables that were asked for. There is no line where none was.",
    format: percentText,
    most: 100,
    lines: [line("hits", "hits", hitRate, pastHitRate)],
  },
  {
    title: "Disk",
    note: "What the data takes; write buffers are in memory, and in the log.",
    format: bytesText,
    base: 1024,
    lines: [
      valueLine("store_table_bytes", "tables", "table_bytes"),
      valueLine("store_log_bytes", "log", "log_bytes"),
      valueLine("store_write_buffer_bytes", "write buffers", "write_buffer_bytes"),
    ],
  },
  {
    title: "Flushes and compactions",
    note: "Bytes a second that are read and written to keep tables in order.",
    format: bytesText,
    base: 1024,
    lines: [
      rateLine("store_flushed_bytes_total", "flushed", "flushed_bytes"),
      rateLine("store_compaction_read_bytes_total", "read", "compaction_read_bytes"),
      rateLine("store_compaction_written_bytes_total", "written", "compaction_written_bytes"),
    ],
  },
  {
    title: "Stalls",
    note: "Share of the time for which the store held writes back.",
    format: percentText,
    most: 100,
    lines: [line("stalled", "held back", stallRate, pastStallRate)],
  },
  {
    title: "Queues",
    note: "Tasks that wait for a thread, and how full the commit queue is, in percent.",
    format: shortCount,
    lines: [
      valueLine("pool_queued", "tasks", "tasks"),
      valueLine("commit_queue_percent", "commit queue", "commit_queue_percent"),
    ],
  },
  {
    title: "Processors",
    note: "How many the server keeps busy.",
    format: (value) => (value < 10 ? value.toFixed(2) : shortCount(value)),
    most: 1,
    lines: [rateLine("process_cpu_seconds_total", "processors", "processors")],
  },
];

// No more than is shown, and fewer points at first, so that this page is light.
const LINES = CHARTS.flatMap(({ lines }) => lines);
const METRICS = ["rpcs_total", ...new Set(LINES.flatMap(({ now }) => now.names))];
const REMEMBERED = ["method", ...LINES.flatMap(({ past }) => past.names)];
const POINTS = { first: 50, later: 120 };

const OTHERS = "others";
const REQUESTS = "Requests";
const REQUESTS_NOTE = "A second, by method; what this page asks is left out.";

// --- what was seen ---

function sampleOf(look) {
  const values = {};
  for (const { lines } of CHARTS) for (const each of lines) values[each.key] = each.now.of(look);
  const byMethod = {};
  for (const { method, callRate } of look.methods())
    byMethod[method] = callRate === null ? null : (byMethod[method] ?? 0) + callRate;
  return { time: look.now.time, values, byMethod };
}

const pastSample = ({ time, values: remembered, byMethod, isGap }) => {
  const values = {};
  if (!isGap)
    for (const { lines } of CHARTS)
      for (const each of lines) values[each.key] = each.past.of(remembered);
  return { time, values, byMethod, isFirst: isGap };
};

// The busiest methods, and the rest of them as one: what is remembered has such a rest, too.
function requestSamples(samples) {
  const sums = {};
  for (const { byMethod } of samples)
    for (const [method, rate] of Object.entries(byMethod))
      sums[method] = (sums[method] ?? 0) + (rate ?? 0);
  const named = Object.keys(sums).filter((name) => name !== OTHERS);
  const names = named.sort((a, b) => sums[b] - sums[a] || (a < b ? -1 : 1));
  const own = names.slice(0, names.length === METHODS + 1 ? METHODS + 1 : METHODS);
  const others = names.slice(own.length);
  const lines = own.map((method) => line(method, shortName(method)));
  if (OTHERS in sums) others.push(OTHERS);
  if (others.length > 0)
    lines.push(line("others", OTHERS in sums ? "others" : `${others.length} others`));
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

function headText(look, past) {
  const age = ageText(look.now.time - look.now.started);
  return `trestle ${look.now.version}, up ${age}. ${historyText(past)}`;
}

class Board {
  constructor() {
    this.samples = [];
    this.past = null; // what is remembered; null: it was not asked for yet
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

  // What is remembered, up to where our own samples begin.
  remember(past) {
    this.past = past;
    this.remembered = past.samples.map(pastSample);
    if (this.look) this.show(this.look);
  }

  all() {
    const first = this.samples[0]?.time ?? Infinity;
    return [...(this.remembered ?? []).filter(({ time }) => time < first), ...this.samples];
  }

  show(look) {
    this.look = look;
    this.head.replaceChildren(headText(look, this.past));
    this.wrong.replaceChildren();
    const samples = this.all();
    const requests = requestSamples(samples);
    this.requests.show(requests.lines, requests.samples);
    for (const { chart, lines } of this.charts) chart.show(lines, samples);
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
  let seconds = HOUR;
  let points = POINTS.first;
  const ask = async () => {
    const answer = await askMetrics(signal, METRICS);
    return [answer, Date.parse(answer.time)];
  };
  const remember = async (now) => {
    const wanted = { only: REMEMBERED, points };
    board.remember(await readHistory(HISTORY, seconds, now, signal, wanted));
    points = POINTS.later;
  };
  const [first, now] = await ask();
  await remember(now);
  board.take(first);
  const quietly = async (act) => {
    try {
      await act();
    } catch (error) {
      if (!signal.aborted) board.wrong.replaceChildren(failure(error, refresh));
    }
  };
  let isAsking = false;
  const refresh = async () => {
    if (isAsking) return;
    isAsking = true;
    await quietly(async () => board.take((await ask())[0]));
    isAsking = false;
  };
  const range = rangeField((chosen) => {
    seconds = chosen;
    quietly(() => remember(board.before.time));
  });
  every(REFRESH_MS, () => !isPaused() && refresh(), signal);
  every(REMEMBERED_MS, () => !isPaused() && quietly(() => remember(board.before.time)), signal);
  const head = h("div", { class: "headline" }, h("h1", null, "Metrics"), range, pause);
  return { title: "Metrics", content: [head, board.elements()] };
}
