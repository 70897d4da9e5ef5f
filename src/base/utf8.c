/* See utf8.h. */
#include "base/utf8.h"

/* The size of the sequence that `lead` opens, and the range of its second byte: the only place
 * where overlong forms, surrogates and what lies past U+10FFFF show. 0 if it opens none. */
static size_t sequence_size(uint8_t lead, uint8_t *low, uint8_t *high)
{
    *low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* How many bytes at the start are ASCII, in steps of a word: nearly all that names are made of. */
static size_t ascii_words(bytes text)
{
    size_t at = 0;
    for (uint64_t word; text.size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, text.data + at, sizeof word);
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    return at;
}

bool utf8_is_valid(bytes text)
{
    if (text.size == 0)
        return true; /* there may be no memory to point to */
    size_t plain = ascii_words(text);
    const uint8_t *at = text.data + plain;
    for (size_t left = text.size - plain; left > 0;) {
        uint8_t low, high;
        size_t size = sequence_size(*at, &low, &high);
        if (size == 0 || size > left)
            return false;
        if (size > 1 && (at[1] < low || at[1] > high))
            return false;
        for (size_t i = 2; i < size; i++)
            if ((at[i] & 0xc0) != 0x80)
                return false;
        at += size;
        left -= size;
    }
    return true;
}
