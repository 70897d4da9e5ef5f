/* The bytes of a fragment: docs/internals/format.md, "Fragment". */
#ifndef TRESTLE_ROW_FRAGMENT_PRIVATE_H
#define TRESTLE_ROW_FRAGMENT_PRIVATE_H

/* Byte 0: the format in the upper half, flags in the lower. */
enum {
    FRAGMENT_FORMAT = 0x10,
    FORMAT_MASK = 0xf0,
    HAS_MARK = 0x01,
    HAS_TOMBSTONES = 0x02,
    HAS_VERSIONS = 0x04,
    HAS_APART = 0x08,
    KNOWN_FLAGS = HAS_MARK | HAS_TOMBSTONES | HAS_VERSIONS | HAS_APART,
};

enum {
    BASE_VERSION_AT = 1, /* 8 bytes, big-endian */
    HEAD_SIZE = 9,
    MARK_AT = HEAD_SIZE, /* one byte of flags, moved and purged (8 each), version */
    MARK_HAS_OVERFLOW = 0x01,
    MARK_FIXED_SIZE = 17,
};

/* An entry's first byte: its kind, and what it has in common with the entry before it. */
enum {
    KIND_MASK = 0x07,
    SAME_FAMILY = 0x08,
    SAME_QUALIFIER = 0x10,
    SAME_VERSION = 0x20,
    SAME_TIMESTAMP = 0x40,
    KNOWN_TAG = KIND_MASK | SAME_FAMILY | SAME_QUALIFIER | SAME_VERSION | SAME_TIMESTAMP,
};

#endif
