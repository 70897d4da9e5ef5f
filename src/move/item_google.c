/* See item_google.h. */
#include "move/item_google.h"

#include "move/item_private.h"
#include "wire/grpc_text.h"

struct flattening {
    struct arena *arena;
    status (*add)(void *context, bytes name, bytes value);
    void *context;
};

/* A BigDecimal prints as it was written, save for a power; a long as its digits. */
static status number_text(const struct flattening *flattening, bytes text, bytes *out)
{
    struct item_number number;
    int64_t integer;
    struct buffer plain = {0};
    bool has_point = text.size > 0 && memchr(text.data, '.', text.size) != NULL;
    bool has_power = text.size > 0 && (memchr(text.data, 'e', text.size) != NULL ||
                                       memchr(text.data, 'E', text.size) != NULL);
    TRY(item_number_parse(text, &number));
    if (has_point && !has_power) {
        *out = text;
        return status_ok();
    }
    if (has_power || !item_number_to_int64(&number, &integer))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%.*s is a number that Google's utility cannot read", (int)text.size,
                           (const char *)text.data);
    item_number_append_plain(&number, &plain);
    return item_keep(flattening->arena, &plain, out);
}

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
