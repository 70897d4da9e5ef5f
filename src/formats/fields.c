/* See fields.h. */
#include "formats/fields.h"

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* A name in a message. */
#define SHOWN(name) (int)((name).size < 100 ? (name).size : 100), (const char *)(name).data

struct laying {
    const struct field_layout *layout;
    const struct field *fields;
    size_t count;
    struct arena *arena;
    struct move_change *change;
    int64_t timestamp_us;
};

static const struct field *find_field(const struct laying *laying, bytes name)
{
    for (size_t i = 0; i < laying->count; i++)
        if (bytes_equal(laying->fields[i].name, name))
            return &laying->fields[i];
    return NULL;
}

/* Names the field in what is wrong with its text. */
static status convert(const struct laying *laying, enum field_type type, const struct field *field,
                      bytes *out)
{
    status s = field_to_bytes(type, field->text, laying->arena, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status named = INVALID("the field %.*s %s", SHOWN(field->name), status_message(s));
    status_free(s);
    return named;
}

/* --- row keys --- */

static status append_part(const struct laying *laying, const struct field_part *part,
                          struct buffer *key)
{
    bytes value = part->text;
    if (part->is_field) {
        const struct field *field = find_field(laying, part->text);
        if (field == NULL || field->is_null)
            return INVALID("the field %.*s, of the row key, is not there", SHOWN(part->text));
        if (field->text.size == 0)
            return INVALID("the field %.*s, of the row key, is empty", SHOWN(part->text));
        TRY(convert(laying, part->type, field, &value));
    }
    buffer_append_bytes(key, value);
    return status_ok();
}

static status make_row_key(const struct laying *laying)
{
    struct buffer key = {0};
    status s = status_ok();
    for (size_t i = 0; i < laying->layout->key_count && status_is_ok(s); i++)
        s = append_part(laying, &laying->layout->key[i], &key);
    if (status_is_ok(s) && !key.failed)
        laying->change->row_key = arena_copy(laying->arena, buffer_bytes(&key));
    if (status_is_ok(s) && laying->change->row_key.data == NULL)
        s = status_out_of_memory();
    buffer_free(&key);
    return s;
}

static bool is_in_key(const struct field_layout *layout, bytes name)
{
    for (size_t i = 0; i < layout->key_count; i++)
        if (layout->key[i].is_field && bytes_equal(layout->key[i].text, name))
            return true;
    return false;
}

/* --- cells --- */

static status add_cell(struct laying *laying, const struct field *field, const char *family,
                       bytes qualifier)
{
    struct move_cell cell = {
        .family = family, .qualifier = qualifier, .timestamp_us = laying->timestamp_us};
    TRY(convert(laying, field_layout_type(laying->layout, field->name), field, &cell.value));
    return move_change_add(laying->change, laying->arena, &cell);
}

static status add_named(struct laying *laying)
{
    const struct field_layout *layout = laying->layout;
    for (size_t i = 0; i < layout->column_count; i++) {
        const struct field_column *column = &layout->columns[i];
        const struct field *field = find_field(laying, column->name);
        if (field != NULL && !field->is_null)
            TRY(add_cell(laying, field, column->family, column->qualifier));
    }
    return status_ok();
}

static status add_all(struct laying *laying)
{
    const struct field_layout *layout = laying->layout;
    for (size_t i = 0; i < laying->count; i++) {
        const struct field *field = &laying->fields[i];
        bool is_time =
            layout->timestamp != NULL && bytes_equal(field->name, bytes_of(layout->timestamp));
        if (!field->is_null && !is_time && !is_in_key(layout, field->name))
            TRY(add_cell(laying, field, layout->family, field->name));
    }
    return status_ok();
}

static status find_time(struct laying *laying)
{
    const struct field_layout *layout = laying->layout;
    laying->timestamp_us = layout->default_us;
    if (layout->timestamp == NULL)
        return status_ok();
    const struct field *field = find_field(laying, bytes_of(layout->timestamp));
    if (field == NULL || field->is_null || field->text.size == 0 ||
        field_to_time(field->text, &laying->timestamp_us))
        return status_ok();
    return INVALID("the field %s is no time: neither a number since 1970, nor as in RFC 3339",
                   layout->timestamp);
}

status fields_lay_out(const struct field_layout *layout, const struct field *fields, size_t count,
                      struct arena *arena, struct move_change *out)
{
    struct laying laying = {
        .layout = layout, .fields = fields, .count = count, .arena = arena, .change = out};
    *out = (struct move_change){0};
    TRY(make_row_key(&laying));
    TRY(find_time(&laying));
    TRY(layout->column_count > 0 ? add_named(&laying) : add_all(&laying));
    if (out->count == 0)
        return INVALID("there is no value beside the row key");
    return move_change_check(out);
}
