/* How numbers and values of contributions, groups and entries are written: see aggregate.h. */
#include "base/varint.h"
#include "sql/view/aggregate.h"

#include <math.h>

status view_bad_record(void)
{
    return status_make(STATUS_DATA_LOSS, "A record of a materialized view is damaged");
}

/* --- numbers --- */

static void append_unsigned_wide(struct buffer *out, view_unsigned_wide value)
{
    for (; value >= 0x80; value >>= 7)
        buffer_append_byte(out, (uint8_t)(value | 0x80));
    buffer_append_byte(out, (uint8_t)value);
}

void view_append_wide(struct buffer *out, view_wide value)
{
    view_unsigned_wide sign = value < 0 ? ~(view_unsigned_wide)0 : 0;
    append_unsigned_wide(out, (view_unsigned_wide)value << 1 ^ sign);
}

bool view_take_number(bytes *rest, uint64_t *out)
{
    const uint8_t *end = rest->data + rest->size;
    const uint8_t *behind = rest->size == 0 ? NULL : varint_read(rest->data, end, out);
    if (behind == NULL)
        return false;
    *rest = bytes_make(behind, (size_t)(end - behind));
    return true;
}

bool view_take_wide(bytes *rest, view_wide *out)
{
    enum { WIDE_BITS = 128 };
    view_unsigned_wide value = 0;
    for (unsigned shift = 0, at = 0; shift < WIDE_BITS && at < rest->size; shift += 7, at++) {
        value |= (view_unsigned_wide)(rest->data[at] & 0x7f) << shift;
        if (rest->data[at] < 0x80) {
            view_unsigned_wide sign = (value & 1) != 0 ? ~(view_unsigned_wide)0 : 0;
            *out = (view_wide)(value >> 1 ^ sign);
            *rest = bytes_from(*rest, at + 1);
            return true;
        }
    }
    return false;
}

void view_append_text(struct buffer *out, bytes text)
{
    buffer_append_varint(out, text.size);
    buffer_append_bytes(out, text);
}

bool view_take_text(bytes *rest, bytes *out)
{
    uint64_t size;
    if (!view_take_number(rest, &size) || size > rest->size)
        return false;
    *out = bytes_make(rest->data, (size_t)size);
    *rest = bytes_from(*rest, (size_t)size);
    return true;
}

/* --- values in order --- */

static void append_big_endian(struct buffer *out, uint64_t value)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)(value >> shift));
}

/* A positive double orders as its bits; of a negative one the complement does. */
static uint64_t ordered_double(double value, bool nan_first)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return nan_first ? 0 : UINT64_MAX;
    return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

/* Zero bytes are 00 FF; 00 01 ends what is whole, 00 02 what is cut. */
static void append_ordered_text(struct buffer *out, bytes text, bool *is_cut)
{
    *is_cut = text.size > VIEW_MOST_ORDERED;
    for (size_t i = 0; i < text.size && i < VIEW_MOST_ORDERED; i++) {
        buffer_append_byte(out, text.data[i]);
        if (text.data[i] == 0)
            buffer_append_byte(out, 0xff);
    }
    buffer_append_byte(out, 0);
    buffer_append_byte(out, *is_cut ? 2 : 1);
}

void view_append_ordered(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, bool nan_first, bool *is_cut)
{
    *is_cut = false;
    if (sql_is_text(type))
        append_ordered_text(out, value->text, is_cut);
    else if (sql_is_float(type))
        append_big_endian(out, ordered_double(value->float64, nan_first));
    else if (type->kind == SQL_BOOL)
        append_big_endian(out, value->boolean);
    else
        append_big_endian(out, (uint64_t)value->int64 ^ UINT64_C(1) << 63);
}
