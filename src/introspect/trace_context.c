/* See trace_context.h. */
#include "introspect/trace_context.h"

#include <stdio.h>

enum {
    VERSION_AT = 0,
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    SIZE = 55,
    VERSION_NONE = 0xff,
    SAMPLED = 1,
};

/* -1 for what is none; capitals are none, as the standard says. */
static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const uint8_t *text, uint8_t *out, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = digit_of(text[2 * i]);
        int low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const uint8_t *id, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (id[i] != 0)
            return false;
    return true;
}

/* Later versions may say more behind another dash. */
static bool has_form(bytes header, uint8_t version)
{
    if (version == VERSION_NONE || header.data[TRACE_AT - 1] != '-' ||
        header.data[SPAN_AT - 1] != '-' || header.data[FLAGS_AT - 1] != '-')
        return false;
    return header.size == SIZE || (version > 0 && header.data[SIZE] == '-');
}

bool trace_context_parse(bytes header, struct trace_context *out)
{
    uint8_t version, flags;
    if (header.size < SIZE || !read_hex(header.data + VERSION_AT, &version, 1) ||
        !has_form(header, version))
        return false;
    if (!read_hex(header.data + TRACE_AT, out->trace_id, TRACE_ID_SIZE) ||
        !read_hex(header.data + SPAN_AT, out->span_id, SPAN_ID_SIZE) ||
        !read_hex(header.data + FLAGS_AT, &flags, 1))
        return false;
    out->is_sampled = (flags & SAMPLED) != 0;
    return !is_zero(out->trace_id, TRACE_ID_SIZE) && !is_zero(out->span_id, SPAN_ID_SIZE);
}

void trace_context_id_text(const struct trace_context *context, char text[TRACE_ID_TEXT_SIZE])
{
    for (size_t i = 0; i < TRACE_ID_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", context->trace_id[i]);
}
