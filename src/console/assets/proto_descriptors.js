// FileDescriptorSets, read as far as it takes to name what is in a message. Field numbers are those
// of google/protobuf/descriptor.proto.
import { WireError, fieldsOf } from "./proto_wire.js";

const MOST_DEPTH = 64; // of types within types
const REPEATED = 3;
const text = new TextDecoder();

// The fields of a message by number, each with all its values.
function read(bytes) {
  const found = new Map();
  for (const [number, value] of fieldsOf(bytes))
    if (found.has(number)) found.get(number).push(value);
    else found.set(number, [value]);
  const all = (number) => found.get(number) ?? [];
  const last = (number) => found.get(number)?.at(-1);
  return {
    all,
    textOf: (number) => text.decode(last(number)),
    numberOf: (number) => Number(BigInt.asIntN(32, last(number) ?? 0n)),
    bytesOf: (number) => last(number) ?? new Uint8Array(0),
    has: (number) => found.has(number),
  };
}

const joined = (scope, name) => (scope ? `${scope}.${name}` : name);

function readField(bytes) {
  const found = read(bytes);
  return {
    name: found.textOf(1),
    extended: found.textOf(2).replace(/^\./, ""),
    number: found.numberOf(3),
    isRepeated: found.numberOf(4) === REPEATED,
    type: found.numberOf(5),
    typeName: found.textOf(6).replace(/^\./, ""),
    oneof: found.has(9) ? found.numberOf(9) : null,
  };
}

class Types {
  constructor() {
    this.named = new Map();
    this.extensions = [];
  }

  addEnum(scope, bytes) {
    const found = read(bytes);
    const name = joined(scope, found.textOf(1));
    const values = new Map();
    for (const each of found.all(2)) {
      const value = read(each);
      if (!values.has(value.numberOf(2))) values.set(value.numberOf(2), value.textOf(1));
    }
    this.named.set(name, { name, isEnum: true, values });
  }

  addExtension(scope, bytes) {
    const field = readField(bytes);
    this.extensions.push({ ...field, name: `[${joined(scope, field.name)}]` });
  }

  addMessage(scope, bytes, depth) {
    if (depth > MOST_DEPTH) throw new WireError("types are nested too deeply");
    const found = read(bytes);
    const name = joined(scope, found.textOf(1));
    const fields = new Map();
    for (const each of found.all(2).map(readField)) fields.set(each.number, each);
    const isMap = read(found.bytesOf(7)).numberOf(7) !== 0;
    this.named.set(name, { name, isEnum: false, isMap, fields });
    for (const each of found.all(3)) this.addMessage(name, each, depth + 1);
    for (const each of found.all(4)) this.addEnum(name, each);
    for (const each of found.all(6)) this.addExtension(name, each);
  }

  addFile(bytes) {
    const found = read(bytes);
    const scope = found.textOf(2);
    for (const each of found.all(4)) this.addMessage(scope, each, 0);
    for (const each of found.all(5)) this.addEnum(scope, each);
    for (const each of found.all(7)) this.addExtension(scope, each);
  }
}

// The types of a set by their full names:
//
//     {name, isEnum: true, values: Map from number to name}
//     {name, isEnum: false, isMap, fields: Map from number to
//         {name, number, type, typeName, isRepeated, oneof: its number or null}}
//
// Throws a WireError for what is no set.
export function typesOf(bytes) {
  const types = new Types();
  for (const file of read(bytes).all(1)) types.addFile(file);
  for (const field of types.extensions)
    types.named.get(field.extended)?.fields?.set(field.number, field);
  return types.named;
}
