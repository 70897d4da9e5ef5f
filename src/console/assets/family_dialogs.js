// Making, changing and dropping column families. Each dialog says what will come of it before it is
// done: what a rule would remove is asked of the server, which looks at a sample.
import * as api from "./api.js";
import { dialog, field, h, put, select, toast } from "./dom.js";
import { bytesText, countText, percentText, plural, secondsOf } from "./formats.js";
import { askShape, leastText, rowsWords, whenKnown, wholeBytes } from "./table_shape.js";

const WAIT_MS = 300; // after the last key, before the server is asked
const UNITS = [
  [86400, "days"],
  [3600, "hours"],
  [60, "minutes"],
  [1, "seconds"],
];
const integer = (kind) => ({
  aggregateType: { inputType: { int64Type: { encoding: { bigEndianBytes: {} } } }, [kind]: {} },
});
const TYPES = {
  bytes: ["bytes", undefined],
  sum: ["a sum of integers, to which clients add", integer("sum")],
  min: ["the least of integers", integer("min")],
  max: ["the greatest of integers", integer("max")],
};

const modify = (name, modification) =>
  api.call("POST", `${api.pathOf(name)}:modifyColumnFamilies`, { modifications: [modification] });

// --- a rule as two numbers ---

// {versions, seconds, isBoth}; null: it is one of several levels.
function partsOf(rule) {
  const list = rule?.union?.rules ?? rule?.intersection?.rules ?? (rule ? [rule] : []);
  const versions = list.filter((part) => part.maxNumVersions);
  const ages = list.filter((part) => part.maxAge);
  if (versions.length + ages.length < list.length || versions.length > 1 || ages.length > 1)
    return Object.keys(rule ?? {}).length === 0 ? partsOf() : null;
  return {
    versions: versions[0]?.maxNumVersions,
    seconds: ages[0] && secondsOf(ages[0].maxAge),
    isBoth: Boolean(rule?.intersection),
  };
}

function ruleOf({ versions, seconds, isBoth }) {
  const rules = [
    versions && { maxNumVersions: versions },
    seconds && { maxAge: `${seconds}s` },
  ].filter(Boolean);
  if (rules.length < 2) return rules[0] ?? {};
  return { [isBoth ? "intersection" : "union"]: { rules } };
}

function simpleFields({ versions, seconds, isBoth }) {
  const [unit] = UNITS.find(([size]) => seconds % size === 0) ?? UNITS[0];
  const count = (value) => h("input", { type: "number", min: "1", step: "1", value: value ?? "" });
  const most = count(versions && String(versions));
  const age = count(seconds && String(seconds / unit));
  const of = select(UNITS, unit);
  const how = select(
    [
      ["union", "what either of them says"],
      ["intersection", "only what both of them say"],
    ],
    isBoth ? "intersection" : "union",
  );
  return {
    element: [
      field("Versions kept of each column", most, "Empty: any number"),
      h(
        "div",
        { class: "pair" },
        field("Kept for", age, "Empty: for ever"),
        field("Counted in", of),
      ),
      field("Removed is", how),
    ],
    inputs: [most, age, of, how],
    read: () =>
      ruleOf({
        versions: Number(most.value),
        seconds: Number(age.value) * Number(of.value),
        isBoth: how.value === "intersection",
      }),
  };
}

// A rule of several levels is typed as the API has it.
function jsonFields(rule) {
  const text = h("textarea", { rows: "6", class: "code", spellcheck: "false" });
  text.value = JSON.stringify(rule, null, 1);
  return {
    element: field("The rule, as JSON", text),
    inputs: [text],
    read: () => JSON.parse(text.value),
  };
}

function ruleFields(rule) {
  const parts = partsOf(rule);
  return parts ? simpleFields(parts) : jsonFields(rule);
}

// --- what it will do ---

function removalText(shape, id) {
  const { cells = 0, removedCells = 0, removedBytes = 0 } = shape.families[id] ?? {};
  if (cells === 0) return "None of the rows that were looked at has cells of the family.";
  const least = leastText(shape);
  const all = `Of ${least}${plural(cells, "cell")} in ${plural(shape.sampledRows, "row")}`;
  const looked = all + (shape.isCut ? ", of which so many were looked at" : " that were looked at");
  if (removedCells === 0) return `${looked}, none goes.`;
  return (
    `${looked}, ${least}${countText(removedCells)} ` +
    `(${percentText((100 * removedCells) / cells)}${shape.isCut ? " of these" : ""}) go: about ` +
    `${bytesText(wholeBytes(shape, removedBytes))} of the table. Readers see them no more, the ` +
    "disk gets their room back later, and nothing brings them back."
  );
}

// Says what the rule of the fields would remove, anew when they have changed.
function removal(name, id, fields) {
  const place = h("p", { class: "will", role: "status" });
  let turn = 0;
  const look = async () => {
    const own = ++turn;
    try {
      const shape = await askShape(name, undefined, { family: id, gcRule: fields.read() });
      if (own === turn) put(place, removalText(shape, id));
    } catch (error) {
      if (own === turn) put(place, `What it would remove is not known: ${error.message}`);
    }
  };
  let timer = null;
  for (const input of fields.inputs)
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(look, WAIT_MS);
    });
  look();
  return place;
}

// --- the dialogs ---

export function askRule({ name, id, family, reload }) {
  const fields = ruleFields(family.gcRule);
  dialog({
    title: `Garbage collection of ${id}`,
    body: [fields.element, removal(name, id, fields)],
    yes: "Set the rule",
    act: async () => {
      const update = { gcRule: fields.read() };
      await modify(name, { id, update, updateMask: "gcRule" });
      toast(`The rule of ${id} has been set.`);
      reload();
    },
  });
}

export function askNewFamily({ name, reload }) {
  const id = h("input", { required: true, maxLength: 64, pattern: "[\\-_.a-zA-Z0-9]+" });
  const type = select(
    Object.entries(TYPES).map(([key, [words]]) => [key, words]),
    "bytes",
  );
  const fields = simpleFields({ versions: 1 });
  dialog({
    title: "New column family",
    body: [
      h(
        "p",
        { class: "will" },
        "Clients may write to it at once. What its values are stays as it is for as long as the " +
          "family is there; the rule can be changed.",
      ),
      field("Name", id),
      field("Values", type),
      fields.element,
    ],
    yes: "Make the family",
    act: async () => {
      const [, valueType] = TYPES[type.value];
      await modify(name, { id: id.value, create: { gcRule: fields.read(), valueType } });
      toast(`The family ${id.value} has been made.`);
      reload();
    },
  });
}

function dropText(shape, id) {
  const { rows = 0, cells = 0, bytes = 0 } = shape.families[id] ?? {};
  if (cells === 0) return "None of the rows that were looked at has cells of it.";
  const part = shape.sampledRows > 0 ? (100 * rows) / shape.sampledRows : 0;
  return (
    `About ${bytesText(wholeBytes(shape, bytes))} go, out of ${percentText(part)} of the table’s ` +
    `${rowsWords(shape)}.`
  );
}

export function askDrop({ name, id, shape, reload }) {
  dialog({
    title: `Drop the family ${id}?`,
    body: [
      h(
        "p",
        { class: "will", role: "status" },
        whenKnown(shape, (found) => dropText(found, id)),
      ),
      h(
        "p",
        null,
        "Readers see its cells no more, at once and for good: a family that is made again under " +
          "this name begins empty. Clients that write to it fail.",
      ),
    ],
    yes: "Drop the family",
    isDangerous: true,
    act: async () => {
      await modify(name, { id, drop: true });
      toast(`The family ${id} has been dropped.`);
      reload();
    },
  });
}

// That the table cannot be deleted: switched on and off.
export function askProtection({ name, isOn, reload }) {
  dialog({
    title: isOn ? "Switch deletion protection off?" : "Switch deletion protection on?",
    body: h(
      "p",
      { class: "will" },
      isOn
        ? "The table, its families and its instance can be deleted then. Rows are as they were: " +
            "they could be deleted before, too."
        : "Whoever tries to delete the table, one of its families or its instance is refused " +
            "until it is switched off. Rows can be written and deleted as before.",
    ),
    yes: isOn ? "Switch it off" : "Switch it on",
    act: async () => {
      const body = { name, deletionProtection: !isOn };
      await api.call("PATCH", `${api.pathOf(name)}?updateMask=deletionProtection`, body);
      toast(`Deletion protection is ${isOn ? "off" : "on"}.`);
      reload();
    },
  });
}
