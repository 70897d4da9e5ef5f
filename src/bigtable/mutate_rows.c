/* MutateRows: many rows, each written by itself; an answer for each.
 *
 * Entries are packed and written in the request's order, in a window: so many, of so many bytes,
 * are on their way at a time, and where one has been answered its place goes to the next. Packing
 * goes in slices, between which the loop serves others. Everything here runs on the call's loop. */
#include "base/limits.h"
#include "bigtable/client_headers.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/entry_answer.h"
#include "bigtable/error_place.h"
#include "bigtable/idempotency.h"
#include "bigtable/mutations.h"
#include "bigtable/row_error.h"
#include "cluster/rows.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum {
    WINDOW_ENTRIES = 1000,
    WINDOW_BYTES = 8 << 20, /* of packed changes and big cells; one more may pass it */
    CALL_BYTES = 1 << 20,   /* of packed changes that stay until the call ends */
    SLICE_ENTRIES = 200,
    SCRATCH_BYTES = 64 << 20, /* to pack one entry in: 100,000 mutations */
    MESSAGE_BYTES = 64 << 10,
    RATE_PERIOD_SECONDS = 10,
};

/* From which load on clients are told to slow down, and to what part of their rate at a load of 1:
 * the least that Google's clients go down to at a time. */
#define RATE_LIMIT_LOAD   0.5
#define RATE_LEAST_FACTOR 0.7

/* Production's name of the entries, for errors in them. */
static const char entry_list[] = "Entry list";

/* A place in the window. */
struct place {
    struct link link; /* among the free ones */
    struct row_write write;
    struct mutate_rows *call;
    size_t index; /* of the entry */
    size_t bytes;
};

struct mutate_rows {
    struct data_call data;
    const Bt__MutateRowsRequest *request;
    struct mutation_context context;
    bool *are_outside;     /* the view; for each entry; NULL: none is */
    struct arena *scratch; /* reset for each entry */
    struct list free_places;
    size_t bytes_on_way;
    size_t bytes_packed; /* in all */
    size_t next;         /* entry to be packed */
    size_t answered;
    struct task task;
    bool is_posted;
    struct buffer message; /* answers that wait to be sent; empty: none begun */
};

/* --- answers --- */

static void send_answers(struct mutate_rows *self)
{
    if (self->message.size > 0 || self->message.failed)
        grpc_call_send(self->data.call, &self->message);
}

static struct buffer *open_message(struct mutate_rows *self)
{
    if (self->message.size == 0)
        grpc_message_start(&self->message);
    return &self->message;
}

/* Takes the result. */
static void answer(struct mutate_rows *self, size_t index, status result)
{
    entry_answer_append(open_message(self), index, &result);
    status_free(result);
    self->answered++;
    if (self->message.size >= MESSAGE_BYTES)
        send_answers(self);
}

static bool understands_rate_limit(const struct mutate_rows *self)
{
    const Bt__FeatureFlags *features = client_features(self->data.call);
    return features->mutate_rows_rate_limit || features->mutate_rows_rate_limit2;
}

/* Says nothing while there is room: a client that is once told a rate limits itself from then on.
 */
static void add_rate_limit(struct mutate_rows *self)
{
    double load = cluster_write_load(self->data.bigtable->cluster);
    if (load < RATE_LIMIT_LOAD || !understands_rate_limit(self))
        return;
    Pb__Duration period = PB__DURATION__INIT;
    period.seconds = RATE_PERIOD_SECONDS;
    Bt__RateLimitInfo limit = BT__RATE_LIMIT_INFO__INIT;
    limit.period = &period;
    limit.factor = 1 - (1 - RATE_LEAST_FACTOR) * (load - RATE_LIMIT_LOAD) / (1 - RATE_LIMIT_LOAD);
    Bt__MutateRowsResponse response = BT__MUTATE_ROWS_RESPONSE__INIT;
    response.has_rate_limit_info_case =
        BT__MUTATE_ROWS_RESPONSE__HAS_RATE_LIMIT_INFO_RATE_LIMIT_INFO;
    response.rate_limit_info = &limit;
    proto_encode(&response.base, open_message(self));
}

/* Takes the status. `self` is gone afterwards. */
static void finish(struct mutate_rows *self, status s)
{
    if (status_is_ok(s))
        add_rate_limit(self);
    send_answers(self);
    grpc_call_count(self->data.call, (int64_t)self->answered, (int64_t)self->answered);
    arena_destroy(self->scratch);
    data_call_finish(&self->data, s);
}

/* --- writing --- */

static bool has_room(const struct mutate_rows *self)
{
    return !list_is_empty(&self->free_places) && self->bytes_on_way < WINDOW_BYTES;
}

static void post_if_useful(struct mutate_rows *self)
{
    if (self->is_posted || self->next == self->request->n_entries || !has_room(self))
        return;
    self->is_posted = true;
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

static void entry_done(struct row_write *write, status result)
{
    struct place *place = LIST_ENTRY(write, struct place, write);
    struct mutate_rows *self = place->call;
    answer(self, place->index, result);
    self->bytes_on_way -= place->bytes;
    list_append(&self->free_places, &place->link);
    if (self->answered == self->request->n_entries)
        finish(self, status_ok());
    else
        post_if_useful(self);
}

/* Big cells outlive the scratch memory in which they were listed. */
static status keep_big_cells(struct mutate_rows *self, struct packed_change *change)
{
    struct big_cell *big = arena_alloc(self->data.arena, change->big_count * sizeof *big);
    if (big == NULL)
        return status_out_of_memory();
    memcpy(big, change->big, change->big_count * sizeof *big);
    change->big = big;
    return status_ok();
}

static bool is_outside(const struct mutate_rows *self, size_t index)
{
    return self->are_outside != NULL && self->are_outside[index];
}

static status check_inside(const struct mutate_rows *self, size_t index)
{
    return is_outside(self, index) ? view_refusal(self->data.view) : status_ok();
}

/* The first changes lie in the call's memory, and others in memory that goes with them. */
static struct arena *home_of_next(const struct mutate_rows *self)
{
    return self->bytes_packed < CALL_BYTES ? self->data.arena : NULL;
}

static status pack_entry(struct mutate_rows *self, size_t index, struct packed_change *change,
                         size_t *size)
{
    const Bt__MutateRowsRequest__Entry *entry = self->request->entries[index];
    bytes row_key = proto_bytes(entry->row_key);
    TRY(row_key_check(row_key));
    TRY(check_inside(self, index));
    TRY(idempotency_check_age(entry->idempotency, cluster_clock(self->data.bigtable->cluster)));
    arena_reset(self->scratch);
    self->context.home = home_of_next(self);
    TRY(mutations_pack(&self->context, row_key, entry->mutations, entry->n_mutations, change));
    *size = packed_change_size(change) + change_list_size(&change->list);
    self->bytes_packed += *size;
    if (change->big_count == 0)
        return status_ok();
    status s = keep_big_cells(self, change);
    if (!status_is_ok(s))
        packed_change_free(change);
    return s;
}

/* The change has been packed where it is. */
static void fill_place(struct mutate_rows *self, size_t index, struct place *place)
{
    const Bt__MutateRowsRequest__Entry *entry = self->request->entries[index];
    struct row_write *write = &place->write;
    place->call = self;
    place->index = index;
    write->table = self->data.table;
    write->row_key = proto_bytes(entry->row_key);
    write->token = idempotency_token(entry->idempotency);
    write->loop = grpc_call_loop(self->data.call);
    write->done = entry_done;
    write->locked = NULL;
}

/* Adds it to those that are written with it. */
static void add_entry(struct mutate_rows *self, size_t index, struct list *writes)
{
    struct place *place = LIST_ENTRY(list_take(&self->free_places), struct place, link);
    status s = pack_entry(self, index, &place->write.change, &place->bytes);
    if (!status_is_ok(s)) {
        list_append(&self->free_places, &place->link);
        answer(self, index, s);
        return;
    }
    fill_place(self, index, place);
    self->bytes_on_way += place->bytes;
    list_append(writes, &place->write.link);
}

static void write_slice(struct task *task)
{
    struct mutate_rows *self = LIST_ENTRY(&task->link, struct mutate_rows, task.link);
    size_t count = self->request->n_entries;
    struct list writes = {0};
    self->is_posted = false;
    grpc_call_step(self->data.call, CALL_WORKS);
    for (int i = 0; i < SLICE_ENTRIES && self->next < count && has_room(self); i++)
        add_entry(self, self->next++, &writes);
    rows_write_all(&writes);
    grpc_call_step(self->data.call, CALL_COMMITS);
    grpc_call_count(self->data.call, (int64_t)self->answered, (int64_t)self->answered);
    if (self->answered == count)
        finish(self, status_ok());
    else
        post_if_useful(self);
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
        status s = mutations_check(MUTATION_LIST, entry->mutations, entry->n_mutations);
        if (!status_is_ok(s))
            return error_in_list(entry_list, i, s);
        TRY(idempotency_check(entry->idempotency));
        mutations += entry->n_mutations;
    }
    if (mutations > LIMIT_MUTATIONS_A_REQUEST)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Request has %zu mutations; at most %d are allowed", mutations,
                           LIMIT_MUTATIONS_A_REQUEST);
    return status_ok();
}

/* A mutation outside the view is refused as such, whatever else is wrong with it: the client learns
 * nothing of families that it does not see. */
static status find_outside(struct mutate_rows *self)
{
    const Bt__MutateRowsRequest *request = self->request;
    const struct view *view = self->data.view;
    if (view == NULL)
        return status_ok();
    self->are_outside =
        arena_alloc(self->data.arena, request->n_entries * sizeof *self->are_outside);
    if (self->are_outside == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_entries; i++)
        self->are_outside[i] =
            !view_has(view, self->context.schema, proto_bytes(request->entries[i]->row_key),
                      request->entries[i]->mutations, request->entries[i]->n_mutations);
    return status_ok();
}

static status check_entry_inputs(const struct mutate_rows *self, size_t index)
{
    const Bt__MutateRowsRequest__Entry *entry = self->request->entries[index];
    status s = mutations_check_inputs(self->context.schema, MUTATION_LIST, entry->mutations,
                                      entry->n_mutations);
    return status_is_ok(s) ? s : error_in_list(entry_list, index, s);
}

static status check_inputs(const struct mutate_rows *self)
{
    const Bt__MutateRowsRequest *request = self->request;
    for (size_t i = 0; i < request->n_entries; i++)
        if (!is_outside(self, i))
            TRY(check_entry_inputs(self, i));
    return status_ok();
}

/* Whether all entries fit the types of their families: one that does not fails them all, as
 * production was recorded to do. */
static bool all_fit(const struct mutate_rows *self)
{
    const Bt__MutateRowsRequest *request = self->request;
    for (size_t i = 0; i < request->n_entries; i++)
        if (!is_outside(self, i) &&
            !mutations_fit(self->context.schema, request->entries[i]->mutations,
                           request->entries[i]->n_mutations))
            return false;
    return true;
}

static void refuse_all(struct mutate_rows *self)
{
    const Bt__MutateRowsRequest *request = self->request;
    for (size_t i = 0; i < request->n_entries; i++) {
        bytes row_key = proto_bytes(request->entries[i]->row_key);
        answer(self, i,
               is_outside(self, i)
                   ? view_refusal(self->data.view)
                   : row_error(STATUS_INVALID_ARGUMENT, "mutating", row_key,
                               self->context.table_name, "Column family type mismatch"));
    }
    finish(self, status_ok());
}

static status make_window(struct mutate_rows *self)
{
    size_t count = self->request->n_entries;
    if (count > WINDOW_ENTRIES)
        count = WINDOW_ENTRIES;
    struct place *places = arena_alloc(self->data.arena, count * sizeof *places);
    self->scratch = arena_create(SCRATCH_BYTES);
    if (places == NULL || self->scratch == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        list_append(&self->free_places, &places[i].link);
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
    TRY(data_call_open(
        data, &(struct data_target){.table_name = request->table_name,
                                    .app_profile_id = request->app_profile_id,
                                    .authorized_view_name = request->authorized_view_name}));
    TRY(make_window(self));
    self->context = (struct mutation_context){
        .schema = table_schema(data->table),
        .table_name = table_name(data->table),
        .now_us = cluster_version_us(data->bigtable->cluster),
        .big_value = rows_big_value(data->table),
        .wants_list = table_has_stream(data->table),
        .arena = self->scratch,
    };
    TRY(find_outside(self));
    TRY(check_inputs(self));
    data_call_add_headers(data);
    self->task.run = write_slice;
    if (all_fit(self))
        write_slice(&self->task);
    else
        refuse_all(self);
    return status_ok();
}

void mutate_rows(void *context, struct grpc_call *call, bytes request)
{
    struct mutate_rows *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        finish(self, s);
}
