/* See row_batches.h. */
#include "client/row_batches.h"

#include "base/check.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

#define MUTATE_ROWS          "/google.bigtable.v2.Bigtable/MutateRows"
#define CHECK_AND_MUTATE_ROW "/google.bigtable.v2.Bigtable/CheckAndMutateRow"

enum {
    ANSWER_LIMIT = 16 << 20,
    CALL_TIMEOUT_US = 60 * 1000 * 1000,
    GIVE_UP_AFTER_US = 60 * 1000 * 1000, /* without a row that ended */
};

int64_t row_batches_now_us(const struct row_batches *all)
{
    return clock_steady_us(loop_clock(all->options.loop));
}

/* --- making and ending --- */

status row_batches_open(const struct row_batches_options *options, struct row_batches *out)
{
    *out = (struct row_batches){.options = *options};
    out->progress_us = row_batches_now_us(out);
    endpoint_append_routing(&out->routing, "table_name", options->table);
    endpoint_append_routing(&out->routing, "app_profile_id", options->app_profile);
    return out->routing.failed ? status_out_of_memory() : status_ok();
}

static void destroy(struct row_batch *batch)
{
    struct row_batches *all = batch->all;
    if (batch->call != NULL)
        client_call_cancel(batch->call);
    loop_timer_clear(all->options.loop, &batch->timer);
    status_free(batch->failure);
    all->options.destroy(batch);
}

void row_batches_close(struct row_batches *all)
{
    if (status_is_ok(all->failure)) /* from now on calls that end change nothing */
        all->failure = status_make(STATUS_CANCELLED, "given up");
    while (!list_is_empty(&all->sent))
        destroy(LIST_ENTRY(list_take(&all->sent), struct row_batch, link));
    grpc_link_destroy(all->grpc);
    status_free(all->failure);
    buffer_free(&all->routing);
}

/* --- failures --- */

void row_batches_wake(struct row_batches *all)
{
    if (all->is_waiting)
        loop_stop(all->options.loop);
}

void row_batches_fail(struct row_batches *all, status s)
{
    if (status_is_ok(all->failure))
        all->failure = s;
    else
        status_free(s);
    row_batches_wake(all);
}

status row_batches_failure(const struct row_batches *all)
{
    return status_copy(all->failure);
}

static void remember(struct row_batch *batch, status s)
{
    status_free(batch->failure);
    batch->failure = s;
}

/* --- answers --- */

/* Takes the status if there is such a row. */
static bool end_row(struct row_batch *batch, uint64_t index, status s)
{
    struct row_batches *all = batch->all;
    bool is_one = all->options.ended(batch, index, s);
    if (is_one)
        all->progress_us = row_batches_now_us(all);
    return is_one;
}

static void take_entry(struct row_batch *batch, const Bt__MutateRowsResponse__Entry *entry)
{
    const Rpc__Status *answer = entry->status;
    if (entry->index < 0)
        return;
    if (answer == NULL || answer->code == STATUS_OK) {
        (void)end_row(batch, (uint64_t)entry->index, status_ok());
        return;
    }
    status s = status_make((enum status_code)answer->code, "%s", answer->message);
    if (endpoint_failure_may_pass(s))
        remember(batch, s);
    else if (!end_row(batch, (uint64_t)entry->index, s))
        status_free(s);
}

static status take_entries(struct row_batch *batch, bytes message, struct arena *arena)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__mutate_rows_response__descriptor, message, arena, &decoded));
    const Bt__MutateRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_entries; i++)
        take_entry(batch, answer->entries[i]);
    return status_ok();
}

/* Any answer to a conditional change ends it: it was made, or not needed. */
static status take_answer(struct row_batch *batch, bytes message)
{
    if (batch->is_conditional) {
        (void)end_row(batch, 0, status_ok());
        return status_ok();
    }
    struct arena *arena = arena_create(ANSWER_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : take_entries(batch, message, arena);
    arena_destroy(arena);
    return s;
}

static void took(void *context, struct client_call *call, bytes message)
{
    struct row_batch *batch = context;
    status s = take_answer(batch, message);
    if (!status_is_ok(s))
        remember(batch, s);
    (void)call;
}

/* A call of one row that fails so says something of that row alone. */
static bool is_of_one_row(status s)
{
    return s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_OUT_OF_RANGE ||
           s.code == STATUS_FAILED_PRECONDITION;
}

static void drop(struct row_batch *batch)
{
    struct row_batches *all = batch->all;
    list_remove(&all->sent, &batch->link);
    all->count--;
    destroy(batch);
    if (all->options.gone != NULL)
        all->options.gone(all->options.context);
}

static void send_later(struct row_batch *batch);

/* A call that ends well has said something of each row; what it left out is asked for again. */
static void ended(void *context, struct client_call *call, status s)
{
    struct row_batch *batch = context;
    struct row_batches *all = batch->all;
    (void)call;
    batch->call = NULL;
    if (!status_is_ok(all->failure)) {
        status_free(s);
        return;
    }
    if (batch->is_conditional && is_of_one_row(s) && end_row(batch, 0, s))
        s = status_ok();
    size_t left = all->options.rest(batch);
    if (!status_is_ok(s) && !endpoint_failure_may_pass(s)) {
        row_batches_fail(all, s);
        return;
    }
    if (!status_is_ok(s))
        remember(batch, s);
    if (left > 0)
        send_later(batch);
    else
        drop(batch);
    row_batches_wake(all);
}

/* --- sending --- */

void row_batches_append_entry(struct buffer *message, bytes entry)
{
    enum { ENTRIES_TAG = 2 << 3 | 2 /* bytes */ };
    buffer_append_byte(message, ENTRIES_TAG);
    buffer_append_varint(message, entry.size);
    buffer_append_bytes(message, entry);
}

/* The message is as its parts, one behind the other: entries are a field of it that comes again. */
static void encode_target(const struct row_batches_options *options, struct buffer *message)
{
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    request.table_name = options->table;
    request.app_profile_id = options->app_profile;
    proto_encode(&request.base, message);
}

static status encode(struct row_batch *batch, struct buffer *message)
{
    const struct row_batches_options *options = &batch->all->options;
    grpc_message_start(message);
    if (!batch->is_conditional)
        encode_target(options, message);
    options->append(batch, message);
    if (!message->failed)
        return status_ok();
    buffer_free(message);
    return status_out_of_memory();
}

static status start_call(struct row_batch *batch)
{
    struct row_batches *all = batch->all;
    const struct client_metadata routing = {.name = "x-goog-request-params",
                                            .value = buffer_bytes(&all->routing)};
    const struct client_call_options options = {.path = batch->is_conditional ? CHECK_AND_MUTATE_ROW
                                                                              : MUTATE_ROWS,
                                                .timeout_us = CALL_TIMEOUT_US,
                                                .metadata = &routing,
                                                .metadata_count = 1,
                                                .context = batch,
                                                .on_message = took,
                                                .on_end = ended};
    struct buffer message = {0};
    TRY(endpoint_connect(all->options.endpoint, all->options.loop, &all->grpc));
    TRY(encode(batch, &message));
    return grpc_link_call(all->grpc, &options, &message, &batch->call);
}

static void send_batch(struct row_batch *batch)
{
    status s = start_call(batch);
    if (status_is_ok(s))
        return;
    batch->call = NULL;
    bool is_worth_it = endpoint_failure_may_pass(s);
    remember(batch, s);
    if (is_worth_it)
        send_later(batch);
    else
        row_batches_fail(batch->all, status_copy(batch->failure));
}

static void wait_is_over(struct timer *timer)
{
    send_batch(LIST_ENTRY(timer, struct row_batch, timer));
}

/* Sends the rest of the batch again later. */
static void send_later(struct row_batch *batch)
{
    struct row_batches *all = batch->all;
    int64_t now = row_batches_now_us(all);
    if (now - all->progress_us > GIVE_UP_AFTER_US) {
        row_batches_fail(all, status_copy(batch->failure));
        return;
    }
    batch->wait_us = endpoint_next_wait(batch->wait_us);
    status s = loop_timer_set(all->options.loop, &batch->timer, now + batch->wait_us);
    if (!status_is_ok(s))
        row_batches_fail(all, s);
}

void row_batches_send(struct row_batches *all, struct row_batch *batch)
{
    DCHECK(batch->all == NULL);
    batch->all = all;
    batch->timer.run = wait_is_over;
    if (all->count == 0)
        all->progress_us = row_batches_now_us(all);
    list_append(&all->sent, &batch->link);
    all->count++;
    send_batch(batch);
}

/* --- waiting --- */

status row_batches_wait(struct row_batches *all)
{
    TRY(row_batches_failure(all));
    all->is_waiting = true;
    loop_run(all->options.loop);
    all->is_waiting = false;
    return row_batches_failure(all);
}
