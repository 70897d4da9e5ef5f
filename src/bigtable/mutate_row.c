/* MutateRow. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/idempotency.h"
#include "bigtable/mutations.h"
#include "bigtable/request_usage.h"
#include "bigtable/row_error.h"
#include "cluster/rows.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct mutate_row {
    struct data_call data;
    const Bt__MutateRowRequest *request;
    struct row_write write;
};

static void finish(struct row_write *write, status result)
{
    struct mutate_row *self = LIST_ENTRY(write, struct mutate_row, write);
    const Bt__MutateRowResponse response = BT__MUTATE_ROW_RESPONSE__INIT;
    data_call_tell_commit(&self->data, write->locked_us, &write->commit.times);
    grpc_call_count(self->data.call, status_is_ok(result), 1);
    if (status_is_ok(result))
        request_usage_write(&self->data, write->row_key, self->request->mutations,
                            self->request->n_mutations);
    if (status_is_ok(result))
        data_call_respond(&self->data, &response.base);
    else
        data_call_finish(&self->data, result);
}

static void locked(struct row_write *write)
{
    struct mutate_row *self = LIST_ENTRY(write, struct mutate_row, write);
    grpc_call_is_at(self->data.call, CALL_COMMITS);
}

static status start(struct mutate_row *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__mutate_row_request__descriptor, wire, data->arena, &message));
    const Bt__MutateRowRequest *request = (const void *)message;
    bytes row_key = proto_bytes(request->row_key);
    self->request = request;
    TRY(row_key_check(row_key));
    if (request->n_mutations == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "No mutations provided");
    TRY(mutations_check(MUTATION_LIST, request->mutations, request->n_mutations));
    TRY(idempotency_check(request->idempotency));
    TRY(data_call_open(
        data, &(struct data_target){.table_name = request->table_name,
                                    .app_profile_id = request->app_profile_id,
                                    .authorized_view_name = request->authorized_view_name}));
    TRY(idempotency_check_age(request->idempotency, cluster_clock(data->bigtable->cluster)));

    struct mutation_context context = {
        .schema = table_schema(data->table),
        .table_name = table_name(data->table),
        .now_us = cluster_version_us(data->bigtable->cluster),
        .big_value = rows_big_value(data->table),
        .wants_list = table_has_stream(data->table),
        .arena = data->arena,
        .home = data->arena,
    };
    TRY(view_check_mutations(data->view, context.schema, row_key, request->mutations,
                             request->n_mutations));
    TRY(mutations_check_inputs(context.schema, MUTATION_LIST, request->mutations,
                               request->n_mutations));
    struct row_write *write = &self->write;
    TRY(mutations_pack(&context, row_key, request->mutations, request->n_mutations,
                       &write->change));
    write->table = data->table;
    write->row_key = row_key;
    write->token = idempotency_token(request->idempotency);
    write->loop = grpc_call_loop(data->call);
    write->done = finish;
    write->locked = locked;
    grpc_call_step(data->call, CALL_AWAITS_LOCK);
    rows_write(write);
    return status_ok();
}

void mutate_row(void *context, struct grpc_call *call, bytes request)
{
    struct mutate_row *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
