// What several pages have: where one is, and rules in words.
import { h, link } from "./dom.js";

const segment = encodeURIComponent;
export const instanceUrl = (place, more = "") =>
  `#/p/${segment(place.project)}/i/${segment(place.instance)}${more}`;
export const tableUrl = (place, more = "") =>
  instanceUrl(place, `/t/${segment(place.table)}${more}`);
export const rowsUrl = (place, parameters = {}) => {
  const search = new URLSearchParams(parameters).toString();
  return tableUrl(place, search ? `/rows?${search}` : "/rows");
};

// {project, instance, …} of a resource's full name.
export function placeOf(name) {
  const parts = name.split("/");
  return {
    project: parts[1],
    instance: parts[3],
    [parts[4] === "tables" ? "table" : "id"]: parts[5],
  };
}

export function crumbs(steps) {
  const slash = () => h("span", { "aria-hidden": "true" }, "/");
  return h(
    "nav",
    { class: "crumbs", "aria-label": "Where this is" },
    steps.map(([href, text], i) => [i > 0 && slash(), link(href, text)]),
  );
}

export function tabs(items, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": "Views" },
    items.map(([id, href, text]) =>
      link(href, text, { "aria-current": id === current && "page" }),
    ),
  );
}

export function instanceHead(place, current) {
  return [
    crumbs([["#/", "Instances"]]),
    h("h1", null, place.instance, h("small", null, place.project)),
    tabs(
      [
        ["tables", instanceUrl(place), "Tables"],
        ["query", instanceUrl(place, "/query"), "Query"],
        ["clusters", instanceUrl(place, "/clusters"), "Clusters"],
        ["backups", instanceUrl(place, "/backups"), "Backups"],
        ["advice", instanceUrl(place, "/advice"), "Advice"],
      ],
      current,
    ),
  ];
}

export function tableHead(place, current) {
  return [
    crumbs([
      ["#/", "Instances"],
      [instanceUrl(place), place.instance],
    ]),
    h("h1", null, place.table, h("small", null, "table")),
    tabs(
      [
        ["table", tableUrl(place), "Overview"],
        ["rows", rowsUrl(place), "Data"],
        ["query", instanceUrl(place, `/query?table=${segment(place.table)}`), "Query"],
        ["heat", tableUrl(place, "/heat"), "Heat"],
        ["advice", tableUrl(place, "/advice"), "Advice"],
      ],
      current,
    ),
  ];
}

// "864000s" as people say it, exactly.
export function durationText(text) {
  const seconds = Number(text.replace(/s$/, ""));
  for (const [unit, size] of [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ]) {
    const count = seconds / size;
    if (Number.isInteger(count) && count > 0) return `${count} ${unit}${count === 1 ? "" : "s"}`;
  }
  return `${seconds} s`;
}

// A rule of garbage collection: what it removes.
export function gcText(rule) {
  if (rule?.maxNumVersions) {
    const count = rule.maxNumVersions;
    return `all but the newest ${count === 1 ? "version" : `${count} versions`}`;
  }
  if (rule?.maxAge) return `what is older than ${durationText(rule.maxAge)}`;
  const parts = (rule?.union ?? rule?.intersection)?.rules ?? [];
  if (parts.length === 0) return "nothing";
  const inner = parts.map((part) =>
    part.union || part.intersection ? `(${gcText(part)})` : gcText(part),
  );
  return inner.join(rule.union ? ", or " : ", and of that only ");
}

// "int64Type" and the like, with what aggregates do.
export function typeText(type) {
  const [kind] = Object.keys(type ?? {});
  if (!kind) return "bytes";
  const name = kind.replace(/Type$/, "");
  if (kind === "aggregateType") {
    const how = Object.keys(type[kind]).find((key) => !["inputType", "stateType"].includes(key));
    return `${how ?? "aggregate"} of ${typeText(type[kind].inputType)}`;
  }
  if (kind === "arrayType") return `array of ${typeText(type[kind].elementType)}`;
  if (kind === "mapType")
    return `map of ${typeText(type[kind].keyType)} to ${typeText(type[kind].valueType)}`;
  return name;
}

export const state = (text) =>
  h(
    "span",
    { class: `state ${String(text).toLowerCase()}` },
    String(text ?? "")
      .toLowerCase()
      .replaceAll("_", " "),
  );
