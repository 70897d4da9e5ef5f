/* AddToCell: what it costs beside SetCell of as many cells (`write`), and to one cell by everybody.
 */
#include "cmd/bench/bench_parts.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "wire/grpc.h"

#define SUM_FAMILY "sum"

static const char hot_key[] = "hot";

/* --- the family --- */

static void encode_create_family(const char *table, struct buffer *message)
{
    BtAdmin__Type__Int64 integer = BT_ADMIN__TYPE__INT64__INIT;
    BtAdmin__Type input = BT_ADMIN__TYPE__INIT;
    input.kind_case = BT_ADMIN__TYPE__KIND_INT64_TYPE;
    input.int64_type = &integer;
    BtAdmin__Type__Aggregate__Sum sum = BT_ADMIN__TYPE__AGGREGATE__SUM__INIT;
    BtAdmin__Type__Aggregate aggregate = BT_ADMIN__TYPE__AGGREGATE__INIT;
    aggregate.input_type = &input;
    aggregate.aggregator_case = BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_SUM;
    aggregate.sum = &sum;
    BtAdmin__Type type = BT_ADMIN__TYPE__INIT;
    type.kind_case = BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE;
    type.aggregate_type = &aggregate;
    BtAdmin__ColumnFamily family = BT_ADMIN__COLUMN_FAMILY__INIT;
    family.value_type = &type;
    BtAdmin__ModifyColumnFamiliesRequest__Modification create =
        BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__MODIFICATION__INIT;
    create.id = SUM_FAMILY;
    create.mod_case = BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__MODIFICATION__MOD_CREATE;
    create.create = &family;
    BtAdmin__ModifyColumnFamiliesRequest__Modification *modifications[] = {&create};
    BtAdmin__ModifyColumnFamiliesRequest request = BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__INIT;
    request.name = table;
    request.n_modifications = 1;
    request.modifications = modifications;
    proto_encode(&request.base, message);
}

status bench_add_prepare(struct bench_client *client, struct bench_context *context)
{
    struct buffer message = {0};
    grpc_message_start(&message);
    encode_create_family(context->options->table, &message);
    status s = bench_call(client, BENCH_ADMIN "ModifyColumnFamilies", &message);
    if (s.code != STATUS_ALREADY_EXISTS)
        return s;
    status_free(s);
    return status_ok();
}

/* --- requests --- */

static status integer_value(Bt__Value__KindCase kind, int64_t number, struct arena *arena,
                            Bt__Value **out)
{
    PROTO_NEW(arena, *out, BT__VALUE__INIT);
    (*out)->kind_case = kind;
    if (kind == BT__VALUE__KIND_INT_VALUE)
        (*out)->int_value = number;
    else
        (*out)->raw_timestamp_micros = number;
    return status_ok();
}

static status add_to_cell(uint64_t column, struct arena *arena, Bt__Mutation **out)
{
    Bt__Mutation__AddToCell *add;
    PROTO_NEW(arena, add, BT__MUTATION__ADD_TO_CELL__INIT);
    add->family_name = SUM_FAMILY;
    PROTO_NEW(arena, add->column_qualifier, BT__VALUE__INIT);
    add->column_qualifier->kind_case = BT__VALUE__KIND_RAW_VALUE;
    TRY(bench_qualifier(column, arena, &add->column_qualifier->raw_value));
    TRY(integer_value(BT__VALUE__KIND_RAW_TIMESTAMP_MICROS, BENCH_TIMESTAMP_US, arena,
                      &add->timestamp));
    TRY(integer_value(BT__VALUE__KIND_INT_VALUE, 1, arena, &add->input));
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_ADD_TO_CELL;
    (*out)->add_to_cell = add;
    return status_ok();
}

/* Adds one to each of a row's first `cells` columns. */
static status add_to_row(struct bench_context *context, ProtobufCBinaryData row_key, uint64_t cells,
                         struct arena *arena, struct buffer *message)
{
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = context->options->table;
    request.row_key = row_key;
    request.n_mutations = cells;
    request.mutations = arena_alloc(arena, cells * sizeof *request.mutations);
    if (request.mutations == NULL)
        return status_out_of_memory();
    for (uint64_t i = 0; i < cells; i++)
        TRY(add_to_cell(i, arena, &request.mutations[i]));
    proto_encode(&request.base, message);
    return status_ok();
}

static status add_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    ProtobufCBinaryData key;
    TRY(bench_random_key(context, arena, &key));
    answer->rows = 1;
    return add_to_row(context, key, context->options->cells, arena, message);
}

static status hot_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    answer->rows = 1;
    return add_to_row(context, proto_data(bytes_of(hot_key)), 1, arena, message);
}

static status hotread_request(struct bench_context *context, uint64_t number, struct arena *arena,
                              struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    bench_read_row(context, proto_data(bytes_of(hot_key)), NULL, message);
    answer->rows = 1;
    return status_ok();
}

const struct bench_workload bench_add = {.name = "add",
                                         .method = BENCH_DATA "MutateRow",
                                         .request = add_request,
                                         .response = bench_one_response};
const struct bench_workload bench_hot = {.name = "hot",
                                         .method = BENCH_DATA "MutateRow",
                                         .request = hot_request,
                                         .response = bench_one_response};
const struct bench_workload bench_hotread = {.name = "hotread",
                                             .method = BENCH_DATA "ReadRows",
                                             .request = hotread_request,
                                             .response = bench_read_rows_response};
