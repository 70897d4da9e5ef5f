/* See change_writer.h.
 *
 *     queue ──► under way ──► done
 *                ▲     │ some rows, or the call, failed for now
 *                └─wait┘
 *
 * New calls begin in a turn of the loop of their own (`kick`), not within the end of another. */
#include "client/change_writer.h"

#include "base/check.h"
#include "base/varint.h"
#include "client/row_queue.h"
#include "wire/proto.h"

#include <stdlib.h>

#define MUTATE_ROWS "/google.bigtable.v2.Bigtable/MutateRows"

enum {
    ROWS_MOST = 1000,
    MUTATIONS_MOST = 100000, /* that a request may have */
    BYTES_MOST = 4 << 20,    /* of a call, unless its first row has more */
    WAITING_MOST = 32 << 20, /* bytes of all that is not done */
    ANSWER_LIMIT = 16 << 20,
    READABLE_KEY_MOST = 100,
    CALL_TIMEOUT_US = 60 * 1000 * 1000,
    GIVE_UP_AFTER_US = 60 * 1000 * 1000, /* without a row that was written */
};

struct batch {
    struct link link;
    struct change_writer *writer;
    struct queued_entry *entries[ROWS_MOST]; /* NULL: done */
    size_t count;
    struct client_call *call; /* NULL: waits */
    struct timer timer;
    int64_t wait_us;
    status failure; /* of what is to be tried again, the last; owned */
};

struct change_writer {
    struct change_writer_options options;
    struct buffer routing; /* the header x-goog-request-params */
    struct grpc_link *grpc;
    struct row_queue *queue;
    struct list sent; /* of struct batch */
    unsigned sent_count;
    struct queued_entry *held; /* taken, and too large for the call that was filled; or NULL */
    struct timer kick;
    int64_t progress_us;
    status failure;  /* of everything; owned */
    bool is_waiting; /* the loop runs for us */
};

static int64_t now_us(const struct change_writer *writer)
{
    return clock_steady_us(loop_clock(writer->options.loop));
}

/* --- making and ending --- */

static void send_ready(struct change_writer *writer);

static void kicked(struct timer *timer)
{
    send_ready(LIST_ENTRY(timer, struct change_writer, kick));
}

status change_writer_create(const struct change_writer_options *options, struct change_writer **out)
{
    struct change_writer *writer = *out = calloc(1, sizeof *writer);
    if (writer == NULL)
        return status_out_of_memory();
    CHECK(options->under_way > 0);
    writer->options = *options;
    writer->kick.run = kicked;
    writer->queue = row_queue_create();
    endpoint_append_routing(&writer->routing, "table_name", options->table);
    endpoint_append_routing(&writer->routing, "app_profile_id", options->app_profile);
    if (writer->queue != NULL && !writer->routing.failed)
        return status_ok();
    change_writer_destroy(writer);
    *out = NULL;
    return status_out_of_memory();
}

static void destroy_batch(struct batch *batch)
{
    if (batch->call != NULL)
        client_call_cancel(batch->call);
    loop_timer_clear(batch->writer->options.loop, &batch->timer);
    status_free(batch->failure);
    free(batch);
}

void change_writer_destroy(struct change_writer *writer)
{
    if (writer == NULL)
        return;
    if (status_is_ok(writer->failure)) /* from now on calls that end change nothing */
        writer->failure = status_make(STATUS_CANCELLED, "given up");
    while (!list_is_empty(&writer->sent))
        destroy_batch(LIST_ENTRY(list_take(&writer->sent), struct batch, link));
    loop_timer_clear(writer->options.loop, &writer->kick);
    grpc_link_destroy(writer->grpc);
    row_queue_destroy(writer->queue);
    status_free(writer->failure);
    buffer_free(&writer->routing);
    free(writer);
}

/* --- failures --- */

static void wake(struct change_writer *writer)
{
    if (writer->is_waiting)
        loop_stop(writer->options.loop);
}

/* Ends the writer with a failure: it sends nothing more. Takes the status. */
static void fail(struct change_writer *writer, status s)
{
    if (status_is_ok(writer->failure))
        writer->failure = s;
    else
        status_free(s);
    wake(writer);
}

static void remember(struct batch *batch, status s)
{
    status_free(batch->failure);
    batch->failure = s;
}

/* Calls of a row that is refused would be refused again. Takes the status. */
static void refuse(struct change_writer *writer, bytes row_key, status why)
{
    struct buffer key = {0};
    buffer_append_readable(&key, row_key, READABLE_KEY_MOST);
    buffer_append_byte(&key, '\0');
    fail(writer, status_make(why.code, "the row %s is refused: %s",
                             key.failed ? "" : (const char *)key.data, status_message(why)));
    status_free(why);
    buffer_free(&key);
}

/* --- answers --- */

static void take_entry(struct batch *batch, const Bt__MutateRowsResponse__Entry *entry)
{
    struct change_writer *writer = batch->writer;
    const Rpc__Status *answer = entry->status;
    if (entry->index < 0 || (uint64_t)entry->index >= batch->count ||
        batch->entries[entry->index] == NULL)
        return;
    struct queued_entry **place = &batch->entries[entry->index];
    if (answer == NULL || answer->code == STATUS_OK) {
        row_queue_done(writer->queue, *place);
        *place = NULL;
        writer->progress_us = now_us(writer);
        return;
    }
    status s = status_make((enum status_code)answer->code, "%s", answer->message);
    if (endpoint_failure_may_pass(s))
        remember(batch, s);
    else
        refuse(writer, queued_entry_key(*place), s);
}

static status take_answers(struct batch *batch, bytes message, struct arena *arena)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__mutate_rows_response__descriptor, message, arena, &decoded));
    const Bt__MutateRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_entries; i++)
        take_entry(batch, answer->entries[i]);
    return status_ok();
}

static void batch_took(void *context, struct client_call *call, bytes message)
{
    struct batch *batch = context;
    struct arena *arena = arena_create(ANSWER_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : take_answers(batch, message, arena);
    if (!status_is_ok(s))
        remember(batch, s);
    arena_destroy(arena);
    (void)call;
}

/* Keeps those that are not done, in their order. */
static void compact(struct batch *batch)
{
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->entries[i] != NULL)
            batch->entries[kept++] = batch->entries[i];
    batch->count = kept;
}

static void drop_batch(struct batch *batch)
{
    struct change_writer *writer = batch->writer;
    struct link **place = &writer->sent.first;
    while (*place != &batch->link)
        place = &(*place)->next;
    list_take_at(&writer->sent, place);
    writer->sent_count--;
    destroy_batch(batch);
}

static void send_later(struct batch *batch);

static void kick(struct change_writer *writer)
{
    status s = loop_timer_set(writer->options.loop, &writer->kick, now_us(writer));
    if (!status_is_ok(s))
        fail(writer, s);
}

/* A call that ends well has said something of each row; what it left out is asked for again. */
static void batch_ended(void *context, struct client_call *call, status s)
{
    struct batch *batch = context;
    struct change_writer *writer = batch->writer;
    (void)call;
    batch->call = NULL;
    if (!status_is_ok(writer->failure)) {
        status_free(s);
        return;
    }
    compact(batch);
    if (!status_is_ok(s) && !endpoint_failure_may_pass(s)) {
        fail(writer, s);
        return;
    }
    if (!status_is_ok(s))
        remember(batch, s);
    if (batch->count > 0) {
        send_later(batch);
    } else {
        drop_batch(batch);
        kick(writer);
    }
    wake(writer);
}

/* --- sending --- */

static void encode_entry(const struct queued_entry *entry, struct buffer *message)
{
    enum { ENTRIES_TAG = 2 << 3 | 2 /* bytes */ };
    buffer_append_byte(message, ENTRIES_TAG);
    buffer_append_varint(message, entry->message.size);
    buffer_append_bytes(message, buffer_bytes(&entry->message));
}

static status encode(const struct batch *batch, struct buffer *message)
{
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    request.table_name = batch->writer->options.table;
    request.app_profile_id = batch->writer->options.app_profile;
    grpc_message_start(message);
    proto_encode(&request.base, message);
    for (size_t i = 0; i < batch->count; i++)
        encode_entry(batch->entries[i], message);
    if (!message->failed)
        return status_ok();
    buffer_free(message);
    return status_out_of_memory();
}

static status start_call(struct batch *batch)
{
    struct change_writer *writer = batch->writer;
    const struct client_metadata routing = {.name = "x-goog-request-params",
                                            .value = buffer_bytes(&writer->routing)};
    const struct client_call_options options = {.path = MUTATE_ROWS,
                                                .timeout_us = CALL_TIMEOUT_US,
                                                .metadata = &routing,
                                                .metadata_count = 1,
                                                .context = batch,
                                                .on_message = batch_took,
                                                .on_end = batch_ended};
    struct buffer message = {0};
    TRY(endpoint_connect(writer->options.endpoint, writer->options.loop, &writer->grpc));
    TRY(encode(batch, &message));
    return grpc_link_call(writer->grpc, &options, &message, &batch->call);
}

static void send_batch(struct batch *batch)
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
        fail(batch->writer, status_copy(batch->failure));
}

static void wait_is_over(struct timer *timer)
{
    send_batch(LIST_ENTRY(timer, struct batch, timer));
}

/* Sends the rest of the batch again later. */
static void send_later(struct batch *batch)
{
    struct change_writer *writer = batch->writer;
    int64_t now = now_us(writer);
    if (now - writer->progress_us > GIVE_UP_AFTER_US) {
        fail(writer, status_copy(batch->failure));
        return;
    }
    batch->wait_us = endpoint_next_wait(batch->wait_us);
    status s = loop_timer_set(writer->options.loop, &batch->timer, now + batch->wait_us);
    if (!status_is_ok(s))
        fail(writer, s);
}

/* --- filling --- */

static struct queued_entry *take(struct change_writer *writer)
{
    struct queued_entry *entry = writer->held;
    writer->held = NULL;
    return entry != NULL ? entry : row_queue_take(writer->queue);
}

/* As many rows as a call takes: one at least, if any is ready. */
static void fill(struct batch *batch)
{
    struct change_writer *writer = batch->writer;
    size_t mutations = 0, size = 0;
    while (batch->count < ROWS_MOST) {
        struct queued_entry *entry = take(writer);
        if (entry == NULL)
            return;
        mutations += entry->mutations;
        size += entry->message.size;
        if (batch->count > 0 && (mutations > MUTATIONS_MOST || size > BYTES_MOST)) {
            writer->held = entry;
            return;
        }
        batch->entries[batch->count++] = entry;
    }
}

static status begin_batch(struct change_writer *writer)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return status_out_of_memory();
    batch->writer = writer;
    batch->timer.run = wait_is_over;
    fill(batch);
    if (writer->sent_count == 0)
        writer->progress_us = now_us(writer);
    list_append(&writer->sent, &batch->link);
    writer->sent_count++;
    send_batch(batch);
    return status_ok();
}

static bool is_full(const struct change_writer *writer)
{
    return row_queue_ready(writer->queue) >= ROWS_MOST || writer->held != NULL ||
           row_queue_bytes(writer->queue) >= (writer->sent_count + 1) * (size_t)BYTES_MOST;
}

static bool has_ready(const struct change_writer *writer)
{
    return writer->held != NULL || row_queue_ready(writer->queue) > 0;
}

static void send_ready(struct change_writer *writer)
{
    while (status_is_ok(writer->failure) && has_ready(writer) &&
           writer->sent_count < writer->options.under_way &&
           (writer->sent_count == 0 || is_full(writer))) {
        status s = begin_batch(writer);
        if (!status_is_ok(s))
            fail(writer, s);
    }
}

/* --- waiting --- */

static status run_loop(struct change_writer *writer)
{
    TRY(status_copy(writer->failure));
    writer->is_waiting = true;
    loop_run(writer->options.loop);
    writer->is_waiting = false;
    return status_copy(writer->failure);
}

status change_writer_add(struct change_writer *writer, bytes row_key,
                         Bt__Mutation *const *mutations, size_t count)
{
    TRY(status_copy(writer->failure));
    TRY(row_queue_add(writer->queue, row_key, mutations, count));
    send_ready(writer);
    while (row_queue_bytes(writer->queue) > WAITING_MOST)
        TRY(run_loop(writer));
    return status_copy(writer->failure);
}

status change_writer_flush(struct change_writer *writer)
{
    TRY(status_copy(writer->failure));
    while (writer->sent_count > 0 || has_ready(writer))
        TRY(run_loop(writer));
    return status_ok();
}
