// Messages as they are shown: in one line, and as a tree. What they are is decoded before
// (proto_decode.js).
import { asText, escape } from "./bytes.js";
import { h, note } from "./dom.js";
import { bytesText } from "./formats.js";

const BYTES_SHOWN = 256;

const nameOf = (field) => field.name ?? String(field.number);

function bytesWords(bytes) {
  const some = escape(bytes.subarray(0, BYTES_SHOWN));
  const rest = bytes.length - BYTES_SHOWN;
  return rest > 0 ? `${some}… and ${bytesText(rest)} more` : some;
}

// A value that has nothing within it.
function words(value) {
  if (value.kind === "bytes") return bytesWords(value.bytes);
  return value.kind === "text" ? JSON.stringify(value.text) : value.text;
}

// --- in one line ---

class Line {
  constructor(most) {
    this.most = most;
    this.text = "";
  }

  get isFull() {
    return this.text.length > this.most;
  }

  add(text) {
    if (!this.isFull) this.text += text.length > this.most ? text.slice(0, this.most + 1) : text;
  }

  list(items, add) {
    for (const [i, item] of items.entries()) {
      if (this.isFull) return;
      if (i > 0) this.add(", ");
      add(item);
    }
  }

  value(value) {
    if (value.kind !== "message") {
      this.add(words(value));
      return;
    }
    this.add("{");
    this.fields(value);
    this.add("}");
  }

  fields({ fields }) {
    this.list(fields, (field) => {
      this.add(`${nameOf(field)}: `);
      if (field.value) this.value(field.value);
      else this.many(field);
    });
  }

  many({ values, entries }) {
    this.add(values ? "[" : "{");
    if (values) this.list(values, (value) => this.value(value));
    else
      this.list(entries, ([key, value]) => {
        this.add(`${words(key)}: `);
        this.value(value);
      });
    this.add(values ? "]" : "}");
  }
}

// The message in one line of so many characters, or somewhat more where something is left out.
export function lineOf(message, most) {
  const line = new Line(most);
  line.fields(message);
  return line.text;
}

// --- as a tree ---

const label = (name, isUnknown) =>
  h("span", { class: isUnknown ? "name unknown" : "name" }, name);

function leaf(name, isUnknown, value) {
  const kind = value.kind === "bytes" && asText(value.bytes) === null ? "hex" : value.kind;
  return h("li", null, label(name, isUnknown), ": ", h("span", { class: kind }, words(value)));
}

function node(name, isUnknown, value) {
  if (value.kind !== "message") return leaf(name, isUnknown, value);
  if (value.fields.length === 0)
    return h("li", null, label(name, isUnknown), ": ", h("em", null, "empty"));
  return h(
    "li",
    null,
    h(
      "details",
      { open: true },
      h("summary", null, label(name, isUnknown)),
      h("ul", null, value.fields.map(nodes)),
    ),
  );
}

function nodes(field) {
  const name = nameOf(field);
  const isUnknown = field.name === null;
  if (field.value) return node(name, isUnknown, field.value);
  if (field.values)
    return field.values.map((value, i) => node(`${name}[${i}]`, isUnknown, value));
  return field.entries.map(([key, value]) => node(`${name}[${words(key)}]`, isUnknown, value));
}

// Names are the fields', or their numbers where the type does not know them.
export function treeOf(message) {
  if (message.fields.length === 0)
    return note("The message is empty: no field is set.");
  return h(
    "div",
    { class: "tree", tabindex: "0", role: "group", "aria-label": "Message" },
    h("ul", null, message.fields.map(nodes)),
    message.isCut && note("There is more in it than is shown here."),
  );
}
