/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef TRESTLE_BASE_UTF8_H
#define TRESTLE_BASE_UTF8_H

#include "base/bytes.h"

enum { UTF8_LAST = 0x10ffff }; /* code point */

bool utf8_is_valid(bytes text);

/* --- of valid text --- */

/* The bytes of the code point that begins with `lead`. */
static inline size_t utf8_size(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The beginning of the text that fits into so many bytes without cutting a code point. */
static inline bytes utf8_cut(bytes text, size_t most)
{
    if (text.size <= most)
        return text;
    while (most > 0 && (text.data[most] & 0xc0) == 0x80)
        most--;
    return bytes_make(text.data, most);
}

/* The code point at `*at`, which moves behind it. */
uint32_t utf8_next(bytes text, size_t *at);

/* How many code points there are. */
size_t utf8_length(bytes text);

/* Appends a code point: no surrogate, and not past UTF8_LAST. */
void utf8_append(struct buffer *out, uint32_t code);

#endif
