// Messages, as trees of what is in them: by a type that says what the fields are called, or by
// their numbers alone.
//
// A message is {kind: "message", fields}, each field {number, name, and one of value, values,
// entries}: by itself, repeated, or a map, which has [key, value]. `name` is null where the type
// does not know the number. All other values are {kind, text}, and the kinds integer, real,
// boolean, text, enum, time, and bytes, which have `bytes` in place of a text.
//
// A viewer is of use with what is not quite right, too: a message within a message that cannot be
// read is shown as bytes. Only so many values are read; `isCut` says that there are more.
import { asText, joined } from "./bytes.js";
import {
  FIXED32,
  FIXED64,
  GROUP,
  SIZED,
  VARINT,
  WireError,
  WireReader,
  fieldsOf,
} from "./proto_wire.js";

const MOST_DEPTH = 64;

// Of FieldDescriptorProto.Type.
const ENUM = 14,
  MESSAGE = 11,
  GROUP_TYPE = 10,
  STRING = 9,
  BYTES = 12;

const leaf = (kind, text) => ({ kind, text: String(text) });
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const signed = (bits, value) => leaf("integer", BigInt.asIntN(bits, value));
const unsigned = (bits, value) => leaf("integer", BigInt.asUintN(bits, value));
const zigzag = (bits, value) => {
  const short = BigInt.asUintN(bits, value);
  return leaf("integer", (short >> 1n) ^ -(short & 1n));
};

// The fewest digits that are read back as the same number of 32 bits.
function shortFloat(value) {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

const realText = (value) => (Object.is(value, -0) ? "-0" : String(value));
const real = (value) => leaf("real", realText(value));

// How a value of a type lies there, and what it comes to.
const SCALARS = {
  1: [FIXED64, (bytes) => real(viewOf(bytes).getFloat64(0, true))],
  2: [FIXED32, (bytes) => real(shortFloat(viewOf(bytes).getFloat32(0, true)))],
  3: [VARINT, (value) => signed(64, value)],
  4: [VARINT, (value) => unsigned(64, value)],
  5: [VARINT, (value) => signed(32, value)],
  6: [FIXED64, (bytes) => leaf("integer", viewOf(bytes).getBigUint64(0, true))],
  7: [FIXED32, (bytes) => leaf("integer", viewOf(bytes).getUint32(0, true))],
  8: [VARINT, (value) => leaf("boolean", value !== 0n)],
  13: [VARINT, (value) => unsigned(32, value)],
  15: [FIXED32, (bytes) => leaf("integer", viewOf(bytes).getInt32(0, true))],
  16: [FIXED64, (bytes) => leaf("integer", viewOf(bytes).getBigInt64(0, true))],
  17: [VARINT, (value) => zigzag(32, value)],
  18: [VARINT, (value) => zigzag(64, value)],
};

const kindOf = (type) =>
  type === ENUM ? VARINT : type === GROUP_TYPE ? GROUP : (SCALARS[type]?.[0] ?? SIZED);
const canBePacked = (type) => kindOf(type) !== SIZED && type !== GROUP_TYPE;

const canLieSo = (field, kind) =>
  kind === kindOf(field.type) ||
  (field.isRepeated && kind === SIZED && canBePacked(field.type));

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function string(bytes) {
  try {
    return leaf("text", strict.decode(bytes));
  } catch {
    return { kind: "bytes", bytes };
  }
}

// --- times ---

const LEAST_SECOND = -62135596800n, // of the years 1 to 9999
  MOST_SECOND = 253402300799n,
  MOST_DURATION = 315576000000n,
  MOST_NANOS = 999999999;

function fraction(nanos) {
  if (nanos === 0) return "";
  return `.${String(nanos).padStart(9, "0").replace(/(000)+$/, "")}`;
}

function secondsAndNanos(bytes) {
  const found = { 1: 0n, 2: 0n };
  for (const [number, value, kind] of fieldsOf(bytes)) if (kind === VARINT) found[number] = value;
  return [BigInt.asIntN(64, found[1]), Number(BigInt.asIntN(32, found[2]))];
}

function timestamp(bytes) {
  const [seconds, nanos] = secondsAndNanos(bytes);
  if (seconds < LEAST_SECOND || seconds > MOST_SECOND) return null;
  if (nanos < 0 || nanos > MOST_NANOS) return null;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return leaf("time", `${whole}${fraction(nanos)}Z`);
}

function duration(bytes) {
  const [seconds, nanos] = secondsAndNanos(bytes);
  const size = seconds < 0n ? -seconds : seconds;
  const isMixed = (seconds < 0n && nanos > 0) || (seconds > 0n && nanos < 0);
  if (size > MOST_DURATION || Math.abs(nanos) > MOST_NANOS || isMixed) return null;
  const sign = seconds < 0n || nanos < 0 ? "-" : "";
  return leaf("time", `${sign}${size}${fraction(Math.abs(nanos))}s`);
}

// Null: the value is none that could be said so, and is shown as what it is.
const TIMES = { "google.protobuf.Timestamp": timestamp, "google.protobuf.Duration": duration };

// --- messages ---

class Decoder {
  constructor(types, most) {
    this.types = types;
    this.left = most;
    this.isCut = false;
  }

  // Whether one more may be read.
  count() {
    if (this.left > 0) this.left--;
    else this.isCut = true;
    return !this.isCut;
  }

  // By number, the values in their order: those that the type knows, and all others.
  collect(type, bytes) {
    const known = new Map(),
      others = new Map(),
      chosen = new Map(); // of each oneof, the member that came last
    for (const [number, value, kind] of fieldsOf(bytes)) {
      if (!this.count()) break;
      const field = type?.fields.get(number);
      const isKnown = field !== undefined && canLieSo(field, kind);
      const found = isKnown ? known : others;
      if (isKnown && field.oneof !== null) {
        const before = chosen.get(field.oneof);
        if (before !== undefined && before !== number) known.delete(before);
        chosen.set(field.oneof, number);
      }
      if (!found.has(number)) found.set(number, []);
      found.get(number).push({ value, kind });
    }
    return { known, others };
  }

  // Throws a WireError.
  message(type, bytes, depth) {
    const { known, others } = this.collect(type, bytes);
    const fields = [];
    for (const [number, parts] of known)
      fields.push(this.field(type.fields.get(number), parts, depth));
    for (const [number, parts] of others)
      fields.push(this.unknown(number, parts, depth));
    fields.sort((a, b) => a.number - b.number);
    return { kind: "message", fields };
  }

  // One within another.
  inner(type, bytes, depth) {
    if (depth < MOST_DEPTH) {
      try {
        return (type && TIMES[type.name]?.(bytes)) || this.message(type, bytes, depth + 1);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
      }
    }
    return { kind: "bytes", bytes };
  }

  one(field, value, depth) {
    if (field.type === STRING) return string(value);
    if (field.type === BYTES) return { kind: "bytes", bytes: value };
    if (field.type === MESSAGE || field.type === GROUP_TYPE)
      return this.inner(this.types.get(field.typeName), value, depth);
    if (field.type === ENUM) return this.enumeration(field, value);
    return SCALARS[field.type][1](value);
  }

  enumeration(field, value) {
    const number = Number(BigInt.asIntN(32, value));
    return leaf("enum", this.types.get(field.typeName)?.values?.get(number) ?? number);
  }

  *unpacked(field, bytes) {
    const reader = new WireReader(bytes);
    while (reader.at < bytes.length && this.count()) yield reader.value(kindOf(field.type));
  }

  field(field, parts, depth) {
    const found = { number: field.number, name: field.name };
    const type = this.types.get(field.typeName);
    if (field.isRepeated && type?.isMap) {
      found.entries = this.entries(type, parts, depth);
    } else if (field.isRepeated) {
      found.values = parts.flatMap(({ value, kind }) =>
        kind === SIZED && canBePacked(field.type)
          ? Array.from(this.unpacked(field, value), (each) => this.one(field, each, depth))
          : this.one(field, value, depth),
      );
    } else {
      // A message that comes in parts is all of them, of anything else the last one counts.
      const isWhole = field.type !== MESSAGE && field.type !== GROUP_TYPE;
      const value = isWhole ? parts.at(-1).value : joined(parts.map((part) => part.value));
      found.value = this.one(field, value, depth);
    }
    return found;
  }

  entries(type, parts, depth) {
    const found = new Map(); // by the key's text: of those with the same the last one counts
    for (const { value: bytes } of parts) {
      const entry = this.message(type, bytes, depth + 1);
      const of = (number) =>
        entry.fields.find((field) => field.number === number && field.name !== null)?.value ??
        this.absent(type.fields.get(number), depth);
      const key = of(1);
      found.set(key.text, [key, of(2)]);
    }
    return [...found.values()];
  }

  // What a map's entry means by leaving it out.
  absent(field, depth) {
    if (field === undefined) return leaf("text", "");
    const kind = kindOf(field.type);
    const size = kind === FIXED64 ? 8 : kind === FIXED32 ? 4 : 0;
    return this.one(field, kind === VARINT ? 0n : new Uint8Array(size), depth);
  }

  unknown(number, parts, depth) {
    const values = parts.map(({ value, kind }) => this.guess(value, kind, depth));
    const [value] = values;
    return values.length === 1 ? { number, name: null, value } : { number, name: null, values };
  }

  // A value of which only the wire knows something.
  guess(value, kind, depth) {
    if (kind === VARINT) return leaf("integer", value);
    if (kind === GROUP) return this.inner(null, value, depth);
    if (kind === FIXED64 || kind === FIXED32) return fixed(value);
    const text = asText(value);
    if (text !== null && !/[\t\r\n]/.test(text)) return leaf("text", text);
    const inner = this.inner(null, value, depth);
    return inner.kind === "bytes" && text !== null ? leaf("text", text) : inner;
  }
}

// Bits that may be an integer or a real number: the one, and the other if people write such.
function fixed(bytes) {
  const view = viewOf(bytes);
  const isLong = bytes.length === 8;
  const whole = isLong ? view.getBigUint64(0, true) : view.getUint32(0, true);
  const value = isLong ? view.getFloat64(0, true) : shortFloat(view.getFloat32(0, true));
  const size = Math.abs(value);
  const isLikely = size > 1e-9 && size < 1e15;
  return leaf("integer", isLikely ? `${whole} or ${realText(value)}` : whole);
}

// The tree of a message of the type with that name, or by numbers if it is "", of `most` values at
// most; with `isCut`. Null: the bytes are none, or the type is not there.
export function decode(types, name, bytes, most) {
  const decoder = new Decoder(types, most);
  const type = name === "" ? null : types.get(name);
  if (type === undefined || type?.isEnum) return null;
  try {
    return { ...decoder.message(type, bytes, 0), isCut: decoder.isCut };
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}
