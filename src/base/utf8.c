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

uint32_t utf8_next(bytes text, size_t *at)
{
    static const uint8_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t size = utf8_size(text.data[*at]);
    uint32_t code = text.data[(*at)++] & lead_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (text.data[(*at)++] & 0x3f);
    return code;
}

size_t utf8_length(bytes text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.size; i++)
        length += (text.data[i] & 0xc0) != 0x80;
    return length;
}

void utf8_append(struct buffer *out, uint32_t code)
{
    uint8_t tail = 0x80 | (code & 0x3f);
    if (code < 0x80) {
        buffer_append_byte(out, (uint8_t)code);
    } else if (code < 0x800) {
        buffer_append(out, (uint8_t[]){(uint8_t)(0xc0 | code >> 6), tail}, 2);
    } else if (code < 0x10000) {
        uint8_t middle = 0x80 | (code >> 6 & 0x3f);
        buffer_append(out, (uint8_t[]){(uint8_t)(0xe0 | code >> 12), middle, tail}, 3);
    } else {
        uint8_t second = 0x80 | (code >> 12 & 0x3f);
        uint8_t third = 0x80 | (code >> 6 & 0x3f);
        buffer_append(out, (uint8_t[]){(uint8_t)(0xf0 | code >> 18), second, third, tail}, 4);
    }
}
