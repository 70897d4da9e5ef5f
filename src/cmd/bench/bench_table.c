/* The benchmark's table, made again from the start. */
#include "cmd/bench/bench_parts.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "wire/grpc.h"

enum { SETUP_ARENA_LIMIT = 1 << 20, DAY_SECONDS = 86400 };

static status delete_it(struct bench_client *client, const char *name)
{
    BtAdmin__DeleteTableRequest request = BT_ADMIN__DELETE_TABLE_REQUEST__INIT;
    request.name = name;
    struct buffer message = {0};
    grpc_message_start(&message);
    proto_encode(&request.base, &message);
    return bench_call(client, BENCH_ADMIN "DeleteTable", &message);
}

static status end_stream(struct bench_client *client, const char *name)
{
    const char *paths[] = {"change_stream_config"};
    Pb__FieldMask mask = PB__FIELD_MASK__INIT;
    mask.n_paths = 1;
    mask.paths = paths;
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    table.name = name;
    BtAdmin__UpdateTableRequest request = BT_ADMIN__UPDATE_TABLE_REQUEST__INIT;
    request.table = &table;
    request.update_mask = &mask;
    struct buffer message = {0};
    grpc_message_start(&message);
    proto_encode(&request.base, &message);
    return bench_call(client, BENCH_ADMIN "UpdateTable", &message);
}

/* One with a change stream is not deleted before that has ended. */
static status delete_table(struct bench_client *client, const char *name)
{
    status s = delete_it(client, name);
    if (s.code == STATUS_FAILED_PRECONDITION) {
        status_free(s);
        TRY(end_stream(client, name));
        s = delete_it(client, name);
    }
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* Keys that cut the space of all keys into equal parts. */
static status make_splits(uint64_t tablets, struct arena *arena,
                          BtAdmin__CreateTableRequest *request)
{
    request->n_initial_splits = tablets - 1;
    request->initial_splits = arena_alloc(arena, tablets * sizeof *request->initial_splits);
    if (request->initial_splits == NULL)
        return status_out_of_memory();
    for (uint64_t i = 1; i < tablets; i++) {
        BtAdmin__CreateTableRequest__Split *split;
        PROTO_NEW(arena, split, BT_ADMIN__CREATE_TABLE_REQUEST__SPLIT__INIT);
        uint8_t *key = arena_alloc(arena, BENCH_KEY_SIZE);
        if (key == NULL)
            return status_out_of_memory();
        bench_key_format(UINT64_MAX / tablets * i, key);
        split->key = proto_data(bytes_make(key, BENCH_KEY_SIZE));
        request->initial_splits[i - 1] = split;
    }
    return status_ok();
}

static status encode_create_table(const struct bench_options *options, struct arena *arena,
                                  struct buffer *message)
{
    BtAdmin__CreateTableRequest request = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    TRY(bench_split_name(options->table, arena, &request.parent, &request.table_id));
    TRY(make_splits(options->tablets, arena, &request));
    BtAdmin__ColumnFamily family = BT_ADMIN__COLUMN_FAMILY__INIT;
    BtAdmin__Table__ColumnFamiliesEntry entry = BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT;
    entry.key = BENCH_FAMILY;
    entry.value = &family;
    BtAdmin__Table__ColumnFamiliesEntry *entries[] = {&entry};
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    table.n_column_families = 1;
    table.column_families = entries;
    Pb__Duration day = PB__DURATION__INIT;
    day.seconds = DAY_SECONDS;
    BtAdmin__ChangeStreamConfig stream = BT_ADMIN__CHANGE_STREAM_CONFIG__INIT;
    stream.retention_period = &day;
    table.change_stream_config = options->stream ? &stream : NULL;
    request.table = &table;
    proto_encode(&request.base, message);
    return status_ok();
}

static status create_table(struct bench_client *client, const struct bench_options *options)
{
    struct arena *arena = arena_create(SETUP_ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    struct buffer message = {0};
    grpc_message_start(&message);
    status s = encode_create_table(options, arena, &message);
    if (status_is_ok(s))
        s = bench_call(client, BENCH_ADMIN "CreateTable", &message);
    buffer_free(&message);
    arena_destroy(arena);
    return s;
}

status bench_table_prepare(struct bench_client *client, struct bench_context *context)
{
    TRY(delete_table(client, context->options->table));
    TRY(create_table(client, context->options));
    context->stream_from_us = context->options->stream ? clock_wall_us(clock_system()) : 0;
    return status_ok();
}
