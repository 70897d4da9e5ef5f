/* Aggregates that keep what they are given: arrays, and texts of many texts. */
#include "base/vector.h"
#include "sql/functions/function_tables.h"

/* --- arrays --- */

struct list {
    bool has_any; /* an empty array is one too */
    struct vector values;
};

static status keep(const struct sql_call *call, struct list *list, const struct sql_type *type,
                   const struct sql_value *value)
{
    struct sql_value copy;
    TRY(sql_value_copy(type, value, call->arena, &copy));
    return vector_add(&list->values, call->arena, &copy, sizeof copy);
}

static status array_add(const struct sql_call *call, void *state, const struct sql_value *args,
                        size_t count)
{
    (void)count;
    struct list *list = state;
    list->has_any = true;
    return keep(call, list, call->types[0], &args[0]);
}

static status concat_add(const struct sql_call *call, void *state, const struct sql_value *args,
                         size_t count)
{
    (void)count;
    struct list *list = state;
    list->has_any = true;
    for (size_t i = 0; i < args[0].count; i++)
        TRY(keep(call, list, call->types[0]->element, &args[0].items[i]));
    return status_ok();
}

static status array_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct list *list = state;
    *out = list->has_any ? sql_of_items(list->values.items, list->values.count) : sql_null();
    return status_ok();
}

/* --- STRING_AGG --- */

struct joined {
    bool has_any;
    bool is_null; /* the delimiter was */
    size_t size;
    struct vector texts; /* of bytes: delimiters and texts in turn */
};

static status join(const struct sql_call *call, struct joined *joined, bytes text)
{
    bytes copy = arena_copy(call->arena, text);
    joined->size += text.size;
    return copy.data == NULL ? status_out_of_memory()
                             : vector_add(&joined->texts, call->arena, &copy, sizeof copy);
}

static status string_add(const struct sql_call *call, void *state, const struct sql_value *args,
                         size_t count)
{
    struct joined *joined = state;
    joined->is_null = joined->is_null || (count > 1 && args[1].is_null);
    if (joined->is_null)
        return status_ok();
    if (joined->has_any)
        TRY(join(call, joined, count > 1 ? args[1].text : bytes_of(",")));
    joined->has_any = true;
    return join(call, joined, args[0].text);
}

static status string_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    const struct joined *joined = state;
    const bytes *texts = joined->texts.items;
    uint8_t *data = arena_alloc(call->arena, joined->size);
    *out = sql_null();
    if (data == NULL)
        return status_out_of_memory();
    if (!joined->has_any || joined->is_null)
        return status_ok();
    *out = sql_of_text(bytes_make(data, joined->size));
    for (size_t i = 0; i < joined->texts.count; data += texts[i++].size)
        if (texts[i].size > 0)
            memcpy(data, texts[i].data, texts[i].size);
    return status_ok();
}

const struct sql_aggregate sql_list_aggregates[] = {
    {"ARRAY_AGG", "ARRAY<T>(T:element)", sizeof(struct list),
     SQL_AGGREGATES_NULLS | SQL_ALLOWS_NULLS | SQL_ALLOWS_ORDER, array_add, array_finish},
    {"ARRAY_CONCAT_AGG", "ARRAY<T>(ARRAY<T>)", sizeof(struct list),
     SQL_ALLOWS_ORDER | SQL_NOT_DISTINCT, concat_add, array_finish},
    {"STRING_AGG", "STRING(STRING, [STRING])", sizeof(struct joined), SQL_ALLOWS_ORDER, string_add,
     string_finish},
    {"STRING_AGG", "BYTES(BYTES, [BYTES])", sizeof(struct joined), SQL_ALLOWS_ORDER, string_add,
     string_finish},
    {0},
};
