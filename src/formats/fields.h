/* Records of named fields, as CSV with a header, JSON objects and Avro records have them: how they
 * become rows, and rows them.
 *
 *     row key    a template, "{customer}#{order}": text, and fields within braces ("{{" and "}}"
 *                are braces). "{order:int64}" takes the field as bytes of that type
 *     columns    "price,name=info:title": which fields become cells, and where. Without it all do
 *                that are not in the row key, in the one family, with their names as qualifiers
 *     types      "price=int64,photo=base64": how a field's text becomes the bytes of a cell
 *
 *     string     the bytes of the text (every field of which nothing is said)
 *     int64      a decimal integer as 8 bytes, big-endian, as ReadModifyWriteRow increments them
 *     double     a decimal number as the 8 bytes of IEEE 754, big-endian
 *     base64     the bytes that it stands for
 *     hex        the same of hexadecimal digits */
#ifndef TRESTLE_FORMATS_FIELDS_H
#define TRESTLE_FORMATS_FIELDS_H

#include "formats/change.h"

struct field {
    bytes name;
    bytes text;   /* or, of an Avro record, bytes */
    bool is_null; /* there is no value, not even an empty one */
};

enum field_type { FIELD_STRING, FIELD_INT64, FIELD_DOUBLE, FIELD_BASE64, FIELD_HEX };

/* INVALID_ARGUMENT if the text is none of the type. The result is the arena's, or the text. */
status field_to_bytes(enum field_type type, bytes text, struct arena *arena, bytes *out);

/* The other way round: appends the text. INVALID_ARGUMENT if the bytes have another size. */
status field_to_text(enum field_type type, bytes value, struct buffer *out);

/* When: seconds since 1970 if it is less than 10^11, milliseconds if less than 10^14, else
 * microseconds; or RFC 3339. In microseconds, of whole milliseconds. */
bool field_to_time(bytes text, int64_t *us);

/* --- layouts --- */

struct field_part {
    bytes text; /* literal, or a field's name */
    bool is_field;
    enum field_type type;
};

struct field_column {
    bytes name; /* of the field */
    const char *family;
    bytes qualifier;
};

struct field_typed {
    bytes name;
    enum field_type type;
};

/* Its lists are an arena's. */
struct field_layout {
    struct field_part *key; /* none: there is no template */
    size_t key_count;
    struct field_column *columns;
    size_t column_count;
    struct field_typed *types;
    size_t type_count;
    const char *family;    /* NULL: every field must be named in `columns`, with a family */
    const char *timestamp; /* the field that says when; NULL: `default_us` */
    int64_t default_us;
};

/* The layout as it was asked for in words, each NULL if it was not. */
struct field_words {
    const char *row_key;
    const char *columns;
    const char *types;
    const char *family;
    const char *timestamp;
};

/* INVALID_ARGUMENT, with the option's name, for words that make no sense. The words outlive it. */
status field_layout_parse(const struct field_words *words, struct arena *arena,
                          struct field_layout *out);

/* The type of the field of this name; FIELD_STRING if nothing is said. */
enum field_type field_layout_type(const struct field_layout *layout, bytes name);

/* The row. INVALID_ARGUMENT, in words that name the field, if they make none: a part of the key is
 * missing or empty, a text is not of its type, a key or a name is too long, there is no value. A
 * field that is null or missing makes no cell. RESOURCE_EXHAUSTED when the arena is full. */
status fields_lay_out(const struct field_layout *layout, const struct field *fields, size_t count,
                      struct arena *arena, struct move_change *out);

#endif
