// Protobuf's wire format: the fields of a message, one after the other, as they lie in its bytes.
//
// The bytes may be anybody's. What is no message is a WireError, nothing outside of the bytes is
// read, and the time it takes is in proportion to them.

export const VARINT = 0,
  FIXED64 = 1,
  SIZED = 2,
  GROUP = 3,
  FIXED32 = 5;
const GROUP_END = 4;
const MOST_TAG = 0xffffffffn;

export class WireError extends Error {}

export class WireReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // Of at most ten bytes; what is beyond 64 bits is dropped, as everywhere.
  varint() {
    const first = this.bytes[this.at];
    if (first < 0x80) {
      this.at++;
      return BigInt(first);
    }
    let value = 0n,
      shift = 0n;
    for (;;) {
      const byte = this.bytes[this.at++];
      if (byte === undefined || shift > 63n) throw new WireError("the message is cut off");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
      shift += 7n;
    }
  }

  take(size) {
    if (size > this.bytes.length - this.at) throw new WireError("the message is cut off");
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  tag() {
    const tag = this.varint();
    if (tag < 8n || tag > MOST_TAG) throw new WireError("a field has a number that none can have");
    return Number(tag);
  }

  // What is between a group's beginning, which has been read, and its end, which is read, too.
  group(number) {
    const start = this.at,
      open = [number];
    for (;;) {
      const before = this.at,
        tag = this.tag(),
        kind = tag & 7;
      if (kind === GROUP) open.push(tag >>> 3);
      else if (kind !== GROUP_END) this.value(tag);
      else if (open.pop() !== tag >>> 3) throw new WireError("a group ends that did not begin");
      else if (open.length === 0) return this.bytes.subarray(start, before);
    }
  }

  value(tag) {
    switch (tag & 7) {
      case VARINT:
        return this.varint();
      case SIZED:
        return this.take(Number(this.varint()));
      case FIXED64:
        return this.take(8);
      case FIXED32:
        return this.take(4);
      case GROUP:
        return this.group(tag >>> 3);
      default:
        throw new WireError("a field is of no kind that there is");
    }
  }

  // [number, value, kind] of each field: a varint's value is a bigint, all others are bytes.
  *fields() {
    while (this.at < this.bytes.length) {
      const tag = this.tag();
      yield [tag >>> 3, this.value(tag), tag & 7];
    }
  }
}

export const fieldsOf = (bytes) => new WireReader(bytes).fields();
