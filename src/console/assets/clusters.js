// The clusters that copy each other's changes, as this server sees them: who leads, who answers,
// how far each is behind here, and what it has not been sent yet; anew every two seconds. What is
// remembered of all of them together is in charts, with the way to its query.
import * as api from "./api.js";
import { every, facts, failure, h, note, notice, number, put, table } from "./dom.js";
import { ageText, bytesText, countText, secondsText } from "./formats.js";
import { HOUR, historyChart, historyText, rangeField, readHistory } from "./metric_history.js";
import { newestQuery, queryLink, sinceQuery } from "./metric_queries.js";

const PATH = "/v1/servers/self/peers";
const HISTORY = "/v1/servers/self/metricHistory";
const REFRESH_MS = 2000;
const DELAY = "replication_delay_seconds";
const QUEUE = "replication_queue_bytes";
const LINES = ["peers", "peers_silent", DELAY, QUEUE];

const secondsBetween = (from, to) => Math.max(Number(to) - Number(from), 0) / 1e6;

// --- one of them ---

const isSilent = (state) => Boolean(state.failure) || !state.heardUs;

// [what class it has, in words, and why].
function wordsOf(state, nowUs) {
  if (!state.heardUs) return ["failed", "not heard yet", state.failure];
  if (state.failure) {
    const silent = ageText(1000 * secondsBetween(state.heardUs, nowUs));
    return ["failed", `silent for ${silent}`, state.failure];
  }
  if (state.doubled) return ["failed", "answers, and another one has its identity"];
  if (state.parked === "being copied") return ["busy", state.parked];
  if (state.parked) return ["failed", "answers", `Its changes wait here: ${state.parked}.`];
  return ["done", "answers"];
}

function stateCell(state, nowUs) {
  const [kind, words, why] = wordsOf(state, nowUs);
  return [
    h("span", { class: `state ${kind}` }, words),
    why && h("div", { class: "note" }, why),
  ];
}

const lagOf = (state, nowUs) =>
  state.appliedUntilUs ? secondsBetween(state.appliedUntilUs, nowUs) : null;

const clockText = ({ clockAheadUs = 0 }) => {
  const seconds = Number(clockAheadUs) / 1e6;
  return `${seconds < 0 ? "−" : "+"}${Math.abs(seconds).toFixed(3)} s`;
};

function numbersOf(state, nowUs) {
  const lag = lagOf(state, nowUs);
  return [
    lag === null ? "not known" : secondsText(lag),
    bytesText(state.queueBytes ?? 0),
    state.heardUs ? clockText(state) : "not known",
    countText(state.appliedChanges ?? 0),
  ];
}

function row(peer, told) {
  const state = (told.states ?? []).find(({ number: of }) => of === peer.number);
  const numbers = state ? numbersOf(state, told.nowUs) : Array(4).fill("–");
  return [
    [
      h("strong", null, peer.location),
      h("div", { class: "note" }, `number ${peer.number}, ${peer.address}`),
    ],
    peer.number === told.list.leader ? "leads" : "",
    state ? stateCell(state, told.nowUs) : "this server",
    ...numbers.map(number),
  ];
}

const COLUMNS = [
  { title: "Cluster" },
  { title: "Leads" },
  { title: "State" },
  { title: "Behind here", number: true },
  { title: "Not sent to it", number: true },
  { title: "Clock ahead", number: true },
  { title: "Changes applied", number: true },
];

const listing = (told) =>
  table("Clusters", COLUMNS, told.list.peers.map((peer) => row(peer, told)), "stacked");

// How much of an instance has come whose rows are being copied here.
function copied({ copied: instance }) {
  if (!instance) return null;
  const sum = (of) => (instance.tables ?? []).reduce((all, each) => all + Number(each[of] ?? 0), 0);
  const [here, whole] = [bytesText(sum("copiedBytes")), bytesText(sum("sizeBytes"))];
  return note(`The rows of ${instance.name} are being copied here: ${here} of about ${whole}.`);
}

// --- all of them ---

const queriesAt = (now) => ({
  Clusters: newestQuery(["peers", "peers_silent"]),
  "Behind, at most": newestQuery([DELAY]),
  "Not sent": newestQuery([QUEUE]),
  Behind: sinceQuery("1m", now - 1000 * HOUR, [DELAY]),
  Queue: sinceQuery("1m", now - 1000 * HOUR, [QUEUE]),
});

// `asked`: gives the way to the query of a number.
function summary(told, asked) {
  const states = told.states ?? [];
  const silent = states.filter(isSilent).length;
  const lags = states.map((state) => lagOf(state, told.nowUs)).filter((lag) => lag !== null);
  const queue = states.reduce((sum, { queueBytes = 0 }) => sum + Number(queueBytes), 0);
  const remembered = (what, text) => [what, h("span", null, text, " ", asked(what))];
  const all = silent === 0 ? "all answer" : `${silent} silent`;
  return facts([
    remembered("Clusters", `${countText(told.list.peers.length)}, ${all}`),
    remembered("Behind, at most", lags.length ? secondsText(Math.max(...lags)) : "not known"),
    remembered("Not sent", bytesText(queue)),
  ]);
}

const CHARTS = [
  {
    title: "Behind",
    note: "How old the oldest change is that is missing here.",
    format: secondsText,
    lines: [{ key: DELAY, name: "behind, at most" }],
  },
  {
    title: "Queue",
    note: "What the others have not been sent yet of what clients changed here, estimated.",
    format: bytesText,
    base: 1024,
    lines: [{ key: QUEUE, name: "not sent" }],
  },
];

const pastOf = (seconds, signal) =>
  readHistory(HISTORY, seconds, Date.now(), signal, { only: LINES });

// Charts of what is remembered, as far back as is chosen. `first`: of the last hour, or the error
// that came instead.
function past(first, asked, signal) {
  const place = h("div", { class: "charts" });
  const about = note();
  const draw = (found) => {
    about.textContent = historyText(found);
    const withQuery = (chart) => ({ ...chart, note: [chart.note, " ", asked(chart.title)] });
    put(place, CHARTS.map((chart) => historyChart(withQuery(chart), found)));
  };
  const show = async (seconds) => {
    try {
      draw(await pastOf(seconds, signal));
    } catch (error) {
      if (!signal.aborted) put(place, failure(error, () => show(seconds)));
    }
  };
  if (first instanceof Error) put(place, failure(first, () => show(HOUR)));
  else draw(first);
  return [
    h("h2", null, "In the past"),
    h("div", { class: "controls" }, rangeField(show)),
    about,
    place,
  ];
}

const none = () =>
  notice(
    "empty",
    "This server has no peers",
    "With `trestle cluster join` it becomes one of those that copy each other’s changes.",
  );

const whose = ({ list, ownNumber }) => {
  const { location } = list.peers.find((peer) => peer.number === ownNumber) ?? { location: "?" };
  return note(
    `As ${location} sees them: what it has not applied yet of each, and has not sent yet to each. `,
    "How the others stand with one another they say themselves, each on this page of its own.",
  );
};

export async function clusters(_place, _parameters, signal) {
  const head = h("h1", null, "Clusters");
  const ask = pastOf(HOUR, signal).catch((error) => error);
  let told = await api.get(PATH, { signal });
  if (!told.list) return { title: "Clusters", content: [head, none()] };
  const queries = queriesAt(Number(told.nowUs) / 1000);
  const first = await ask;
  const asked = (what) => first.samples?.length > 0 && queryLink(null, what, queries[what]);
  const place = h("div", { class: "results" });
  const show = () => put(place, [whose(told), summary(told, asked), listing(told), copied(told)]);
  const refresh = async () => {
    try {
      told = await api.get(PATH, { signal });
      show();
    } catch (error) {
      if (!signal.aborted) put(place, failure(error, refresh));
    }
  };
  show();
  every(REFRESH_MS, refresh, signal);
  return { title: "Clusters", content: [head, place, past(first, asked, signal)] };
}
