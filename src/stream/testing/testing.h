/* What the tests of the stream's log share: a commit queue with an observer that logs each change
 * of a row as the cluster's does. The row "3:abc" is tablet 3's. */
#ifndef TRESTLE_STREAM_TESTING_TESTING_H
#define TRESTLE_STREAM_TESTING_TESTING_H

#include "stream/log_private.h"
#include "stream/segment_records.h"
#include "tablet/commit_observer.h"
#include "tablet/testing/testing.h"

enum { FIRST_SEGMENT = 100 };
#define TEST_SECOND INT64_C(1000000)

struct log_fixture {
    struct tablet_fixture *t;
    struct stream_log *log;
    struct stream_log_options options;
    struct commit_observer observers[2];
    uint64_t next_keyspace;
    struct change_list list; /* of all changes */
    uint64_t dropped;        /* the keyspace that was dropped last */
    int refuses;             /* commits for which another observer has no memory */
};

/* --- the observer --- */

static inline struct stream_append append_of(const struct log_fixture *f,
                                             const struct commit *commit,
                                             const struct commit *whole, uint32_t ordinal)
{
    return (struct stream_append){.kind = whole->kind == COMMIT_COLLECT ? STREAM_COLLECTED
                                                                        : STREAM_USER,
                                  .tablet = strtoul((const char *)commit->row_key.data, NULL, 10),
                                  .position = {.sequence = whole->sequence, .ordinal = ordinal},
                                  .version = whole->version,
                                  .row_key = commit->row_key,
                                  .list = &f->list};
}

static inline bool observe_begin(void *context, struct store_batch *batch)
{
    const struct log_fixture *f = context;
    (void)batch;
    if (f->log != NULL)
        stream_log_begin(f->log);
    return false;
}

static inline bool observe_prepare(void *context, const struct commit *commit,
                                   const struct store_batch *records)
{
    const struct log_fixture *f = context;
    (void)records;
    if (!commit_changes_rows(commit->kind) || !stream_log_has_segment(f->log))
        return true;
    for (uint32_t i = 0; i <= commit->other_count; i++) {
        const struct stream_append append =
            append_of(f, i == 0 ? commit : &commit->others[i - 1], commit, i);
        if (!stream_log_prepare(f->log, &append)) {
            stream_log_cancel(f->log);
            return false;
        }
    }
    return true;
}

static inline void observe_cancel(void *context, const struct commit *commit)
{
    const struct log_fixture *f = context;
    if (commit_changes_rows(commit->kind) && stream_log_has_segment(f->log))
        stream_log_cancel(f->log);
}

static inline void observe(void *context, const struct commit *commit,
                           const struct store_batch *records, struct store_batch *batch)
{
    const struct log_fixture *f = context;
    (void)records;
    if (commit->kind == COMMIT_CATALOG)
        stream_log_see_segment(f->log, commit, batch);
    if (!commit_changes_rows(commit->kind) || !stream_log_has_segment(f->log))
        return;
    stream_log_append(f->log, batch);
}

static inline void observe_written(void *context, bool is_written)
{
    const struct log_fixture *f = context;
    if (f->log != NULL)
        stream_log_written(f->log, is_written);
}

/* The second observer, which has no memory if it is told so. */
static inline bool refuse_some(void *context, const struct commit *commit,
                               const struct store_batch *records)
{
    struct log_fixture *f = context;
    (void)commit, (void)records;
    if (f->refuses == 0)
        return true;
    f->refuses--;
    return false;
}

static inline void note_dropped_keyspace(void *context, uint64_t keyspace)
{
    ((struct log_fixture *)context)->dropped = keyspace;
}

/* --- life --- */

static inline void open_log(struct log_fixture *f)
{
    f->options.store = f->t->store;
    f->options.system = f->t->options.catalog;
    assert_ok(stream_log_open(&f->options, &f->log));
}

static inline void close_all(struct log_fixture *f)
{
    close_queue(f->t);
    stream_log_close(f->log);
    f->log = NULL;
}

static inline void reopen(struct log_fixture *f)
{
    close_all(f);
    open_queue(f->t);
    open_log(f);
}

static inline void begin_segment(struct log_fixture *f)
{
    assert_ok(stream_log_begin_segment(f->log, f->t->queue, f->next_keyspace++, NULL));
}

static inline int setup_without_segment(void **state)
{
    struct log_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->t = tablet_fixture_create();
    close_queue(f->t);
    f->t->faults = fault_fs_create();
    f->next_keyspace = FIRST_SEGMENT;
    buffer_append_bytes(&f->list.list, bytes_of("list"));
    f->options = (struct stream_log_options){.clock = &f->t->clock.clock,
                                             .log = test_log(),
                                             .dropped = note_dropped_keyspace,
                                             .context = f};
    f->observers[0] = (struct commit_observer){.context = f,
                                               .begin = observe_begin,
                                               .prepare = observe_prepare,
                                               .cancel = observe_cancel,
                                               .see = observe,
                                               .written = observe_written};
    f->observers[1] = (struct commit_observer){.context = f, .prepare = refuse_some};
    f->t->options.observers = f->observers;
    f->t->options.observer_count = 2;
    open_queue(f->t);
    open_log(f);
    *state = f;
    return 0;
}

static inline int setup(void **state)
{
    setup_without_segment(state);
    begin_segment(*state);
    return 0;
}

static inline int teardown(void **state)
{
    struct log_fixture *f = *state;
    change_list_free(&f->list);
    commit_queue_destroy(f->t->queue);
    stream_log_close(f->log);
    f->log = NULL;
    /* As tablet_fixture_destroy, whose queue has gone before the log. */
    f->t->options.observer_count = 0;
    assert_ok(commit_queue_create(&f->t->options, &f->t->queue));
    tablet_fixture_destroy(f->t);
    free(f);
    return 0;
}

/* --- writing --- */

/* Several rows by one commit; `*sequence` may be NULL. */
static inline status try_write_rows(struct log_fixture *f, const char *const *rows, size_t count,
                                    uint64_t *sequence)
{
    struct commit commits[8];
    struct packed_change changes[8];
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) {
        changes[i] = set_cell(f->t, FAMILY_F, "q", 1, "v");
        commits[i] = commit_of(f->t, rows[i], &changes[i]);
    }
    commits[0].others = commits + 1;
    commits[0].other_count = count - 1;
    status s = commit_and_wait(f->t->queue, &commits[0]);
    if (sequence != NULL)
        *sequence = commits[0].sequence;
    for (size_t i = 0; i < count; i++)
        buffer_free(&changes[i].fragment);
    arena_reset(f->t->arena);
    return s;
}

static inline uint64_t write_row(struct log_fixture *f, const char *row)
{
    uint64_t sequence;
    assert_ok(try_write_rows(f, &row, 1, &sequence));
    return sequence;
}

/* --- reading --- */

/* The rows that a query gives, each with a blank behind it. */
struct reading_rows {
    struct buffer text;
    size_t most; /* enough; 0: never */
    size_t count;
    struct stream_position last;
    uint64_t last_version;
};

static inline status note_row(void *context, const struct stream_record *record, bool *enough)
{
    struct reading_rows *rows = context;
    buffer_append_bytes(&rows->text, record->row_key);
    buffer_append_byte(&rows->text, ' ');
    assert_true(stream_position_compare(record->position, rows->last) > 0);
    assert_false(rows->text.failed);
    rows->last = record->position;
    rows->last_version = record->version;
    *enough = ++rows->count == rows->most;
    return status_ok();
}

static const uint64_t test_tablets[] = {1, 2, 3, 4, 5};

/* All rows of tablets 1 to 5 behind the position. */
static inline struct stream_query query_after(const struct stream_part *part)
{
    return (struct stream_query){.tablets = test_tablets,
                                 .tablet_count = 5,
                                 .parts = part,
                                 .part_count = 1,
                                 .through = UINT64_MAX - 1,
                                 .most_bytes = SIZE_MAX};
}

static inline status try_read(struct log_fixture *f, struct stream_position after,
                              struct reading_rows *rows, struct stream_position *reached)
{
    const struct stream_part part = {.after = after};
    const struct stream_query query = query_after(&part);
    return stream_log_read(f->log, &query, note_row, rows, reached);
}

static inline void assert_rows(struct log_fixture *f, struct stream_position after,
                               const char *expected)
{
    struct reading_rows rows = {0};
    struct stream_position reached;
    assert_ok(try_read(f, after, &rows, &reached));
    assert_int_equal(reached.sequence, UINT64_MAX - 1);
    buffer_append_byte(&rows.text, 0);
    assert_string_equal((const char *)rows.text.data, expected);
    buffer_free(&rows.text);
}

static const struct stream_position before_all = {0, 0};

/* Behind which the log has all. */
static inline struct stream_position beginning_of(struct log_fixture *f)
{
    return (struct stream_position){stream_log_oldest(f->log) - 1, UINT32_MAX};
}

#endif
