/* See archiver.h. */
#include "archive/archiver.h"

#include "archive/expiry.h"
#include "archive/piece.h"
#include "base/check.h"
#include "base/limits.h"
#include "os/thread.h"
#include "tablet/event.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum {
    ARCHIVER_MAGIC = 0x61726368,
    STEP_SECONDS = 1,
    KEEP_BYTES = 64 << 20, /* memory that is kept for the next piece */
    MOST_PIECE_BYTES = 1 << 30,
};

static const int64_t behind_us = INT64_C(60) * 1000000;
static const int64_t expire_each_us = INT64_C(3600) * 1000000;

struct archiver {
    uint32_t magic;
    struct archiver_options options;
    bool has_thread;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;       /* lock */
    int64_t waits_since_us; /* lock; clock_steady_us since when something waits; 0: nothing does */
    char cause[CONDITION_TEXT_SIZE]; /* lock; why the last step failed; empty: it did not */

    /* Of the stepping thread alone. */
    bool is_checked;      /* the place has what the log says that it has */
    bool has_litter;      /* there may be kept files that are not needed */
    bool has_piece;       /* `text` is a whole piece, not recorded yet */
    struct piece piece;   /* its entries are not used */
    struct buffer text;   /* of it */
    struct buffer files;  /* struct event_change of those that it needs, without slices */
    uint64_t taken_bytes; /* of the log, that are in it */
    int64_t expire_at_us; /* clock_steady_us when it is looked what expires */
};

static int64_t steady_us(const struct archiver *archiver)
{
    return clock_steady_us(archiver->options.clock);
}

static void look(const struct archiver *archiver, struct change_log_state *state)
{
    change_log_look(archiver->options.log, state);
}

static status edit(struct archiver *archiver,
                   void (*change)(void *context, struct change_log_state *state, uint64_t sequence),
                   uint64_t taken_bytes)
{
    return change_log_edit(archiver->options.log, archiver->options.commits, change, archiver,
                           taken_bytes);
}

static bool is_something_waiting(const struct archiver *archiver,
                                 const struct change_log_state *state)
{
    return change_log_newest(archiver->options.log) > state->taken;
}

/* --- what waits --- */

static void begin_gap(void *context, struct change_log_state *state, uint64_t sequence)
{
    (void)context, (void)sequence;
    change_log_begin_gap(state);
}

/* Waiting entries that are damaged can never be put: they become a gap, so that the archive goes
 * on. */
static status read_waiting(struct archiver *archiver,
                           status (*visit)(void *context, bytes entry, bool *enough), void *context)
{
    status s = change_log_read_waiting(archiver->options.log, visit, context);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status gone = edit(archiver, begin_gap, UINT64_MAX);
    log_error(archiver->options.server_log, "the change log is damaged: the archive has a gap",
              LOG_STR("cause", status_message(s)));
    status_free(s);
    TRY(gone);
    return status_make(STATUS_UNAVAILABLE, "the change log is damaged");
}

/* --- making a piece --- */

static void begin_piece(struct archiver *archiver, enum piece_kind kind,
                        const struct change_log_state *state, uint64_t last)
{
    archiver->piece = (struct piece){.kind = kind,
                                     .stream = state->stream,
                                     .number = state->pieces + 1,
                                     .after = state->taken,
                                     .last = last,
                                     .made_us = clock_wall_us(archiver->options.clock)};
    memcpy(archiver->piece.chain, state->chain, sizeof archiver->piece.chain);
    if (archiver->text.capacity > KEEP_BYTES)
        buffer_free(&archiver->text);
    buffer_clear(&archiver->text);
    buffer_clear(&archiver->files);
    archiver->taken_bytes = 0;
    piece_start(&archiver->text, &archiver->piece);
}

static status finish_piece(struct archiver *archiver)
{
    TRY(piece_finish(&archiver->text, archiver->piece.last, archiver->piece.digest));
    archiver->has_piece = true;
    return archiver->files.failed ? status_out_of_memory() : status_ok();
}

static void note_files(struct archiver *archiver, struct event_reader *reader)
{
    struct event_change change;
    while (event_next_change(reader, &change))
        if (change.kind == CHANGE_FILES_TAKEN_IN)
            buffer_append(&archiver->files, &change, sizeof change);
}

/* Only events of the catalog name files. */
static status look_through(struct archiver *archiver, bytes entry)
{
    struct event_reader reader;
    struct log_event event;
    event_reader_start(&reader, entry);
    while (!reader.is_bad && event_next(&reader, &event)) {
        archiver->piece.last = event.sequence;
        if (event.kind == EVENT_CATALOG)
            note_files(archiver, &reader);
    }
    return reader.is_bad ? status_make(STATUS_DATA_LOSS, "an entry of the change log is damaged")
                         : status_ok();
}

static status add_entry(void *context, bytes entry, bool *enough)
{
    struct archiver *archiver = context;
    TRY(look_through(archiver, entry));
    piece_add(&archiver->text, entry);
    archiver->taken_bytes += sizeof(uint64_t) + entry.size;
    *enough = archiver->text.size >= archiver->options.segment_bytes || archiver->text.failed;
    return status_ok();
}

static status make_segment(struct archiver *archiver, const struct change_log_state *state)
{
    begin_piece(archiver, PIECE_SEGMENT, state, 0);
    TRY(read_waiting(archiver, add_entry, archiver));
    if (archiver->taken_bytes == 0) /* the log went off meanwhile */
        return status_ok();
    return finish_piece(archiver);
}

static status make_gap(struct archiver *archiver, const struct change_log_state *state)
{
    begin_piece(archiver, PIECE_GAP, state, state->gap_to);
    return finish_piece(archiver);
}

/* --- putting it --- */

static status put_file(struct archiver *archiver, uint64_t keyspace, uint64_t index)
{
    const struct kept_files *kept = &archiver->options.kept;
    struct buffer path = {0};
    struct file_look there;
    char name[PIECE_NAME_SIZE];
    stream_file_name(archiver->piece.stream, keyspace, index, name);
    status s = status_out_of_memory();
    if (kept_file_path(kept, keyspace, index, &path) != NULL)
        s = files_look(kept->files, (const char *)path.data, &there);
    if (status_is_ok(s))
        s = place_put_file(archiver->options.place, name, (const char *)path.data, NULL);
    buffer_free(&path);
    return s;
}

static status put_files(struct archiver *archiver)
{
    const struct event_change *changes = (const struct event_change *)(void *)archiver->files.data;
    size_t count = archiver->files.size / sizeof *changes;
    for (size_t i = 0; i < count && archiver->options.kept.files != NULL; i++)
        for (uint64_t j = 0; j < changes[i].count; j++)
            TRY(put_file(archiver, changes[i].keyspace, j));
    return status_ok();
}

static void record_piece(void *context, struct change_log_state *state, uint64_t sequence)
{
    const struct piece *piece = &((struct archiver *)context)->piece;
    (void)sequence;
    state->taken = piece->last;
    state->pieces = piece->number;
    memcpy(state->chain, piece->digest, sizeof state->chain);
    if (piece->kind == PIECE_GAP) {
        state->last_gap = piece->last;
        /* It may have gone off again. */
        state->gap_from = state->is_on ? 0 : piece->last;
        state->gap_to = 0;
    } else if (state->gap_from != 0 && state->gap_from < piece->last) {
        state->gap_from = piece->last; /* it went off while this was being put */
    }
}

static void keep_state(void *context, struct change_log_state *state, uint64_t sequence)
{
    (void)context, (void)state, (void)sequence;
}

/* The empty edit syncs the store's log, with all that is in the piece. */
static status put_piece(struct archiver *archiver)
{
    struct metrics *metrics = archiver->options.metrics;
    char name[PIECE_NAME_SIZE];
    piece_name(&archiver->piece, name);
    TRY(edit(archiver, keep_state, 0));
    TRY(put_files(archiver));
    TRY(place_put(archiver->options.place, name, buffer_bytes(&archiver->text)));
    TRY(edit(archiver, record_piece, archiver->taken_bytes));
    archiver->has_piece = false;
    metrics_add(metrics, METRIC_archive_pieces_total, 1);
    metrics_add(metrics, METRIC_archive_bytes_total, (int64_t)archiver->text.size);
    if (archiver->files.size > 0 || archiver->piece.kind == PIECE_GAP)
        archiver->has_litter = true;
    return status_ok();
}

/* --- the place and the log agree --- */

static uint64_t place_mark(const struct archiver *archiver)
{
    return bytes_hash(bytes_of(place_title(archiver->options.place))) | 1;
}

static void begin_stream(void *context, struct change_log_state *state, uint64_t sequence)
{
    *state = (struct change_log_state){.keyspace = state->keyspace,
                                       .stream = ((struct archiver *)context)->piece.stream,
                                       .began = sequence,
                                       .is_on = true,
                                       .taken = sequence,
                                       .place = place_mark(context)};
}

static status make_folders(struct archiver *archiver, uint64_t stream)
{
    char name[PIECE_NAME_SIZE];
    stream_files_folder(stream, name);
    return place_make_folder(archiver->options.place, name);
}

static status new_stream(struct archiver *archiver, const char *why)
{
    uint64_t stream;
    if (getrandom(&stream, sizeof stream, 0) != sizeof stream)
        return status_from_errno(errno, "no random number for the archive");
    archiver->piece = (struct piece){.stream = stream | 1};
    TRY(make_folders(archiver, stream | 1));
    TRY(edit(archiver, begin_stream, UINT64_MAX));
    log_warn(archiver->options.server_log, "the archive begins anew: make a whole backup",
             LOG_STR("cause", why));
    return status_ok();
}

static void note_place(void *context, struct change_log_state *state, uint64_t sequence)
{
    (void)sequence;
    state->place = place_mark(context);
}

/* The newest piece that the place has. */
static status find_newest(void *context, const struct place_entry *entry)
{
    struct piece *newest = context;
    struct piece piece;
    if (piece_name_parse(entry->name, &piece) && piece.number >= newest->number)
        *newest = piece;
    return status_ok();
}

struct comparing {
    struct archiver *archiver;
    bytes entries; /* of the piece, that have not been met yet */
    bool is_same;
};

static status compare_entry(void *context, bytes entry, bool *enough)
{
    struct comparing *comparing = context;
    bytes expected;
    comparing->is_same =
        piece_next_entry(&comparing->entries, &expected) && bytes_equal(entry, expected);
    comparing->archiver->taken_bytes += sizeof(uint64_t) + entry.size;
    *enough = !comparing->is_same || comparing->entries.size == 0;
    return comparing->is_same ? look_through(comparing->archiver, entry) : status_ok();
}

/* Whether the piece is what this log would have made. */
static status is_ours(struct archiver *archiver, const struct change_log_state *state,
                      const struct piece *piece, bool *ours)
{
    *ours = piece->stream == state->stream && piece->number == state->pieces + 1 &&
            piece->after == state->taken &&
            memcmp(piece->chain, state->chain, sizeof state->chain) == 0;
    if (*ours && piece->kind == PIECE_GAP) {
        *ours = piece->after == state->gap_from && piece->last == state->gap_to;
        return status_ok();
    }
    struct comparing comparing = {.archiver = archiver, .entries = piece->entries};
    if (*ours)
        TRY(read_waiting(archiver, compare_entry, &comparing));
    *ours = *ours && comparing.is_same && comparing.entries.size == 0;
    return status_ok();
}

/* A piece that was put before a crash, which came before it was recorded. */
static status adopt(struct archiver *archiver, const struct change_log_state *state,
                    struct piece newest, bool *adopted)
{
    char name[PIECE_NAME_SIZE];
    struct piece piece;
    newest.stream = state->stream;
    piece_name(&newest, name);
    begin_piece(archiver, newest.kind, state, 0);
    buffer_clear(&archiver->text);
    TRY(place_get(archiver->options.place, name, MOST_PIECE_BYTES, &archiver->text));
    TRY(piece_parse(buffer_bytes(&archiver->text), &piece));
    TRY(is_ours(archiver, state, &piece, adopted));
    archiver->piece = piece;
    archiver->has_piece = *adopted;
    return status_ok();
}

static status check_pieces(struct archiver *archiver, const struct change_log_state *state,
                           const struct piece *newest)
{
    bool adopted = false;
    if (newest->number == state->pieces)
        return status_ok();
    if (newest->number < state->pieces)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "%s does not have the last piece that was put there",
                           place_title(archiver->options.place));
    if (newest->number == state->pieces + 1)
        TRY(adopt(archiver, state, *newest, &adopted));
    return adopted ? status_ok()
                   : new_stream(archiver, "the place has pieces that are not of this data");
}

static status check_place(struct archiver *archiver)
{
    struct change_log_state state;
    struct piece newest = {0};
    char folder[PIECE_NAME_SIZE];
    look(archiver, &state);
    if (state.place != 0 && state.place != place_mark(archiver))
        return new_stream(archiver, "another place than before");
    if (state.place == 0) {
        TRY(make_folders(archiver, state.stream));
        TRY(edit(archiver, note_place, 0));
    }
    stream_folder(state.stream, folder);
    archiver->has_litter = true;
    TRY(place_list(archiver->options.place, folder, find_newest, &newest));
    return check_pieces(archiver, &state, &newest);
}

/* --- a step --- */

static void turn_on(void *context, struct change_log_state *state, uint64_t sequence)
{
    (void)context;
    if (state->is_on)
        return;
    state->is_on = true;
    state->gap_to = sequence;
}

/* The log goes on once the place takes something again. */
static status turn_log_on(struct archiver *archiver, const struct change_log_state *state)
{
    char folder[PIECE_NAME_SIZE], name[PIECE_NAME_SIZE];
    stream_folder(state->stream, folder);
    snprintf(name, sizeof name, "%.100s/probe", folder);
    TRY(place_put(archiver->options.place, name, bytes_of("the place takes what it is given")));
    metrics_add(archiver->options.metrics, METRIC_archive_gaps_total, 1);
    return edit(archiver, turn_on, 0);
}

/* Whether what waits is old, or enough for a piece. */
static bool is_due(struct archiver *archiver, const struct change_log_state *state, bool is_urgent)
{
    bool waits = is_something_waiting(archiver, state);
    pthread_mutex_lock(&archiver->lock);
    if (!waits)
        archiver->waits_since_us = 0;
    else if (archiver->waits_since_us == 0)
        archiver->waits_since_us = steady_us(archiver);
    int64_t since_us = archiver->waits_since_us;
    pthread_mutex_unlock(&archiver->lock);
    if (!waits)
        return false;
    return is_urgent || steady_us(archiver) - since_us >= archiver->options.segment_us ||
           change_log_waiting_bytes(archiver->options.log) >= archiver->options.segment_bytes;
}

static void note_progress(struct archiver *archiver)
{
    struct change_log_state state;
    look(archiver, &state);
    pthread_mutex_lock(&archiver->lock);
    archiver->waits_since_us = is_something_waiting(archiver, &state) ? steady_us(archiver) : 0;
    pthread_mutex_unlock(&archiver->lock);
}

static status next_piece(struct archiver *archiver, bool is_urgent)
{
    struct change_log_state state;
    look(archiver, &state);
    if (!state.is_on) {
        TRY(turn_log_on(archiver, &state));
        look(archiver, &state);
    }
    if (state.gap_to != 0)
        return make_gap(archiver, &state);
    return is_due(archiver, &state, is_urgent) ? make_segment(archiver, &state) : status_ok();
}

static status clear_litter(struct archiver *archiver)
{
    bool done;
    if (!archiver->has_litter)
        return status_ok();
    TRY(kept_files_clear(&archiver->options.kept, archiver->options.log, &done));
    archiver->has_litter = !done;
    return status_ok();
}

/* --- what goes --- */

struct needing {
    struct archiver *archiver;
    uint64_t stream;
    uint64_t up_to; /* what comes later is needed */
};

/* A base that is gone is forgotten; one of another stream needs none of these pieces. */
static status look_at_base(void *context, const struct archive_base *base)
{
    struct needing *needing = context;
    const struct archiver_options *options = &needing->archiver->options;
    bool is_there = true;
    status s = options->look_for(base->place, base->name, &is_there);
    if (!status_is_ok(s)) {
        log_info(options->server_log, "a whole backup cannot be seen, so the archive keeps for it",
                 LOG_STR("place", base->place), LOG_STR("name", base->name),
                 LOG_STR("cause", status_message(s)));
        status_free(s);
        is_there = true;
    }
    if (!is_there)
        return bases_remove(options->commits, options->catalog, base);
    if (base->stream == needing->stream && base->version < needing->up_to)
        needing->up_to = base->version;
    return status_ok();
}

/* The sequence up to which no base and no moment within the retention needs what is archived. */
static status find_needed(struct archiver *archiver, const struct change_log_state *state,
                          uint64_t *up_to)
{
    const struct archiver_options *options = &archiver->options;
    int64_t now_us = clock_wall_us(options->clock), newest_us = version_time_us(state->taken);
    if (newest_us < now_us)
        now_us = newest_us;
    struct needing needing = {.archiver = archiver, .stream = state->stream};
    if (now_us > options->retention_us)
        needing.up_to = version_at(now_us - options->retention_us);
    TRY(bases_visit(options->catalog, look_at_base, &needing));
    *up_to = needing.up_to;
    return status_ok();
}

/* Now and then; at once again while there is much of it. */
static status expire(struct archiver *archiver)
{
    const struct archiver_options *options = &archiver->options;
    struct change_log_state state;
    if (options->retention_us == 0 || steady_us(archiver) < archiver->expire_at_us)
        return status_ok();
    look(archiver, &state);
    struct archive_expiry expiry = {
        .place = options->place, .stream = state.stream, .most = LIMIT_ARCHIVE_EXPIRED_AT_ONCE};
    size_t removed;
    TRY(find_needed(archiver, &state, &expiry.up_to));
    TRY(archive_expire(&expiry, &removed));
    metrics_add(options->metrics, METRIC_archive_expired_pieces_total, (int64_t)removed);
    if (removed < expiry.most)
        archiver->expire_at_us = steady_us(archiver) + expire_each_us;
    return status_ok();
}

static bool is_to_stop(struct archiver *archiver)
{
    pthread_mutex_lock(&archiver->lock);
    bool stopping = archiver->is_stopping;
    pthread_mutex_unlock(&archiver->lock);
    return stopping;
}

/* Takes the next step, and puts one piece, if there is one. */
static status next_step(struct archiver *archiver, bool is_urgent, bool *put)
{
    *put = false;
    if (!archiver->has_piece)
        TRY(next_piece(archiver, is_urgent));
    if (!archiver->has_piece)
        return status_ok();
    TRY(put_piece(archiver));
    note_progress(archiver);
    *put = true;
    return status_ok();
}

/* A server that stops waits for one piece at most, however much there is. */
static status step(struct archiver *archiver, bool is_urgent)
{
    bool put;
    if (!archiver->is_checked)
        TRY(check_place(archiver));
    archiver->is_checked = true;
    do
        TRY(next_step(archiver, is_urgent, &put));
    while (put && !is_to_stop(archiver));
    TRY(clear_litter(archiver));
    return expire(archiver);
}

/* --- health --- */

static void look_behind(struct archiver *archiver, int64_t lag_us, const char *cause)
{
    struct condition *condition = archiver->options.condition;
    if (lag_us < behind_us)
        condition_leave(condition, REASON_archive_behind);
    else
        condition_enter(condition, REASON_archive_behind, "%lld s are not archived, %llu bytes: %s",
                        (long long)(lag_us / 1000000),
                        (unsigned long long)change_log_waiting_bytes(archiver->options.log),
                        cause[0] == 0 ? "the place is slow" : cause);
}

static void look_gap(struct archiver *archiver, const struct change_log_state *state,
                     const char *cause)
{
    struct condition *condition = archiver->options.condition;
    uint64_t ended = state->gap_to > state->last_gap ? state->gap_to : state->last_gap;
    char text[CLOCK_DATE_SIZE];
    if (!state->is_on)
        condition_enter(condition, REASON_archive_gap,
                        "nothing is archived since %s: what waited was too much, or is damaged%s%s",
                        clock_date(version_time_us(state->gap_from), text),
                        cause[0] == 0 ? "" : "; ", cause);
    else if (ended > state->based)
        condition_enter(condition, REASON_archive_gap,
                        "a gap of the archive ended %s: no whole backup was made since",
                        clock_date(version_time_us(ended), text));
    else
        condition_leave(condition, REASON_archive_gap);
}

void archiver_look(struct archiver *archiver)
{
    struct change_log_state state;
    char cause[CONDITION_TEXT_SIZE];
    look(archiver, &state);
    pthread_mutex_lock(&archiver->lock);
    int64_t since_us = archiver->waits_since_us;
    memcpy(cause, archiver->cause, sizeof cause);
    pthread_mutex_unlock(&archiver->lock);
    int64_t lag_us = since_us == 0 ? 0 : steady_us(archiver) - since_us;
    struct metrics *metrics = archiver->options.metrics;
    metrics_set(metrics, METRIC_archive_lag_seconds, lag_us);
    metrics_set(metrics, METRIC_archive_waiting_bytes,
                (int64_t)change_log_waiting_bytes(archiver->options.log));
    metrics_set(metrics, METRIC_archive_newest_timestamp_seconds, version_time_us(state.taken));
    look_behind(archiver, lag_us, cause);
    look_gap(archiver, &state, cause);
}

/* The cause is told when it begins, and that it is over. */
static void note_outcome(struct archiver *archiver, status s)
{
    bool failed = !status_is_ok(s);
    pthread_mutex_lock(&archiver->lock);
    bool had_failed = archiver->cause[0] != 0;
    snprintf(archiver->cause, sizeof archiver->cause, "%s", failed ? status_message(s) : "");
    pthread_mutex_unlock(&archiver->lock);
    if (failed)
        metrics_add(archiver->options.metrics, METRIC_archive_failures_total, 1);
    if (failed && !had_failed)
        log_warn(archiver->options.server_log, "the archive cannot go on for now",
                 LOG_STR("place", place_title(archiver->options.place)),
                 LOG_STR("cause", status_message(s)));
    if (!failed && had_failed)
        log_info(archiver->options.server_log, "the archive goes on");
    archiver_look(archiver);
}

status archiver_step(struct archiver *archiver, bool is_urgent)
{
    CHECK_MAGIC(archiver, ARCHIVER_MAGIC);
    status s = step(archiver, is_urgent);
    note_outcome(archiver, s);
    return s;
}

/* --- whole backups --- */

struct basing {
    uint64_t version;
};

static void note_base(void *context, struct change_log_state *state, uint64_t sequence)
{
    uint64_t version = ((const struct basing *)context)->version;
    (void)sequence;
    if (version > state->based)
        state->based = version;
}

status archiver_note_base(struct archiver *archiver, const struct archive_base *base)
{
    const struct archiver_options *options = &archiver->options;
    struct basing basing = {.version = base->version};
    TRY(bases_add(options->commits, options->catalog, base));
    TRY(change_log_edit(options->log, options->commits, note_base, &basing, 0));
    archiver_look(archiver);
    return status_ok();
}

/* --- life --- */

/* True: it is to stop. */
static bool pause_step(struct archiver *archiver)
{
    struct timespec until;
    int waited = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STEP_SECONDS;
    pthread_mutex_lock(&archiver->lock);
    while (waited == 0 && !archiver->is_stopping)
        waited = pthread_cond_clockwait(&archiver->wake, &archiver->lock, CLOCK_MONOTONIC, &until);
    bool stopping = archiver->is_stopping;
    pthread_mutex_unlock(&archiver->lock);
    return stopping;
}

static void *run(void *argument)
{
    struct archiver *archiver = argument;
    bool works = true;
    while (!pause_step(archiver)) {
        status s = archiver_step(archiver, false);
        works = status_is_ok(s);
        status_free(s);
    }
    if (works)
        status_ignore(archiver_step(archiver, true));
    return NULL;
}

status archiver_create(const struct archiver_options *options, struct archiver **out)
{
    *out = NULL;
    struct archiver *archiver = calloc(1, sizeof *archiver);
    if (archiver == NULL)
        return status_out_of_memory();
    archiver->magic = ARCHIVER_MAGIC;
    archiver->options = *options;
    pthread_mutex_init(&archiver->lock, NULL);
    pthread_cond_init(&archiver->wake, NULL);
    *out = archiver;
    return status_ok();
}

status archiver_start(struct archiver *archiver)
{
    TRY(thread_start(&archiver->thread, "archive", run, archiver));
    archiver->has_thread = true;
    return status_ok();
}

void archiver_destroy(struct archiver *archiver)
{
    if (archiver == NULL)
        return;
    CHECK_MAGIC(archiver, ARCHIVER_MAGIC);
    pthread_mutex_lock(&archiver->lock);
    archiver->is_stopping = true;
    pthread_cond_signal(&archiver->wake);
    pthread_mutex_unlock(&archiver->lock);
    if (archiver->has_thread)
        pthread_join(archiver->thread, NULL);
    pthread_cond_destroy(&archiver->wake);
    pthread_mutex_destroy(&archiver->lock);
    buffer_free(&archiver->text);
    buffer_free(&archiver->files);
    archiver->magic = 0;
    free(archiver);
}
