// For who has no data yet: three ways to begin, with this server's address in them, and the first
// row as it comes.
import * as api from "./api.js";
import { every, field, h, link, note, notice, put, select } from "./dom.js";
import { askMetrics, read } from "./metric_samples.js";
import { instanceUrl, placeOf, tableUrl } from "./parts.js";

const REFRESH_MS = 2000;
const WRITTEN = "table_rows_written_total";

// An address in a browser may have no port, or one of IPv6 in brackets.
const portOf = (host) => /:(\d+)$/.exec(host)?.[1] ?? "80";
const hostOf = (host) => host.replace(/:\d+$/, "");

const python = (host) => `# pip install google-cloud-bigtable
import os
os.environ["BIGTABLE_EMULATOR_HOST"] = "${host}"
from google.cloud.bigtable import Client

table = Client(project="p", admin=True).instance("i").table("greetings")
table.create(column_families={"f": None})
row = table.direct_row(b"hello")
row.set_cell("f", "text", "from Python")
row.commit()`;

const go = (host) => `// go get cloud.google.com/go/bigtable
// export BIGTABLE_EMULATOR_HOST=${host}
ctx := context.Background()
admin, _ := bigtable.NewAdminClient(ctx, "p", "i")
admin.CreateTable(ctx, "greetings")
admin.CreateColumnFamily(ctx, "greetings", "f")
client, _ := bigtable.NewClient(ctx, "p", "i")
mutation := bigtable.NewMutation()
mutation.Set("f", "text", bigtable.Now(), []byte("from Go"))
if err := client.Open("greetings").Apply(ctx, "hello", mutation); err != nil {
	log.Fatal(err)
}`;

const java = (host) => `// com.google.cloud:google-cloud-bigtable
var host = "${hostOf(host)}";
int port = ${portOf(host)};
var admin = BigtableTableAdminClient.create(
    BigtableTableAdminSettings.newBuilderForEmulator(host, port)
        .setProjectId("p").setInstanceId("i").build());
admin.createTable(CreateTableRequest.of("greetings").addFamily("f"));
var data = BigtableDataClient.create(
    BigtableDataSettings.newBuilderForEmulator(host, port)
        .setProjectId("p").setInstanceId("i").build());
data.mutateRow(RowMutation.create("greetings", "hello").setCell("f", "text", "from Java"));`;

const node = (host) => `// npm install @google-cloud/bigtable
process.env.BIGTABLE_EMULATOR_HOST = "${host}";
const { Bigtable } = require("@google-cloud/bigtable");
const table = new Bigtable({ projectId: "p" }).instance("i").table("greetings");
(async () => {
  await table.create({ families: ["f"] });
  await table.insert({ key: "hello", data: { f: { text: "from Node" } } });
})();`;

const LANGUAGES = { Python: python, Go: go, Java: java, Node: node };

const code = (text, name) => h("pre", { tabindex: "0", role: "region", "aria-label": name }, text);

function byCode(host) {
  const place = h("div", null);
  const show = (name) => put(place, code(LANGUAGES[name](host), `A row, in ${name}`));
  const chosen = select(Object.keys(LANGUAGES).map((name) => [name, name]), "Python");
  chosen.addEventListener("change", () => show(chosen.value));
  show("Python");
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Write a row"),
    note("With Google’s own client. Any project and instance name will do on loopback."),
    field("Language", chosen),
    place,
  );
}

function byImport(host) {
  const text = `trestle import csv orders.csv --endpoint ${host} \\
    --table orders --row-key '{customer}#{order}' --family o`;
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Bring data in"),
    note("From CSV, JSON or Avro; DynamoDB and other Bigtables have commands of their own."),
    code(text, "An import"),
  );
}

function byExample(host) {
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Look at an example"),
    note("A table with a load for half a minute, and what it measures."),
    code(`trestle bench --endpoint ${host} --rows 10000 --duration 2s`, "An example"),
  );
}

// The first table that there is, by its place; null: there is none, or none that may be seen.
async function firstTable(signal) {
  const { instances = [] } = await api.get("/v2/projects/-/instances", { signal });
  for (const { name } of instances) {
    const { tables = [] } = await api.get(`${api.pathOf(name)}/tables`, { signal });
    if (tables.length > 0) return placeOf(tables[0].name);
  }
  return instances.length > 0 ? placeOf(instances[0].name) : null;
}

function arrived(place) {
  const way = place?.table
    ? link(tableUrl(place, "/rows"), `See it in ${place.table}`)
    : place && link(instanceUrl(place), `See ${place.instance}`);
  return notice("empty", "The first row has arrived", way ? h("p", null, way) : "");
}

const rowsWritten = (answer) =>
  (read(answer).byName.get(WRITTEN) ?? []).reduce(
    (sum, { value }) => sum + (value ?? 0),
    0,
  );

// Who had to log in here is told that programs have to, too.
function aboutAccess() {
  const place = h("div", null);
  const words =
    "This server wants to know who calls: these programs need credentials, too. trestle’s own " +
    "commands take them with --token-file; for Google’s clients docs/operating/security.md " +
    "says how.";
  api.session().then(
    ({ authentication }) => put(place, authentication && note(words)),
    () => {}, // the page says what is wrong
  );
  return place;
}

export function beginnings(signal) {
  const host = location.host;
  const seen = h("div", { "aria-live": "polite" }, note("Waiting for the first row."));
  let isThere = false;
  const look = async () => {
    if (isThere) return;
    try {
      if (rowsWritten(await askMetrics(signal, [WRITTEN])) === 0) return;
      isThere = true;
      put(seen, arrived(await firstTable(signal).catch(() => null)));
    } catch {
      // it is looked for again
    }
  };
  every(REFRESH_MS, look, signal);
  return [
    h("h2", null, "There is no data yet: three ways to begin"),
    seen,
    aboutAccess(),
    h("div", { class: "begin" }, byCode(host), byImport(host), byExample(host)),
  ];
}
