/* The tokens of JSON (RFC 8259): strings, numbers, where a value ends. For the transcoder and for
 * SQL's functions. */
#ifndef TRESTLE_WIRE_JSON_TEXT_H
#define TRESTLE_WIRE_JSON_TEXT_H

#include "base/bytes.h"

struct json_reader {
    const uint8_t *at;
    const uint8_t *end;
};

enum json_kind {
    JSON_BAD, /* no value begins here, or it does not end */
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* The kind of the value that comes next, by its first byte. Skips white space before it. */
enum json_kind json_peek(struct json_reader *reader);

/* Takes the byte if it comes next, after white space. */
bool json_take(struct json_reader *reader, char byte);

/* Takes a value that is neither array nor object. `*text` is as it stands there, a string without
 * its quotes, still escaped. JSON_BAD if there is none. */
enum json_kind json_take_scalar(struct json_reader *reader, bytes *text);

/* Takes any value, of at most `depth` levels. */
bool json_skip(struct json_reader *reader, unsigned depth);

/* Appends what a string's text stands for, in UTF-8. False if it is none: a bad escape, half a
 * surrogate pair, bytes that are not UTF-8. */
bool json_unescape(bytes text, struct buffer *out);

/* Whether this is a number, the whole of it. */
bool json_is_number(bytes text);

#endif
