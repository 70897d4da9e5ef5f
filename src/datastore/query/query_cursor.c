/* Cursors: see query_cursor.h. */
#include "datastore/query/query_cursor.h"

#include "datastore/model/value.h"
#include "row/key_text.h"
#include "wire/proto.h"

enum { VERSION = 1, HEAD_SIZE = 9 };

static status append_head(const struct ds_query *query, struct buffer *out)
{
    struct buffer meaning = {0};
    key_text_append(&meaning, bytes_of(query->name_space));
    key_text_append(&meaning, bytes_of(query->kind == NULL ? "" : query->kind));
    for (size_t i = 0; i < query->order_count; i++) {
        key_text_append(&meaning, bytes_of(query->orders[i].property));
        buffer_append_byte(&meaning, (uint8_t)query->orders[i].flip);
    }
    buffer_append_byte(&meaning, (uint8_t)query->key_flip);
    buffer_append_byte(out, VERSION);
    ds_number_append(out, bytes_hash(buffer_bytes(&meaning)));
    status s = meaning.failed || out->failed ? status_out_of_memory() : status_ok();
    buffer_free(&meaning);
    return s;
}

status ds_cursor_make(const struct ds_query *query, bytes position, struct arena *arena,
                      ProtobufCBinaryData *out)
{
    struct buffer cursor = {0};
    status s = append_head(query, &cursor);
    buffer_append_bytes(&cursor, position);
    if (status_is_ok(s)) {
        bytes copy = arena_copy(arena, buffer_bytes(&cursor));
        *out = proto_data(copy);
        if (cursor.failed || copy.data == NULL)
            s = status_out_of_memory();
    }
    buffer_free(&cursor);
    return s;
}

bool ds_position_values(const struct ds_query *query, bytes position, size_t count, bytes *values,
                        bytes *rest)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = ds_value_size(position, query->orders[i].flip);
        if (size == 0)
            return false;
        if (values != NULL)
            values[i] = bytes_make(position.data, size);
        position = bytes_from(position, size);
    }
    *rest = position;
    return true;
}

bool ds_position_is_valid(const struct ds_query *query, bytes position)
{
    if (!ds_position_values(query, position, query->order_count, NULL, &position))
        return false;
    if (query->key_flip == DS_ASCENDING)
        return ds_path_is_valid(position);
    return position.size > 0 && ds_ancestor_size(position, query->key_flip) == position.size;
}

status ds_cursor_read(const struct ds_query *query, bytes cursor, bytes *out)
{
    struct buffer head = {0};
    status s = append_head(query, &head);
    bool is_ours = bytes_start_with(cursor, buffer_bytes(&head));
    buffer_free(&head);
    TRY(s);
    if (is_ours)
        *out = bytes_from(cursor, HEAD_SIZE);
    if (is_ours && (out->size == 0 || ds_position_is_valid(query, *out)))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "The cursor is not one of this query.");
}

status ds_cursors_read(const Ds__Query *request, struct ds_query *query)
{
    if (request->start_cursor.len > 0)
        TRY(ds_cursor_read(query, proto_bytes(request->start_cursor), &query->start));
    query->has_end = request->end_cursor.len > 0;
    if (query->has_end)
        TRY(ds_cursor_read(query, proto_bytes(request->end_cursor), &query->end));
    return status_ok();
}
