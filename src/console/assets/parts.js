// What several pages have: where one is, the ways from there, and rules in words.
import { durationText, plural } from "./formats.js";
import { button, field, h, link } from "./dom.js";

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

export function tabs(items, current, label = "Views") {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    items.map(([id, href, text]) =>
      link(href, text, { "aria-current": id === current && "page" }),
    ),
  );
}

export function instanceHead(place, current) {
  return [
    crumbs([["#/instances", "Instances"]]),
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
      ["#/instances", "Instances"],
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

// Goes to an address, or reads it anew if that is where one is.
export function go(address) {
  if (location.hash === address) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = address;
}

// For who may not see what all projects have: names one, whose page `base` then is.
export function projectForm(base, project, text) {
  const input = h("input", {
    name: "project",
    value: project,
    required: true,
    spellcheck: "false",
  });
  const submit = (event) => {
    event.preventDefault();
    go(`${base}?project=${segment(input.value.trim())}`);
  };
  return h(
    "form",
    { class: "controls", onsubmit: submit },
    field("Project", input),
    h("button", { type: "submit" }, text),
  );
}

// A button that leads to another part of what is shown; by a key, too.
export const step = (text, isThere, onclick, key) =>
  button(text, onclick, { disabled: !isThere, "data-key": key });

// Runs what an editor has in it by Ctrl + Enter.
export function onCtrlEnter(editor, run) {
  editor.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  });
}

// Whether all words of a search field are somewhere in the texts.
export function hasWords(search, texts) {
  const text = texts.join(" ").toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// A rule of garbage collection: what it removes.
export function gcText(rule) {
  if (rule?.maxNumVersions) {
    const count = rule.maxNumVersions;
    return `all but the newest ${count === 1 ? "version" : plural(count, "version")}`;
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

const STATES = [
  ["done", /^(ready|active|done)/],
  ["busy", /^(creating|resizing|running)/],
  ["failed", /^(failed|needs_repair)/],
];

// A state as the server calls it, in the colour of what it means.
export function state(text = "") {
  const word = text.toLowerCase();
  const [kind = ""] = STATES.find(([, pattern]) => pattern.test(word)) ?? [];
  return h("span", { class: `state ${kind}` }, word.replaceAll("_", " "));
}
