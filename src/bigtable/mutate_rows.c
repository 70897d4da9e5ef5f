/* MutateRows: many rows, each written by itself; an answer for each.
 *
 *     pack all entries ──► write them ──► answers in the order in which they are durable
 *
 * All entries are packed before the first is written, since one that does not fit the types of its
 * families fails them all. Packing and writing go in slices of SLICE_ENTRIES, between which the
 * loop serves others. Everything here runs on the call's loop. */
#include "base/limits.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/mutations.h"
#include "bigtable/row_error.h"
#include "cluster/rows.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum { SLICE_ENTRIES = 200, MESSAGE_BYTES = 64 << 10 };

/* One entry: packed and not yet written, written, or failed. */
struct entry_write {
    struct row_write write;
    struct mutate_rows *call;
    status result;
};

struct mutate_rows {
    struct data_call data;
    const Bt__MutateRowsRequest *request;
    struct mutation_context context;
    struct entry_write *entries;
    struct task task;
    size_t packed; /* entries so far */
    size_t written;
    size_t answered;
    struct buffer message; /* answers that wait to be sent */
};

/* --- answers --- */

static void send_answers(struct mutate_rows *self)
{
    if (self->message.size > 0 || self->message.failed)
        grpc_call_send(self->data.call, &self->message);
}

/* Takes the result. Repeated fields of messages that stand one behind the other add up. */
static void answer(struct mutate_rows *self, size_t index, status result)
{
    Rpc__Status code = RPC__STATUS__INIT;
    code.code = (int32_t)result.code;
    if (!status_is_ok(result))
        code.message = status_message(result);
    Bt__MutateRowsResponse__Entry entry = BT__MUTATE_ROWS_RESPONSE__ENTRY__INIT;
    entry.index = (int64_t)index;
    entry.status = &code;
    Bt__MutateRowsResponse__Entry *entries[] = {&entry};
    Bt__MutateRowsResponse response = BT__MUTATE_ROWS_RESPONSE__INIT;
    response.n_entries = 1;
    response.entries = entries;
    if (self->message.size == 0)
        grpc_message_start(&self->message);
    proto_encode(&response.base, &self->message);
    status_free(result);
    self->answered++;
    if (self->message.size >= MESSAGE_BYTES)
        send_answers(self);
}

static void finish_if_complete(struct mutate_rows *self)
{
    if (self->answered < self->request->n_entries)
        return;
    send_answers(self);
    data_call_finish(&self->data, status_ok());
}

/* --- writing --- */

static void entry_done(struct row_write *write, status result)
{
    struct entry_write *entry = LIST_ENTRY(write, struct entry_write, write);
    struct mutate_rows *self = entry->call;
    answer(self, (size_t)(entry - self->entries), result);
    finish_if_complete(self);
}

static size_t slice_end(const struct mutate_rows *self, size_t from)
{
    size_t left = self->request->n_entries - from;
    return from + (left < SLICE_ENTRIES ? left : SLICE_ENTRIES);
}

/* An entry whose write fails at once is answered at once, and if it is the last the call is over
 * and `self` with it: so the position is stepped first, and nothing is touched after the last. */
static void write_slice(struct task *task)
{
    struct mutate_rows *self = LIST_ENTRY(&task->link, struct mutate_rows, task.link);
    size_t end = slice_end(self, self->written);
    bool is_last_slice = end == self->request->n_entries;
    for (size_t i = self->written; i < end; i++) {
        struct entry_write *entry = &self->entries[i];
        self->written = i + 1;
        if (status_is_ok(entry->result))
            rows_write(&entry->write);
        else
            entry_done(&entry->write, entry->result);
    }
    if (!is_last_slice)
        loop_post(grpc_call_loop(self->data.call), &self->task);
}

/* --- packing --- */

static void pack_entry(struct mutate_rows *self, size_t index)
{
    const Bt__MutateRowsRequest__Entry *given = self->request->entries[index];
    struct entry_write *entry = &self->entries[index];
    bytes row_key = proto_bytes(given->row_key);
    entry->call = self;
    entry->result = row_key_check(row_key);
    if (status_is_ok(entry->result))
        entry->result = mutations_pack(&self->context, row_key, given->mutations,
                                       given->n_mutations, &entry->write.change);
    entry->write.table = self->data.table;
    entry->write.row_key = row_key;
    entry->write.loop = grpc_call_loop(self->data.call);
    entry->write.done = entry_done;
}

/* What an entry that fits says of the one that does not. */
static void refuse_all(struct mutate_rows *self)
{
    for (size_t i = 0; i < self->packed; i++) {
        struct entry_write *entry = &self->entries[i];
        if (status_is_ok(entry->result))
            buffer_free(&entry->write.change.fragment);
        status_free(entry->result);
        bytes row_key = proto_bytes(self->request->entries[i]->row_key);
        answer(self, i,
               row_error(STATUS_INVALID_ARGUMENT, "mutating", row_key, self->request->table_name,
                         "Column family type mismatch"));
    }
    finish_if_complete(self);
}

static void pack_slice(struct task *task)
{
    struct mutate_rows *self = LIST_ENTRY(&task->link, struct mutate_rows, task.link);
    for (size_t end = slice_end(self, self->packed); self->packed < end; self->packed++)
        pack_entry(self, self->packed);
    if (self->packed < self->request->n_entries) {
        loop_post(grpc_call_loop(self->data.call), &self->task);
        return;
    }
    if (self->context.is_type_mismatch) {
        refuse_all(self);
        return;
    }
    self->task.run = write_slice;
    write_slice(&self->task);
}

/* --- the call --- */

static status check_entries(const Bt__MutateRowsRequest *request)
{
    size_t mutations = 0;
    if (request->n_entries == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "No mutations provided");
    for (size_t i = 0; i < request->n_entries; i++) {
        const Bt__MutateRowsRequest__Entry *entry = request->entries[i];
        if (entry->n_mutations == 0)
            return status_make(STATUS_INVALID_ARGUMENT, "No mutations provided for entry %zu", i);
        TRY(mutations_check(entry->mutations, entry->n_mutations));
        mutations += entry->n_mutations;
    }
    if (mutations > LIMIT_MUTATIONS_A_REQUEST)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Request has %zu mutations; at most %d are allowed", mutations,
                           LIMIT_MUTATIONS_A_REQUEST);
    return status_ok();
}

static status start(struct mutate_rows *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__mutate_rows_request__descriptor, wire, data->arena, &message));
    const Bt__MutateRowsRequest *request = (const void *)message;
    self->request = request;
    TRY(check_entries(request));
    TRY(data_call_open_table(
        data, &(struct data_target){.table_name = request->table_name,
                                    .authorized_view_name = request->authorized_view_name}));
    self->context = (struct mutation_context){
        .schema = table_schema(data->table),
        .table_name = request->table_name,
        .now_us = cluster_now_us(data->bigtable->cluster),
        .big_value = rows_big_value(data->table),
        .arena = data->arena,
    };
    self->entries = arena_zalloc(data->arena, request->n_entries * sizeof *self->entries);
    if (self->entries == NULL)
        return status_out_of_memory();
    data_call_add_headers(data);
    self->task.run = pack_slice;
    pack_slice(&self->task);
    return status_ok();
}

void mutate_rows(void *context, struct grpc_call *call, bytes request)
{
    struct mutate_rows *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
