/* CheckAndMutateRow. The predicate is looked at under the row's lock, and what it decides is
 * written before the lock is given up. */
#include <stdlib.h>

#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/filter_message.h"
#include "bigtable/mutations.h"
#include "bigtable/row_error.h"
#include "bigtable/update_room.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* Production's names of the two lists, for errors in them. */
static const char true_list[] = "true mutation list";
static const char false_list[] = "false mutation list";

struct check_and_mutate {
    struct data_call data;
    const Bt__CheckAndMutateRowRequest *request;
    const struct schema *schema;
    struct filter *predicate; /* NULL: any cell will do */
    struct read_scope scope;
    struct update_room room;
    bool matched;
};

static void finish(struct row_update *update, status result)
{
    struct check_and_mutate *self = LIST_ENTRY(update, struct check_and_mutate, room.update);
    Bt__CheckAndMutateRowResponse response = BT__CHECK_AND_MUTATE_ROW_RESPONSE__INIT;
    response.predicate_matched = self->matched;
    filter_destroy(self->predicate);
    update_room_end(&self->room);
    data_call_tell_commit(&self->data, update->locked_us, &update->commit.times);
    grpc_call_count(self->data.call, status_is_ok(result), 1);
    if (status_is_ok(result))
        data_call_respond(&self->data, &response.base);
    else
        data_call_finish(&self->data, result);
}

static status check_predicate(struct check_and_mutate *self, const struct cell_list *cells)
{
    struct cell_list passed = {.arena = self->data.arena};
    if (self->predicate == NULL) {
        self->matched = cells->count > 0;
        return status_ok();
    }
    uint64_t random;
    arc4random_buf(&random, sizeof random);
    TRY(filter_apply(self->predicate, self->room.update.row_key, cells, random, NULL, &passed));
    self->matched = passed.count > 0;
    return status_ok();
}

static status decide(struct row_update *update, const struct cell_list *cells,
                     struct packed_change *change, bool *writes)
{
    struct check_and_mutate *self = LIST_ENTRY(update, struct check_and_mutate, room.update);
    const Bt__CheckAndMutateRowRequest *request = self->request;
    data_call_tell_read(&self->data, update->locked_us);
    TRY(check_predicate(self, cells));
    size_t count = self->matched ? request->n_true_mutations : request->n_false_mutations;
    *writes = count > 0;
    if (count == 0)
        return status_ok();
    struct mutation_context context = {
        .schema = self->schema,
        .table_name = table_name(self->data.table),
        .now_us = cluster_version_us(self->data.bigtable->cluster),
        .big_value = rows_big_value(self->data.table),
        .wants_list = table_has_stream(self->data.table),
        .arena = self->data.arena,
        .home = self->data.arena,
    };
    return mutations_pack(&context, update->row_key,
                          self->matched ? request->true_mutations : request->false_mutations, count,
                          change);
}

static status check_request(const Bt__CheckAndMutateRowRequest *request)
{
    TRY(row_key_check(proto_bytes(request->row_key)));
    if (request->n_true_mutations == 0 && request->n_false_mutations == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "No mutations provided");
    TRY(mutations_check(true_list, request->true_mutations, request->n_true_mutations));
    return mutations_check(false_list, request->false_mutations, request->n_false_mutations);
}

/* Both lists, whichever is going to be taken. */
static status check_view(const struct check_and_mutate *self)
{
    const Bt__CheckAndMutateRowRequest *request = self->request;
    const struct view *view = self->data.view;
    bytes row_key = proto_bytes(request->row_key);
    TRY(view_check_mutations(view, self->schema, row_key, request->true_mutations,
                             request->n_true_mutations));
    return view_check_mutations(view, self->schema, row_key, request->false_mutations,
                                request->n_false_mutations);
}

static status check_inputs(const struct check_and_mutate *self)
{
    const Bt__CheckAndMutateRowRequest *request = self->request;
    TRY(mutations_check_inputs(self->schema, true_list, request->true_mutations,
                               request->n_true_mutations));
    return mutations_check_inputs(self->schema, false_list, request->false_mutations,
                                  request->n_false_mutations);
}

/* Sets the part of the row that the predicate needs. Without one a single cell is enough, whatever
 * its value. */
static status set_scope(struct check_and_mutate *self)
{
    struct arena *arena = self->data.arena;
    if (self->predicate != NULL)
        TRY(filter_scope(self->predicate, self->schema, arena, &self->scope));
    else
        self->scope = (struct read_scope){.cells_per_column = 1, .cells_per_row = 1};
    if (self->data.view == NULL)
        return status_ok();
    return columns_restrict(&self->data.view->columns, self->schema, arena, &self->scope);
}

static void locked(struct row_update *update)
{
    struct check_and_mutate *self = LIST_ENTRY(update, struct check_and_mutate, room.update);
    grpc_call_is_at(self->data.call, CALL_READS);
}

static status start(struct check_and_mutate *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__check_and_mutate_row_request__descriptor, wire, data->arena, &message));
    const Bt__CheckAndMutateRowRequest *request = (const void *)message;
    self->request = request;
    TRY(check_request(request));
    TRY(data_call_open(
        data, &(struct data_target){.table_name = request->table_name,
                                    .app_profile_id = request->app_profile_id,
                                    .authorized_view_name = request->authorized_view_name}));
    TRY(data_call_check_transaction(data));
    self->schema = table_schema(data->table);
    TRY(check_view(self));
    TRY(check_inputs(self));
    TRY(filter_message_compile(request->predicate_filter, data->arena, &self->predicate));
    TRY(set_scope(self));
    self->room.update = (struct row_update){
        .table = data->table,
        .schema = self->schema,
        .row_key = proto_bytes(request->row_key),
        .scope = &self->scope,
        .arena = data->arena,
        .loop = grpc_call_loop(data->call),
        .decide = decide,
        .done = finish,
        .locked = locked,
    };
    self->room.times = 1;
    update_room_begin(&self->room, data);
    return status_ok();
}

void check_and_mutate_row(void *context, struct grpc_call *call, bytes request)
{
    struct check_and_mutate *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s)) {
        filter_destroy(self->predicate);
        data_call_finish(&self->data, s);
    }
}
