/* Items as values: found, compared. See item.h. */
#include "formats/item_private.h"

#include <stdlib.h>

static const char *const type_names[] = {
    [ITEM_STRING] = "S",      [ITEM_NUMBER] = "N",      [ITEM_BINARY] = "B",
    [ITEM_BOOL] = "BOOL",     [ITEM_NULL] = "NULL",     [ITEM_STRING_SET] = "SS",
    [ITEM_NUMBER_SET] = "NS", [ITEM_BINARY_SET] = "BS", [ITEM_LIST] = "L",
    [ITEM_MAP] = "M",
};

const char *item_type_name(enum item_type type)
{
    return type_names[type];
}

const struct item_value *item_find(const struct item_value *map, bytes name)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(map->elements[middle].name, name);
        if (order == 0)
            return &map->elements[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool numbers_equal(bytes a, bytes b)
{
    struct item_number x, y;
    status s = item_number_parse(a, &x);
    if (status_is_ok(s))
        s = item_number_parse(b, &y);
    bool is_equal = status_is_ok(s) && x.is_negative == y.is_negative && x.power == y.power &&
                    x.count == y.count && memcmp(x.digits, y.digits, x.count) == 0;
    status_free(s);
    return is_equal;
}

static bool lists_equal(const struct item_value *a, const struct item_value *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (!item_equal(&a->elements[i], &b->elements[i]))
            return false;
    return true;
}

static bool set_has(const struct item_value *set, const struct item_value *element)
{
    for (size_t i = 0; i < set->count; i++)
        if (item_equal(&set->elements[i], element))
            return true;
    return false;
}

/* Compares sets of the same number of elements, no two of which are equal. Most often they are in
 * the same order. */
static bool sets_equal(const struct item_value *a, const struct item_value *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (!item_equal(&a->elements[i], &b->elements[i]) && !set_has(b, &a->elements[i]))
            return false;
    return true;
}

static bool maps_equal(const struct item_value *a, const struct item_value *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (!bytes_equal(a->elements[i].name, b->elements[i].name))
            return false;
    return lists_equal(a, b);
}

bool item_equal(const struct item_value *a, const struct item_value *b)
{
    if (a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case ITEM_STRING:
    case ITEM_BINARY:
        return bytes_equal(a->text, b->text);
    case ITEM_NUMBER:
        return numbers_equal(a->text, b->text);
    case ITEM_BOOL:
        return a->boolean == b->boolean;
    case ITEM_NULL:
        return true;
    case ITEM_LIST:
        return lists_equal(a, b);
    case ITEM_MAP:
        return maps_equal(a, b);
    default:
        return sets_equal(a, b);
    }
}

/* --- for readers and writers of items --- */

bool item_make_room(struct item_value *out, size_t *capacity, struct arena *arena)
{
    if (out->count < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? 4 : 2 * *capacity;
    struct item_value *elements = arena_alloc(arena, wanted * sizeof *elements);
    if (elements == NULL)
        return false;
    if (out->count > 0)
        memcpy(elements, out->elements, out->count * sizeof *elements);
    out->elements = elements;
    *capacity = wanted;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct item_value *x = a, *y = b;
    return bytes_compare(x->name, y->name);
}

/* The members of one map come in the same order in each item, and often by their names. */
static bool are_sorted(const struct item_value *map)
{
    for (size_t i = 1; i < map->count; i++)
        if (bytes_compare(map->elements[i - 1].name, map->elements[i].name) >= 0)
            return false;
    return true;
}

bool item_sort_members(struct item_value *map)
{
    if (are_sorted(map))
        return true;
    qsort(map->elements, map->count, sizeof *map->elements, compare_names);
    return are_sorted(map);
}

status item_keep(struct arena *arena, struct buffer *buffer, bytes *out)
{
    *out = buffer->failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(buffer));
    buffer_free(buffer);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}
