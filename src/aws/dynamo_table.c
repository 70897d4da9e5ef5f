/* See dynamo_table.h. */
#include "aws/dynamo_table.h"

/* `*out` stays NULL if it is not there. */
static status copy_text(const json_t *object, const char *name, struct arena *arena,
                        const char **out)
{
    const char *text = json_string_value(json_object_get(object, name));
    if (text == NULL)
        return status_ok();
    *out = arena_string(arena, bytes_of(text));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status take_keys(const json_t *schema, struct arena *arena, struct dynamo_table *out)
{
    size_t i;
    const json_t *key;
    json_array_foreach(schema, i, key)
    {
        const char *type = json_string_value(json_object_get(key, "KeyType"));
        bool is_sort = type != NULL && strcmp(type, "RANGE") == 0;
        TRY(copy_text(key, "AttributeName", arena, is_sort ? &out->sort_key : &out->partition_key));
    }
    return out->partition_key != NULL
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "DescribeTable: the answer has no KeySchema");
}

static status take_table(const json_t *table, struct arena *arena, struct dynamo_table *out)
{
    const json_t *stream = json_object_get(table, "StreamSpecification");
    TRY(take_keys(json_object_get(table, "KeySchema"), arena, out));
    if (!json_is_true(json_object_get(stream, "StreamEnabled")))
        return status_ok();
    TRY(copy_text(table, "LatestStreamArn", arena, &out->stream));
    return copy_text(stream, "StreamViewType", arena, &out->stream_view);
}

status dynamo_table_describe(struct dynamo_client *client, const char *name, struct arena *arena,
                             struct dynamo_table *out)
{
    json_t *answer;
    *out = (struct dynamo_table){.name = arena_string(arena, bytes_of(name))};
    if (out->name == NULL)
        return status_out_of_memory();
    TRY(dynamo_client_call(client, DYNAMO_TABLES, "DescribeTable",
                           json_pack("{s:s}", "TableName", name), &out->server_us, &answer));
    status s = take_table(json_object_get(answer, "Table"), arena, out);
    json_decref(answer);
    if (out->server_us == 0)
        out->server_us = clock_wall_us(loop_clock(dynamo_client_loop(client)));
    return s;
}
