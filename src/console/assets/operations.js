// Long-running operations of all projects that have instances: those that run, then the others.
import * as api from "./api.js";
import { every, failure, h, notice, rowButton, table, toast } from "./dom.js";
import { dateText } from "./formats.js";
import { placeOf, state } from "./parts.js";

const REFRESH_MS = 2000;
const SHOWN_MOST = 200;

async function projects(signal) {
  const { instances = [] } = await api.get("/v2/projects/-/instances", { signal });
  return [...new Set(instances.map((instance) => placeOf(instance.name).project))].sort();
}

async function load(names, signal) {
  const lists = await Promise.all(
    names.map((project) =>
      api.list(
        `/v2/operations/projects/${encodeURIComponent(project)}/operations`,
        "operations",
        { most: SHOWN_MOST, signal },
      ),
    ),
  );
  return lists.flatMap((list) => list.items);
}

// "type.googleapis.com/google.bigtable.admin.v2.CreateBackupMetadata" is a "create backup".
function kindText(operation) {
  const type = operation.metadata?.["@type"] ?? "";
  const name = type.slice(type.lastIndexOf(".") + 1).replace(/Metadata$/, "") || "operation";
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

const timesOf = (metadata = {}) => metadata.progress ?? metadata;

function subject(metadata = {}) {
  const request = metadata.originalRequest ?? {};
  return metadata.name ?? request.name ?? metadata.clusterName ?? request.parent ?? "";
}

function stateOf(operation) {
  if (!operation.done) {
    const percent = operation.metadata?.progress?.progressPercent;
    return state(percent === undefined ? "running" : `running, ${percent} %`);
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
  const times = timesOf(operation.metadata);
  const cancel = async () => {
    try {
      await api.call("POST", `${api.pathOf(operation.name)}:cancel`, {});
      toast("The operation has been asked to stop.");
    } catch (error) {
      toast(error.message);
    }
    refresh();
  };
  return [
    kindText(operation),
    subject(operation.metadata),
    stateOf(operation),
    dateText(times.startTime ?? operation.metadata?.requestTime),
    dateText(times.endTime ?? operation.metadata?.finishTime),
    !operation.done &&
      rowButton("Cancel", `Cancel ${api.idOf(operation.name)}`, cancel),
  ];
}

const startOf = (operation) =>
  timesOf(operation.metadata).startTime ?? operation.metadata?.requestTime ?? "";

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

export async function operations(_place, _parameters, signal) {
  const names = await projects(signal);
  const shown = h("div", { class: "results" });
  let text = "";
  // Drawn anew only when something has changed, so that who is at a button stays there.
  const refresh = async () => {
    try {
      const found = await load(names, signal);
      const now = JSON.stringify(found);
      if (now !== text || found.length === 0) shown.replaceChildren(listing(found, refresh));
      text = now;
    } catch (error) {
      if (signal.aborted) return;
      text = "";
      shown.replaceChildren(failure(error, refresh));
    }
  };
  await refresh();
  every(REFRESH_MS, refresh, signal);
  return { title: "Operations", content: [h("h1", null, "Operations"), shown] };
}
