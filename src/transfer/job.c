#include "transfer/job.h"

#include "transfer/checkpoint.h"
#include "transfer/rejects.h"
#include "transfer/seen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    RECORD_LIMIT = 512 << 20, /* of the memory that one record takes */
    CHECKPOINT_US = 2 * 1000 * 1000,
    RECORDS_BETWEEN_LOOKS = 64, /* at the clock */
};

struct transfer_job {
    struct transfer_options options;
    const char *identity;
    const struct transfer_source *source;
    const struct transfer_sink *sink; /* NULL: a dry run, or not running yet */
    struct verification *verification;
    struct clock *clock;
    struct buffer checkpoint_path; /* and a NUL, as the next */
    struct buffer rejects_path;
    struct checkpoint checkpoint;
    bool goes_on; /* from a checkpoint */
    struct buffer seen_path;
    struct seen *seen;
    struct rejects rejects;
    struct progress progress;
    struct arena *record;
    int64_t checkpoint_us;
    status failure; /* of what was called back; owned */
};

/* --- making and ending --- */

static void name_file(const char *given, const char *table_id, const char *ending,
                      struct buffer *out)
{
    if (given != NULL)
        buffer_append_format(out, "%s%c", given, 0);
    else
        buffer_append_format(out, "%s%s%c", table_id, ending, 0);
}

static status prepare(struct transfer_job *job, const char *table_id)
{
    name_file(job->options.checkpoint, table_id, ".checkpoint", &job->checkpoint_path);
    name_file(job->options.rejects, table_id, ".rejects.jsonl", &job->rejects_path);
    name_file(job->options.checkpoint, table_id, ".checkpoint", &job->seen_path);
    if (job->seen_path.size > 0)
        job->seen_path.size--; /* the NUL */
    buffer_append(&job->seen_path, ".keys", sizeof ".keys");
    job->record = arena_create(RECORD_LIMIT);
    if (job->checkpoint_path.failed || job->rejects_path.failed || job->seen_path.failed ||
        job->record == NULL)
        return status_out_of_memory();
    TRY(seen_create(job->source->unique,
                    job->options.dry_run ? NULL : (const char *)job->seen_path.data, &job->seen));
    if (!job->options.dry_run)
        TRY(checkpoint_read((const char *)job->checkpoint_path.data, job->identity,
                            &job->checkpoint, &job->goes_on));
    TRY(rejects_open(&job->rejects, (const char *)job->rejects_path.data,
                     job->checkpoint.rejects_bytes));
    TRY(seen_restore(job->seen, job->checkpoint.seen_bytes));
    return job->goes_on ? job->source->restore(job->source->context, job->checkpoint.source)
                        : status_ok();
}

status transfer_job_create(const struct transfer_options *options, const char *table_id,
                           const char *identity, const struct transfer_source *source,
                           struct transfer_job **out)
{
    struct transfer_job *job = *out = calloc(1, sizeof *job);
    if (job == NULL)
        return status_out_of_memory();
    job->options = *options;
    job->identity = identity;
    job->source = source;
    job->clock = clock_system();
    status s = prepare(job, table_id);
    if (status_is_ok(s))
        return s;
    transfer_job_destroy(job);
    *out = NULL;
    return s;
}

void transfer_job_destroy(struct transfer_job *job)
{
    if (job == NULL)
        return;
    rejects_close(&job->rejects);
    checkpoint_clear(&job->checkpoint);
    arena_destroy(job->record);
    status_free(job->failure);
    buffer_free(&job->checkpoint_path);
    buffer_free(&job->rejects_path);
    buffer_free(&job->seen_path);
    seen_destroy(job->seen);
    free(job);
}

status transfer_job_forget(const struct transfer_options *options, const char *table_id)
{
    struct buffer path = {0};
    name_file(options->checkpoint, table_id, ".checkpoint", &path);
    if (path.failed)
        return status_out_of_memory();
    bool failed = unlink((const char *)path.data) != 0 && errno != ENOENT;
    status s = failed ? status_from_errno(errno, "cannot remove %s", (const char *)path.data)
                      : status_ok();
    buffer_free(&path);
    return s;
}

/* --- rejects --- */

static status reject(struct transfer_job *job, uint64_t tag, status why, bytes text)
{
    struct transfer_place place;
    job->source->describe(job->source->context, tag, &place);
    job->checkpoint.counts.rejected++;
    return rejects_add(&job->rejects, &place, status_message(why), text);
}

static void refused(void *context, uint64_t tag, bytes text, status why)
{
    struct transfer_job *job = context;
    if (status_is_ok(job->failure))
        job->failure = reject(job, tag, why, text);
}

struct transfer_refusal transfer_job_refusal(struct transfer_job *job)
{
    return (struct transfer_refusal){.context = job, .refused = refused};
}

/* --- checkpoints --- */

/* A position in place of the one before. */
static status save(json_t *(*function)(void *), void *context, json_t **out)
{
    json_decref(*out);
    *out = function(context);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status checkpoint(struct transfer_job *job)
{
    const struct transfer_sink *sink = job->sink;
    if (sink == NULL)
        return status_ok();
    TRY(sink->flush(sink->context));
    TRY(status_copy(job->failure));
    TRY(rejects_flush(&job->rejects));
    job->checkpoint.rejects_bytes = job->rejects.bytes;
    TRY(seen_save(job->seen, &job->checkpoint.seen_bytes));
    TRY(save(job->source->save, job->source->context, &job->checkpoint.source));
    if (sink->save != NULL)
        TRY(save(sink->save, sink->context, &job->checkpoint.sink));
    job->checkpoint_us = clock_steady_us(job->clock);
    return checkpoint_write((const char *)job->checkpoint_path.data, job->identity,
                            &job->checkpoint);
}

/* Returns the size of the source. */
static uint64_t count_bytes(struct transfer_job *job)
{
    struct transfer_progress progress;
    job->source->progress(job->source->context, &progress);
    job->checkpoint.counts.bytes = progress.bytes;
    return progress.total;
}

static status look_at_clock(struct transfer_job *job)
{
    uint64_t total = count_bytes(job);
    progress_show(&job->progress, &job->checkpoint.counts, total);
    if (clock_steady_us(job->clock) - job->checkpoint_us < CHECKPOINT_US)
        return status_ok();
    return checkpoint(job);
}

/* --- records --- */

static status add_to_verification(struct transfer_job *job, const struct transfer_record *record)
{
    struct transfer_place place;
    if (job->verification == NULL || !verification_is_sample(job->verification))
        return status_ok();
    job->source->describe(job->source->context, record->tag, &place);
    return verification_add(job->verification, record, &place);
}

static bool has_ended(const struct move_change *change)
{
    return change->ends_us != 0 && change->ends_us <= clock_wall_us(clock_system());
}

/* Takes the refusal of a double of which it is known where the first is, and says that, too. */
static status name_first(const struct transfer_source *source, status refusal, uint64_t first)
{
    struct transfer_place place;
    if (refusal.code != STATUS_ALREADY_EXISTS || source->unique != UNIQUE_VERSIONS)
        return refusal;
    source->describe(source->context, first, &place);
    status s = status_make(STATUS_ALREADY_EXISTS,
                           "%s, %s:%" PRIu64 " (with --duplicates last the later one counts)",
                           status_message(refusal), place.file, place.line);
    status_free(refusal);
    return s;
}

/* What is wrong with a record that is to be in the table: its failure, or one that would overwrite
 * another. */
static status find_fault(struct seen *seen, const struct transfer_source *source,
                         const struct transfer_record *record)
{
    uint64_t first = 0;
    TRY(record->failure);
    if (record->is_update || has_ended(&record->change))
        return status_ok();
    return name_first(source, seen_add(seen, &record->change, record->tag, &first), first);
}

/* What is wrong with the record is not wrong with the transfer. */
static status take_record(struct transfer_job *job, const struct transfer_record *record)
{
    status fault = find_fault(job->seen, job->source, record);
    job->checkpoint.counts.records++;
    if (!status_is_ok(fault)) {
        status s = reject(job, record->tag, fault, record->text);
        status_free(fault);
        return s;
    }
    if (has_ended(&record->change)) {
        job->checkpoint.counts.ended++;
        return status_ok();
    }
    if (job->sink == NULL)
        return status_ok();
    TRY(job->sink->add(job->sink->context, record));
    return add_to_verification(job, record);
}

static status take_all(struct transfer_job *job)
{
    for (;;) {
        struct transfer_record record = {0};
        bool is_end = false;
        arena_reset(job->record);
        TRY(job->source->next(job->source->context, job->record, &record, &is_end));
        if (is_end)
            break;
        if (!record.is_pause)
            TRY(take_record(job, &record));
        if (record.is_pause || job->checkpoint.counts.records % RECORDS_BETWEEN_LOOKS == 0)
            TRY(look_at_clock(job));
    }
    count_bytes(job);
    return checkpoint(job);
}

/* --- verifying --- */

/* All records of the source, read once more. */
struct rereading {
    const struct transfer_source *source;
    struct verification *verification;
    struct arena *record;
    struct seen *doubles; /* what had come before, when they were written */
    struct seen *rows;    /* which may be in the table; NULL: others may be, too */
};

static status verify_record(const struct rereading *again, bool *is_end)
{
    const struct transfer_source *source = again->source;
    struct transfer_record record = {0};
    struct transfer_place place;
    arena_reset(again->record);
    TRY(source->next(source->context, again->record, &record, is_end));
    if (*is_end || record.is_pause)
        return status_ok();
    status fault = find_fault(again->doubles, source, &record);
    bool is_rejected = !status_is_ok(fault);
    status_free(fault);
    if (is_rejected)
        return status_ok();
    if (again->rows != NULL)
        TRY(seen_note_row(again->rows, record.change.row_key));
    if (has_ended(&record.change))
        return status_ok();
    source->describe(source->context, record.tag, &place);
    return verification_add(again->verification, &record, &place);
}

static status find_strays(const struct rereading *again, uint64_t *strays)
{
    if (again->rows == NULL)
        return status_ok();
    if (!seen_is_full(again->rows))
        return verification_find_strays(again->verification, again->rows, strays);
    fprintf(stderr, "there are too many rows to find those that the table alone has\n");
    return status_ok();
}

static status reread(const struct rereading *again, uint64_t *strays)
{
    bool is_end = false;
    while (!is_end)
        TRY(verify_record(again, &is_end));
    return find_strays(again, strays);
}

static status verify_all(const struct transfer_job *job, uint64_t *strays)
{
    const struct transfer_source *source = job->source;
    struct rereading again = {
        .source = source, .verification = job->verification, .record = job->record};
    bool is_alone = job->checkpoint.made_target;
    if (is_alone && source->has_whole_rows)
        verification_expect_whole_rows(job->verification);
    status s = seen_create(source->unique, NULL, &again.doubles);
    if (status_is_ok(s) && is_alone)
        s = seen_create(UNIQUE_ROWS, NULL, &again.rows);
    if (status_is_ok(s))
        s = reread(&again, strays);
    seen_destroy(again.rows);
    seen_destroy(again.doubles);
    return s;
}

static status verify(struct transfer_job *job, struct transfer_result *out)
{
    const struct transfer_source *source = job->source;
    if (job->sink == NULL || job->verification == NULL)
        return status_ok();
    verification_forgive(job->verification, job->seen);
    if (!verification_is_sample(job->verification)) {
        TRY(source->rewind(source->context));
        TRY(verify_all(job, &out->strays));
    }
    out->is_verified = true;
    return verification_finish(job->verification, &out->compared, &out->different);
}

/* --- all of it --- */

void transfer_job_note_made(struct transfer_job *job)
{
    job->checkpoint.made_target = true;
}

/* Whether the beginning must be noted: a run that began again would not find it out. */
static bool must_note_beginning(const struct transfer_job *job)
{
    return job->source->is_live || job->checkpoint.made_target ||
           (job->sink != NULL && job->sink->claims_place);
}

static status begin(struct transfer_job *job)
{
    const struct transfer_sink *sink = job->sink;
    progress_begin(&job->progress, job->clock, job->source->noun, job->options.quiet);
    job->progress.at_start = job->checkpoint.counts;
    job->checkpoint_us = clock_steady_us(job->clock);
    if (!job->goes_on)
        return must_note_beginning(job) ? checkpoint(job) : status_ok();
    if (!job->options.quiet)
        fprintf(stderr, "going on where %s says: %" PRIu64 " %s are done\n",
                (const char *)job->checkpoint_path.data, job->checkpoint.counts.records,
                job->source->noun);
    if (sink == NULL || sink->restore == NULL)
        return status_ok();
    return sink->restore(sink->context, job->checkpoint.sink);
}

static status finish(struct transfer_job *job)
{
    struct transfer_progress progress;
    job->source->progress(job->source->context, &progress);
    progress_end(&job->progress, &job->checkpoint.counts, progress.total);
    if (job->sink == NULL || job->sink->finish == NULL)
        return status_ok();
    return job->sink->finish(job->sink->context);
}

status transfer_job_run(struct transfer_job *job, const struct transfer_sink *sink,
                        struct verification *verification, struct transfer_result *out)
{
    *out = (struct transfer_result){0};
    job->sink = sink;
    job->verification = verification;
    TRY(begin(job));
    TRY(take_all(job));
    out->counts = job->checkpoint.counts;
    TRY(finish(job));
    return verify(job, out);
}

status transfer_job_end(struct transfer_job *job)
{
    const char *path = (const char *)job->checkpoint_path.data;
    const struct transfer_source *source = job->source;
    if (source->goes_on != NULL && source->goes_on(source->context))
        return status_ok();
    if (job->sink != NULL && unlink(path) != 0)
        return status_from_errno(errno, "cannot remove %s", path);
    seen_remove_file(job->seen);
    return status_ok();
}

void transfer_job_print(const struct transfer_job *job, FILE *out)
{
    const struct transfer_counts *counts = &job->checkpoint.counts;
    bool has_rejects = counts->rejected > 0;
    fprintf(out, "%" PRIu64 " %s read, %" PRIu64 " %s, %" PRIu64 " rejected%s%s\n", counts->records,
            job->source->noun, counts->records - counts->rejected - counts->ended,
            job->options.dry_run ? "fine" : "written", counts->rejected,
            has_rejects ? ": see " : "", has_rejects ? (const char *)job->rejects_path.data : "");
    if (counts->ended > 0)
        fprintf(out, "%" PRIu64 " %s left out, because they had ended\n", counts->ended,
                job->source->noun);
}
