/* See row_writer.h.
 *
 * A batch is filled, sent, and finished when each of its rows has been written or refused. Rows
 * whose failure may pass are sent again, alone, after a while. Batches are finished in any order;
 * the list is in the order in which they were filled.
 *
 *     filling ──► under way ──► finished
 *                  ▲     │ some rows, or the call, failed for now
 *                  └─wait┘ */
#include "client/row_writer.h"

#include "base/check.h"
#include "base/varint.h"
#include "client/pending_rows.h"
#include "client/row_entry.h"
#include "client/row_mutations.h"
#include "wire/proto.h"

#include <stdlib.h>

#define MUTATE_ROWS          "/google.bigtable.v2.Bigtable/MutateRows"
#define CHECK_AND_MUTATE_ROW "/google.bigtable.v2.Bigtable/CheckAndMutateRow"

enum {
    ROWS_MOST = 1000,
    CELLS_MOST = 50000, /* half of what a request may have */
    BYTES_MOST = 2 << 20,
    PIECE_BYTES = 32 << 20, /* of a row that does not go at once */
    ARENA_LIMIT = 512 << 20,
    CALL_TIMEOUT_US = 60 * 1000 * 1000,
    GIVE_UP_AFTER_US = 60 * 1000 * 1000, /* without a row that was finished */
    US_PER_S = 1000 * 1000,
    CONDITIONALS_A_BATCH = 16, /* calls of one row that are under way in place of one of many */
};

struct batch {
    struct link link;
    struct row_writer *writer;
    struct arena *arena;
    bytes entries[ROWS_MOST]; /* of MutateRowsRequest, encoded, that are not finished */
    struct pending_row *pending[ROWS_MOST];
    uint64_t tags[ROWS_MOST];
    bytes texts[ROWS_MOST]; /* of the records, given to `refused` */
    bool is_finished[ROWS_MOST];
    Bt__CheckAndMutateRowRequest *condition; /* of a batch of one row, in place of its entry; else
                                                NULL */
    size_t count;
    size_t cells;
    size_t bytes;
    size_t text_bytes;
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
    struct pending_rows pending;
    unsigned sent_count;
    int64_t progress_us;
    status failure;  /* of everything; owned */
    bool is_waiting; /* the loop runs for us */
    bool has_refused;
    uint64_t refused_tag; /* of the row that was refused last */
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
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->is_finished[i])
            pending_rows_remove(&batch->writer->pending, batch->pending[i]);
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

/* --- failures --- */

/* Ends the writer with a failure: it sends nothing more. Takes the status. */
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

/* --- finishing --- */

static void finish(struct batch *batch, size_t index, status s)
{
    struct row_writer *writer = batch->writer;
    batch->is_finished[index] = true;
    pending_rows_remove(&writer->pending, batch->pending[index]);
    writer->progress_us = now_us(writer);
    if (status_is_ok(s))
        return;
    writer->has_refused = true;
    writer->refused_tag = batch->tags[index];
    writer->options.refused(writer->options.context, batch->tags[index], batch->texts[index], s);
    status_free(s);
}

/* Keeps those that are not finished, in their order. */
static void compact(struct batch *batch)
{
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->is_finished[i])
            continue;
        batch->entries[kept] = batch->entries[i];
        batch->pending[kept] = batch->pending[i];
        batch->texts[kept] = batch->texts[i];
        batch->tags[kept++] = batch->tags[i];
    }
    memset(batch->is_finished, 0, sizeof batch->is_finished);
    batch->count = kept;
}

static void drop_finished(struct row_writer *writer)
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

/* Sends the rest of the batch again later. */
static void send_later(struct batch *batch)
{
    struct row_writer *writer = batch->writer;
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
    if (batch->is_finished[index])
        return;
    if (answer == NULL || answer->code == STATUS_OK) {
        finish(batch, index, status_ok());
        return;
    }
    status s = status_make((enum status_code)answer->code, "%s", answer->message);
    if (endpoint_failure_may_pass(s))
        remember(batch, s);
    else
        finish(batch, index, s);
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

/* Any answer to a conditional change finishes it: it was made, or not needed. */
static void batch_took(void *context, struct client_call *call, bytes message)
{
    enum { ANSWER_LIMIT = 16 << 20 };
    struct batch *batch = context;
    struct arena *arena = arena_create(ANSWER_LIMIT);
    status s = arena == NULL              ? status_out_of_memory()
               : batch->condition == NULL ? take_answers(batch, message, arena)
                                          : status_ok();
    if (status_is_ok(s) && batch->condition != NULL && !batch->is_finished[0])
        finish(batch, 0, status_ok());
    if (!status_is_ok(s))
        remember(batch, s);
    arena_destroy(arena);
    (void)call;
}

/* A call of one row that fails so says something of that row alone. */
static bool is_of_one_row(status s)
{
    return s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_OUT_OF_RANGE ||
           s.code == STATUS_FAILED_PRECONDITION;
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
    if (batch->condition != NULL && is_of_one_row(s) && !batch->is_finished[0]) {
        finish(batch, 0, s);
        s = status_ok();
    }
    compact(batch);
    if (!status_is_ok(s) && !endpoint_failure_may_pass(s)) {
        fail(writer, s);
        return;
    }
    if (!status_is_ok(s))
        remember(batch, s);
    if (batch->count > 0)
        send_later(batch);
    drop_finished(writer);
    wake(writer);
}

static void encode_condition(const struct batch *batch, struct buffer *message)
{
    Bt__CheckAndMutateRowRequest request = *batch->condition;
    request.table_name = batch->writer->options.table;
    request.app_profile_id = batch->writer->options.app_profile;
    proto_encode(&request.base, message);
}

/* The message is as its parts, one behind the other: entries are a field of it that comes again. */
static void encode_entries(const struct batch *batch, struct buffer *message)
{
    enum { ENTRIES_TAG = 2 << 3 | 2 /* bytes */ };
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    size_t size = 0;
    request.table_name = batch->writer->options.table;
    request.app_profile_id = batch->writer->options.app_profile;
    proto_encode(&request.base, message);
    for (size_t i = 0; i < batch->count; i++)
        size += 1 + VARINT_MAX_SIZE + batch->entries[i].size;
    if (buffer_reserve(message, size) == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        buffer_append_byte(message, ENTRIES_TAG);
        buffer_append_varint(message, batch->entries[i].size);
        buffer_append_bytes(message, batch->entries[i]);
    }
}

static status encode(const struct batch *batch, struct buffer *message)
{
    grpc_message_start(message);
    if (batch->condition != NULL)
        encode_condition(batch, message);
    else
        encode_entries(batch, message);
    if (!message->failed)
        return status_ok();
    buffer_free(message);
    return status_out_of_memory();
}

static status start_call(struct batch *batch)
{
    const struct client_metadata routing = {.name = "x-goog-request-params",
                                            .value = buffer_bytes(&batch->writer->routing)};
    const struct client_call_options options = {
        .path = batch->condition != NULL ? CHECK_AND_MUTATE_ROW : MUTATE_ROWS,
        .timeout_us = CALL_TIMEOUT_US,
        .metadata = &routing,
        .metadata_count = 1,
        .context = batch,
        .on_message = batch_took,
        .on_end = batch_ended};
    struct buffer message = {0};
    TRY(endpoint_connect(batch->writer->options.endpoint, batch->writer->options.loop,
                         &batch->writer->grpc));
    TRY(encode(batch, &message));
    return grpc_link_call(batch->writer->grpc, &options, &message, &batch->call);
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
    unsigned most = writer->options.under_way;
    if (batch->condition != NULL)
        most *= CONDITIONALS_A_BATCH;
    TRY(wait_for_room(writer, most - 1));
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

static bool fits(const struct batch *batch, const struct move_change *change)
{
    return batch->count < ROWS_MOST && batch->cells + change->count <= CELLS_MOST &&
           batch->bytes + change->bytes <= BYTES_MOST && batch->text_bytes < ROW_WRITER_TEXT_MOST;
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

/* Encodes an entry from messages, which say more than row_entry_encode can. */
static status encode_mutations(const struct row_mutations *mutations, struct arena *arena,
                               bytes *out)
{
    Bt__MutateRowsRequest__Entry entry = BT__MUTATE_ROWS_REQUEST__ENTRY__INIT;
    struct buffer encoded = {0};
    entry.row_key = mutations->row_key;
    entry.mutations = mutations->all;
    entry.n_mutations = mutations->count;
    proto_encode(&entry.base, &encoded);
    *out = encoded.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&encoded));
    buffer_free(&encoded);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status make_entry(const struct row_writer *writer, const struct move_change *change,
                         struct batch *batch)
{
    const char *const *aggregates = writer->options.aggregates;
    struct row_mutations mutations;
    bytes *entry = &batch->entries[batch->count];
    *entry = bytes_make(NULL, 0);
    if (!change->yields && (aggregates == NULL || aggregates[0] == NULL))
        return row_entry_encode(change, batch->arena, entry);
    TRY(row_mutations_make(change, aggregates, batch->arena, &mutations));
    if (change->yields)
        return row_mutations_condition(&mutations, change->written_us, batch->arena,
                                       &batch->condition);
    return encode_mutations(&mutations, batch->arena, entry);
}

/* A very long one is not: several batches wait at a time. */
static status keep_text(struct batch *batch, bytes text)
{
    bytes *kept = &batch->texts[batch->count];
    *kept = bytes_of("");
    if (text.size == 0 || text.size > ROW_WRITER_TEXT_MOST)
        return status_ok();
    *kept = arena_copy(batch->arena, text);
    batch->text_bytes += text.size;
    return kept->data == NULL ? status_out_of_memory() : status_ok();
}

static status fill(struct row_writer *writer, const struct move_change *change, uint64_t tag,
                   bytes text)
{
    struct batch *batch = writer->filling;
    struct pending_row *pending = arena_alloc(batch->arena, sizeof *pending);
    if (pending == NULL)
        return status_out_of_memory();
    TRY(make_entry(writer, change, batch));
    TRY(keep_text(batch, text));
    pending_rows_add(&writer->pending, change, pending);
    batch->pending[batch->count] = pending;
    batch->tags[batch->count++] = tag;
    batch->cells += change->count;
    batch->bytes += change->row_key.size + change->bytes;
    return status_ok();
}

/* Until what is being written to the row is finished, if the order counts. */
static status wait_for_row(struct row_writer *writer, const struct move_change *change)
{
    if (!pending_rows_blocks(&writer->pending, change))
        return status_ok();
    TRY(send_filled(writer));
    while (pending_rows_blocks(&writer->pending, change))
        TRY(run_loop(writer));
    return status_ok();
}

static status add_entry(struct row_writer *writer, const struct move_change *change, uint64_t tag,
                        bytes text)
{
    TRY(wait_for_row(writer, change));
    if (writer->filling != NULL && writer->filling->count > 0 &&
        (change->yields || !fits(writer->filling, change)))
        TRY(send_filled(writer));
    if (writer->filling == NULL)
        TRY(begin_batch(writer));
    TRY(fill(writer, change, tag, text));
    return change->yields ? send_filled(writer) : status_ok();
}

/* A piece of the change: of the cells from `first` on as many as one entry takes, at least one. */
static struct move_change piece_of(const struct move_change *change, size_t first)
{
    struct move_change piece = *change;
    piece.cells = change->cells + first;
    piece.count = piece.bytes = 0;
    for (size_t i = first; i < change->count && piece.count < CELLS_MOST; i++) {
        size_t size = change->cells[i].qualifier.size + change->cells[i].value.size;
        if (piece.count > 0 && piece.bytes + size > PIECE_BYTES)
            break;
        piece.count++;
        piece.bytes += size;
    }
    return piece;
}

/* A row may have more cells than a request; they need not come at once, unless they replace it.
 * Each piece waits for the one before it: behind one that is refused none is sent. */
static status add_pieces(struct row_writer *writer, const struct move_change *change, uint64_t tag,
                         bytes text)
{
    for (size_t done = 0; done < change->count;) {
        const struct move_change piece = piece_of(change, done);
        TRY(add_entry(writer, &piece, tag, text));
        done += piece.count;
        if (done < change->count)
            TRY(row_writer_flush(writer));
        if (writer->has_refused && writer->refused_tag == tag)
            break;
    }
    return status_ok();
}

status row_writer_add(struct row_writer *writer, const struct move_change *change, uint64_t tag,
                      bytes text)
{
    CHECK(change->count > 0 || change->replaces);
    CHECK(change->replaces || !change->yields);
    TRY(failure_of(writer));
    bool is_one = change->count <= CELLS_MOST && change->bytes <= PIECE_BYTES;
    return is_one || change->replaces ? add_entry(writer, change, tag, text)
                                      : add_pieces(writer, change, tag, text);
}

status row_writer_flush(struct row_writer *writer)
{
    TRY(failure_of(writer));
    TRY(send_filled(writer));
    return wait_for_room(writer, 0);
}
