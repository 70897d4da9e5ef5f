// Whole backups, for who may see them: the schedule, how far the archive is behind, and what was
// begun since the server was started. Nothing of it where there is none of them.
import * as api from "./api.js";
import { every, facts, h, put, table } from "./dom.js";
import { bytesText, dateText, durationText, momentText, plural, secondsText } from "./formats.js";
import { askMetrics, read } from "./metric_samples.js";
import { state } from "./parts.js";

const SELF = "/v1/servers/self";
const REFRESH_MS = 5000;
const METRICS = [
  "archive_lag_seconds",
  "archive_waiting_bytes",
  "whole_backup_newest_timestamp_seconds",
];

async function load(signal) {
  const ask = (what) => api.get(`${SELF}/${what}`, { signal });
  const [{ runs = [], schedules = [] }, { settings = [] }, metrics] = await Promise.all([
    ask("wholeBackupRuns"),
    ask("settings?fields=settings(name,value)"),
    askMetrics(signal, METRICS),
  ]);
  const set = new Map(settings.map(({ name, value }) => [name, value]));
  const { byName } = read(metrics);
  const value = (name) => byName.get(name)?.[0]?.value ?? 0;
  return { runs, schedules, set, value };
}

function lagText({ set, value }) {
  if ((set.get("archive") ?? "none") === "none") return undefined;
  const waiting = value("archive_waiting_bytes");
  const lag = value("archive_lag_seconds");
  if (waiting === 0) return "none: all is archived";
  return `${secondsText(Math.round(lag))}, ${bytesText(waiting)} wait`;
}

function newestText({ value }) {
  const seconds = value("whole_backup_newest_timestamp_seconds");
  return seconds > 0 ? `${momentText(seconds * 1000)} UTC` : undefined;
}

function scheduleText({ set }) {
  const period = set.get("backup-schedule") ?? "0";
  if (/^0\w*$/.test(period)) return undefined;
  const place = (set.get("backup-places") ?? "").split(",")[0];
  return `each ${/^\d+s$/.test(period) ? durationText(period) : period}, into ${place}`;
}

// Of a part: what it is, how often, how many stay, and what is the matter.
function partText({ scope, period, keep, newestTime, overdue, error }) {
  const stay = `keeps ${Number(keep ?? 0) || "all"}`;
  const newest = newestTime ? `newest ${dateText(newestTime)}` : "newest: none";
  const told = [`each ${durationText(period)}`, stay, newest];
  const wrong = overdue ? `overdue${error ? `: ${error.message}` : ""}` : "";
  const words = `${scope}: ${told.join(", ")}`;
  return h("div", null, words, wrong && h("div", { class: "note" }, wrong));
}

function partsOf({ schedules }) {
  const parts = schedules.filter(({ scope }) => scope);
  return parts.length > 0 ? parts.map(partText) : undefined;
}

function stateOf(run) {
  if (!run.endTime) return state("running");
  if (!run.error) return state("done");
  const words = `failed: ${run.error.message}`;
  return h("span", { class: "state failed", title: words }, words);
}

const whatOf = (run) =>
  run.source
    ? `${plural(Number(run.tables ?? 0), "table")} restored as ${run.target || run.source}`
    : run.scope
      ? `backup of ${run.scope}${run.scheduled ? ", by its schedule" : ""}`
      : run.scheduled
        ? "whole backup, by the schedule"
        : "whole backup";

const row = (run) => [
  whatOf(run),
  [run.place, run.name && h("div", { class: "note" }, run.name)],
  stateOf(run),
  bytesText(Number(run.totalBytes ?? 0)),
  dateText(run.startTime),
  dateText(run.endTime),
];

const COLUMNS = [
  { title: "What" },
  { title: "Place" },
  { title: "State" },
  { title: "Size", number: true },
  { title: "Began (UTC)", class: "time" },
  { title: "Ended (UTC)", class: "time" },
];

function section(found) {
  const told = [
    ["Schedule", scheduleText(found)],
    ["Newest", newestText(found)],
    ["Schedules of parts", partsOf(found)],
    ["Archive behind", lagText(found)],
  ];
  if (found.runs.length === 0 && told.every(([, text]) => text === undefined)) return [];
  return [
    h("h2", null, "Whole backups and the archive"),
    facts(told),
    found.runs.length > 0 &&
      table("Whole backups", COLUMNS, found.runs.map(row), "whole-backups stacked"),
  ];
}

// Drawn anew only when something has changed.
export function wholeBackups(signal) {
  const place = h("section", { class: "whole" });
  let text = "";
  const refresh = async () => {
    try {
      const found = await load(signal);
      const content = section(found);
      const now = content.map((each) => each.outerHTML ?? "").join("");
      if (now !== text) put(place, content);
      text = now;
    } catch (error) {
      if (error.code === 403) put(place, []);
    }
  };
  every(REFRESH_MS, refresh, signal);
  refresh();
  return place;
}
