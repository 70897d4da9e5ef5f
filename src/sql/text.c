/* Texts: see text.h. */
#include "sql/text.h"

#include <ctype.h>

size_t text_skip(bytes text, size_t from, uint64_t count, bool by_character)
{
    if (!by_character)
        return count < text.size - from ? from + count : text.size;
    for (; count > 0 && from < text.size; count--)
        from += utf8_size(text.data[from]);
    return from;
}

size_t text_back(bytes text, size_t at, bool by_character)
{
    at--;
    while (by_character && at > 0 && (text.data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

size_t text_find(bytes text, size_t from, bytes part)
{
    if (part.size == 0)
        return from;
    if (from >= text.size)
        return SIZE_MAX;
    const uint8_t *found = memmem(text.data + from, text.size - from, part.data, part.size);
    return found == NULL ? SIZE_MAX : (size_t)(found - text.data);
}

bytes text_trimmed(bytes text)
{
    while (text.size > 0 && isspace(text.data[0]))
        text = bytes_from(text, 1);
    while (text.size > 0 && isspace(text.data[text.size - 1]))
        text.size--;
    return text;
}

status text_result(const struct sql_call *call, struct buffer *text, struct sql_value *out)
{
    bytes copy = text->failed ? bytes_make(NULL, 0) : arena_copy(call->arena, buffer_bytes(text));
    bool failed = text->failed || (copy.data == NULL && text->size > 0);
    buffer_free(text);
    *out = sql_of_text(copy);
    return failed ? status_out_of_memory() : status_ok();
}
