// A database's composite indexes, and the properties that say when entities expire.
import * as api from "./api.js";
import { databaseHead } from "./datastore_parts.js";
import { groupsPath } from "./datastore_api.js";
import { h, notice, table } from "./dom.js";
import { state } from "./parts.js";

// projects/P/databases/D/collectionGroups/KIND/indexes/INDEX, or …/fields/PROPERTY
const kindOf = (name) => name.split("/")[5];

const fieldText = ({ fieldPath, order }) =>
  `${fieldPath === "__name__" ? "__key__" : fieldPath}${order === "DESCENDING" ? " ↓" : ""}`;

function indexTable(indexes) {
  if (indexes.length === 0)
    return notice(
      "empty",
      "There is no composite index",
      "Queries that need one say which. gcloud datastore indexes create makes it.",
    );
  const columns = [
    { title: "Kind" },
    { title: "Properties", class: "key" },
    { title: "Ancestors" },
    { title: "State" },
    { title: "Index" },
  ];
  return table(
    "Composite indexes",
    columns,
    indexes.map((index) => [
      kindOf(index.name),
      (index.fields ?? []).map(fieldText).join(", "),
      index.queryScope === "COLLECTION_RECURSIVE" ? "with ancestors" : "",
      state(index.state),
      api.idOf(index.name),
    ]),
    "stacked",
  );
}

function expiryTable(fields) {
  if (fields.length === 0)
    return notice("empty", "No entity expires", "No kind has a property that says when.");
  return table(
    "What expires",
    [{ title: "Kind" }, { title: "Expires at the moment in", class: "key" }, { title: "State" }],
    fields.map(({ name, ttlConfig }) => [kindOf(name), api.idOf(name), state(ttlConfig?.state)]),
  );
}

export async function indexes(place, _parameters, signal) {
  const path = groupsPath(place);
  const filter = encodeURIComponent("ttlConfig:*");
  const [composite, expiring] = await Promise.all([
    api.list(`${path}/indexes`, "indexes", { signal }),
    api.list(`${path}/fields?filter=${filter}`, "fields", { signal }),
  ]);
  return {
    title: `Indexes of ${place.project}`,
    content: [
      databaseHead(place, "indexes"),
      h("h2", null, "Composite indexes"),
      indexTable(composite.items),
      h("h2", null, "What expires"),
      expiryTable(expiring.items),
    ],
  };
}
