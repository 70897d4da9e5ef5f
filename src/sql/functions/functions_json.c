/* JSON in a STRING: what is at a path in it, and values written so. What is no JSON has nothing at
 * any path. */
#include "sql/functions/function_tables.h"
#include "sql/functions/json_path.h"
#include "sql/functions/json_write.h"
#include "sql/text.h"

/* --- the path: read once, if it is the same for all rows --- */

static status prepare(struct sql_call *call, const struct sql_value *const *args, size_t count,
                      enum json_path_form form)
{
    if (count < 2 || args[1] == NULL || args[1]->is_null)
        return status_ok();
    struct json_path *path = arena_alloc(call->arena, sizeof *path);
    if (path == NULL)
        return status_out_of_memory();
    TRY(json_path_read(args[1]->text, form, call->arena, path));
    call->prepared = path;
    return status_ok();
}

static status prepare_standard(struct sql_call *call, const struct sql_value *const *args,
                               size_t count)
{
    return prepare(call, args, count, JSON_PATH_STANDARD);
}

static status prepare_legacy(struct sql_call *call, const struct sql_value *const *args,
                             size_t count)
{
    return prepare(call, args, count, JSON_PATH_LEGACY);
}

static status path_of(const struct sql_call *call, const struct sql_value *args, size_t count,
                      enum json_path_form form, struct json_path *out)
{
    *out = (struct json_path){0};
    if (call->prepared != NULL)
        *out = *(const struct json_path *)call->prepared;
    else if (count > 1)
        return json_path_read(args[1].text, form, call->arena, out);
    return status_ok();
}

/* --- what is there --- */

static struct json_reader reader_of(bytes text)
{
    const uint8_t *start = text.size == 0 ? (const uint8_t *)"" : text.data;
    return (struct json_reader){start, start + text.size};
}

static bool is_json(bytes text)
{
    struct json_reader reader = reader_of(text);
    return json_skip(&reader, JSON_DEPTH) && json_peek(&reader) == JSON_BAD &&
           reader.at == reader.end;
}

/* Moves to the value that the arguments mean; JSON_BAD if there is none. */
static status find(const struct sql_call *call, const struct sql_value *args, size_t count,
                   enum json_path_form form, struct json_reader *reader, enum json_kind *kind)
{
    struct json_path path;
    TRY(path_of(call, args, count, form, &path));
    *reader = reader_of(args[0].text);
    bool is_found = is_json(args[0].text) && json_path_find(&path, reader);
    *kind = is_found ? json_peek(reader) : JSON_BAD;
    return status_ok();
}

/* The text that the buffer has, or NULL if what it was made of was no JSON after all. */
static status text_or_null(const struct sql_call *call, bool is_text, struct buffer *text,
                           struct sql_value *out)
{
    if (is_text || text->failed)
        return text_result(call, text, out);
    buffer_free(text);
    *out = sql_null();
    return status_ok();
}

static status query(const struct sql_call *call, const struct sql_value *args, size_t count,
                    enum json_path_form form, struct sql_value *out)
{
    struct json_reader reader;
    enum json_kind kind;
    TRY(find(call, args, count, form, &reader, &kind));
    if (kind == JSON_BAD || kind == JSON_NULL)
        return status_ok();
    struct buffer text = {.budget = call->session->budget};
    bool is_text = json_append_compact(&text, &reader);
    return text_or_null(call, is_text, &text, out);
}

static status value(const struct sql_call *call, const struct sql_value *args, size_t count,
                    enum json_path_form form, struct sql_value *out)
{
    struct json_reader reader;
    enum json_kind kind;
    bytes scalar;
    TRY(find(call, args, count, form, &reader, &kind));
    if (kind == JSON_BAD || kind == JSON_NULL || kind == JSON_ARRAY || kind == JSON_OBJECT)
        return status_ok();
    json_take_scalar(&reader, &scalar);
    if (kind != JSON_STRING) {
        *out = sql_of_text(scalar);
        return status_ok();
    }
    struct buffer text = {.budget = call->session->budget};
    bool is_text = json_unescape(scalar, &text);
    return text_or_null(call, is_text, &text, out);
}

static size_t count_elements(struct json_reader reader)
{
    size_t count = 0;
    json_take(&reader, '[');
    if (json_take(&reader, ']'))
        return 0;
    do
        count += json_skip(&reader, JSON_DEPTH);
    while (json_take(&reader, ','));
    return count;
}

/* --- the functions --- */

static status json_query(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    return query(call, args, count, JSON_PATH_STANDARD, out);
}

static status json_extract(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    return query(call, args, count, JSON_PATH_LEGACY, out);
}

static status json_value(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    return value(call, args, count, JSON_PATH_STANDARD, out);
}

static status json_extract_scalar(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    return value(call, args, count, JSON_PATH_LEGACY, out);
}

/* An element that is null is the text null. */
static status json_query_array(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    struct json_reader reader;
    enum json_kind kind;
    TRY(find(call, args, count, JSON_PATH_STANDARD, &reader, &kind));
    if (kind != JSON_ARRAY)
        return status_ok();
    size_t elements = count_elements(reader);
    struct sql_value *items = arena_alloc(call->arena, elements * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    json_take(&reader, '[');
    for (size_t i = 0; i < elements; i++, json_take(&reader, ',')) {
        struct buffer text = {.budget = call->session->budget};
        bool is_text = json_append_compact(&text, &reader);
        TRY(text_or_null(call, is_text, &text, &items[i]));
        if (items[i].is_null)
            return status_ok();
    }
    *out = sql_of_items(items, elements);
    return status_ok();
}

static status to_json_string(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    if (count > 1 && args[1].is_null)
        return status_ok();
    struct buffer text = {.budget = call->session->budget};
    status s = json_append_value(&text, call->types[0], &args[0], count > 1 && args[1].boolean);
    if (status_is_ok(s))
        return text_result(call, &text, out);
    buffer_free(&text);
    return s;
}

const struct sql_function sql_json_functions[] = {
    {"JSON_QUERY", "STRING(STRING, [STRING])", json_query, 0, prepare_standard},
    {"JSON_VALUE", "STRING(STRING, [STRING])", json_value, 0, prepare_standard},
    {"JSON_QUERY_ARRAY", "ARRAY<STRING>(STRING, [STRING])", json_query_array, 0, prepare_standard},
    {"JSON_EXTRACT", "STRING(STRING, [STRING])", json_extract, 0, prepare_legacy},
    {"JSON_EXTRACT_SCALAR", "STRING(STRING, [STRING])", json_extract_scalar, 0, prepare_legacy},
    {"TO_JSON_STRING", "STRING(T, [BOOL])", to_json_string, SQL_TAKES_NULLS},
    {0},
};
