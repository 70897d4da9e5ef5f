/* Keys inside a keyspace.
 *
 *     R <row key>                                                  a row's record (fragment.h)
 *     S <row key> <family id> <qualifier> <inverted timestamp>     an overflow cell
 *
 * In an S key row key and qualifier are escaped so that bytes order as the parts do: 00 becomes
 * 00 FF, and 00 01 ends the part. The family id has 4 bytes, big-endian; the timestamp 8,
 * big-endian, with all bits but the sign flipped, so that newer cells come first. */
#ifndef TRESTLE_ROW_ROW_KEY_H
#define TRESTLE_ROW_ROW_KEY_H

#include "base/arena.h"

enum { ROW_SPACE = 'R', OVERFLOW_SPACE = 'S' };

/* Each appends to `out` what its name says; failures show in out->failed. */
void row_record_key(struct buffer *out, bytes row_key);
void overflow_row_prefix(struct buffer *out, bytes row_key); /* all of a row's overflow cells */
void overflow_family_prefix(struct buffer *out, bytes row_key, uint32_t family);
void overflow_column_prefix(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier);
void overflow_cell_key(struct buffer *out, bytes row_key, uint32_t family, bytes qualifier,
                       int64_t timestamp_us);

/* How much of an S key, from its beginning, is the same for all of a row's overflow cells
 * (overflow_row_prefix); 0: of any other key. */
size_t overflow_owner_size(bytes key);
/* Appends the row key that such a beginning names; false if it names none. */
bool overflow_owner_row(bytes prefix, struct buffer *out);

/* Where a range of rows [from, to) lies in the overflow space; an empty `to` is the end of the
 * table.
 */
void overflow_range_start(struct buffer *out, bytes from);
void overflow_range_end(struct buffer *out, bytes to);

/* The end of the range of keys that start with `prefix`: the least greater string that does not.
 * Appends nothing, and returns false, if there is none (all FF). */
bool key_after_prefix(struct buffer *out, bytes prefix);

/* The same in the arena: `*out` is empty if there is none, as it is where a range has no end. False
 * without memory. */
bool key_prefix_end(struct arena *arena, bytes prefix, bytes *out);

/* The least key after `key`: the key with a zero byte behind it, in the arena. False without
 * memory.
 */
bool key_successor(struct arena *arena, bytes key, bytes *out);

/* Whether `a` ends a range before `b` does; empty is no bound. */
static inline bool key_ends_before(bytes a, bytes b)
{
    return a.size > 0 && (b.size == 0 || bytes_compare(a, b) < 0);
}

/* The family id and timestamp of an S key, without taking the rest apart; false if the key does
 * not parse. */
bool overflow_key_tail(bytes key, uint32_t *family, int64_t *timestamp_us);

struct overflow_key {
    bytes row_key;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
};

/* Takes an S key apart; the unescaped parts are written to `scratch` (cleared first). False if the
 * key does not parse. */
bool overflow_key_parse(bytes key, struct buffer *scratch, struct overflow_key *out);

#endif
