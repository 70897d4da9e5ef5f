/* What the ways to lay out items have in common: values as bytes of keys and cells, times, the
 * limits of cells. What is refused is INVALID_ARGUMENT and names the attribute; RESOURCE_EXHAUSTED
 * when the arena is full. */
#ifndef TRESTLE_FORMATS_ITEM_CELLS_H
#define TRESTLE_FORMATS_ITEM_CELLS_H

#include "formats/change.h"
#include "formats/item.h"

#define ITEM_INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* How much of a name is shown in a message: bytes. */
int item_shown(bytes name);

/* The attribute as part of a key: it must be there, S, N or B, and not empty. */
status item_find_key(const struct item_value *item, bytes name, const struct item_value **out);

/* S and B as they are, N as item_number_append_plain or _ordered. */
status item_append_key(const struct item_value *value, bool orders_numbers, struct buffer *out);

/* "07" and the delimiter: one of so many numbers, the same for all items with this key. It is the
 * first four bytes of its SHA-256, big-endian, modulo `salts`, in as many digits as the largest
 * has, so that applications can say it, too. */
status item_append_salt(bytes key, unsigned salts, const char *delimiter, struct buffer *out);

/* Strings, numbers and bytes as they are, booleans as words, null as nothing, the rest as plain
 * JSON. Points into the value or the arena. */
status item_text(const struct item_value *value, struct arena *arena, bytes *out);

/* The number as 64 bits, big-endian. */
status item_counter(const struct item_value *value, struct arena *arena, bytes *out);

/* The value in DynamoDB's JSON. */
status item_typed_json(const struct item_value *value, struct arena *arena, bytes *out);

/* Adds a cell for each member of a set, with a zero byte, or of a map. */
status item_add_family(const struct item_value *value, const char *family, int64_t timestamp_us,
                       struct arena *arena, struct move_change *change);

/* Adds the cell, whose qualifier may be too long. */
status item_add_cell(struct move_change *change, struct arena *arena, const struct move_cell *cell);

/* When the value says: a number, or its text, of seconds since 1970 (less than 10^11) or
 * milliseconds; or a string as in RFC 3339, which may leave out the zone (UTC) or the time
 * (midnight). Whole milliseconds. False if it is no time. */
bool item_time(const struct item_value *value, int64_t *us);

/* When DynamoDB ends an item by this attribute: a number of seconds since 1970, no more than five
 * years before now. 0: never. */
int64_t item_end(const struct item_value *item, const char *attribute, int64_t now_us);

/* The timestamp with which a cell is `age_us` old then; 0 if that is before 1970. */
int64_t item_dated(int64_t ends_us, int64_t age_us);

#endif
