/* The packed form of a row, or of a change to a row: cells and tombstones, sorted, with the commit
 * version of each. Byte format: docs/internals/format.md, "Fragment".
 *
 * The same format serves as stored record (`R` + row key), as merge operand of a mutation, and,
 * with one cell whose family and qualifier are left to the key, as a spilled cell's value.
 *
 * Order of entries: the spill mark; the row tombstone; then by family id: the family tombstone,
 * then by qualifier: the column tombstones by rising start, then the cells, newest timestamp first.
 *
 * Meaning
 *  1. A tombstone with version v covers the cells (of its row, family, or column and timestamp
 *     range) whose version is less than v. A cell with the same version comes from the same
 *     request, and came after the tombstone in it: the builder has already removed what came
 *     before.
 *  2. Of two cells with the same column and timestamp the one with the greater version counts
 *     (plain families); aggregate cells add up, down to the newest plain value or tombstone.
 *  3. The spill mark says that cells of the row live in records of their own (`S` keys): the hot
 *     record's cells up to version `moved` are there and no longer count here; tombstones up to
 *     version `purged` have done their work on them. */
#ifndef TRESTLE_ROW_FRAGMENT_H
#define TRESTLE_ROW_FRAGMENT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

enum entry_kind {
    ENTRY_SPILL_MARK,
    ENTRY_ROW_TOMBSTONE,
    ENTRY_FAMILY_TOMBSTONE,
    ENTRY_COLUMN_TOMBSTONE,
    ENTRY_CELL,
    ENTRY_SUM, /* value: 8 bytes, big-endian two's complement; adds up modulo 2^64 */
    ENTRY_MIN,
    ENTRY_MAX,
    ENTRY_HLL, /* value: a serialised HLL++ state */
};

struct entry {
    enum entry_kind kind;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us; /* cell; column tombstone: start, inclusive */
    int64_t end_us;       /* column tombstone: end, exclusive; INT64_MAX: none */
    uint64_t version;     /* spill mark: its own version; the newest mark counts */
    bytes value;
    uint64_t moved;   /* spill mark */
    uint64_t purged;  /* spill mark */
    bool has_spilled; /* spill mark: whether there are `S` records */
};

/* --- reading --- */

struct fragment_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t base_version;
    struct entry previous;
    bool is_bad; /* set when the bytes do not parse */
};

/* False, with is_bad set, if the header does not parse. */
bool fragment_reader_start(struct fragment_reader *reader, bytes fragment);

/* The next entry, its slices pointing into the fragment; false at the end or when it is bad. */
bool fragment_reader_next(struct fragment_reader *reader, struct entry *entry);

/* Skips to the first entry of a family with an id >= `family` (tombstones of the row excepted,
 * which come first), without parsing what lies between entry by entry where that is possible. */
void fragment_reader_seek_family(struct fragment_reader *reader, uint32_t family);

/* Whether the fragment holds no entry: a row that does not exist. */
bool fragment_is_empty(bytes fragment);

/* Whether it carries a spill mark with has_spilled; cheap, looks at the head alone. */
bool fragment_has_spilled(bytes fragment);

/* --- writing --- */

/* Writes entries that come in fragment order. All versions must be >= base_version. */
struct fragment_writer {
    struct buffer *out;
    size_t start; /* of the fragment in `out` */
    uint64_t base_version;
    struct entry previous;
};

void fragment_writer_start(struct fragment_writer *writer, struct buffer *out,
                           uint64_t base_version);
void fragment_writer_add(struct fragment_writer *writer, const struct entry *entry);
void fragment_writer_finish(struct fragment_writer *writer);

/* --- building a change from a request's mutations, in the request's order --- */

/* Keeps the slices it is given: they must outlive the builder. Memory comes from the arena. Later
 * mutations act on earlier ones at once, so the result is one sorted fragment. */
struct row_change;

struct row_change *row_change_create(struct arena *arena); /* NULL without memory */
void row_change_set(struct row_change *change, uint32_t family, bytes qualifier,
                    int64_t timestamp_us, bytes value);
/* `kind` is ENTRY_SUM … ENTRY_HLL; adds to one cell within a request fold at once. */
void row_change_add(struct row_change *change, enum entry_kind kind, uint32_t family,
                    bytes qualifier, int64_t timestamp_us, bytes state);
void row_change_delete_column(struct row_change *change, uint32_t family, bytes qualifier,
                              int64_t start_us, int64_t end_us);
void row_change_delete_family(struct row_change *change, uint32_t family);
void row_change_delete_row(struct row_change *change);

/* A cell too big for the packed record: it goes to a record of its own in the same batch. */
struct big_cell {
    enum entry_kind kind;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
    bytes value;
};

/* What the change comes to. `fragment` has version 0 in it until fragment_set_version. Values of
 * at least `big_value` bytes are left out of it and listed in `big`; then the fragment carries a
 * spill mark that moves nothing. */
struct packed_change {
    struct buffer fragment; /* the caller frees it */
    struct big_cell *big;   /* in the arena */
    size_t big_count;
};

status row_change_pack(struct row_change *change, size_t big_value, struct packed_change *out);

/* Gives a change made by row_change_pack its commit version, in place. */
void fragment_set_version(uint8_t *fragment, uint64_t version);

#endif
