// What ExecuteQuery answers: google.bigtable.v2.ProtoRows, read here, since JSON has it as bytes.
// Field numbers are those of google/bigtable/v2/data.proto.
import { asText, escape } from "./bytes.js";
import { fieldsOf as read } from "./proto_wire.js";

const fieldsOf = (bytes) => Object.fromEntries(read(bytes));
const repeated = (bytes, number) =>
  [...read(bytes)].filter(([each]) => each === number).map(([, value]) => value);
const text = new TextDecoder();
const pad = (number, digits) => String(number).padStart(digits, "0");
const signed = (value) => BigInt.asIntN(64, value ?? 0n);

function timestamp(bytes) {
  const { 1: seconds = 0n, 2: nanos = 0n } = fieldsOf(bytes);
  const whole = new Date(Number(signed(seconds)) * 1000);
  const base = Number.isNaN(whole.getTime())
    ? `${signed(seconds)} s`
    : whole.toISOString().slice(0, 19).replace("T", " ");
  const digits = pad(nanos, 9).replace(/(000)+$/, "");
  return digits ? `${base}.${digits}` : base;
}

function date(bytes) {
  const { 1: year = 0n, 2: month = 0n, 3: day = 0n } = fieldsOf(bytes);
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
}

function double(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}

// A value as JSON could have it: null, text, number, boolean, array, object. Integers are text
// where a number would lose digits; bytes are text with \xNN.
function value(bytes, type) {
  const fields = [...read(bytes)].filter(([number]) => number !== 7);
  if (fields.length === 0) return null;
  const [number, found] = fields.at(-1);
  switch (number) {
    case 2:
    case 8:
      return type?.bytesType || asText(found) === null ? escape(found) : asText(found);
    case 3:
      return text.decode(found);
    case 4:
      return list(repeated(found, 1), type);
    case 6:
    case 9:
      return integer(signed(found));
    case 10:
      return found !== 0n;
    case 11:
      return real(double(found));
    case 12:
      return timestamp(found);
    case 13:
      return date(found);
    default:
      throw new Error("the answer has a value of a type that this page does not know");
  }
}

const integer = (found) =>
  Number.isSafeInteger(Number(found)) ? Number(found) : found.toString();
const real = (found) => (Number.isFinite(found) ? found : String(found));

const keyText = (key) => (typeof key === "string" ? key : JSON.stringify(key));

function list(values, type) {
  if (type?.mapType) {
    const { keyType, valueType } = type.mapType;
    return Object.fromEntries(
      values.map((pair) => {
        const [key, found] = repeated(fieldsOf(pair)[4], 1);
        return [keyText(value(key, keyType)), value(found, valueType)];
      }),
    );
  }
  if (type?.structType) {
    const fields = type.structType.fields ?? [];
    return Object.fromEntries(
      values.map((each, i) => [fields[i]?.fieldName || `_${i}`, value(each, fields[i]?.type)]),
    );
  }
  return values.map((each) => value(each, type?.arrayType?.elementType));
}

// The rows of one batch, each an array with a value for each column. Read when they are asked for:
// a batch may have very many.
export function* rowsOf(batch, columns) {
  let row = [];
  for (const [number, found] of read(batch)) {
    if (number !== 2) continue;
    row.push(value(found, columns[row.length].type));
    if (row.length < columns.length) continue;
    yield row;
    row = [];
  }
}

const NUMBERS = ["int64Type", "float64Type", "float32Type"];
export const isNumber = (column) => NUMBERS.some((kind) => kind in (column.type ?? {}));

// In a cell of a table, or of a CSV file.
export const cellText = (found) =>
  found === null ? "" : typeof found === "object" ? JSON.stringify(found) : String(found);

export function toCsv(columns, rows) {
  const quote = (words) => (/[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
  const line = (cells) => cells.map(quote).join(",");
  return (
    [
      line(columns.map((column) => column.name)),
      ...rows.map((row) => line(row.map(cellText))),
    ].join("\r\n") + "\r\n"
  );
}

// Objects, or arrays where columns share a name.
export function toJson(columns, rows) {
  const names = columns.map((column, i) => column.name || `_${i}`);
  const isPlain = new Set(names).size === names.length;
  const shaped = isPlain
    ? rows.map((row) => Object.fromEntries(row.map((found, i) => [names[i], found])))
    : rows;
  return `${JSON.stringify(shaped, null, 1)}\n`;
}
