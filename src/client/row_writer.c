/* See row_writer.h. A batch is filled, and sent (row_batches.h): it is finished when each of its
 * rows has been written or refused. Batches are finished in any order. */
#include "client/row_writer.h"

#include "base/check.h"
#include "client/pending_rows.h"
#include "client/row_batches.h"
#include "client/row_entry.h"
#include "client/row_mutations.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    ROWS_MOST = 1000,
    CELLS_MOST = 50000, /* half of what a request may have */
    BYTES_MOST = 2 << 20,
    PIECE_BYTES = 32 << 20, /* of a row that does not go at once */
    ARENA_LIMIT = 512 << 20,
    US_PER_S = 1000 * 1000,
    CONDITIONALS_A_BATCH = 16, /* calls of one row that are under way in place of one of many */
};

struct batch {
    struct row_batch base; /* first */
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
};

struct row_writer {
    struct row_writer_options options;
    struct row_batches batches;
    struct batch *filling; /* NULL: none */
    struct pending_rows pending;
    bool has_refused;
    uint64_t refused_tag; /* of the row that was refused last */
    struct timer pace;
    int64_t next_us; /* when the next row may go */
};

static struct batch *batch_of(struct row_batch *base)
{
    return LIST_ENTRY(base, struct batch, base);
}

/* --- a batch --- */

static void destroy_batch(struct row_batch *base)
{
    struct batch *batch = batch_of(base);
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->is_finished[i])
            pending_rows_remove(&batch->writer->pending, batch->pending[i]);
    arena_destroy(batch->arena);
    free(batch);
}

static bool row_ended(struct row_batch *base, uint64_t index, status s)
{
    struct batch *batch = batch_of(base);
    struct row_writer *writer = batch->writer;
    if (index >= batch->count || batch->is_finished[index])
        return false;
    batch->is_finished[index] = true;
    pending_rows_remove(&writer->pending, batch->pending[index]);
    if (status_is_ok(s))
        return true;
    writer->has_refused = true;
    writer->refused_tag = batch->tags[index];
    writer->options.refused(writer->options.context, batch->tags[index], batch->texts[index], s);
    status_free(s);
    return true;
}

static size_t keep_rest(struct row_batch *base)
{
    struct batch *batch = batch_of(base);
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
    return kept;
}

static void append_condition(const struct batch *batch, struct buffer *message)
{
    Bt__CheckAndMutateRowRequest request = *batch->condition;
    request.table_name = batch->writer->options.table;
    request.app_profile_id = batch->writer->options.app_profile;
    proto_encode(&request.base, message);
}

static void append_entries(const struct batch *batch, struct buffer *message)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->count; i++)
        size += ROW_BATCHES_ENTRY_HEAD + batch->entries[i].size;
    if (buffer_reserve(message, size) == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++)
        row_batches_append_entry(message, batch->entries[i]);
}

static void append_request(struct row_batch *base, struct buffer *message)
{
    const struct batch *batch = batch_of(base);
    if (batch->condition != NULL)
        append_condition(batch, message);
    else
        append_entries(batch, message);
}

/* --- making and ending --- */

static void pace_is_over(struct timer *timer)
{
    row_batches_wake(&LIST_ENTRY(timer, struct row_writer, pace)->batches);
}

static status open_batches(struct row_writer *writer)
{
    const struct row_batches_options batches = {.loop = writer->options.loop,
                                                .endpoint = writer->options.endpoint,
                                                .table = writer->options.table,
                                                .app_profile = writer->options.app_profile,
                                                .append = append_request,
                                                .ended = row_ended,
                                                .rest = keep_rest,
                                                .destroy = destroy_batch};
    return row_batches_open(&batches, &writer->batches);
}

status row_writer_create(const struct row_writer_options *options, struct row_writer **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->options = *options;
    (*out)->pace.run = pace_is_over;
    status s = open_batches(*out);
    (*out)->next_us = row_batches_now_us(&(*out)->batches);
    if (status_is_ok(s))
        return s;
    row_writer_destroy(*out);
    *out = NULL;
    return s;
}

void row_writer_destroy(struct row_writer *writer)
{
    if (writer == NULL)
        return;
    loop_timer_clear(writer->options.loop, &writer->pace);
    row_batches_close(&writer->batches);
    if (writer->filling != NULL)
        destroy_batch(&writer->filling->base);
    free(writer);
}

/* --- waiting --- */

static status wait_for_room(struct row_writer *writer, unsigned most)
{
    TRY(row_batches_failure(&writer->batches));
    while (writer->batches.count > most)
        TRY(row_batches_wait(&writer->batches));
    return status_ok();
}

/* Rows go out by batches, so the pace is that of batches. */
static status keep_pace(struct row_writer *writer, size_t rows)
{
    uint64_t rate = writer->options.rows_per_second;
    if (rate == 0)
        return status_ok();
    int64_t now = row_batches_now_us(&writer->batches);
    if (writer->next_us > now)
        TRY(loop_timer_set(writer->options.loop, &writer->pace, writer->next_us));
    while (writer->next_us > now) {
        TRY(row_batches_wait(&writer->batches));
        now = row_batches_now_us(&writer->batches);
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
    batch->base.is_conditional = batch->condition != NULL;
    row_batches_send(&writer->batches, &batch->base);
    return row_batches_failure(&writer->batches);
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
        TRY(row_batches_wait(&writer->batches));
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
    TRY(row_batches_failure(&writer->batches));
    bool is_one = change->count <= CELLS_MOST && change->bytes <= PIECE_BYTES;
    return is_one || change->replaces ? add_entry(writer, change, tag, text)
                                      : add_pieces(writer, change, tag, text);
}

status row_writer_flush(struct row_writer *writer)
{
    TRY(row_batches_failure(&writer->batches));
    TRY(send_filled(writer));
    return wait_for_room(writer, 0);
}
