// Making an entity: its key, and properties with their types. An entity that is there already is
// left as it is (it is an insert).
import { ask, keyPath, partition } from "./datastore_api.js";
import { entityUrl } from "./datastore_parts.js";
import { valueFields } from "./datastore_value.js";
import { button, dialog, facts, field, h, select, toast } from "./dom.js";
import { go } from "./parts.js";

// --- the key ---

// The last element's name or id; with neither the server gives it an id.
function identityOf(way, text) {
  if (way === "given") return {};
  if (way === "name") return { name: text };
  if (!/^[1-9]\d*$/.test(text.trim())) throw new Error("An id is a number above 0.");
  return { id: text.trim() };
}

function keyFields(place, { namespace = "", kind = "", parent }) {
  const typed = (value, more) => h("input", { value, spellcheck: "false", ...more });
  const space = typed(namespace);
  const kinds = typed(kind, { required: true, autofocus: kind === "" });
  const way = select(
    [
      ["name", "a name"],
      ["id", "an id, a number"],
      ["given", "an id that the server gives"],
    ],
    "name",
  );
  const identity = typed("", { required: true, autofocus: kind !== "" });
  const whichOne = h("div", null, field("Name or id", identity));
  way.addEventListener("change", () => {
    whichOne.hidden = way.value === "given";
    identity.disabled = whichOne.hidden; // else it would still be required
  });
  return {
    fields: [
      parent
        ? facts([["Below", keyPath(parent)]])
        : field("Namespace", space, "empty: the default one"),
      field("Kind", kinds),
      field("Key", way),
      whichOne,
    ],
    read: () => ({
      partitionId: parent?.partitionId ?? partition(place, space.value),
      path: [
        ...(parent?.path ?? []),
        { kind: kinds.value, ...identityOf(way.value, identity.value) },
      ],
    }),
  };
}

// --- the properties ---

// One of them, which can be taken away again.
function propertyFields(remove) {
  const name = h("input", { required: true, spellcheck: "false" });
  const value = valueFields(null, "2");
  const element = h(
    "fieldset",
    { class: "card property" },
    h("legend", { class: "hidden" }, "A property"),
    field("Property", name),
    value.fields,
    button("Remove property", () => remove(each), { class: "small quiet" }),
  );
  const each = { name, element, read: value.read };
  return each;
}

function readProperty({ name, read }) {
  try {
    return [name.value, read()];
  } catch (error) {
    throw new Error(`${name.value}: ${error.message}`, { cause: error });
  }
}

function readProperties(all) {
  const properties = Object.fromEntries(all.map(readProperty));
  if (Object.keys(properties).length < all.length)
    throw new Error("Two properties have the same name.");
  return properties;
}

function propertiesFields() {
  const list = h("div", { class: "property-list" });
  let all = [];
  const remove = (one) => {
    all = all.filter((each) => each !== one);
    one.element.remove();
    more.focus();
  };
  const add = () => {
    const one = propertyFields(remove);
    all.push(one);
    list.append(one.element);
    one.name.focus();
  };
  const more = button("Add a property", add);
  return { fields: [list, h("div", null, more)], read: () => readProperties(all) };
}

// --- the dialog ---

// `about`: the namespace and the kind to begin with, or a key below which it is to be.
export function newEntity(place, about) {
  const key = keyFields(place, about);
  const properties = propertiesFields();
  dialog({
    title: "New entity",
    body: [key.fields, properties.fields],
    yes: "Make it",
    act: async () => {
      const entity = { key: key.read(), properties: properties.read() };
      const answer = await ask(place, "commit", {
        mode: "NON_TRANSACTIONAL",
        mutations: [{ insert: entity }],
      });
      const made = answer.mutationResults?.[0]?.key ?? entity.key;
      toast(`${keyPath(made)} has been made.`);
      go(entityUrl(place, made));
    },
  });
}
