// How the values of a table are shown, column by column: as was chosen for the column, which this
// browser remembers; else as the family's type says; else as they are found. Beside the ways of
// bytes.js that is a protobuf message, by its fields' numbers ("fields") or by a type of one of the
// table's schema bundles ("message BUNDLE TYPE").
import * as api from "./api.js";
import { WAYS, fromBase64, show, toUrl } from "./bytes.js";
import { keep, kept } from "./kept.js";
import { typesOf } from "./proto_descriptors.js";
import { decode } from "./proto_decode.js";
import { lineOf } from "./proto_show.js";

const FIELDS = "fields";
const VALUES_IN_LINE = 200;
const VALUES_IN_TREE = 5000;
const ALLOWS_MOST = 1 << 16; // characters that are made to see whether there could be any

const messageWay = (bundle, type) => `message ${bundle} ${type}`;
export const isMessageWay = (way) => way === FIELDS || way.startsWith("message ");

// What a family's values are, if its type says so. (Other encodings than these have no way here.)
function familyWay(valueType) {
  const type = valueType?.aggregateType?.inputType ?? valueType;
  if (valueType?.aggregateType?.hllppUniqueCount) return "hex";
  if (type?.int64Type && !type.int64Type.encoding?.orderedCodeBytes) return "integer";
  return type?.stringType ? "text" : null;
}

// --- what the browser remembers: {"FAMILY QUALIFIER": way} of each table ---

function remembered(key) {
  try {
    const found = JSON.parse(kept("local", key) || "{}");
    return new Map(Object.entries(found).filter(([, way]) => typeof way === "string"));
  } catch {
    return new Map(); // somebody else wrote there
  }
}

const remember = (key, ways) =>
  keep("local", key, ways.size === 0 ? "" : JSON.stringify(Object.fromEntries(ways)));

const columnKey = (cell) => `${cell.family} ${toUrl(cell.qualifier)}`;

// --- the table's bundles ---

function readBundle(found) {
  const id = api.idOf(found.name);
  try {
    return [id, typesOf(fromBase64(found.protoSchema?.protoDescriptors))];
  } catch {
    return [id, new Map()];
  }
}

export class ValueWays {
  // `families`: the table's columnFamilies. Loads nothing yet.
  constructor(place, families) {
    this.table = api.tableName(place);
    this.families = families;
    this.key = `trestle-columns ${this.table}`;
    this.chosen = remembered(this.key);
    this.bundles = null; // Map from id to types, once they have been asked for
  }

  // Asks for the bundles, once. Who may not see them does without.
  async loadBundles(signal) {
    if (this.bundles) return;
    try {
      const path = `${api.pathOf(this.table)}/schemaBundles`;
      const { items } = await api.list(path, "schemaBundles", { signal });
      this.bundles = new Map(items.map(readBundle));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.bundles = new Map();
    }
  }

  // Before rows are shown: the bundles are asked for if a column is shown by one of them.
  async prepare(signal) {
    const needs = [...this.chosen.values()].some((way) => way.startsWith("message "));
    if (needs) await this.loadBundles(signal);
  }

  choiceOf(cell) {
    return this.chosen.get(columnKey(cell)) ?? "auto";
  }

  choose(cell, way) {
    if (way === "auto") this.chosen.delete(columnKey(cell));
    else this.chosen.set(columnKey(cell), way);
    remember(this.key, this.chosen);
  }

  // The way for a cell on a page that shows all values in that of `page`.
  wayOf(cell, page) {
    if (page !== "auto") return page;
    const chosen = this.choiceOf(cell);
    if (chosen !== "auto") return chosen;
    return familyWay(this.families[cell.family]?.valueType) ?? "auto";
  }

  // The tree of the message that the value is in that way, or null.
  messageOf(cell, way, most = VALUES_IN_TREE) {
    if (way === FIELDS) return decode(new Map(), "", cell.value, most);
    const [, bundle, type] = way.split(" ");
    const types = this.bundles?.get(bundle);
    return types ? decode(types, type, cell.value, most) : null;
  }

  // Whether the bytes of the value can be shown in that way.
  allows(cell, way) {
    if (isMessageWay(way)) return this.messageOf(cell, way, VALUES_IN_TREE) !== null;
    if (way === "auto" || cell.value.length === 0) return way !== "auto";
    return show(cell.value, way, ALLOWS_MOST).kind === way;
  }

  // {kind, text}, as bytes.js has it.
  show(cell, page, most) {
    const way = this.wayOf(cell, page);
    if (cell.value.length === 0 || !isMessageWay(way)) return show(cell.value, way, most);
    const message = this.messageOf(cell, way, VALUES_IN_LINE);
    return message
      ? { kind: "message", text: lineOf(message, most) }
      : show(cell.value, "auto", most);
  }

  // Ways in which one may want to see a column, as groups: [title, [[way, text]]].
  choices() {
    const types = ([id, found]) => [
      `Messages of the bundle ${id}`,
      [...found.values()]
        .filter((type) => !type.isEnum && !type.isMap)
        .map((type) => [messageWay(id, type.name), type.name]),
    ];
    return [
      ["Values", [...WAYS.filter(([way]) => way !== "auto"), [FIELDS, "Protobuf, by number"]]],
      ...[...(this.bundles ?? [])].map(types),
    ];
  }
}
