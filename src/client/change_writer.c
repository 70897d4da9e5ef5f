/* See change_writer.h. New calls begin in a turn of the loop of their own (`kick`), not within the
 * end of another. */
#include "client/change_writer.h"

#include "base/check.h"
#include "client/row_batches.h"
#include "client/row_queue.h"

#include <stdlib.h>

enum {
    ROWS_MOST = 1000,
    MUTATIONS_MOST = 100000, /* that a request may have */
    BYTES_MOST = 4 << 20,    /* of a call, unless its first row has more */
    WAITING_MOST = 32 << 20, /* bytes of all that is not done */
    READABLE_KEY_MOST = 100,
};

struct batch {
    struct row_batch base; /* first */
    struct change_writer *writer;
    struct queued_entry *entries[ROWS_MOST]; /* NULL: done */
    size_t count;
};

struct change_writer {
    unsigned under_way; /* calls at a time */
    struct row_batches batches;
    struct row_queue *queue;
    struct queued_entry *held; /* taken, and too large for the call that was filled; or NULL */
    struct timer kick;
};

static struct batch *batch_of(struct row_batch *base)
{
    return LIST_ENTRY(base, struct batch, base);
}

/* --- a batch --- */

static void append_entries(struct row_batch *base, struct buffer *message)
{
    const struct batch *batch = batch_of(base);
    for (size_t i = 0; i < batch->count; i++)
        row_batches_append_entry(message, buffer_bytes(&batch->entries[i]->message));
}

/* Calls of a row that is refused would be refused again. Takes the status. */
static void refuse(struct change_writer *writer, bytes row_key, status why)
{
    struct buffer key = {0};
    buffer_append_readable(&key, row_key, READABLE_KEY_MOST);
    buffer_append_byte(&key, '\0');
    row_batches_fail(&writer->batches,
                     status_make(why.code, "the row %s is refused: %s",
                                 key.failed ? "" : (const char *)key.data, status_message(why)));
    status_free(why);
    buffer_free(&key);
}

static bool row_ended(struct row_batch *base, uint64_t index, status s)
{
    struct batch *batch = batch_of(base);
    if (index >= batch->count || batch->entries[index] == NULL)
        return false;
    if (!status_is_ok(s)) {
        refuse(batch->writer, queued_entry_key(batch->entries[index]), s);
        return true;
    }
    row_queue_done(batch->writer->queue, batch->entries[index]);
    batch->entries[index] = NULL;
    return true;
}

static size_t keep_rest(struct row_batch *base)
{
    struct batch *batch = batch_of(base);
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->entries[i] != NULL)
            batch->entries[kept++] = batch->entries[i];
    batch->count = kept;
    return kept;
}

static void destroy_batch(struct row_batch *base)
{
    free(batch_of(base));
}

/* --- making and ending --- */

static void send_ready(struct change_writer *writer);

static void kicked(struct timer *timer)
{
    send_ready(LIST_ENTRY(timer, struct change_writer, kick));
}

static void kick(void *context)
{
    struct change_writer *writer = context;
    struct row_batches *batches = &writer->batches;
    status s = loop_timer_set(batches->options.loop, &writer->kick, row_batches_now_us(batches));
    if (!status_is_ok(s))
        row_batches_fail(batches, s);
}

static status open_batches(struct change_writer *writer,
                           const struct change_writer_options *options)
{
    const struct row_batches_options batches = {.loop = options->loop,
                                                .endpoint = options->endpoint,
                                                .table = options->table,
                                                .app_profile = options->app_profile,
                                                .context = writer,
                                                .append = append_entries,
                                                .ended = row_ended,
                                                .rest = keep_rest,
                                                .destroy = destroy_batch,
                                                .gone = kick};
    return row_batches_open(&batches, &writer->batches);
}

status change_writer_create(const struct change_writer_options *options, struct change_writer **out)
{
    struct change_writer *writer = *out = calloc(1, sizeof *writer);
    if (writer == NULL)
        return status_out_of_memory();
    CHECK(options->under_way > 0);
    writer->under_way = options->under_way;
    writer->kick.run = kicked;
    status s = open_batches(writer, options);
    writer->queue = row_queue_create();
    if (status_is_ok(s) && writer->queue == NULL)
        s = status_out_of_memory();
    if (status_is_ok(s))
        return s;
    change_writer_destroy(writer);
    *out = NULL;
    return s;
}

void change_writer_destroy(struct change_writer *writer)
{
    if (writer == NULL)
        return;
    loop_timer_clear(writer->batches.options.loop, &writer->kick);
    row_batches_close(&writer->batches);
    row_queue_destroy(writer->queue);
    free(writer);
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
    fill(batch);
    row_batches_send(&writer->batches, &batch->base);
    return status_ok();
}

static bool is_full(const struct change_writer *writer)
{
    return row_queue_ready(writer->queue) >= ROWS_MOST || writer->held != NULL ||
           row_queue_bytes(writer->queue) >= (writer->batches.count + 1) * (size_t)BYTES_MOST;
}

static bool has_ready(const struct change_writer *writer)
{
    return writer->held != NULL || row_queue_ready(writer->queue) > 0;
}

static void send_ready(struct change_writer *writer)
{
    const struct row_batches *batches = &writer->batches;
    while (status_is_ok(batches->failure) && has_ready(writer) &&
           batches->count < writer->under_way && (batches->count == 0 || is_full(writer))) {
        status s = begin_batch(writer);
        if (!status_is_ok(s))
            row_batches_fail(&writer->batches, s);
    }
}

/* --- what others call --- */

status change_writer_add(struct change_writer *writer, bytes row_key,
                         Bt__Mutation *const *mutations, size_t count)
{
    TRY(row_batches_failure(&writer->batches));
    TRY(row_queue_add(writer->queue, row_key, mutations, count));
    send_ready(writer);
    while (row_queue_bytes(writer->queue) > WAITING_MOST)
        TRY(row_batches_wait(&writer->batches));
    return row_batches_failure(&writer->batches);
}

status change_writer_flush(struct change_writer *writer)
{
    TRY(row_batches_failure(&writer->batches));
    while (writer->batches.count > 0 || has_ready(writer))
        TRY(row_batches_wait(&writer->batches));
    return status_ok();
}
