// The pages of an instance: its tables, its clusters, its backups.
import * as api from "./api.js";
import {
  button,
  dialog,
  failure,
  field,
  fill,
  h,
  link,
  note,
  notice,
  number,
  rowButton,
  select,
  table,
  toast,
} from "./dom.js";
import { bytesText, countText, dateText } from "./formats.js";
import { instanceHead, rowsUrl, state, tableUrl } from "./parts.js";

// --- tables ---

// Who may not ask for a table's tablets is told of none.
function tableRow(instance, { id, bytes = "0", tablets = 0 }) {
  const place = { ...instance, table: id };
  const [size, count] =
    tablets > 0 ? [bytesText(Number(bytes)), countText(tablets)] : Array(2).fill("not for you");
  return [link(tableUrl(place), id), number(size), number(count), link(rowsUrl(place), "Data")];
}

export async function tables(place, _parameters, signal) {
  const path = `${api.pathOf(api.instanceName(place)).replace("/v2/", "/v1/")}/tableSizes`;
  const { items, hasMore } = await api.list(`${path}?pageSize=1000`, "tables", { signal });
  const head = instanceHead(place, "tables");
  if (items.length === 0) {
    return {
      title: place.instance,
      content: [
        head,
        notice(
          "empty",
          "There is no table yet",
          "CreateTable makes one: with a client library, cbt, gcloud, or REST.",
        ),
      ],
    };
  }
  const columns = [
    { title: "Table" },
    { title: "Size, about", number: true },
    { title: "Tablets", number: true },
    { title: "", class: "narrow" },
  ];
  const shown = table(
    "Tables",
    columns,
    items.map((found) => tableRow(place, found)),
  );
  return {
    title: place.instance,
    content: [
      head,
      shown,
      hasMore && note("There are more tables than these."),
    ],
  };
}

// --- clusters ---

export async function clusters(place, _parameters, signal) {
  const path = api.pathOf(api.instanceName(place));
  const [found, profiles] = await Promise.all([
    api.get(`${path}/clusters`, { signal }),
    api.list(`${path}/appProfiles`, "appProfiles", { signal }),
  ]);
  const columns = [
    { title: "Cluster" },
    { title: "Zone" },
    { title: "Nodes", number: true },
    { title: "Storage" },
    { title: "State" },
  ];
  const rows = (found.clusters ?? []).map((cluster) => [
    api.idOf(cluster.name),
    api.idOf(cluster.location ?? ""),
    countText(cluster.serveNodes ?? 0),
    (cluster.defaultStorageType ?? "").toLowerCase(),
    state(cluster.state),
  ]);
  const routes = profiles.items.map((profile) => [
    api.idOf(profile.name),
    profile.singleClusterRouting
      ? `to ${profile.singleClusterRouting.clusterId}`
      : "to any cluster",
    profile.description ?? "",
  ]);
  return {
    title: `Clusters of ${place.instance}`,
    content: [
      instanceHead(place, "clusters"),
      h("h2", null, "Clusters"),
      rows.length > 0
        ? table("Clusters", columns, rows)
        : notice("empty", "There is no cluster"),
      note(
        "Where a server has no peers, it serves all clusters of an instance. They are names " +
          "then: what is written in one is in all of them.",
      ),
      h("h2", null, "App profiles"),
      routes.length > 0
        ? table(
            "App profiles",
            [{ title: "Profile" }, { title: "Routes" }, { title: "Description" }],
            routes,
          )
        : notice("empty", "There is no app profile"),
    ],
  };
}

// --- backups ---

function restoreDialog(place, backup) {
  const input = h("input", {
    required: true,
    spellcheck: "false",
    maxlength: "50",
    value: `${api.idOf(backup.sourceTable)}-restored`,
  });
  dialog({
    title: `Restore ${api.idOf(backup.name)}`,
    body: [
      h(
        "p",
        null,
        `Makes a new table with what ${api.idOf(backup.sourceTable)} was at ` +
          `${dateText(backup.startTime)} UTC. The table itself is left alone.`,
      ),
      field("New table", input),
    ],
    yes: "Restore",
    act: async () => {
      await api.call("POST", `${api.pathOf(api.instanceName(place))}/tables:restore`, {
        tableId: input.value.trim(),
        backup: backup.name,
      });
      toast("The table is being restored. ", link("#/operations", "Operations"));
    },
  });
}

function deleteBackup(backup, refresh) {
  dialog({
    title: `Delete ${api.idOf(backup.name)}?`,
    body: h(
      "p",
      null,
      `The backup of ${api.idOf(backup.sourceTable)}, ${bytesText(backup.sizeBytes)}, ` +
        "is gone for good.",
    ),
    yes: "Delete the backup",
    isDangerous: true,
    act: async () => {
      await api.call("DELETE", api.pathOf(backup.name));
      toast("The backup has been deleted.");
      refresh();
    },
  });
}

const DAY_MS = 86400 * 1000;

async function createBackup(place, refresh) {
  const path = api.pathOf(api.instanceName(place));
  const [{ items }, { clusters: found = [] }] = await Promise.all([
    api.list(`${path}/tables?view=NAME_ONLY`, "tables"),
    api.get(`${path}/clusters`),
  ]);
  const of = select(items.map((item) => [item.name, api.idOf(item.name)]));
  const at = select(found.map((cluster) => [cluster.name, api.idOf(cluster.name)]));
  const id = h("input", { required: true, spellcheck: "false", maxlength: "50" });
  const days = h("input", { type: "number", min: "1", max: "90", value: "7", required: true });
  const today = new Date().toISOString().slice(0, 10);
  const propose = () => (id.value = `${api.idOf(of.value)}-${today}`);
  of.addEventListener("change", propose);
  propose();
  dialog({
    title: "Make a backup",
    body: [
      field("Of table", of),
      field("In cluster", at),
      field("Name", id),
      field("Kept for days", days),
    ],
    yes: "Make it",
    act: async () => {
      const expireTime = new Date(Date.now() + Number(days.value) * DAY_MS).toISOString();
      await api.call(
        "POST",
        `${api.pathOf(at.value)}/backups?backupId=${encodeURIComponent(id.value.trim())}`,
        { sourceTable: of.value, expireTime },
      );
      toast("The backup is being made. ", link("#/operations", "Operations"));
      refresh();
    },
  });
}

function backupRow(place, backup, refresh) {
  const isReady = backup.state === "READY";
  const act = (text, what, more) =>
    rowButton(text, `${text} ${api.idOf(backup.name)}`, what, more);
  return [
    api.idOf(backup.name),
    api.idOf(backup.sourceTable),
    number(bytesText(backup.sizeBytes)),
    state(backup.state),
    dateText(backup.startTime),
    dateText(backup.expireTime),
    h(
      "span",
      { class: "row-actions" },
      act("Restore", () => restoreDialog(place, backup), { disabled: !isReady }),
      act("Delete", () => deleteBackup(backup, refresh)),
    ),
  ];
}

async function backupList(place, signal, refresh) {
  const path = `${api.pathOf(api.instanceName(place))}/clusters/-/backups`;
  const { items, hasMore } = await api.list(path, "backups", { signal });
  if (items.length === 0) {
    return notice(
      "empty",
      "There is no backup yet",
      "A backup is a table at one instant, kept beside the data until it expires.",
    );
  }
  const columns = [
    { title: "Backup" },
    { title: "Of table" },
    { title: "Size", number: true },
    { title: "State" },
    { title: "Began (UTC)", class: "time" },
    { title: "Expires (UTC)", class: "time" },
    { title: "", class: "narrow" },
  ];
  return [
    table(
      "Backups",
      columns,
      items.map((item) => backupRow(place, item, refresh)),
      "stacked",
    ),
    hasMore && note("There are more backups than these."),
  ];
}

export async function backups(place, _parameters, signal) {
  const shown = h("div", null);
  const wrong = h("div", null);
  const refresh = () => fill(shown, "Loading backups", () => backupList(place, signal, refresh));
  const create = () =>
    createBackup(place, refresh).then(
      () => wrong.replaceChildren(),
      (error) => wrong.replaceChildren(failure(error)),
    );
  await refresh();
  return {
    title: `Backups of ${place.instance}`,
    content: [
      instanceHead(place, "backups"),
      h(
        "div",
        { class: "controls" },
        button("Make a backup", create, { class: "primary" }),
        button("Refresh", refresh),
      ),
      wrong,
      shown,
    ],
  };
}
