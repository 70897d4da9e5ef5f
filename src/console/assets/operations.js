// Long-running operations of all projects that have instances or databases, or of one by name for
// who may not see them all: those that run, then the others.
import * as api from "./api.js";
import { every, failure, h, notice, put, rowButton, table, toast } from "./dom.js";
import { dateText, percentText } from "./formats.js";
import { projectForm, state } from "./parts.js";
import { wholeBackups } from "./whole_backups.js";

const REFRESH_MS = 2000;
const SHOWN_MOST = 200;

// --- asking ---

// What was answered; who may see a part only gets that. Throws if nothing may be seen.
async function allowed(questions) {
  const answers = await Promise.allSettled(questions);
  const failures = answers.filter(({ status }) => status === "rejected").map((each) => each.reason);
  const serious = failures.find(({ code }) => code !== 403);
  if (serious) throw serious;
  if (failures.length > 0 && failures.length === answers.length) throw failures[0];
  return answers.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
}

// Where operations are listed: Bigtable's of a project, and Datastore's.
const bigtablePath = (project) =>
  `/v2/operations/projects/${encodeURIComponent(project)}/operations`;
const datastorePath = (project) => `/v1/projects/${encodeURIComponent(project)}/operations`;

const projectsIn = (resources = []) => resources.map(({ name }) => name.split("/")[1]);

async function paths(project, signal) {
  if (project) return new Set([bigtablePath(project), datastorePath(project)]);
  const found = await allowed([
    api
      .get("/v2/projects/-/instances", { signal })
      .then(({ instances }) => projectsIn(instances).map(bigtablePath)),
    api
      .get("/v1/projects/-/databases", { signal })
      .then(({ databases }) => projectsIn(databases).map(datastorePath)),
  ]);
  return new Set(found.flat());
}

// Where somebody was refused while other lists were shown is not asked again.
async function load(from, signal) {
  const refused = [];
  const ask = (path) =>
    api.list(path, "operations", { most: SHOWN_MOST, signal }).catch((error) => {
      refused.push(path);
      throw error;
    });
  const lists = await allowed([...from].map(ask));
  for (const path of refused) from.delete(path);
  return lists.flatMap(({ items }) => items);
}

const pathOf = ({ name }) =>
  name.startsWith("operations/") ? api.pathOf(name) : api.pathOf(name).replace("/v2/", "/v1/");

// --- one of them ---

// "type.googleapis.com/google.bigtable.admin.v2.CreateBackupMetadata" is a "create backup".
function kindText({ metadata = {} }) {
  const told = metadata.common?.operationType;
  if (told) return told.replaceAll("_", " ").toLowerCase();
  const type = metadata["@type"] ?? "";
  const name = type.slice(type.lastIndexOf(".") + 1).replace(/Metadata$/, "") || "operation";
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

const timesOf = ({ metadata = {} }) => metadata.progress ?? metadata.common ?? metadata;

function subject({ name, metadata = {} }) {
  const request = metadata.originalRequest ?? {};
  const told =
    metadata.name ?? request.name ?? metadata.clusterName ?? request.parent ?? metadata.field;
  if (told) return told;
  const project = name.split("/").slice(0, 2).join("/");
  return metadata.outputUrlPrefix ?? metadata.inputUrl ?? project;
}

// How far it is, if it tells; in percent.
function progressOf({ metadata = {} }) {
  const { workCompleted, workEstimated } = metadata.progressEntities ?? {};
  if (Number(workEstimated) > 0) return (100 * Number(workCompleted ?? 0)) / Number(workEstimated);
  return metadata.progress?.progressPercent;
}

function stateOf(operation) {
  if (!operation.done) {
    const percent = progressOf(operation);
    return state(percent === undefined ? "running" : `running, ${percentText(percent)}`);
  }
  return operation.error
    ? h(
        "span",
        { class: "state failed", title: operation.error.message },
        `failed: ${operation.error.message}`,
      )
    : state("done");
}

function row(operation, refresh) {
  const times = timesOf(operation);
  const cancel = async () => {
    try {
      await api.call("POST", `${pathOf(operation)}:cancel`, {});
      toast("The operation has been asked to stop.");
    } catch (error) {
      toast(error.message);
    }
    refresh();
  };
  return [
    kindText(operation),
    subject(operation),
    stateOf(operation),
    dateText(times.startTime ?? operation.metadata?.requestTime),
    dateText(times.endTime ?? operation.metadata?.finishTime),
    !operation.done &&
      rowButton("Cancel", `Cancel ${api.idOf(operation.name)}`, cancel),
  ];
}

const startOf = (operation) =>
  timesOf(operation).startTime ?? operation.metadata?.requestTime ?? "";

function listing(found, refresh) {
  if (found.length === 0) {
    return notice(
      "empty",
      "There is no operation",
      "Backups, restores, and changes of instances and clusters appear here, and stay for a while.",
    );
  }
  const order = (a, b) => Boolean(a.done) - Boolean(b.done) || (startOf(a) < startOf(b) ? 1 : -1);
  const columns = [
    { title: "What" },
    { title: "Of" },
    { title: "State" },
    { title: "Began (UTC)", class: "time" },
    { title: "Ended (UTC)", class: "time" },
    { title: "", class: "narrow" },
  ];
  return table(
    "Operations",
    columns,
    found
      .sort(order)
      .slice(0, SHOWN_MOST)
      .map((operation) => row(operation, refresh)),
    "stacked",
  );
}

// Drawn anew only when something has changed, so that who is at a button stays there.
function watch(from, signal) {
  const shown = h("div", { class: "results" });
  let text = "";
  const refresh = async () => {
    try {
      const found = await load(from, signal);
      const now = JSON.stringify(found);
      if (now !== text || found.length === 0) put(shown, listing(found, refresh));
      text = now;
    } catch (error) {
      if (signal.aborted) return;
      text = "";
      put(shown, failure(error, refresh));
    }
  };
  every(REFRESH_MS, refresh, signal);
  return { shown, refresh };
}

export async function operations(_place, parameters, signal) {
  const project = parameters.get("project") ?? "";
  const head = h("h1", null, "Operations", project && h("small", null, project));
  const form = () => projectForm("#/operations", project, "Show its operations");
  try {
    const { shown, refresh } = watch(await paths(project, signal), signal);
    await refresh();
    const whole = wholeBackups(signal);
    return { title: "Operations", content: [head, project && form(), shown, whole] };
  } catch (error) {
    if (error.code !== 403) throw error;
    const words = "You may not list the operations of all projects";
    const told = notice("empty", words, "Name the project that you work in.");
    return { title: "Operations", content: [head, told, form()] };
  }
}
