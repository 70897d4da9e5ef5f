/* See item_layout.h. */
#include "move/item_layout.h"

#include "base/limits.h"
#include "move/item_google.h"
#include "move/item_private.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { MS = 1000 /* microseconds */ };

struct laying {
    const struct item_layout *layout;
    struct arena *arena;
    struct move_change *change;
    int64_t timestamp_us;
};

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

static int shown(bytes name)
{
    enum { MOST = 100 };
    return name.size < MOST ? (int)name.size : MOST;
}

static bool has_name(const struct item_names *names, bytes name)
{
    for (size_t i = 0; i < names->count; i++)
        if (bytes_equal(bytes_of(names->names[i]), name))
            return true;
    return false;
}

/* --- row keys --- */

static status find_key(const struct item_value *item, const char *name,
                       const struct item_value **out)
{
    *out = item_find(item, bytes_of(name));
    if (*out == NULL)
        return INVALID("the key attribute %s is not there", name);
    if ((*out)->type != ITEM_STRING && (*out)->type != ITEM_NUMBER && (*out)->type != ITEM_BINARY)
        return INVALID("the key attribute %s is of type %s", name, item_type_name((*out)->type));
    return (*out)->text.size > 0 ? status_ok() : INVALID("the key attribute %s is empty", name);
}

static status append_number(const struct item_layout *layout, bytes text, struct buffer *out)
{
    struct item_number number;
    TRY(item_number_parse(text, &number));
    if (layout->orders_numbers)
        item_number_append_ordered(&number, out);
    else
        item_number_append_plain(&number, out);
    return status_ok();
}

static status append_component(const struct item_layout *layout, const struct item_value *value,
                               struct buffer *out)
{
    if (value->type == ITEM_NUMBER)
        return append_number(layout, value->text, out);
    buffer_append_bytes(out, value->text);
    return status_ok();
}

static void append_escaped(const struct item_layout *layout, bytes text, struct buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_special = byte == '%' || (byte != 0 && strchr(layout->delimiter, byte) != NULL);
        buffer_append_format(out, is_special ? "%%%02X" : "%c", byte);
    }
}

/* The ordered form of a number may hold any byte, but ends where it says. */
static status append_partition_key(const struct item_layout *layout, const struct item_value *value,
                                   struct buffer *out)
{
    bool is_escaped =
        layout->sort_key != NULL && !(value->type == ITEM_NUMBER && layout->orders_numbers);
    if (!is_escaped)
        return append_component(layout, value, out);
    struct buffer plain = {0};
    status s = append_component(layout, value, &plain);
    append_escaped(layout, buffer_bytes(&plain), out);
    out->failed |= plain.failed;
    buffer_free(&plain);
    return s;
}

/* A salt says nothing but spreads: all items of a partition have the same. */
static void append_salt(const struct item_layout *layout, bytes partition_key, struct buffer *out)
{
    unsigned salt = (unsigned)(bytes_hash(partition_key) % layout->salts);
    int digits = snprintf(NULL, 0, "%u", layout->salts - 1);
    buffer_append_format(out, "%0*u%s", digits, salt, layout->delimiter);
}

static status append_row_key(const struct item_layout *layout, const struct item_value *item,
                             struct buffer *out)
{
    const struct item_value *partition, *sort;
    TRY(find_key(item, layout->partition_key, &partition));
    if (layout->salts > 0)
        append_salt(layout, partition->text, out);
    TRY(append_partition_key(layout, partition, out));
    if (layout->sort_key == NULL)
        return status_ok();
    TRY(find_key(item, layout->sort_key, &sort));
    buffer_append_bytes(out, bytes_of(layout->delimiter));
    return append_component(layout, sort, out);
}

static status make_row_key(const struct laying *laying, const struct item_value *item)
{
    struct buffer key = {0};
    status s = append_row_key(laying->layout, item, &key);
    if (!status_is_ok(s)) {
        buffer_free(&key);
        return s;
    }
    TRY(item_keep(laying->arena, &key, &laying->change->row_key));
    if (laying->change->row_key.size > LIMIT_ROW_KEY_BYTES)
        return INVALID("the row key has %zu bytes, more than %d", laying->change->row_key.size,
                       LIMIT_ROW_KEY_BYTES);
    return status_ok();
}

static bool is_key(const struct item_layout *layout, bytes name)
{
    return bytes_equal(name, bytes_of(layout->partition_key)) ||
           (layout->sort_key != NULL && bytes_equal(name, bytes_of(layout->sort_key)));
}

/* --- cells --- */

static status add_cell(struct laying *laying, const char *family, bytes qualifier, bytes value)
{
    const struct move_cell cell = {.family = family,
                                   .qualifier = qualifier,
                                   .timestamp_us = laying->timestamp_us,
                                   .value = value};
    if (qualifier.size > LIMIT_QUALIFIER_BYTES)
        return INVALID("the name %.*s… has %zu bytes, more than %d", shown(qualifier),
                       (const char *)qualifier.data, qualifier.size, LIMIT_QUALIFIER_BYTES);
    return move_change_add(laying->change, laying->arena, &cell);
}

static status plain_text(const struct laying *laying, const struct item_value *value, bytes *out)
{
    struct buffer text = {0};
    switch (value->type) {
    case ITEM_STRING:
    case ITEM_NUMBER:
    case ITEM_BINARY:
        *out = value->text;
        return status_ok();
    case ITEM_BOOL:
        *out = bytes_of(value->boolean ? "true" : "false");
        return status_ok();
    case ITEM_NULL:
        *out = bytes_of("");
        return status_ok();
    default:
        item_write_plain(value, &text);
        return item_keep(laying->arena, &text, out);
    }
}

/* --- as columns --- */

static status add_counter(struct laying *laying, const struct item_value *value)
{
    struct item_number number;
    int64_t integer = 0;
    uint8_t *to = arena_alloc(laying->arena, sizeof integer);
    if (to == NULL)
        return status_out_of_memory();
    if (value->type != ITEM_NUMBER)
        return INVALID("the counter %.*s is of type %s", shown(value->name),
                       (const char *)value->name.data, item_type_name(value->type));
    TRY(item_number_parse(value->text, &number));
    if (!item_number_to_int64(&number, &integer))
        return INVALID("the counter %.*s is no integer of 64 bits", shown(value->name),
                       (const char *)value->name.data);
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)((uint64_t)integer >> (56 - 8 * i));
    return add_cell(laying, laying->layout->family, value->name, bytes_make(to, 8));
}

/* A set's members are qualifiers, each with a zero byte; a map's names are. */
static status add_family(struct laying *laying, const struct item_value *value)
{
    const char *family = arena_string(laying->arena, value->name);
    bytes member;
    if (family == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++) {
        const struct item_value *element = &value->elements[i];
        TRY(plain_text(laying, element, &member));
        TRY(value->type == ITEM_MAP ? add_cell(laying, family, element->name, member)
                                    : add_cell(laying, family, member, bytes_make("", 1)));
    }
    return status_ok();
}

static bool has_family(const struct item_value *value)
{
    return value->type == ITEM_MAP || value->type == ITEM_STRING_SET ||
           value->type == ITEM_NUMBER_SET || value->type == ITEM_BINARY_SET;
}

static status add_column(struct laying *laying, const struct item_value *value)
{
    const struct item_layout *layout = laying->layout;
    bytes text;
    if (has_name(&layout->counters, value->name))
        return add_counter(laying, value);
    if (has_name(&layout->families, value->name)) {
        if (has_family(value))
            return add_family(laying, value);
        return INVALID("%.*s is to be a family, and is no set or map", shown(value->name),
                       (const char *)value->name.data);
    }
    TRY(plain_text(laying, value, &text));
    return add_cell(laying, layout->family, value->name, text);
}

/* --- losslessly --- */

static status add_lossless(struct laying *laying, const struct item_value *value)
{
    struct buffer json = {0};
    bytes text;
    item_write_json(value, &json);
    TRY(item_keep(laying->arena, &json, &text));
    return add_cell(laying, laying->layout->family, value->name, text);
}

status item_pick_up(const struct move_cell *cells, size_t count, struct arena *arena,
                    struct item_value *out)
{
    *out = (struct item_value){.type = ITEM_MAP};
    out->elements = arena_alloc(arena, count * sizeof *out->elements);
    if (out->elements == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        status s = item_read_json(cells[i].value, arena, &out->elements[i]);
        if (s.code == STATUS_INVALID_ARGUMENT) {
            status lost = status_make(STATUS_DATA_LOSS, "the column %.*s holds no attribute: %s",
                                      shown(cells[i].qualifier),
                                      (const char *)cells[i].qualifier.data, status_message(s));
            status_free(s);
            return lost;
        }
        TRY(s);
        out->elements[i].name = cells[i].qualifier;
        out->count++;
    }
    return item_sort_members(out) ? status_ok()
                                  : status_make(STATUS_DATA_LOSS, "a column is there twice");
}

/* --- as Google's utility --- */

static status add_google_cell(void *context, bytes name, bytes value)
{
    struct laying *laying = context;
    return add_cell(laying, laying->layout->family, name, value);
}

/* --- when --- */

/* Seconds since 1970 if it is less than 10^11 (the year 5138), else milliseconds. */
static bool time_of_number(bytes text, int64_t *us)
{
    const int64_t seconds_most = 100ll * 1000 * 1000 * 1000;
    struct item_number number;
    struct buffer plain = {0};
    status s = item_number_parse(text, &number);
    if (!status_is_ok(s)) {
        status_free(s);
        return false;
    }
    item_number_append_plain(&number, &plain);
    buffer_append_byte(&plain, '\0');
    double value = plain.failed ? -1 : strtod((const char *)plain.data, NULL);
    buffer_free(&plain);
    if (value < 0 || value >= 1e14)
        return false;
    double ms = value < (double)seconds_most ? value * 1000 : value;
    *us = (int64_t)(ms + 0.5) * MS;
    return true;
}

static bool time_of(const struct item_value *value, int64_t *us)
{
    int64_t seconds;
    int32_t nanos;
    if (value->type == ITEM_NUMBER)
        return time_of_number(value->text, us);
    if (value->type != ITEM_STRING || !json_parse_timestamp(value->text, &seconds, &nanos))
        return false;
    *us = seconds * 1000 * 1000 + nanos / (1000 * 1000) * MS;
    return seconds >= 0;
}

static status find_time(struct laying *laying, const struct item_value *item)
{
    const struct item_layout *layout = laying->layout;
    laying->timestamp_us = layout->form == ITEM_AS_GOOGLE ? 0 : layout->default_us;
    if (layout->timestamp == NULL)
        return status_ok();
    const struct item_value *value = item_find(item, bytes_of(layout->timestamp));
    if (value == NULL || time_of(value, &laying->timestamp_us))
        return status_ok();
    return INVALID("%s is no time: neither seconds or milliseconds since 1970, nor as in RFC 3339",
                   layout->timestamp);
}

/* --- all of it --- */

static status add_attributes(struct laying *laying, const struct item_value *item)
{
    const struct item_layout *layout = laying->layout;
    for (size_t i = 0; i < item->count; i++) {
        const struct item_value *value = &item->elements[i];
        if (layout->form == ITEM_LOSSLESS)
            TRY(add_lossless(laying, value));
        else if (layout->form == ITEM_AS_GOOGLE && !is_key(layout, value->name))
            TRY(item_google_cells(value, laying->arena, add_google_cell, laying));
        else if (layout->form == ITEM_AS_COLUMNS && !is_key(layout, value->name))
            TRY(add_column(laying, value));
    }
    return status_ok();
}

/* A row is there if it has a cell: an item of nothing but its key is an empty one. */
static status add_presence(struct laying *laying)
{
    if (laying->change->count > 0)
        return status_ok();
    return add_cell(laying, laying->layout->family, bytes_of(""), bytes_of(""));
}

status item_lay_out(const struct item_layout *layout, const struct item_value *item,
                    struct arena *arena, struct move_change *out)
{
    struct laying laying = {.layout = layout, .arena = arena, .change = out};
    *out = (struct move_change){0};
    TRY(make_row_key(&laying, item));
    TRY(find_time(&laying, item));
    TRY(add_attributes(&laying, item));
    return add_presence(&laying);
}
