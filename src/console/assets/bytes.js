// Bytes as they come by JSON (base64), as they are shown, and as they are typed.

export function fromBase64(text) {
  const binary = atob(text ?? "");
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function toBase64(bytes) {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

// In addresses, where + and / mean something.
export const toUrl = (bytes) =>
  toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
export const fromUrl = (text) => fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));

export function joined(parts) {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

// Nothing that moves the cursor, turns the line round, or is not to be seen.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u;
const LAYOUT = /[\t\r\n]/g;

// The text, or null if the bytes are none that one could read.
export function asText(bytes) {
  try {
    const text = strict.decode(bytes);
    return UNSEEN.test(text.replace(LAYOUT, "")) ? null : text;
  } catch {
    return null;
  }
}

const hexByte = (byte) => byte.toString(16).padStart(2, "0");

function escapeByte(byte) {
  if (byte === 0x5c) return "\\\\";
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${hexByte(byte)}`;
}

// One line that unescape() reads back: text as it is, \xNN for what is none.
export function escape(bytes) {
  const text = asText(bytes);
  if (text !== null && !/[\t\r\n]/.test(text)) return text.replaceAll("\\", "\\\\");
  return Array.from(bytes, escapeByte).join("");
}

// What escape() writes, typed by hand. Throws an Error with words for the person.
export function unescape(text) {
  const out = [];
  for (let at = 0; at < text.length;) {
    if (text[at] !== "\\") {
      const character = String.fromCodePoint(text.codePointAt(at));
      out.push(...encoder.encode(character));
      at += character.length;
    } else if (text[at + 1] === "\\") {
      out.push(0x5c);
      at += 2;
    } else {
      const found = /^\\x([0-9a-fA-F]{2})/.exec(text.slice(at, at + 4));
      if (!found)
        throw new Error(
          "After a backslash comes x and two hexadecimal digits, or a second backslash.",
        );
      out.push(parseInt(found[1], 16));
      at += 4;
    }
  }
  return Uint8Array.from(out);
}

// The least key that is greater than all with that prefix; null if there is none.
export function afterPrefix(prefix) {
  let size = prefix.length;
  while (size > 0 && prefix[size - 1] === 0xff) size--;
  if (size === 0) return null;
  const end = prefix.slice(0, size);
  end[size - 1]++;
  return end;
}

export function compare(a, b) {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

// --- values, by the ways to show them ---

const INTEGER_BYTES = 8;
const JSON_TIMES = 1000;

function asInteger(bytes) {
  if (bytes.length !== INTEGER_BYTES) return null;
  return new DataView(bytes.buffer, bytes.byteOffset, INTEGER_BYTES).getBigInt64(0).toString();
}

const HEX = Array.from({ length: 256 }, (_, byte) => hexByte(byte));

// Of `most` characters no more than that need be made.
function asHex(bytes, most) {
  const size = Math.min(bytes.length, Math.ceil(most / 3));
  const out = new Array(size);
  for (let i = 0; i < size; i++) out[i] = HEX[bytes[i]];
  return size < bytes.length ? `${out.join(" ")} ` : out.join(" ");
}

// Written with indents, numbers as they were. What is far larger than is looked at stays text.
function asJson(bytes, most) {
  if (bytes.length > JSON_TIMES * most) return null;
  const text = asText(bytes);
  if (text === null || !/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
    return indentJson(text);
  } catch {
    return null;
  }
}

// Without reading numbers: those of 64 bits would lose digits.
function indentJson(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0,
    out = "";
  tokens.forEach((token, i) => {
    const line = () => `\n${"  ".repeat(depth)}`;
    if (token === "}" || token === "]") {
      depth--;
      out += tokens[i - 1] === (token === "}" ? "{" : "[") ? token : line() + token;
      return;
    }
    const previous = tokens[i - 1];
    if (previous === "{" || previous === "[" || previous === ",") out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth++;
  });
  return out;
}

export const WAYS = [
  ["auto", "As found"],
  ["text", "Text"],
  ["integer", "Integers"],
  ["hex", "Hexadecimal"],
  ["json", "JSON"],
];

const SHOWERS = {
  text: asText,
  integer: asInteger,
  hex: asHex,
  json: asJson,
};

// {kind, text}: by the way that was asked for if the bytes allow it, else by the first that fits.
// `most`: how many characters of it are looked at; there may be more.
export function show(bytes, way = "auto", most = Infinity) {
  if (bytes.length === 0) return { kind: "empty", text: "" };
  const order = way === "auto" ? ["json", "text", "integer"] : [way, "text", "integer"];
  for (const kind of order) {
    const text = SHOWERS[kind](bytes, most);
    if (text !== null) return { kind, text };
  }
  return { kind: "hex", text: asHex(bytes, most) };
}

// The bytes that somebody has typed in one of those ways. Throws an Error with words.
export function parse(text, way) {
  if (way === "integer") {
    if (!/^\s*-?\d+\s*$/.test(text))
      throw new Error("An integer is digits, with a minus before them if it is negative.");
    const value = BigInt(text.trim());
    if (BigInt.asIntN(64, value) !== value)
      throw new Error("The integer does not fit into 64 bits.");
    const view = new DataView(new ArrayBuffer(INTEGER_BYTES));
    view.setBigInt64(0, value);
    return new Uint8Array(view.buffer);
  }
  if (way === "hex") {
    const digits = text.replaceAll(/\s/g, "");
    if (!/^([0-9a-fA-F]{2})*$/.test(digits))
      throw new Error("Hexadecimal is two digits for each byte.");
    return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  }
  if (way === "json") {
    try {
      JSON.parse(text);
    } catch (error) {
      throw new Error(`It is not JSON: ${error.message}`);
    }
  }
  return encoder.encode(text);
}
