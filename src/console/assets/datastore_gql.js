// The GQL editor: a query, what it finds or comes to, and by which indexes.
import { ask, isNumber, partition, runQuery, typeOf, valueText } from "./datastore_api.js";
import { databaseHead, entityTable } from "./datastore_parts.js";
import {
  button,
  facts,
  failure,
  field,
  h,
  loading,
  note,
  notice,
  put,
  status,
  table,
} from "./dom.js";
import { countText, plural, secondsOf, secondsText } from "./formats.js";
import { onCtrlEnter } from "./parts.js";

const AGGREGATION = /^\s*(AGGREGATE\b|SELECT\s+(COUNT|COUNT_UP_TO|SUM|AVG)\s*\()/i;
const PLAN = { analyze: false },
  ANALYZE = { analyze: true };

// --- asking ---

async function aggregate(place, namespace, body, signal) {
  const partitionId = partition(place, namespace);
  const answer = await ask(place, "runAggregationQuery", { partitionId, ...body }, signal);
  const [found] = answer.batch?.aggregationResults ?? [];
  return { aggregates: found?.aggregateProperties, metrics: answer.explainMetrics };
}

function run(place, namespace, text, explainOptions, signal) {
  const body = { gqlQuery: { queryString: text, allowLiterals: true }, explainOptions };
  const way = AGGREGATION.test(text) ? aggregate : runQuery;
  return way(place, namespace, body, signal);
}

// --- showing ---

function aggregateTable(aggregates) {
  const names = Object.keys(aggregates).sort();
  const columns = names.map((name) => ({ title: name, number: isNumber(aggregates[name]) }));
  const cells = names.map((name) =>
    typeOf(aggregates[name]) === "nullValue" ? h("em", null, "null") : valueText(aggregates[name]),
  );
  return table("Aggregations", columns, [cells]);
}

function planTable({ indexesUsed = [] }) {
  const columns = [{ title: "Index", class: "key" }, { title: "Scope" }];
  if (indexesUsed.length === 0) return note("No index is used.");
  return table(
    "Indexes of the plan",
    columns,
    indexesUsed.map((index) => [index.properties ?? "", index.query_scope ?? ""]),
  );
}

const costs = (stats) =>
  facts([
    ["Results", countText(stats.resultsReturned ?? 0)],
    ["Read operations", countText(stats.readOperations ?? 0)],
    ["Took", secondsText(secondsOf(stats.executionDuration))],
    ...Object.entries(stats.debugStats ?? {})
      .filter(([, value]) => typeof value !== "object")
      .map(([name, value]) => [name.replaceAll("_", " "), String(value)]),
  ]);

function explanation(metrics) {
  return [
    h("h2", null, "Plan"),
    planTable(metrics.planSummary ?? {}),
    metrics.executionStats && [
      h("h2", null, "What running it took"),
      costs(metrics.executionStats),
    ],
  ];
}

function found(place, { results, hasMore, aggregates }, millis) {
  const say = (...text) => h("div", { class: "controls" }, status(...text));
  const time = `in ${countText(millis)} ms`;
  if (aggregates) return [say(time), aggregateTable(aggregates)];
  const words = say(
    `${plural(results.length, "result")} ${time}`,
    hasMore && ", and there may be more",
  );
  if (results.length === 0) return [words, notice("empty", "The query finds nothing")];
  return [words, entityTable(place, results)];
}

function shown(place, answer, explainOptions, millis) {
  const isPlan = explainOptions !== undefined && !explainOptions.analyze;
  return [
    answer.metrics && explanation(answer.metrics),
    !isPlan && answer.metrics && h("h2", null, "Results"),
    !isPlan && found(place, answer, millis),
  ];
}

// --- the page ---

export async function gql(place, parameters, signal) {
  const editor = h("textarea", {
    class: "code",
    rows: "5",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "SELECT * FROM …",
  });
  const namespace = h("input", {
    spellcheck: "false",
    value: parameters.get("namespace") ?? "",
  });
  const kind = parameters.get("kind");
  if (kind) editor.value = `SELECT * FROM \`${kind.replaceAll("`", "\\`")}\` LIMIT 100`;
  const results = h("div", { class: "results" });

  const start = async (explainOptions) => {
    const text = editor.value.trim();
    if (text === "") return;
    results.replaceChildren(loading("Running"));
    const begun = performance.now();
    try {
      const answer = await run(place, namespace.value, text, explainOptions, signal);
      const millis = Math.round(performance.now() - begun);
      put(results, shown(place, answer, explainOptions, millis));
    } catch (error) {
      if (error.name !== "AbortError") put(results, failure(error));
    }
  };

  onCtrlEnter(editor, () => start());
  const submit = (event) => {
    event.preventDefault();
    start();
  };
  return {
    title: `GQL on ${place.project}`,
    content: [
      databaseHead(place, "gql"),
      h(
        "form",
        { onsubmit: submit },
        field("GQL", editor, "Ctrl + Enter runs it. Values are written into the query."),
        h(
          "div",
          { class: "controls" },
          h("button", { type: "submit", class: "primary" }, "Run"),
          button("Plan", () => start(PLAN)),
          button("Run and explain", () => start(ANALYZE)),
          field("Namespace", namespace),
        ),
      ),
      results,
    ],
  };
}
