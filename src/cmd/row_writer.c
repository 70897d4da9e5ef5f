/* See row_writer.h.
 *
 * A batch is filled, sent, and settled when each of its rows has been written or refused. Rows
 * whose failure may pass are sent again, alone, after a while. Batches are settled in any order;
 * the list is in the order in which they were filled.
 *
 *     filling ──► under way ──► settled
 *                  ▲     │ some rows, or the call, failed for now
 *                  └─wait┘ */
#include "cmd/row_writer.h"

#include "base/check.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

#define MUTATE_ROWS "/google.bigtable.v2.Bigtable/MutateRows"

enum {
    ROWS_MOST = 1000,
    CELLS_MOST = 50000, /* half of what a request may have */
    BYTES_MOST = 2 << 20,
    ARENA_LIMIT = 512 << 20,
    CALL_TIMEOUT_US = 60 * 1000 * 1000,
    FIRST_WAIT_US = 100 * 1000, /* twice as long each time */
    WAIT_MOST_US = 10 * 1000 * 1000,
    GIVE_UP_AFTER_US = 60 * 1000 * 1000, /* without a row that was settled */
    US_PER_S = 1000 * 1000,
};

struct batch {
    struct link link;
    struct row_writer *writer;
    struct arena *arena;
    Bt__MutateRowsRequest__Entry *entries[ROWS_MOST]; /* that are not settled */
    uint64_t tags[ROWS_MOST];
    bool is_settled[ROWS_MOST];
    size_t count;
    size_t cells;
    size_t bytes;
    struct client_call *call; /* NULL: waits, or is being filled */
    struct timer timer;
    int64_t wait_us;
    status failure; /* of what is to be tried again, the last; owned */
};

struct row_writer {
    struct row_writer_options options;
    struct buffer routing; /* the header x-goog-request-params */
    struct grpc_link *grpc;
    struct batch *filling; /* NULL: none */
    struct list sent;      /* of struct batch */
    unsigned sent_count;
    int64_t progress_us;
    status failure;  /* of everything; owned */
    bool is_waiting; /* the loop runs for us */
    struct timer pace;
    int64_t next_us; /* when the next row may go */
};

static int64_t now_us(const struct row_writer *writer)
{
    return clock_steady_us(loop_clock(writer->options.loop));
}

/* --- making and ending --- */

static void destroy_batch(struct batch *batch)
{
    if (batch == NULL)
        return;
    if (batch->call != NULL)
        client_call_cancel(batch->call);
    loop_timer_clear(batch->writer->options.loop, &batch->timer);
    status_free(batch->failure);
    arena_destroy(batch->arena);
    free(batch);
}

static void wake(struct row_writer *writer)
{
    if (writer->is_waiting)
        loop_stop(writer->options.loop);
}

static void pace_is_over(struct timer *timer)
{
    wake(LIST_ENTRY(timer, struct row_writer, pace));
}

status row_writer_create(const struct row_writer_options *options, struct row_writer **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->options = *options;
    (*out)->pace.run = pace_is_over;
    (*out)->progress_us = (*out)->next_us = now_us(*out);
    endpoint_append_routing(&(*out)->routing, "table_name", options->table);
    endpoint_append_routing(&(*out)->routing, "app_profile_id", options->app_profile);
    if (!(*out)->routing.failed)
        return status_ok();
    row_writer_destroy(*out);
    *out = NULL;
    return status_out_of_memory();
}

void row_writer_destroy(struct row_writer *writer)
{
    if (writer == NULL)
        return;
    if (status_is_ok(writer->failure)) /* from now on calls that end change nothing */
        writer->failure = status_make(STATUS_CANCELLED, "given up");
    while (!list_is_empty(&writer->sent))
        destroy_batch(LIST_ENTRY(list_take(&writer->sent), struct batch, link));
    destroy_batch(writer->filling);
    loop_timer_clear(writer->options.loop, &writer->pace);
    grpc_link_destroy(writer->grpc);
    status_free(writer->failure);
    buffer_free(&writer->routing);
    free(writer);
}

static status open_link(struct row_writer *writer)
{
    const struct endpoint *endpoint = writer->options.endpoint;
    if (writer->grpc != NULL && grpc_link_is_lost(writer->grpc)) {
        grpc_link_destroy(writer->grpc);
        writer->grpc = NULL;
    }
    if (writer->grpc != NULL)
        return status_ok();
    return grpc_link_create(writer->options.loop, endpoint->addresses, endpoint->address_count,
                            &endpoint->identity, &writer->grpc);
}

/* --- failures --- */

static bool may_pass(status s)
{
    return s.code == STATUS_UNAVAILABLE || s.code == STATUS_DEADLINE_EXCEEDED ||
           s.code == STATUS_ABORTED || s.code == STATUS_RESOURCE_EXHAUSTED ||
           s.code == STATUS_CANCELLED || s.code == STATUS_INTERNAL;
}

/* Nothing more comes of this writer. Takes the status. */
static void fail(struct row_writer *writer, status s)
{
    if (status_is_ok(writer->failure))
        writer->failure = s;
    else
        status_free(s);
    wake(writer);
}

static status failure_of(const struct row_writer *writer)
{
    return status_copy(writer->failure);
}

/* --- settling --- */

static void settle(struct batch *batch, size_t index, status s)
{
    struct row_writer *writer = batch->writer;
    batch->is_settled[index] = true;
    writer->progress_us = now_us(writer);
    if (status_is_ok(s))
        return;
    writer->options.refused(writer->options.context, batch->tags[index], s);
    status_free(s);
}

/* Keeps those that are not settled, in their order. */
static void compact(struct batch *batch)
{
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->is_settled[i])
            continue;
        batch->entries[kept] = batch->entries[i];
        batch->tags[kept++] = batch->tags[i];
    }
    memset(batch->is_settled, 0, sizeof batch->is_settled);
    batch->count = kept;
}

static void drop_settled(struct row_writer *writer)
{
    struct list all = list_take_all(&writer->sent);
    while (!list_is_empty(&all)) {
        struct batch *batch = LIST_ENTRY(list_take(&all), struct batch, link);
        if (batch->count > 0) {
            list_append(&writer->sent, &batch->link);
            continue;
        }
        writer->sent_count--;
        destroy_batch(batch);
    }
}

/* --- sending --- */

static void send_batch(struct batch *batch);

static void wait_is_over(struct timer *timer)
{
    send_batch(LIST_ENTRY(timer, struct batch, timer));
}

/* What is left of the batch is sent again later. */
static void send_later(struct batch *batch)
{
    struct row_writer *writer = batch->writer;
    int64_t now = now_us(writer);
    if (now - writer->progress_us > GIVE_UP_AFTER_US) {
        fail(writer, status_copy(batch->failure));
        return;
    }
    batch->wait_us = batch->wait_us == 0 ? FIRST_WAIT_US : 2 * batch->wait_us;
    if (batch->wait_us > WAIT_MOST_US)
        batch->wait_us = WAIT_MOST_US;
    status s = loop_timer_set(writer->options.loop, &batch->timer, now + batch->wait_us);
    if (!status_is_ok(s))
        fail(writer, s);
}

static void remember(struct batch *batch, status s)
{
    status_free(batch->failure);
    batch->failure = s;
}

static void take_entry(struct batch *batch, const Bt__MutateRowsResponse__Entry *entry)
{
    if (entry->index < 0 || (uint64_t)entry->index >= batch->count)
        return;
    size_t index = (size_t)entry->index;
    const Rpc__Status *answer = entry->status;
    if (batch->is_settled[index])
        return;
    if (answer == NULL || answer->code == STATUS_OK) {
        settle(batch, index, status_ok());
        return;
    }
    status s = status_make((enum status_code)answer->code, "%s", answer->message);
    if (may_pass(s))
        remember(batch, s);
    else
        settle(batch, index, s);
}

static void batch_took(void *context, struct client_call *call, bytes message)
{
    enum { ANSWER_LIMIT = 16 << 20 };
    struct batch *batch = context;
    struct arena *arena = arena_create(ANSWER_LIMIT);
    ProtobufCMessage *decoded;
    status s = arena == NULL
                   ? status_out_of_memory()
                   : proto_decode(&bt__mutate_rows_response__descriptor, message, arena, &decoded);
    if (status_is_ok(s)) {
        const Bt__MutateRowsResponse *answer = (const void *)decoded;
        for (size_t i = 0; i < answer->n_entries; i++)
            take_entry(batch, answer->entries[i]);
    } else {
        remember(batch, s);
    }
    arena_destroy(arena);
    (void)call;
}

/* A call that ends well has said something of each row; what it left out is asked for again. */
static void batch_ended(void *context, struct client_call *call, status s)
{
    struct batch *batch = context;
    struct row_writer *writer = batch->writer;
    (void)call;
    batch->call = NULL;
    if (!status_is_ok(writer->failure)) {
        status_free(s);
        return;
    }
    compact(batch);
    if (!status_is_ok(s) && !may_pass(s)) {
        fail(writer, s);
        return;
    }
    if (!status_is_ok(s))
        remember(batch, s);
    if (batch->count > 0)
        send_later(batch);
    drop_settled(writer);
    wake(writer);
}

static status encode(const struct batch *batch, struct buffer *message)
{
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    request.table_name = batch->writer->options.table;
    request.app_profile_id = batch->writer->options.app_profile;
    request.n_entries = batch->count;
    request.entries = (Bt__MutateRowsRequest__Entry **)(uintptr_t)batch->entries;
    grpc_message_start(message);
    proto_encode(&request.base, message);
    if (!message->failed)
        return status_ok();
    buffer_free(message);
    return status_out_of_memory();
}

static status start_call(struct batch *batch)
{
    const struct client_metadata routing = {.name = "x-goog-request-params",
                                            .value = buffer_bytes(&batch->writer->routing)};
    const struct client_call_options options = {.path = MUTATE_ROWS,
                                                .timeout_us = CALL_TIMEOUT_US,
                                                .metadata = &routing,
                                                .metadata_count = 1,
                                                .context = batch,
                                                .on_message = batch_took,
                                                .on_end = batch_ended};
    struct buffer message = {0};
    TRY(open_link(batch->writer));
    TRY(encode(batch, &message));
    return grpc_link_call(batch->writer->grpc, &options, &message, &batch->call);
}

static void send_batch(struct batch *batch)
{
    status s = start_call(batch);
    if (status_is_ok(s))
        return;
    batch->call = NULL;
    bool is_worth_it = may_pass(s);
    remember(batch, s);
    if (is_worth_it)
        send_later(batch);
    else
        fail(batch->writer, status_copy(batch->failure));
}

/* --- waiting --- */

static status run_loop(struct row_writer *writer)
{
    writer->is_waiting = true;
    loop_run(writer->options.loop);
    writer->is_waiting = false;
    return failure_of(writer);
}

static status wait_for_room(struct row_writer *writer, unsigned most)
{
    TRY(failure_of(writer));
    while (writer->sent_count > most)
        TRY(run_loop(writer));
    return status_ok();
}

/* Rows go out by batches, so the pace is that of batches. */
static status keep_pace(struct row_writer *writer, size_t rows)
{
    uint64_t rate = writer->options.rows_per_second;
    if (rate == 0)
        return status_ok();
    int64_t now = now_us(writer);
    if (writer->next_us > now) {
        TRY(loop_timer_set(writer->options.loop, &writer->pace, writer->next_us));
        while (now_us(writer) < writer->next_us)
            TRY(run_loop(writer));
        now = now_us(writer);
    }
    writer->next_us = now + (int64_t)(rows * US_PER_S / rate);
    return status_ok();
}

static status send_filled(struct row_writer *writer)
{
    struct batch *batch = writer->filling;
    if (batch == NULL)
        return status_ok();
    TRY(wait_for_room(writer, writer->options.under_way - 1));
    TRY(keep_pace(writer, batch->count));
    writer->filling = NULL;
    list_append(&writer->sent, &batch->link);
    writer->sent_count++;
    if (writer->sent_count == 1)
        writer->progress_us = now_us(writer);
    send_batch(batch);
    return failure_of(writer);
}

/* --- filling --- */

static status make_mutation(const struct move_cell *cell, struct arena *arena, Bt__Mutation **out)
{
    Bt__Mutation__SetCell *set;
    bytes qualifier = arena_copy(arena, cell->qualifier);
    bytes value = arena_copy(arena, cell->value);
    const char *family = arena_string(arena, bytes_of(cell->family));
    if (qualifier.data == NULL || value.data == NULL || family == NULL)
        return status_out_of_memory();
    PROTO_NEW(arena, set, BT__MUTATION__SET_CELL__INIT);
    set->family_name = family;
    set->column_qualifier = proto_data(qualifier);
    set->timestamp_micros = cell->timestamp_us;
    set->value = proto_data(value);
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    (*out)->set_cell = set;
    return status_ok();
}

static status make_entry(const struct move_change *change, struct arena *arena,
                         Bt__MutateRowsRequest__Entry **out)
{
    Bt__MutateRowsRequest__Entry *entry;
    bytes row_key = arena_copy(arena, change->row_key);
    PROTO_NEW(arena, entry, BT__MUTATE_ROWS_REQUEST__ENTRY__INIT);
    entry->mutations = arena_alloc(arena, change->count * sizeof *entry->mutations);
    if (row_key.data == NULL || entry->mutations == NULL)
        return status_out_of_memory();
    entry->row_key = proto_data(row_key);
    for (; entry->n_mutations < change->count; entry->n_mutations++)
        TRY(make_mutation(&change->cells[entry->n_mutations], arena,
                          &entry->mutations[entry->n_mutations]));
    *out = entry;
    return status_ok();
}

static bool fits(const struct batch *batch, const struct move_change *change)
{
    return batch->count < ROWS_MOST && batch->cells + change->count <= CELLS_MOST &&
           batch->bytes + change->bytes <= BYTES_MOST;
}

static status begin_batch(struct row_writer *writer)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return status_out_of_memory();
    batch->writer = writer;
    batch->timer.run = wait_is_over;
    batch->arena = arena_create(ARENA_LIMIT);
    if (batch->arena == NULL) {
        free(batch);
        return status_out_of_memory();
    }
    writer->filling = batch;
    return status_ok();
}

status row_writer_add(struct row_writer *writer, const struct move_change *change, uint64_t tag)
{
    CHECK(change->count > 0);
    TRY(failure_of(writer));
    if (writer->filling != NULL && writer->filling->count > 0 && !fits(writer->filling, change))
        TRY(send_filled(writer));
    if (writer->filling == NULL)
        TRY(begin_batch(writer));
    struct batch *batch = writer->filling;
    TRY(make_entry(change, batch->arena, &batch->entries[batch->count]));
    batch->tags[batch->count++] = tag;
    batch->cells += change->count;
    batch->bytes += change->row_key.size + change->bytes;
    return status_ok();
}

status row_writer_flush(struct row_writer *writer)
{
    TRY(failure_of(writer));
    TRY(send_filled(writer));
    return wait_for_room(writer, 0);
}
