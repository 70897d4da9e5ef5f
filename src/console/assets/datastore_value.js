// The fields by which somebody types a property's value.
import { TYPES, editText, parseValue, typeOf } from "./datastore_api.js";
import { field, h, select } from "./dom.js";

const HINTS = {
  timestampValue: "As 2026-11-22T05:34:52.123456Z",
  blobValue: "\\xNN is a byte by number",
  geoPointValue: "Latitude, longitude",
  keyValue: "As the API's JSON",
  entityValue: "As the API's JSON",
  arrayValue: "As the API's JSON, where each element says whether it is excluded from indexes",
  nullValue: "Null needs no value",
};

// {fields, read}: those of `value`, or of a new one if it is null, and what they come to, which is
// an Error with words if that is no value. An array's elements say whether they are indexed.
export function valueFields(value, rows = "6") {
  const type = select(TYPES, value ? typeOf(value) : "stringValue");
  const text = h("textarea", { rows, spellcheck: "false", class: "code" });
  const isIndexed = h("input", { type: "checkbox", checked: !value?.excludeFromIndexes });
  const hint = h("span", { class: "hint" });
  const explain = () => {
    isIndexed.disabled = type.value === "arrayValue";
    hint.textContent = HINTS[type.value] ?? "";
  };
  if (value) text.value = editText(value);
  type.addEventListener("change", explain);
  explain();
  return {
    fields: [
      field("Type", type),
      field("Value", text),
      hint,
      h("label", { class: "check" }, isIndexed, "Indexed"),
    ],
    read: () => {
      const read = parseValue(type.value, text.value);
      if (value?.meaning && typeOf(value) === type.value) read.meaning = value.meaning;
      if (!isIndexed.checked && !isIndexed.disabled) read.excludeFromIndexes = true;
      return read;
    },
  };
}
