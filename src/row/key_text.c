/* Texts inside keys: see key_text.h. */
#include "row/key_text.h"

#include "base/check.h"

void key_text_append_open(struct buffer *out, bytes text)
{
    while (text.size > 0) {
        const uint8_t *zero = memchr(text.data, KEY_TEXT_ZERO, text.size);
        size_t clean = zero == NULL ? text.size : (size_t)(zero - text.data) + 1;
        buffer_append(out, text.data, clean);
        if (zero != NULL)
            buffer_append_byte(out, KEY_TEXT_ESCAPED);
        text = bytes_from(text, clean);
    }
}

void key_text_append(struct buffer *out, bytes text)
{
    key_text_append_open(out, text);
    buffer_append(out, (const uint8_t[]){KEY_TEXT_ZERO, KEY_TEXT_END}, 2);
}

size_t key_text_size(bytes key, uint8_t flip)
{
    for (size_t at = 0; at < key.size;) {
        const uint8_t *zero = memchr(key.data + at, KEY_TEXT_ZERO ^ flip, key.size - at);
        if (zero == NULL)
            return 0;
        at = (size_t)(zero - key.data) + 2;
        if (at > key.size)
            return 0;
        uint8_t mark = zero[1] ^ flip;
        if (mark == KEY_TEXT_END)
            return at;
        if (mark != KEY_TEXT_ESCAPED)
            return 0;
    }
    return 0;
}

bytes key_text_read(bytes text, uint8_t flip, uint8_t *to)
{
    DCHECK(text.size > 0);
    uint8_t *start = to;
    for (size_t at = 0; at < text.size - 2; at++) {
        uint8_t byte = text.data[at] ^ flip;
        *to++ = byte;
        at += byte == KEY_TEXT_ZERO;
    }
    return bytes_make(start, (size_t)(to - start));
}
