// A table's change stream: what it keeps, who reads it, and what has happened last.
import * as api from "./api.js";
import { escape, fromBase64 } from "./bytes.js";
import {
  button,
  dialog,
  every,
  facts,
  failure,
  field,
  h,
  note,
  put,
  select,
  table,
} from "./dom.js";
import { bytesText, countText, dateText, durationText, plural, secondsText } from "./formats.js";
import { askMetrics, read } from "./metric_samples.js";
import { whenSeen } from "./seen.js";

const SELF = "/v1/servers/self";
const REFRESH_MS = 3000;
const METRICS = [
  "change_log_bytes",
  "change_log_quota_bytes",
  "change_log_reach_seconds",
  "table_change_log_bytes",
  "table_change_stream_lag_seconds",
  "table_change_stream_readers",
];
const MOST_CHANGES = 20;
const MOST_PARTITIONS = 16; // that are looked into
const DAY_SECONDS = 86400;

// --- the retention ---

const daysOf = (config) => Number(config.retentionPeriod.replace(/s$/, "")) / DAY_SECONDS;

function retentions(config) {
  const days = [1, 2, 3, 4, 5, 6, 7].map((count) => [`${count}`, plural(count, "day")]);
  return select([["", "off"], ...days], config ? daysOf(config) : "7");
}

// Bytes a second that were written in the last hour, on average; null: that is not known.
async function writtenRate(name) {
  try {
    const path = `/v1/${api.pathOf(name).slice("/v2/".length)}:metricHistory`;
    const { lines = [] } = await api.get(`${path}?since=3600s&points=60`);
    const values = lines.find(({ name: each }) => each === "written_bytes")?.values ?? [];
    const known = values.filter((value) => typeof value === "number");
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  } catch {
    return null;
  }
}

function sizeText(days, rate) {
  if (rate === null) return "";
  const all = bytesText(rate * days * DAY_SECONDS);
  return ` At the rate of the last hour, ${bytesText(rate)} a second, that comes to about ${all}.`;
}

// What the choice will do.
function willText(config, days, rate) {
  if (days === 0 && !config) return "It stays off.";
  if (days === 0)
    return (
      "What is kept cannot be read any more, at once and for good, and who reads it now is " +
      "ended. Switched on again it is another stream."
    );
  const size = sizeText(days, rate);
  if (!config) return `What happens to rows from now on is kept for ${plural(days, "day")}.${size}`;
  const now = daysOf(config);
  if (days < now) return `What is older than ${plural(days, "day")} goes at once.${size}`;
  return days > now ? `What has gone already does not come back.${size}` : "It stays as it is.";
}

function askRetention(name, config, reload) {
  const chosen = retentions(config);
  const will = h("p", { class: "will", role: "status" });
  let rate = null;
  const tell = () => put(will, willText(config, Number(chosen.value), rate));
  chosen.addEventListener("change", tell);
  tell();
  writtenRate(name).then((found) => {
    rate = found;
    tell();
  });
  dialog({
    title: "Change stream",
    body: [field("Retention", chosen), will],
    yes: "Set",
    act: async () => {
      const retentionPeriod = `${Number(chosen.value) * DAY_SECONDS}s`;
      const body = chosen.value === "" ? {} : { changeStreamConfig: { retentionPeriod } };
      await api.call("PATCH", `${api.pathOf(name)}?updateMask=changeStreamConfig`, {
        name,
        ...body,
      });
      reload();
    },
  });
}

// --- what there is ---

// What somebody may not see is left out.
async function allowed(ask) {
  try {
    return await ask;
  } catch (error) {
    if (error.code === 403) return null;
    throw error;
  }
}

const isOf = (name) => (request) =>
  request.resource === name && request.method.endsWith("/ReadChangeStream");

async function load(name, signal) {
  const ask = (what) => allowed(api.get(`${SELF}/${what}`, { signal }));
  const [metrics, running] = await Promise.all([
    allowed(askMetrics(signal, METRICS)),
    ask("runningRequests?pageSize=1000"),
  ]);
  const { byName, time } = metrics ? read(metrics) : { byName: new Map(), time: Date.now() };
  return {
    time,
    value: (metric) => byName.get(metric)?.[0]?.value,
    ofTable: (metric) => byName.get(metric)?.find(({ labels }) => labels.table === name)?.value,
    readers: running && (running.requests ?? []).filter(isOf(name)),
  };
}

function boundText({ value }) {
  const bytes = value("change_log_bytes");
  if (bytes === undefined) return undefined;
  const quota = value("change_log_quota_bytes");
  const bound = quota > 0 ? `${bytesText(bytes)} of ${bytesText(quota)}` : bytesText(bytes);
  return `${bound}; reaches back ${secondsText(Math.round(value("change_log_reach_seconds")))}`;
}

function readersText({ ofTable }) {
  const count = ofTable("table_change_stream_readers");
  if (count === undefined) return "none at the moment";
  const behind = ofTable("table_change_stream_lag_seconds");
  const lag = behind > 0 ? `the slowest is ${secondsText(behind)} behind` : "none is behind";
  return `${countText(count)}; ${lag}`;
}

function factsOf(config, found, partitions) {
  const bytes = found.ofTable("table_change_log_bytes");
  return facts([
    ["Retention", durationText(config.retentionPeriod)],
    ["Partitions", partitions && countText(partitions.length)],
    ["Log of this table, about", bytes === undefined ? undefined : bytesText(bytes)],
    ["Log of all tables", boundText(found)],
    ["Readers", readersText(found)],
  ]);
}

const STATES = { wait_for_changes: "waits for changes", wait_for_client: "waits for its client" };

const READERS = [
  { title: "Reader", class: "code" },
  { title: "Address", class: "code" },
  { title: "State" },
  { title: "For" },
  { title: "Changes", number: true },
];

const readerRow = (reader) => [
  reader.principal || h("em", null, "nobody known"),
  reader.address,
  STATES[reader.state] ?? "reads",
  durationText(`${Math.round(Number(reader.age.replace(/s$/, "")))}s`),
  countText(reader.rows ?? 0),
];

// --- what has happened ---

function mutationText(mutation) {
  const [[kind, what]] = Object.entries(mutation);
  const column = what.columnQualifier;
  const qualifier = typeof column === "string" ? column : (column?.rawValue ?? "");
  const place = column === undefined ? "" : `:${escape(fromBase64(qualifier))}`;
  return `${kind} ${what.familyName ?? ""}${place}`;
}

// Changes of a partition, from the time on and up to `until`. What is within a value that comes in
// pieces is left out.
async function changesOf(name, partition, startTime, endTime, signal) {
  const found = [];
  const path = `${api.pathOf(name)}:readChangeStream`;
  const request = { partition, startTime, endTime };
  for await (const message of api.stream("POST", path, request, { signal })) {
    const change = message.dataChange;
    if (change?.rowKey !== undefined) found.push({ ...change, texts: [] });
    for (const { mutation, chunkInfo } of change?.chunks ?? [])
      if (!chunkInfo?.chunkedValueOffset) found.at(-1).texts.push(mutationText(mutation));
    if (message.closeStream) break;
  }
  return found;
}

const CHANGES = [
  { title: "Committed (UTC)", class: "time" },
  { title: "Row", class: "key" },
  { title: "Change" },
];

const changeRow = (change) => [
  dateText(change.commitTimestamp),
  escape(fromBase64(change.rowKey)),
  (change.type === "GARBAGE_COLLECTION" ? "collected: " : "") + change.texts.join(", "),
];

// The last ones, the newest first. Each look takes what has come since the one before.
class Last {
  constructor(name, from) {
    this.name = name;
    this.from = from;
    this.changes = [];
  }

  async look(partitions, until, signal) {
    const start = new Date(this.from).toISOString();
    const end = new Date(until).toISOString();
    if (until <= this.from) return;
    const asked = partitions
      .slice(0, MOST_PARTITIONS)
      .map((partition) => changesOf(this.name, partition, start, end, signal));
    const seen = new Set(this.changes.map(({ token, rowKey }) => `${token} ${rowKey}`));
    const found = (await Promise.all(asked)).flat();
    const more = found.filter(({ token, rowKey }) => !seen.has(`${token} ${rowKey}`));
    this.changes = [...this.changes, ...more]
      .sort((a, b) => (a.commitTimestamp < b.commitTimestamp ? 1 : -1))
      .slice(0, MOST_CHANGES);
    this.from = until;
  }
}

async function partitionsOf(name, signal) {
  const path = `${api.pathOf(name)}:generateInitialChangeStreamPartitions`;
  const found = [];
  for await (const { partition } of api.stream("POST", path, {}, { signal })) found.push(partition);
  return found;
}

// An instance whose default app profile routes to several clusters is not read without another.
async function readable(ask) {
  try {
    return { partitions: await ask };
  } catch (error) {
    if (error.status === "FAILED_PRECONDITION") return { why: error.message };
    throw error;
  }
}

// --- the section ---

function lastChanges(last, why) {
  if (why) return note(`Not shown here: ${why}`);
  return last.changes.length > 0
    ? table("Last changes", CHANGES, last.changes.map(changeRow), "changes stacked")
    : note("None since this came into sight.");
}

function show(place, config, found, { partitions, why }, last) {
  const { readers } = found;
  put(place, [
    factsOf(config, found, partitions),
    readers?.length > 0 && table("Readers", READERS, readers.map(readerRow), "readers stacked"),
    h("h3", null, "Last changes"),
    lastChanges(last, why),
  ]);
}

async function refresh(place, name, config, state, signal) {
  if (state.isBusy) return;
  state.isBusy = true;
  try {
    const [found, parts] = await Promise.all([
      load(name, signal),
      readable(partitionsOf(name, signal)),
    ]);
    state.last ??= new Last(name, found.time);
    await state.last.look(parts.partitions ?? [], found.time, signal);
    show(place, config, found, parts, state.last);
  } catch (error) {
    if (!signal.aborted) put(place, failure(error));
  }
  state.isBusy = false;
}

// `found`: the table, as GetTable has it; `reload` draws the page anew.
export function changeStream(name, found, reload, signal) {
  const config = found.changeStreamConfig;
  const place = h("div", { class: "change-stream" });
  const change = button(config ? "Change retention" : "Switch on", () =>
    askRetention(name, config, reload),
  );
  if (!config) put(place, note("Off: what happens to the rows is not kept for readers."));
  else {
    const act = () => refresh(place, name, config, state, signal);
    const state = {};
    const begin = () => {
      act();
      every(REFRESH_MS, act, signal);
    };
    whenSeen(place, begin, signal);
  }
  return [place, h("div", { class: "controls" }, change)];
}
