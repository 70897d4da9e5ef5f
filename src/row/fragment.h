/* The packed form of a row, or of a change to a row: cells and tombstones, sorted, with the commit
 * version of each. Byte format: docs/internals/format.md, "Fragment".
 *
 * The same format serves as stored record (`R` + row key), as merge operand of a mutation, and,
 * with one cell whose family, qualifier and timestamp are left to the key (0, empty, 0 in the
 * value), as an overflow cell's value.
 *
 * Order of entries: the overflow mark; the row tombstone; then by family id: the family tombstone,
 * then by qualifier: the column tombstones by rising start, then the cells, newest timestamp first.
 * At one place there is one entry, except for adds that are kept apart (fold.h): several cells of
 * one aggregate, the newest version first.
 *
 * Meaning
 *  1. A tombstone with version v covers the cells (of its row, family, or column and timestamp
 *     range) whose version is less than v. A cell with the same version comes from the same
 *     request, and came after the tombstone in it: the builder has already removed what came
 *     before.
 *  2. Of two cells with the same column and timestamp the one with the greater version counts
 *     (plain families); aggregate cells add up, down to the newest tombstone that covers them. (A
 *     family never changes its kind, so cells of different kinds do not meet; if they did, the
 *     greater version would count.)
 *  3. The overflow mark says that cells of the row live in records of their own (`S` keys): the hot
 *     record's cells up to version `moved` are there and no longer count here; tombstones up to
 *     version `purged` have done their work on them. Of several marks the greatest `moved`, the
 *     greatest `purged` and the newest mark's `has_overflow` count. */
#ifndef TRESTLE_ROW_FRAGMENT_H
#define TRESTLE_ROW_FRAGMENT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"
#include "row/change_list.h"

/* Numbers as stored. */
enum entry_kind {
    ENTRY_ROW_TOMBSTONE = 0,
    ENTRY_FAMILY_TOMBSTONE = 1,
    ENTRY_COLUMN_TOMBSTONE = 2,
    ENTRY_CELL = 3,
    ENTRY_SUM = 4, /* value: 8 bytes, big-endian two's complement; adds up modulo 2^64 */
    ENTRY_MIN = 5, /* value: as of sums; signed */
    ENTRY_MAX = 6,
    ENTRY_HLL = 7,           /* value: a sketch as hll_state_write writes it; merges */
    ENTRY_OVERFLOW_MARK = 8, /* in the fragment's head */
};

static inline bool entry_is_cell(enum entry_kind kind)
{
    return kind >= ENTRY_CELL && kind <= ENTRY_HLL;
}

/* Whether it adds to what there is: one of an aggregate. */
static inline bool entry_is_add(enum entry_kind kind)
{
    return kind > ENTRY_CELL && kind <= ENTRY_HLL;
}

struct entry {
    enum entry_kind kind;
    uint32_t family;      /* 0: mark, row tombstone */
    bool has_overflow;    /* overflow mark: whether there are `S` records */
    bytes qualifier;      /* cell, column tombstone */
    int64_t timestamp_us; /* cell; column tombstone: start, inclusive */
    int64_t end_us;       /* column tombstone: end, exclusive; INT64_MAX: none */
    uint64_t version;
    bytes value;     /* cell */
    uint64_t moved;  /* overflow mark */
    uint64_t purged; /* overflow mark */
};

/* Negative, zero or positive as `a` comes before, at or after the place of `b`: the order above. */
int entry_compare(const struct entry *a, const struct entry *b);

/* --- reading --- */

struct fragment_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t base_version;
    bool is_bad; /* set when the bytes do not parse */
    /* Private: what entries leave out when it is the same as in the one before. */
    bool at_mark;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
    uint64_t version;
};

/* False, with is_bad set, if the header does not parse. */
bool fragment_reader_start(struct fragment_reader *reader, bytes fragment);

/* The next entry, its slices pointing into the fragment; false at the end or when it is bad. */
bool fragment_reader_next(struct fragment_reader *reader, struct entry *entry);

/* The next cell at another place than `cell`, which is that of the call before, or all zeroes.
 * Marks and tombstones are passed over; of adds that are kept apart the newest stands for all. */
bool fragment_reader_next_place(struct fragment_reader *reader, struct entry *cell);

/* Skips to the first entry of a family with an id >= `family`. */
void fragment_reader_seek_family(struct fragment_reader *reader, uint32_t family);

/* Whether the fragment holds no entry: a row that does not exist. */
bool fragment_is_empty(bytes fragment);

/* Whether it carries an overflow mark with has_overflow; cheap, looks at the head alone. */
bool fragment_has_overflow(bytes fragment);

/* What a fragment may hold; each is cheap, looks at the head alone, and is true in doubt. */
bool fragment_has_mark(bytes fragment);
bool fragment_has_tombstones(bytes fragment);
bool fragment_has_versions(bytes fragment); /* several cells in one column */
bool fragment_has_apart(bytes fragment);    /* several adds at one place */
/* Whether the fragment has cells alone, each at a place of its own. */
bool fragment_is_simple(bytes fragment);

/* OK if the whole fragment parses and its entries are in order, each place taken once; else
 * DATA_LOSS that says where. For checks of stored data. */
status fragment_check(bytes fragment);
/* The same, for DCHECKs of what we have written ourselves. */
bool fragment_is_sound(bytes fragment);

/* --- writing --- */

/* Writes entries that come in fragment order. The slices of an entry are looked at once more when
 * the next one is added. Failures show in out->failed. */
struct fragment_writer {
    struct buffer *out;
    size_t start; /* of the fragment in `out` */
    uint64_t base_version;
    uint8_t flags;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
    uint64_t version;
    bool has_cell; /* written in this column */
};

/* What to reserve in bytes so that a fragment of so many entries, whose slices come to so many
 * bytes, mostly need not grow: the writer makes room for the longest that each entry can be. */
size_t fragment_room(size_t entry_count, size_t slice_bytes);

/* Any base version will do; the nearer it is to the entries' versions, the shorter they become. */
void fragment_writer_start(struct fragment_writer *writer, struct buffer *out,
                           uint64_t base_version);
void fragment_writer_add(struct fragment_writer *writer, const struct entry *entry);
void fragment_writer_finish(struct fragment_writer *writer);

/* --- building a change from a request's mutations, in the request's order --- */

/* Keeps the slices it is given: they must outlive the builder. Memory comes from the arena. Later
 * mutations act on earlier ones at once, so the result is one sorted fragment. */
struct row_change;

struct row_change *row_change_create(struct arena *arena); /* NULL without memory */
/* Makes room for so many more mutations: what is known beforehand takes half the memory. */
void row_change_reserve(struct row_change *change, size_t count);
void row_change_set(struct row_change *change, uint32_t family, bytes qualifier,
                    int64_t timestamp_us, bytes value);
/* `kind` is ENTRY_SUM, ENTRY_MIN, ENTRY_MAX or ENTRY_HLL; adds to one cell within a request fold at
 * once. */
void row_change_add(struct row_change *change, enum entry_kind kind, uint32_t family,
                    bytes qualifier, int64_t timestamp_us, bytes state);
void row_change_delete_column(struct row_change *change, uint32_t family, bytes qualifier,
                              int64_t start_us, int64_t end_us);
void row_change_delete_family(struct row_change *change, uint32_t family);
void row_change_delete_row(struct row_change *change);

/* A plain cell too big for the packed record: it goes to a record of its own in the same batch
 * (overflow_cell_write). Aggregates never do: they would have to know the tombstones before them.
 */
struct big_cell {
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
    bytes value;
};

/* The fragment that the change comes to lies in this arena, not in memory of its own: until the
 * arena goes, whether it has been freed or not. */
void row_change_keep_in(struct row_change *change, struct arena *arena);

/* What the change comes to. `fragment` has version 0 in it until fragment_set_version. Plain
 * cells of at least `big_value` bytes are left out of it and listed in `big`; then the fragment
 * carries an overflow mark that moves nothing. */
struct packed_change {
    struct buffer fragment;
    struct big_cell *big; /* in the arena */
    size_t big_count;
    /* For change streams: what the row had that was dropped before, of which they are to be told
     * first (cluster/stream/telling.h); allocated, the change's. NULL: nothing. */
    struct change_list *before;
    struct change_list list; /* what was asked for, if a change stream is to tell it; else empty */
    bool is_listed;          /* it is: also if that came to nothing */
};

/* Frees what is not in the arena, and empties it. */
void packed_change_free(struct packed_change *change);

/* Bytes of the fragment and of the values of big cells: what the change writes, about. */
size_t packed_change_size(const struct packed_change *change);

/* Ends the building: the change cannot be added to afterwards. RESOURCE_EXHAUSTED without memory,
 * also for what was added before; then there is nothing to free. */
status row_change_pack(struct row_change *change, size_t big_value, struct packed_change *out);

/* Gives a change made by row_change_pack its commit version, in place. */
void fragment_set_version(uint8_t *fragment, uint64_t version);

/* --- a fragment from elsewhere --- */

/* Lowers all versions in a stored fragment by the same amount, in place, so that their order stays.
 * DATA_LOSS if it does not parse; OUT_OF_RANGE, and nothing is changed, if one of them is not
 * greater than that. */
status fragment_lower_versions(uint8_t *fragment, size_t size, uint64_t by);

#endif
