#include "cmd/bench/bench_parts.h"

#include <stdio.h>

enum { QUALIFIER_SIZE = 24 };

status bench_split_name(const char *table, struct arena *arena, const char **instance,
                        const char **id)
{
    static const char separator[] = "/tables/";
    const char *found = strstr(table, separator);
    if (found == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--table: %s is no table's full name", table);
    *instance = arena_string(arena, bytes_make(table, (size_t)(found - table)));
    *id = found + sizeof separator - 1;
    return *instance == NULL ? status_out_of_memory() : status_ok();
}

status bench_key_of(uint64_t number, struct arena *arena, ProtobufCBinaryData *out)
{
    uint8_t *key = arena_alloc(arena, BENCH_KEY_SIZE);
    if (key == NULL)
        return status_out_of_memory();
    bench_key_format(number, key);
    *out = (ProtobufCBinaryData){.len = BENCH_KEY_SIZE, .data = key};
    return status_ok();
}

status bench_random_key(struct bench_context *context, struct arena *arena,
                        ProtobufCBinaryData *out)
{
    uint64_t index = bench_random(&context->random) % context->options->rows;
    return bench_key_of(bench_key_number(index), arena, out);
}

ProtobufCBinaryData bench_random_value(struct bench_context *context)
{
    uint64_t room = BENCH_VALUES_SIZE - context->options->value_size;
    uint64_t offset = bench_random(&context->random) % (room + 1);
    return (ProtobufCBinaryData){.len = context->options->value_size,
                                 .data = context->values + offset};
}

status bench_qualifier(uint64_t column, struct arena *arena, ProtobufCBinaryData *out)
{
    char *text = arena_alloc(arena, QUALIFIER_SIZE);
    if (text == NULL)
        return status_out_of_memory();
    int size = snprintf(text, QUALIFIER_SIZE, "c%llu", (unsigned long long)column);
    *out = (ProtobufCBinaryData){.len = (size_t)size, .data = (uint8_t *)text};
    return status_ok();
}

status bench_set_cell(struct bench_context *context, uint64_t column, struct arena *arena,
                      Bt__Mutation **out)
{
    Bt__Mutation__SetCell *cell;
    PROTO_NEW(arena, cell, BT__MUTATION__SET_CELL__INIT);
    cell->family_name = BENCH_FAMILY;
    cell->timestamp_micros = BENCH_TIMESTAMP_US;
    cell->value = bench_random_value(context);
    TRY(bench_qualifier(column, arena, &cell->column_qualifier));
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    (*out)->set_cell = cell;
    return status_ok();
}

void bench_read_rows(struct bench_context *context, Bt__ReadRowsRequest *request,
                     struct buffer *message)
{
    request->table_name = context->options->table;
    proto_encode(&request->base, message);
}

void bench_read_row(struct bench_context *context, ProtobufCBinaryData key, Bt__RowFilter *filter,
                    struct buffer *message)
{
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_keys = 1;
    rows.row_keys = &key;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.rows = &rows;
    request.filter = filter;
    bench_read_rows(context, &request, message);
}

/* --- answers --- */

status bench_one_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    (void)message;
    (void)arena;
    answer->rows_answered++;
    return status_ok();
}

status bench_read_rows_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, arena, &decoded));
    const Bt__ReadRowsResponse *response = (const Bt__ReadRowsResponse *)decoded;
    for (size_t i = 0; i < response->n_chunks; i++)
        if (response->chunks[i]->row_status_case ==
            BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_COMMIT_ROW)
            answer->rows_answered++;
    return status_ok();
}
