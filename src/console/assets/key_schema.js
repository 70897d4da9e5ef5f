// Structured row keys: a table's row_key_schema, by which parts that somebody has typed become a
// range of keys, and a key is told in parts. The bytes are those of src/sql/plan/key_schema.c.
import { afterPrefix, asText, escape, fromBase64, joined, unescape } from "./bytes.js";
import { timeText } from "./formats.js";

const ORDERED_MOST = 10; // bytes of a number in the ordered code
const BETWEEN = Uint8Array.of(0, 1);
const PAST = Uint8Array.of(0, 2); // after all keys that go on behind a part
const TIME = /^\s*(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?)?Z?\s*$/;
const KINDS = {
  bytesType: "bytes",
  stringType: "text",
  int64Type: "integer",
  timestampType: "time",
};

function partOf({ fieldName, type = {} }) {
  const [member] = Object.keys(type);
  const encoding = type[member]?.encoding ?? {};
  const number = encoding.unixMicrosInt64 ?? encoding;
  return { name: fieldName, kind: KINDS[member], isOrdered: "orderedCodeBytes" in number };
}

// {parts: [{name, kind, isOrdered}], form: singleton, delimited, ordered, delimiter}, of a table;
// null: its keys have no schema, or one that this page does not know.
export function keySchemaOf({ rowKeySchema }) {
  const parts = (rowKeySchema?.fields ?? []).map(partOf);
  const encoding = rowKeySchema?.encoding ?? {};
  if (parts.length === 0 || parts.some(({ kind }) => !kind)) return null;
  const delimiter = fromBase64(encoding.delimitedBytes?.delimiter);
  if (encoding.delimitedBytes) return { parts, form: "delimited", delimiter };
  return { parts, form: encoding.orderedCodeBytes ? "ordered" : "singleton" };
}

// --- numbers ---

function bigEndian(value) {
  if (value < 0n) throw new Error("Numbers in these keys are not negative.");
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, value);
  return bytes;
}

// As many ones as bytes come first, of a number that is not negative; of others it is all turned.
function orderedCode(value) {
  const isNegative = value < 0n;
  const magnitude = isNegative ? ~value : value;
  let size = 1;
  while (size < ORDERED_MOST && magnitude >> BigInt(7 * size - 1) !== 0n) size++;
  const code = new Uint8Array(size);
  for (let i = 0; i < size && i < 8; i++)
    code[size - 1 - i] = Number((magnitude >> BigInt(8 * i)) & 0xffn);
  for (let bit = 0; bit < size; bit++) code[bit >> 3] |= 0x80 >> (bit & 7);
  return isNegative ? code.map((byte) => ~byte) : code;
}

function fromOrderedCode(bytes) {
  const isNegative = bytes.length > 0 && (bytes[0] & 0x80) === 0;
  const code = isNegative ? bytes.map((byte) => ~byte) : bytes.slice();
  for (let bit = 0; bit < code.length; bit++) code[bit >> 3] &= ~(0x80 >> (bit & 7));
  const value = code.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const number = isNegative ? ~value : value;
  const same = orderedCode(number);
  return same.length === bytes.length && same.every((byte, i) => byte === bytes[i]) ? number : null;
}

function integerOf(text) {
  if (!/^\s*-?\d+\s*$/.test(text)) throw new Error(`“${text}” is no integer.`);
  const value = BigInt(text.trim());
  if (BigInt.asIntN(64, value) !== value) throw new Error(`${text} does not fit into 64 bits.`);
  return value;
}

// Microseconds since 1970, of such a number or of "2026-11-29 15:00:00.25", in UTC.
function microsOf(text) {
  if (/^\s*-?\d+\s*$/.test(text)) return integerOf(text);
  const found = TIME.exec(text);
  const [, date, time = "00:00", digits = ""] = found ?? [];
  const millis = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(millis)) throw new Error(`“${text}” is no time.`);
  return BigInt(millis) * 1000n + BigInt(digits.padEnd(6, "0"));
}

// --- parts ---

// A number is something; a text, or bytes, may be empty.
function bytesOfPart({ name, kind, isOrdered }, text) {
  const isSomething = text !== "" || kind === "text" || kind === "bytes";
  if (!isSomething) throw new Error(`“${name}” is needed, too.`);
  if (kind === "bytes") return unescape(text);
  if (kind === "text") return new TextEncoder().encode(text);
  const number = kind === "time" ? microsOf(text) : integerOf(text);
  return isOrdered ? orderedCode(number) : bigEndian(number);
}

function textOfPart({ kind, isOrdered }, bytes) {
  if (kind === "bytes") return escape(bytes);
  if (kind === "text") return asText(bytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const plain = bytes.length === 8 ? view.getBigInt64(0) : null;
  const number = isOrdered ? fromOrderedCode(bytes) : plain;
  if (number === null) return null;
  return kind === "time" ? timeText(number) : number.toString();
}

// An empty part is 00 00.
const escaped = (bytes) =>
  bytes.length === 0
    ? Uint8Array.of(0, 0)
    : Uint8Array.from([...bytes].flatMap((byte) => (byte === 0 ? [0, 0xff] : [byte])));

const between = (parts, divider) =>
  joined([new Uint8Array(0), ...parts.flatMap((part, i) => (i === 0 ? [part] : [divider, part]))]);

// The range [from, to) of the keys that begin with these parts, as they were typed; those that are
// empty, at the end, are any, and before others they are empty. Throws an Error with words for the
// person.
export function spanOf({ parts, form, delimiter }, texts) {
  const count = texts.findLastIndex((text) => text !== "") + 1;
  const given = texts.slice(0, count).map((text, i) => bytesOfPart(parts[i], text));
  const isWhole = count === parts.length;
  const after = (key) => joined([key, Uint8Array.of(0)]);
  if (count === 0) return { from: null, to: null };
  if (form === "ordered") {
    const from = between(given.map(escaped), BETWEEN);
    return { from, to: isWhole ? after(from) : joined([from, PAST]) };
  }
  const key = form === "delimited" ? between(given, delimiter) : given[0];
  if (isWhole) return { from: key, to: after(key) };
  const from = joined([key, delimiter]);
  return { from, to: afterPrefix(from) };
}

// --- a key in parts ---

function splitAt(key, delimiter) {
  const found = [];
  let start = 0;
  for (let at = 0; at + delimiter.length <= key.length; at++) {
    if (!delimiter.every((byte, i) => key[at + i] === byte)) continue;
    found.push(key.slice(start, at));
    start = at + delimiter.length;
    at = start - 1;
  }
  return [...found, key.slice(start)];
}

// An empty part is 00 00 there; those at the end are left out.
function splitOrdered(key, count) {
  const found = [[]];
  for (let at = 0; at < key.length; at++) {
    if (key[at] !== 0) found.at(-1).push(key[at]);
    else if (key[++at] === 1) found.push([]);
    else if (key[at] === 0xff) found.at(-1).push(0);
  }
  while (found.length < count) found.push([]);
  return found.map((part) => Uint8Array.from(part));
}

function rawParts({ parts, form, delimiter }, key) {
  if (form === "ordered") return splitOrdered(key, parts.length);
  return form === "delimited" ? splitAt(key, delimiter) : [key];
}

// [[name, text]] of each part; null: the key is none of the schema.
export function partsOfKey(schema, key) {
  const raw = rawParts(schema, key);
  if (raw.length !== schema.parts.length) return null;
  const texts = raw.map((bytes, i) => textOfPart(schema.parts[i], bytes));
  return texts.includes(null) ? null : texts.map((text, i) => [schema.parts[i].name, text]);
}
