/* See request_traits.h. */
#include "replica/request_traits.h"

#include "base/varint.h"

/* --- fields, one after the other --- */

enum wire_type { WIRE_VARINT = 0, WIRE_EIGHT_BYTES = 1, WIRE_SIZED = 2, WIRE_FOUR_BYTES = 5 };

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value; /* of a varint */
    bytes content;  /* of what is sized */
};

static bool take(bytes *rest, size_t size, bytes *out)
{
    if (size > rest->size)
        return false;
    *out = bytes_make(rest->data, size);
    *rest = bytes_make(rest->data + size, rest->size - size);
    return true;
}

static bool take_varint(bytes *rest, uint64_t *out)
{
    const uint8_t *end = varint_read(rest->data, rest->data + rest->size, out);
    bytes read;
    return end != NULL && take(rest, (size_t)(end - rest->data), &read);
}

static bool take_content(bytes *rest, struct wire_field *field)
{
    uint64_t size;
    switch (field->type) {
    case WIRE_VARINT:
        return take_varint(rest, &field->value);
    case WIRE_EIGHT_BYTES:
        return take(rest, 8, &field->content);
    case WIRE_FOUR_BYTES:
        return take(rest, 4, &field->content);
    case WIRE_SIZED:
        return take_varint(rest, &size) && take(rest, size, &field->content);
    }
    return false;
}

static bool take_field(bytes *rest, struct wire_field *field)
{
    uint64_t tag;
    if (!take_varint(rest, &tag))
        return false;
    *field = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    return take_content(rest, field);
}

static bool is_sized(const struct wire_field *field, uint32_t number)
{
    return field->number == number && field->type == WIRE_SIZED;
}

/* --- mutations --- */

/* Of google.bigtable.v2.Mutation and its SetCell. */
enum { SET_CELL = 1, ADD_TO_CELL = 5, MERGE_TO_CELL = 6, SET_CELL_TIMESTAMP = 3, FIELDS_KNOWN = 7 };

static bool has_own_time(bytes set_cell)
{
    struct wire_field field;
    while (set_cell.size > 0) {
        if (!take_field(&set_cell, &field) ||
            (field.number == SET_CELL_TIMESTAMP && (int64_t)field.value < 0))
            return false;
    }
    return true;
}

/* What is not known might be anything. */
static bool mutation_may_repeat(bytes mutation)
{
    struct wire_field field;
    while (mutation.size > 0) {
        if (!take_field(&mutation, &field) || field.number == ADD_TO_CELL ||
            field.number == MERGE_TO_CELL || field.number > FIELDS_KNOWN)
            return false;
        if (is_sized(&field, SET_CELL) && !has_own_time(field.content))
            return false;
    }
    return true;
}

static bool list_may_repeat(bytes message, uint32_t list)
{
    struct wire_field field;
    while (message.size > 0)
        if (!take_field(&message, &field) ||
            (is_sized(&field, list) && !mutation_may_repeat(field.content)))
            return false;
    return true;
}

bool mutations_may_repeat(bytes request, uint32_t list, uint32_t entry)
{
    struct wire_field field;
    if (entry == 0)
        return list_may_repeat(request, list);
    while (request.size > 0)
        if (!take_field(&request, &field) ||
            (is_sized(&field, list) && !list_may_repeat(field.content, entry)))
            return false;
    return true;
}

/* --- keys --- */

enum { ENTRY_KEY = 1, SET_KEYS = 1, SET_RANGES = 2 };

/* The last content of the field of that number, and how often it is there. */
struct found {
    bytes content;
    size_t count;
};

static bool find(bytes message, uint32_t number, struct found *out)
{
    struct wire_field field;
    *out = (struct found){.count = 0};
    while (message.size > 0) {
        if (!take_field(&message, &field))
            return false;
        if (!is_sized(&field, number))
            continue;
        out->content = field.content;
        out->count++;
    }
    return true;
}

static bool find_once(bytes message, uint32_t number, bytes *out)
{
    struct found found;
    bool is_once = find(message, number, &found) && found.count == 1;
    *out = found.content;
    return is_once;
}

static bool key_of_set(bytes set, bytes *key)
{
    struct found ranges;
    return find(set, SET_RANGES, &ranges) && ranges.count == 0 && find_once(set, SET_KEYS, key);
}

bool request_row_key(bytes request, enum row_key_place place, uint32_t field, bytes *key)
{
    bytes content;
    if (place == ROW_KEY_NONE || !find_once(request, field, &content))
        return false;
    *key = content;
    if (place == ROW_KEY_ENTRY)
        return find_once(content, ENTRY_KEY, key);
    return place == ROW_KEY || key_of_set(content, key);
}
