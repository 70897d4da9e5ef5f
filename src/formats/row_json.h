/* Rows as JSON, one a line.
 *
 *     {"key":"r1","cells":[{"family":"f","qualifier":"q","timestamp":1500000000000000,"value":"v"},
 *                          {"family":"f","qualifier":{"base64":"AP8="},"value":""}]}
 *
 * That is lossless: keys, qualifiers and values are strings, or, where their bytes are not UTF-8,
 * objects with their base64. A timestamp is in microseconds; a cell without one has the reader's
 * default. Members may stand in any order; ones of other names are refused.
 *
 * Objects of any other kind are records of fields (fields.h): strings and numbers are their text,
 * true and false are that, null is no value, and lists and objects are their JSON as it stands. */
#ifndef TRESTLE_FORMATS_ROW_JSON_H
#define TRESTLE_FORMATS_ROW_JSON_H

#include "formats/fields.h"

/* INVALID_ARGUMENT says at which byte what is wrong; RESOURCE_EXHAUSTED when the arena is full.
 * What comes out is the arena's, or points into the text. */
status row_json_read(bytes text, int64_t default_us, struct arena *arena, struct move_change *out);
status row_json_fields(bytes text, struct arena *arena, struct field **out, size_t *count);

/* Appends the row, without a line's end. */
void row_json_write(const struct move_change *row, struct buffer *out);

/* Appends a string, or an object with base64. */
void row_json_write_bytes(bytes b, struct buffer *out);

#endif
