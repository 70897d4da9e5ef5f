/* See file_sink.h. */
#include "transfer/file_sink.h"

#include "base/clock.h"
#include "formats/output.h"
#include "formats/row_encoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 64 << 10 /* bytes, which go to the output at once */, US_PER_S = 1000 * 1000 };

struct file_sink {
    struct file_sink_options options;
    struct row_encoder *encoder;
    struct output *output; /* NULL: not open yet */
    struct buffer text;    /* that waits for the output */
    struct row_sum sum;
    uint64_t mark; /* of Avro's blocks, the same when it goes on */
    uint64_t length;
    int64_t next_us; /* when the next row may come */
};

/* --- making --- */

/* Sixteen bytes that no file has by chance. */
static status make_encoder(struct file_sink *sink)
{
    uint8_t bytes[AVRO_MARK];
    for (size_t i = 0; i < AVRO_MARK; i++)
        bytes[i] = (uint8_t)(sink->mark * (i < 8 ? 1 : 0x9e3779b97f4a7c15) >> (56 - i % 8 * 8));
    row_encoder_destroy(sink->encoder);
    return row_encoder_create(sink->options.format, bytes, &sink->encoder);
}

status file_sink_create(const struct file_sink_options *options, struct file_sink **out)
{
    struct file_sink *sink = *out = calloc(1, sizeof *sink);
    if (sink == NULL)
        return status_out_of_memory();
    sink->options = *options;
    int64_t now_us[] = {clock_wall_us(clock_system()), clock_steady_us(clock_system())};
    sink->mark =
        bytes_hash(bytes_make(now_us, sizeof now_us)) ^ bytes_hash(bytes_of(options->path));
    status s = make_encoder(sink);
    if (status_is_ok(s))
        return s;
    file_sink_destroy(sink);
    *out = NULL;
    return s;
}

void file_sink_destroy(struct file_sink *sink)
{
    if (sink == NULL)
        return;
    row_encoder_destroy(sink->encoder);
    output_close(sink->output);
    buffer_free(&sink->text);
    free(sink);
}

const struct row_sum *file_sink_sum(const struct file_sink *sink)
{
    return &sink->sum;
}

/* --- writing --- */

static status open_output(struct file_sink *sink)
{
    if (sink->output != NULL)
        return status_ok();
    TRY(output_open(sink->options.path, sink->options.is_gzip, 0, &sink->output));
    return row_encoder_begin(sink->encoder, &sink->text);
}

static status write_text(struct file_sink *sink)
{
    status s = sink->text.failed ? status_out_of_memory()
                                 : output_write(sink->output, buffer_bytes(&sink->text));
    buffer_clear(&sink->text);
    return s;
}

/* Not before its time has come. */
static status pace(struct file_sink *sink)
{
    if (sink->options.rows_per_second == 0)
        return status_ok();
    int64_t now_us = clock_steady_us(clock_system());
    if (now_us < sink->next_us)
        TRY(client_session_wait(sink->options.session, sink->next_us - now_us));
    else
        sink->next_us = now_us;
    sink->next_us += US_PER_S / (int64_t)sink->options.rows_per_second;
    return status_ok();
}

static status add(void *context, const struct transfer_record *record)
{
    struct file_sink *sink = context;
    const struct move_change *change = &record->change;
    TRY(open_output(sink));
    TRY(pace(sink));
    status s = row_encoder_add(sink->encoder, change, &sink->text);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        sink->options.refusal.refused(sink->options.refusal.context, record->tag, record->text, s);
        status_free(s);
        return status_ok();
    }
    TRY(s);
    row_sum_add(&sink->sum, change, sink->options.has_timestamps);
    return sink->text.size < PIECE ? status_ok() : write_text(sink);
}

static status flush(void *context)
{
    struct file_sink *sink = context;
    TRY(open_output(sink)); /* of no rows there is a file, too */
    TRY(row_encoder_flush(sink->encoder, &sink->text));
    TRY(write_text(sink));
    return output_sync(sink->output, &sink->length);
}

static status finish(void *context)
{
    struct file_sink *sink = context;
    return output_finish(sink->output);
}

/* --- positions --- */

/* JSON's integers have a sign. */
static json_t *save(void *context)
{
    const struct file_sink *sink = context;
    char sum[20], mark[20];
    snprintf(sum, sizeof sum, "%016" PRIx64, sink->sum.sum);
    snprintf(mark, sizeof mark, "%016" PRIx64, sink->mark);
    return json_pack("{s:I, s:I, s:s, s:s}", "length", (json_int_t)sink->length, "rows",
                     (json_int_t)sink->sum.rows, "sum", sum, "mark", mark);
}

static status restore(void *context, const json_t *position)
{
    struct file_sink *sink = context;
    json_int_t length, rows;
    const char *sum, *mark;
    if (json_unpack((json_t *)(uintptr_t)position, "{s:I, s:I, s:s, s:s}", "length", &length,
                    "rows", &rows, "sum", &sum, "mark", &mark) != 0)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    sink->sum = (struct row_sum){.rows = (uint64_t)rows, .sum = strtoull(sum, NULL, 16)};
    sink->mark = strtoull(mark, NULL, 16);
    TRY(make_encoder(sink));
    return output_open(sink->options.path, sink->options.is_gzip, (uint64_t)length, &sink->output);
}

struct transfer_sink file_sink_interface(struct file_sink *sink)
{
    return (struct transfer_sink){.context = sink,
                                  .add = add,
                                  .flush = flush,
                                  .save = save,
                                  .restore = restore,
                                  .finish = finish};
}
