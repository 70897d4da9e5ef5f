/* See change_state.h. */
#include "client/change_state.h"

#include "wire/grpc_text.h"
#include "wire/json.h"

#include <inttypes.h>
#include <jansson.h>

enum { FORMAT = 1, KEYS_LIMIT = 64 << 20 /* bytes of memory */ };

/* --- writing --- */

static void write_key(const char *name, bytes key, struct buffer *out)
{
    buffer_append_format(out, "\"%s\":\"", name);
    base64_encode(key, out);
    buffer_append_format(out, "\",");
}

static void write_token(const struct partition_token *token, struct buffer *out)
{
    buffer_append_byte(out, '{');
    write_key("start", token->start, out);
    write_key("end", token->end, out);
    buffer_append_format(out, "\"token\":");
    json_encode_string(bytes_of(token->text), out);
    buffer_append_byte(out, '}');
}

static void write_partition(const struct feed_partition *partition, struct buffer *out)
{
    buffer_append_byte(out, '{');
    write_key("start", partition->start, out);
    write_key("end", partition->end, out);
    buffer_append_format(out, "\"watermark\":%" PRId64 ",\"tokens\":[", partition->watermark_us);
    for (size_t i = 0; i < partition->token_count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        write_token(&partition->tokens[i], out);
    }
    buffer_append_format(out, "]}");
}

void change_state_write(const struct change_state *state,
                        const struct change_partitions *partitions, struct buffer *out)
{
    buffer_append_format(out, "{\"change_feed\":%d,\"table\":", FORMAT);
    json_encode_string(bytes_of(state->table), out);
    buffer_append_format(out, ",\"from\":%" PRId64 ",\"partitions\":[", state->from_us);
    for (size_t i = 0; i < partitions->count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        write_partition(partitions->items[i], out);
    }
    buffer_append_format(out, "]}");
}

/* --- reading --- */

static status no_state(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "this is no place of a change feed: %s", what);
}

static status read_key(const char *text, struct arena *arena, bytes *out)
{
    size_t size;
    uint8_t *to = arena_alloc(arena, base64_decoded_most(strlen(text)));
    if (to == NULL)
        return status_out_of_memory();
    if (!base64_decode(bytes_of(text), to, &size))
        return no_state("a key is not base64");
    *out = bytes_make(to, size);
    return status_ok();
}

static status read_token(json_t *json, struct arena *arena, struct partition_token *out)
{
    const char *start, *end;
    if (json_unpack(json, "{s:s,s:s,s:s}", "start", &start, "end", &end, "token", &out->text) != 0)
        return no_state("a token is incomplete");
    TRY(read_key(start, arena, &out->start));
    return read_key(end, arena, &out->end);
}

static status read_tokens(json_t *json, struct arena *arena, struct partition_token **out,
                          size_t *count)
{
    *count = json_array_size(json);
    *out = arena_alloc(arena, (*count + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < *count; i++)
        TRY(read_token(json_array_get(json, i), arena, &(*out)[i]));
    return status_ok();
}

static status read_partition(json_t *json, struct arena *arena,
                             struct change_partitions *partitions)
{
    const char *start, *end;
    json_int_t watermark_us;
    json_t *tokens_json;
    struct partition_token *tokens;
    bytes start_key, end_key;
    size_t count;
    if (json_unpack(json, "{s:s,s:s,s:I,s:o}", "start", &start, "end", &end, "watermark",
                    &watermark_us, "tokens", &tokens_json) != 0)
        return no_state("a partition is incomplete");
    TRY(read_key(start, arena, &start_key));
    TRY(read_key(end, arena, &end_key));
    TRY(read_tokens(tokens_json, arena, &tokens, &count));
    return change_partitions_add(partitions, start_key, end_key, tokens, count, watermark_us);
}

static status read_partitions(json_t *json, struct arena *arena,
                              struct change_partitions *partitions)
{
    size_t count = json_array_size(json);
    for (size_t i = 0; i < count; i++)
        TRY(read_partition(json_array_get(json, i), arena, partitions));
    /* None: it was kept before the partitions were known. */
    return count == 0 ? status_ok() : change_partitions_check(partitions);
}

/* DATA_LOSS, which is what partitions of a server that do not fit are, is not what this is. */
static status as_no_state(status s)
{
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s);
    return no_state("its partitions do not tile the keys");
}

static status read_json(json_t *json, struct change_state *state,
                        struct change_partitions *partitions)
{
    int format;
    const char *table;
    json_int_t from_us;
    json_t *list;
    if (json_unpack(json, "{s:i,s:s,s:I,s:o}", "change_feed", &format, "table", &table, "from",
                    &from_us, "partitions", &list) != 0 ||
        format != FORMAT)
        return no_state("it has another form");
    if (strcmp(table, state->table) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "this is the place of a change feed of another table, %s", table);
    struct arena *arena = arena_create(KEYS_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    state->from_us = from_us;
    status s = as_no_state(read_partitions(list, arena, partitions));
    arena_destroy(arena);
    return s;
}

status change_state_read(bytes text, struct change_state *state,
                         struct change_partitions *partitions)
{
    json_error_t error;
    json_t *json = json_loadb((const char *)text.data, text.size, 0, &error);
    if (json == NULL)
        return no_state("it is no JSON");
    status s = read_json(json, state, partitions);
    json_decref(json);
    return s;
}
