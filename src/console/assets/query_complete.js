// Completion in the editor of SQL: names of the instance's tables, of families and parts of keys of
// those that the query names, functions, and words of the grammar. What fits the word before the
// cursor is a list below the editor: the arrows choose, Enter takes, Escape closes; Ctrl + Space
// opens it.
import * as api from "./api.js";
import { h, put } from "./dom.js";
import { FUNCTIONS, KEYWORDS } from "./sql_words.js";

const SHOWN = 12;
const LEAST = 2; // letters, before it opens by itself
// The word before the cursor: with dashes, and a digit or a dash to begin with, as names of tables
// and families have them, or else without.
const WORDS = [/`?[\w-][\w.-]*$/, /[A-Za-z_][\w.]*$/];
// What stands before a dot, and what has been written after it.
const QUALIFIED = /(`[^`]+`|[A-Za-z_]\w*)\.`?([\w-]*)$/;
// What strings, names in backticks and comments begin with, the longest first; they end with the
// same, or else as is said here.
const QUOTES = ['"""', "'''", '"', "'", "`", "--", "#", "/*"];
const ENDS = { "--": "\n", "#": "\n", "/*": "*/" };

// As a query names it: in backticks if it is no name as it is.
export const identifier = (name) =>
  /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "\\`")}\``;

// {table: [families and parts of keys]} of the instance; none if somebody may not see them.
async function tablesOf(instance, signal) {
  try {
    const path = `${api.pathOf(instance)}/tables?view=SCHEMA_VIEW`;
    const { items } = await api.list(path, "tables", { signal });
    return new Map(
      items.map(({ name, columnFamilies = {}, rowKeySchema }) => [
        api.idOf(name),
        [
          ...Object.keys(columnFamilies),
          ...(rowKeySchema?.fields ?? []).map(({ fieldName }) => fieldName),
        ],
      ]),
    );
  } catch {
    return new Map();
  }
}

// Whether what stands before the cursor is within a string or a comment, where nothing has a name.
function isQuoted(before) {
  let open = "";
  for (let at = 0; at < before.length; ) {
    const begun = open === "" && QUOTES.find((each) => before.startsWith(each, at));
    const end = ENDS[open] ?? open;
    const isEnd = open !== "" && before.startsWith(end, at);
    const isEscape = open !== "" && !isEnd && before[at] === "\\";
    at += (begun || (isEnd && end) || (isEscape && "\\.") || ".").length;
    if (begun || isEnd) open = begun || "";
  }
  return open !== "" && open !== "`";
}

// The table that is called so in the query: by its name, or as FROM or JOIN name it anew.
function tableCalled(name, tables, query) {
  const plain = name.replaceAll("`", "");
  if (tables.has(plain)) return plain;
  const named = /(?:\bFROM|\bJOIN|,)\s+(?:`([^`]+)`|([\w-]+))\s+(?:AS\s+)?(?:`([^`]+)`|(\w+))/gi;
  for (const [, quoted, table, alias, word] of query.matchAll(named))
    if ((alias ?? word) === plain && tables.has(quoted ?? table)) return quoted ?? table;
  return null;
}

// [{text, kind, insert}] of all that there is to take, the nearest first.
function candidates(tables, query) {
  const named = [...tables].filter(([table]) => query.includes(table));
  const columns = (named.length > 0 ? named : [...tables]).flatMap(([, all]) => all);
  const of = (kind, names, insert = identifier) =>
    [...new Set(names)].map((text) => ({ text, kind, insert: insert(text) }));
  return [
    ...of("family", columns),
    ...of("key", ["_key"]),
    ...of("table", tables.keys()),
    ...of("function", FUNCTIONS, (name) => `${name}(`),
    ...of("word", KEYWORDS, (name) => name),
  ];
}

// The same of one table, behind its name and a dot.
const columnsOf = (columns) => [
  ...columns.map((text) => ({ text, kind: "family", insert: identifier(text) })),
  { text: "_key", kind: "key", insert: "_key" },
];

// A name in backticks begins with one.
function fitting(all, word) {
  const start = word.replace("`", "").toLowerCase();
  return all
    .filter(({ text }) => text.toLowerCase().startsWith(start) && text !== word)
    .slice(0, SHOWN);
}

class Completion {
  constructor(editor, tables) {
    Object.assign(this, { editor, tables, found: [], at: -1, word: "" });
    this.list = h("ul", { role: "listbox", id: "completions", "aria-label": "Completions" });
    this.element = h("div", { class: "completions", hidden: true }, this.list);
    editor.setAttribute("aria-autocomplete", "list");
    editor.setAttribute("aria-controls", "completions");
    editor.addEventListener("input", () => this.open(LEAST));
    editor.addEventListener("keydown", (event) => this.onKey(event));
    editor.addEventListener("blur", () => this.close());
  }

  // What stands before the cursor.
  before() {
    return this.editor.value.slice(0, this.editor.selectionStart);
  }

  async open(least) {
    const before = this.before();
    const words = WORDS.map((pattern) => pattern.exec(before)?.[0] ?? "");
    const qualified = QUALIFIED.exec(before);
    if ((words[0].length < least && !qualified) || isQuoted(before)) {
      this.close();
      return;
    }
    const tables = await this.tables();
    if (before !== this.before()) return; // another key came meanwhile
    const table = qualified && tableCalled(qualified[1], tables, this.editor.value);
    if (table) this.offer(columnsOf(tables.get(table)), [qualified[2]]);
    else this.offer(candidates(tables, this.editor.value), words);
  }

  // What fits the first of the words that anything fits.
  offer(all, words) {
    this.word = words.find((word) => fitting(all, word).length > 0) ?? "";
    this.found = words[0] === "" || this.word !== "" ? fitting(all, this.word) : [];
    this.at = -1;
    this.show();
  }

  show() {
    put(this.list, this.found.map((each, i) => this.option(each, i)));
    this.element.hidden = this.found.length === 0;
    if (this.at < 0) this.editor.removeAttribute("aria-activedescendant");
    else this.editor.setAttribute("aria-activedescendant", `completion-${this.at}`);
  }

  // A press must not take the focus from the editor.
  option({ text, kind }, i) {
    const take = (event) => {
      event.preventDefault();
      this.take(i);
    };
    const state = { role: "option", id: `completion-${i}`, "aria-selected": String(i === this.at) };
    return h("li", { ...state, onpointerdown: take }, text, " ", h("small", null, kind));
  }

  close() {
    this.found = [];
    this.at = -1;
    this.show();
  }

  take(i) {
    const { editor } = this;
    const end = editor.selectionStart;
    editor.setRangeText(this.found[i].insert, end - this.word.length, end, "end");
    this.close();
  }

  move(by) {
    const count = this.found.length;
    this.at = this.at < 0 && by < 0 ? count - 1 : (this.at + by + count) % count;
    this.show();
  }

  onKey(event) {
    if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      this.open(0);
      return;
    }
    const isOpen = this.found.length > 0;
    const actions = {
      ArrowDown: isOpen && (() => this.move(1)),
      ArrowUp: isOpen && (() => this.move(-1)),
      Escape: isOpen && (() => this.close()),
      Enter: this.at >= 0 && !event.ctrlKey && (() => this.take(this.at)),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}

// The list's element, for a place below the editor. `known`: the tables that there are; null: those
// of the instance.
export function completion(editor, instance, signal, known) {
  let tables = known; // asked for when it is wanted first
  const ask = () => (tables ??= tablesOf(instance, signal));
  return new Completion(editor, ask).element;
}
