/* See item_google.h. */
#include "formats/item_google.h"

#include "formats/item_private.h"
#include "wire/grpc_text.h"

struct flattening {
    struct arena *arena;
    status (*add)(void *context, bytes name, bytes value);
    void *context;
};

/* --- numbers --- */

/* A decimal as Java's BigDecimal has it: digits, of which `scale` stand behind the point. */
struct decimal {
    bool is_negative;
    struct buffer digits; /* "0" or without zeroes at the beginning */
    int scale;
};

static void read_decimal(bytes text, struct decimal *out)
{
    bool is_fraction = false;
    size_t at = 0;
    for (; at < text.size && text.data[at] != 'e' && text.data[at] != 'E'; at++) {
        uint8_t byte = text.data[at];
        out->is_negative |= byte == '-';
        is_fraction |= byte == '.';
        if (byte < '0' || byte > '9')
            continue;
        out->scale += is_fraction;
        if (out->digits.size == 1 && out->digits.data[0] == '0')
            buffer_clear(&out->digits);
        buffer_append_byte(&out->digits, byte);
    }
    int power = 0;
    bool is_below = at + 1 < text.size && text.data[at + 1] == '-';
    for (at++; at < text.size; at++)
        if (text.data[at] >= '0' && text.data[at] <= '9' && power < 1000)
            power = 10 * power + (text.data[at] - '0');
    out->scale -= is_below ? -power : power;
    out->is_negative &= !bytes_equal(buffer_bytes(&out->digits), bytes_of("0"));
}

static void append_plain(const struct decimal *decimal, struct buffer *out)
{
    bytes digits = buffer_bytes(&decimal->digits);
    size_t behind = (size_t)decimal->scale;
    size_t before = digits.size > behind ? digits.size - behind : 0;
    buffer_append_bytes(out, before > 0 ? bytes_make(digits.data, before) : bytes_of("0"));
    if (behind == 0)
        return;
    buffer_append_byte(out, '.');
    for (size_t i = digits.size - before; i < behind; i++)
        buffer_append_byte(out, '0');
    buffer_append_bytes(out, bytes_from(digits, before));
}

/* BigDecimal.toString: "1.5E+3" where there would be zeroes that were not written, or many. */
static void append_decimal(const struct decimal *decimal, struct buffer *out)
{
    const int least_plain = -6;
    bytes digits = buffer_bytes(&decimal->digits);
    int power = (int)digits.size - 1 - decimal->scale;
    if (decimal->is_negative)
        buffer_append_byte(out, '-');
    if (decimal->scale >= 0 && power >= least_plain) {
        append_plain(decimal, out);
        return;
    }
    size_t before = digits.size > 0;
    buffer_append_bytes(out, bytes_make(digits.data, before));
    if (digits.size > before)
        buffer_append_byte(out, '.');
    buffer_append_bytes(out, bytes_from(digits, before));
    if (power != 0)
        buffer_append_format(out, "E%+d", power);
}

/* With a point it is a BigDecimal, else a long. Numbers at which the utility fails ("1e5" is no
 * long) are plain. */
static status number_text(const struct flattening *flattening, bytes text, bytes *out)
{
    struct item_number number;
    struct decimal decimal = {.scale = 0};
    struct buffer shown = {0};
    TRY(item_number_parse(text, &number));
    if (text.size == 0 || memchr(text.data, '.', text.size) == NULL) {
        item_number_append_plain(&number, &shown);
        return item_keep(flattening->arena, &shown, out);
    }
    read_decimal(text, &decimal);
    if (!decimal.digits.failed)
        append_decimal(&decimal, &shown);
    shown.failed |= decimal.digits.failed;
    buffer_free(&decimal.digits);
    return item_keep(flattening->arena, &shown, out);
}

/* --- other values --- */

static status base64_text(const struct flattening *flattening, bytes binary, bytes *out)
{
    struct buffer text = {0};
    base64_encode(binary, &text);
    buffer_append(&text, "==", (3 - binary.size % 3) % 3);
    return item_keep(flattening->arena, &text, out);
}

static status json_text(const struct flattening *flattening, const struct item_value *value,
                        bytes *out)
{
    struct buffer text = {0};
    item_write_plain(value, &text);
    return item_keep(flattening->arena, &text, out);
}

static status value_text(const struct flattening *flattening, const struct item_value *value,
                         bytes *out)
{
    *out = bytes_of("");
    switch (value->type) {
    case ITEM_STRING:
        *out = value->text;
        return status_ok();
    case ITEM_NUMBER:
        return number_text(flattening, value->text, out);
    case ITEM_BINARY:
        return base64_text(flattening, value->text, out);
    case ITEM_BOOL:
        *out = bytes_of(value->boolean ? "true" : "false");
        return status_ok();
    case ITEM_NULL:
        return status_ok();
    default:
        return json_text(flattening, value, out);
    }
}

/* As deep as items are. */
static status flatten(const struct flattening *flattening, const struct item_value *value,
                      bytes name)
{
    bytes text;
    if (value->type != ITEM_MAP) {
        TRY(value_text(flattening, value, &text));
        return flattening->add(flattening->context, name, text);
    }
    for (size_t i = 0; i < value->count; i++) {
        struct buffer path = {0};
        bytes inner;
        buffer_append_bytes(&path, name);
        buffer_append_byte(&path, '.');
        buffer_append_bytes(&path, value->elements[i].name);
        TRY(item_keep(flattening->arena, &path, &inner));
        TRY(flatten(flattening, &value->elements[i], inner));
    }
    return status_ok();
}

status item_google_cells(const struct item_value *attribute, struct arena *arena,
                         status (*add)(void *context, bytes name, bytes value), void *context)
{
    const struct flattening flattening = {.arena = arena, .add = add, .context = context};
    return flatten(&flattening, attribute, attribute->name);
}
