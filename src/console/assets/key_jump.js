// Jumping to a row: by its key, or the first bytes of it, or by the parts of a structured key.
import { toUrl, unescape } from "./bytes.js";
import { field, h, notice } from "./dom.js";
import { spanOf } from "./key_schema.js";
import { go, rowsUrl } from "./parts.js";

const HINTS = {
  bytes: "\\xNN is a byte by number",
  text: "text",
  integer: "an integer",
  time: "2026-11-29 15:00, UTC, or microseconds",
};

const input = (name) => h("input", { name, spellcheck: "false", autocomplete: "off" });

// A form whose `find` gives the address; what it throws is shown.
function form(label, fields, find) {
  const wrong = h("div", { class: "wrong" });
  const submit = (event) => {
    event.preventDefault();
    try {
      wrong.replaceChildren();
      go(find());
    } catch (error) {
      wrong.replaceChildren(notice("error", "That cannot be read", error.message));
    }
  };
  return h(
    "form",
    { class: "controls jump", onsubmit: submit, "aria-label": label },
    fields,
    h("button", { type: "submit" }, "Jump"),
    wrong,
  );
}

function byKey(place) {
  const key = input("jump");
  return form("By a key", field("Jump to a key", key, "or the first row after it"), () =>
    rowsUrl(place, key.value === "" ? {} : { from: toUrl(unescape(key.value)) }),
  );
}

function byParts(place, schema) {
  const inputs = schema.parts.map(() => input("part"));
  const fields = schema.parts.map(({ name, kind }, i) => field(name, inputs[i], HINTS[kind]));
  return form("By the parts of keys", fields, () => {
    const { from, to } = spanOf(
      schema,
      inputs.map(({ value }) => value),
    );
    return rowsUrl(place, {
      ...(from && { from: toUrl(from) }),
      ...(to && { to: toUrl(to) }),
    });
  });
}

// `schema`: of the table's keys, or null.
export const jumps = (place, schema) => [byKey(place), schema && byParts(place, schema)];
