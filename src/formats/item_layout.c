/* See item_layout.h. */
#include "formats/item_layout.h"

#include "base/limits.h"
#include "formats/item_cells.h"
#include "formats/item_google.h"
#include "formats/item_private.h"

struct laying {
    const struct item_layout *layout;
    struct arena *arena;
    struct move_change *change;
    const char *family;
    int64_t timestamp_us;
};

static bool has_name(const struct item_names *names, bytes name)
{
    for (size_t i = 0; i < names->count; i++)
        if (bytes_equal(bytes_of(names->names[i]), name))
            return true;
    return false;
}

/* --- row keys --- */

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
        return item_append_key(value, layout->orders_numbers, out);
    struct buffer plain = {0};
    status s = item_append_key(value, layout->orders_numbers, &plain);
    append_escaped(layout, buffer_bytes(&plain), out);
    out->failed |= plain.failed;
    buffer_free(&plain);
    return s;
}

static status append_row_key(const struct item_layout *layout, const struct item_value *item,
                             struct buffer *out)
{
    const struct item_value *partition, *sort;
    TRY(item_find_key(item, bytes_of(layout->partition_key), &partition));
    if (layout->salts > 0)
        TRY(item_append_salt(partition->text, layout->salts, layout->delimiter, out));
    TRY(append_partition_key(layout, partition, out));
    if (layout->sort_key == NULL)
        return status_ok();
    TRY(item_find_key(item, bytes_of(layout->sort_key), &sort));
    buffer_append_bytes(out, bytes_of(layout->delimiter));
    return item_append_key(sort, layout->orders_numbers, out);
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
        return ITEM_INVALID("the row key has %zu bytes, more than %d", laying->change->row_key.size,
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
    return item_add_cell(laying->change, laying->arena, &cell);
}

/* --- as columns --- */

static status add_column(struct laying *laying, const struct item_value *value)
{
    const struct item_layout *layout = laying->layout;
    bytes text;
    if (has_name(&layout->families, value->name)) {
        const char *family = arena_string(laying->arena, value->name);
        return family == NULL ? status_out_of_memory()
                              : item_add_family(value, family, laying->timestamp_us, laying->arena,
                                                laying->change);
    }
    TRY(has_name(&layout->counters, value->name) ? item_counter(value, laying->arena, &text)
                                                 : item_text(value, laying->arena, &text));
    return add_cell(laying, laying->family, value->name, text);
}

/* --- losslessly --- */

static status add_lossless(struct laying *laying, const struct item_value *value)
{
    bytes text;
    TRY(item_typed_json(value, laying->arena, &text));
    return add_cell(laying, laying->family, value->name, text);
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
                                      item_shown(cells[i].qualifier),
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
    return add_cell(laying, laying->family, name, value);
}

/* --- when --- */

static status find_time(struct laying *laying, const struct item_value *item)
{
    const struct item_layout *layout = laying->layout;
    laying->family = layout->family;
    laying->timestamp_us = layout->form == ITEM_AS_GOOGLE ? 0 : layout->default_us;
    if (layout->timestamp == NULL)
        return status_ok();
    const struct item_value *value = item_find(item, bytes_of(layout->timestamp));
    if (value == NULL || item_time(value, &laying->timestamp_us))
        return status_ok();
    return ITEM_INVALID(
        "%s is no time: neither seconds or milliseconds since 1970, nor as in RFC 3339",
        layout->timestamp);
}

/* Finds the end: an item that ends lies in a family whose rule ends it then. */
static void find_end(struct laying *laying, const struct item_value *item)
{
    const struct item_ttl *ttl = &laying->layout->ttl;
    laying->change->ends_us = item_end(item, ttl->attribute, laying->layout->now_us);
    if (laying->change->ends_us == 0 || ttl->family == NULL)
        return;
    laying->family = ttl->family;
    laying->timestamp_us = item_dated(laying->change->ends_us, ttl->age_us);
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
    return add_cell(laying, laying->family, bytes_of(""), bytes_of(""));
}

status item_lay_out(const struct item_layout *layout, const struct item_value *item,
                    struct arena *arena, struct move_change *out)
{
    struct laying laying = {.layout = layout, .arena = arena, .change = out};
    if (layout->mapping != NULL)
        return item_map(layout->mapping, item, layout->default_us, layout->now_us, arena, out);
    *out = (struct move_change){0};
    TRY(make_row_key(&laying, item));
    TRY(find_time(&laying, item));
    find_end(&laying, item);
    TRY(add_attributes(&laying, item));
    return add_presence(&laying);
}
