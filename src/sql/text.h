/* What functions on texts share. A text is a STRING, whose parts are characters (code points), or
 * BYTES, whose parts are bytes. */
#ifndef TRESTLE_SQL_TEXT_H
#define TRESTLE_SQL_TEXT_H

#include "base/utf8.h"
#include "sql/function.h"

enum { TEXT_LIMIT = 1 << 20 }; /* bytes of what REPEAT and its like make */

/* Whether the first argument has characters. */
static inline bool text_has_characters(const struct sql_call *call)
{
    return call->types[0]->kind == SQL_STRING;
}

/* The size of the part that begins at `at`, which is within the text. */
static inline size_t text_part_size(bytes text, size_t at, bool by_character)
{
    return by_character ? utf8_size(text.data[at]) : 1;
}

static inline size_t text_length(bytes text, bool by_character)
{
    return by_character ? utf8_length(text) : text.size;
}

/* Where `count` parts end that begin at `from`; the end of the text if there are fewer. */
size_t text_skip(bytes text, size_t from, uint64_t count, bool by_character);

/* Where the part before `at` begins: `at` is not 0. */
size_t text_back(bytes text, size_t at, bool by_character);

/* The first place of `part` in the text from `from`, in bytes; SIZE_MAX: there is none. */
size_t text_find(bytes text, size_t from, bytes part);

static inline bytes text_slice(bytes text, size_t from, size_t to)
{
    return bytes_make(from == 0 ? text.data : text.data + from, to - from);
}

/* Without ASCII's white space at both ends: how numbers, dates and the like are read. */
bytes text_trimmed(bytes text);

/* Ends a function whose result is in `text`, which it frees: a copy in the arena. */
status text_result(const struct sql_call *call, struct buffer *text, struct sql_value *out);

#endif
