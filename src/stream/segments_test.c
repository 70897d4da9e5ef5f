/* Segments of a change stream's log: how they begin and go, and what of that a reader sees. */
#include "stream/testing/testing.h"

#include "base/dates.h"
#include "base/testing/failmalloc.h"
#include "tablet/change_log.h"
#include "tablet/replay.h"

#include <pthread.h>

static void pass_time(struct log_fixture *f, int64_t us)
{
    atomic_fetch_add(&f->t->clock.wall_us, us);
}

static int64_t now_us(struct log_fixture *f)
{
    return atomic_load(&f->t->clock.wall_us);
}

static bool has_keyspace(const struct log_fixture *f, uint64_t id)
{
    return store_keyspace_find(f->t->store, id) != NULL;
}

/* How many segments went for the bound. */
static size_t truncate_log(struct log_fixture *f, int64_t before_us, uint64_t most_bytes)
{
    struct stream_evicted evicted;
    const struct stream_bounds bounds = {before_us, UINT64_MAX, most_bytes};
    assert_ok(stream_log_truncate(f->log, f->t->queue, &bounds, &evicted));
    assert_true((evicted.bytes > 0) == (evicted.segments > 0));
    return evicted.segments;
}

static void assert_out_of_range(struct log_fixture *f, struct stream_position after)
{
    struct reading_rows rows = {0};
    struct stream_position reached;
    date_text oldest;
    dates_tell_from(stream_log_since(f->log), oldest);
    status s = try_read(f, after, &rows, &reached);
    assert_int_equal(s.code, STATUS_OUT_OF_RANGE);
    if (stream_log_has_segment(f->log))
        assert_non_null(strstr(status_message(s), oldest));
    status_free(s);
    assert_int_equal(rows.count, 0);
    assert_int_equal(stream_position_compare(reached, after), 0);
}

/* --- beginning --- */

static void without_a_segment_nothing_is_logged(void **state)
{
    struct log_fixture *f = *state;
    struct stream_position found;
    assert_false(stream_log_has_segment(f->log));
    assert_false(stream_log_wants_segment(f->log));
    write_row(f, "1:before");
    assert_int_equal(stream_log_oldest(f->log), UINT64_MAX);
    assert_out_of_range(f, before_all);
    assert_status(stream_log_find_time(f->log, 0, &found), STATUS_UNAVAILABLE);
    begin_segment(f);
    assert_true(stream_log_has_segment(f->log));
    assert_int_equal(keyspace_kind(store_keyspace_find(f->t->store, FIRST_SEGMENT)), KEYSPACE_LOG);
    write_row(f, "1:a");
    assert_rows(f, beginning_of(f), "1:a ");
    reopen(f);
    assert_true(stream_log_has_segment(f->log));
    assert_rows(f, beginning_of(f), "1:a ");
}

static void a_segment_is_over_when_it_is_old_and_has_something(void **state)
{
    struct log_fixture *f = *state;
    pass_time(f, 3 * INT64_C(3600) * TEST_SECOND);
    assert_false(stream_log_wants_segment(f->log));
    write_row(f, "1:a");
    assert_true(stream_log_wants_segment(f->log));
    reopen(f);
    assert_true(stream_log_wants_segment(f->log));
    begin_segment(f);
    write_row(f, "1:b");
    assert_false(stream_log_wants_segment(f->log));
    /* Versions may be a second ahead after a restart. */
    pass_time(f, INT64_C(3602) * TEST_SECOND);
    assert_true(stream_log_wants_segment(f->log));
}

static void a_segment_is_over_when_it_is_large(void **state)
{
    struct log_fixture *f = *state;
    f->options.segment_bytes = 1 << 20;
    reopen(f);
    write_row(f, "1:a");
    assert_false(stream_log_wants_segment(f->log));
    char *large = calloc(1, 2 << 20);
    bytes apart[] = {bytes_make(large, 2 << 20)};
    f->list.apart = apart;
    f->list.apart_count = 1;
    write_row(f, "1:b");
    f->list.apart = NULL;
    f->list.apart_count = 0;
    free(large);
    assert_true(stream_log_wants_segment(f->log));
    assert_true(stream_log_bytes(f->log) > 2 << 20);
}

/* The memory of its write buffer is taken by the megabyte. */
static void a_small_segment_is_not_over_with_its_first_row(void **state)
{
    struct log_fixture *f = *state;
    f->options.segment_bytes = 64 << 10;
    reopen(f);
    assert_int_equal(stream_log_bytes(f->log), 0);
    write_row(f, "1:a");
    assert_false(stream_log_wants_segment(f->log));
    assert_in_range(stream_log_bytes(f->log), 10, 1000);
    assert_int_equal(stream_log_bytes(f->log), stream_log_written_bytes(f->log));
    for (int i = 0; i < 2000; i++)
        write_row(f, "1:a");
    assert_true(stream_log_wants_segment(f->log));
    uint64_t bytes = stream_log_bytes(f->log);
    reopen(f);
    assert_in_range(stream_log_bytes(f->log), bytes / 4, 4 * bytes); /* which is an estimate */
    assert_ok(keyspace_flush(store_keyspace_find(f->t->store, FIRST_SEGMENT)));
    assert_in_range(stream_log_bytes(f->log), 1000, bytes);
}

/* The segment goes on whose place the new one was to take. */
static void a_beginning_that_fails_changes_nothing(void **state)
{
    struct log_fixture *f = *state;
    write_row(f, "1:a");
    fault_fs_fail(f->t->faults, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    struct store_batch *large = store_batch_create();
    char *value = calloc(1, 8 << 20);
    store_batch_put(large, f->t->options.catalog, bytes_of("x"), bytes_make(value, 8 << 20));
    assert_status(stream_log_begin_segment(f->log, f->t->queue, 200, large),
                  STATUS_RESOURCE_EXHAUSTED);
    fault_fs_heal(f->t->faults);
    assert_false(has_keyspace(f, 200));
    f->refuses = 1;
    assert_status(stream_log_begin_segment(f->log, f->t->queue, 201, NULL),
                  STATUS_RESOURCE_EXHAUSTED);
    assert_false(has_keyspace(f, 201));
    write_row(f, "1:b");
    assert_rows(f, beginning_of(f), "1:a 1:b ");
    assert_ok(stream_log_begin_segment(f->log, f->t->queue, 202, large));
    write_row(f, "1:c");
    reopen(f);
    assert_rows(f, beginning_of(f), "1:a 1:b 1:c ");
    assert_true(has_keyspace(f, 202));
    store_batch_destroy(large);
    free(value);
}

static void begin_without_memory(void *context)
{
    struct log_fixture *f = context;
    status s = stream_log_begin_segment(f->log, f->t->queue, f->next_keyspace++, NULL);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void reopen_without_memory(void *context)
{
    struct log_fixture *f = context;
    struct stream_log *other;
    status s = stream_log_open(&f->options, &other);
    assert_true(status_is_ok(s) == (other != NULL));
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    stream_log_close(other);
}

static void memory_that_runs_out_is_said(void **state)
{
    struct log_fixture *f = *state;
    failmalloc_each(begin_without_memory, f);
    write_row(f, "1:a");
    failmalloc_each(reopen_without_memory, f);
    reopen(f);
    assert_rows(f, beginning_of(f), "1:a ");
}

/* --- going --- */

static void the_log_is_cut_by_time(void **state)
{
    struct log_fixture *f = *state;
    uint64_t first = write_row(f, "1:a");
    pass_time(f, 100 * TEST_SECOND);
    begin_segment(f);
    int64_t second_us = now_us(f);
    uint64_t second = write_row(f, "1:b");
    pass_time(f, 100 * TEST_SECOND);
    begin_segment(f);
    write_row(f, "1:c");
    assert_int_equal(truncate_log(f, second_us, UINT64_MAX),
                     0); /* the first's last may be of then */
    assert_rows(f, beginning_of(f), "1:a 1:b 1:c ");
    assert_int_equal(truncate_log(f, second_us + 50 * TEST_SECOND, UINT64_MAX), 0);
    assert_false(has_keyspace(f, FIRST_SEGMENT));
    assert_int_equal(f->dropped, FIRST_SEGMENT);
    assert_true(stream_log_oldest(f->log) > first && stream_log_oldest(f->log) < second);
    for (int i = 0; i < 2; i++) {
        assert_out_of_range(f, before_all);
        assert_out_of_range(f, (struct stream_position){first, 0});
        assert_rows(f, beginning_of(f), "1:b 1:c ");
        reopen(f);
    }
    truncate_log(f, INT64_MAX, UINT64_MAX); /* the open one stays */
    assert_out_of_range(f, (struct stream_position){second, 0});
    assert_rows(f, beginning_of(f), "1:c ");
    assert_true(has_keyspace(f, FIRST_SEGMENT + 2));
    assert_false(has_keyspace(f, FIRST_SEGMENT + 1));
}

static void fill_segment(struct log_fixture *f, const char *row)
{
    char *large = calloc(1, 1 << 20);
    assert_non_null(large);
    for (size_t i = 0; i < 1 << 20; i++)
        large[i] = (char)(i * 2654435761u >> 13);
    bytes apart[] = {bytes_make(large, 1 << 20)};
    f->list.apart = apart;
    f->list.apart_count = 1;
    write_row(f, row);
    f->list.apart = NULL;
    f->list.apart_count = 0;
    free(large);
    begin_segment(f);
}

static void the_log_is_cut_by_size(void **state)
{
    struct log_fixture *f = *state;
    fill_segment(f, "1:a");
    fill_segment(f, "1:b");
    fill_segment(f, "1:c");
    uint64_t last = write_row(f, "1:d");
    assert_int_equal(truncate_log(f, 0, UINT64_MAX), 0);
    assert_int_equal(truncate_log(f, 0, 100 << 20), 0);
    assert_int_equal(truncate_log(f, 0, 5 << 19), 1);
    assert_rows(f, beginning_of(f), "1:b 1:c 1:d ");
    reopen(f);
    assert_int_equal(truncate_log(f, 0, 5 << 19), 0);
    assert_rows(f, beginning_of(f), "1:b 1:c 1:d ");
    assert_int_equal(truncate_log(f, 0, 1), 2); /* the open one stays */
    assert_rows(f, (struct stream_position){last - 1, UINT32_MAX}, "1:d ");
}

/* --- a reader in the middle --- */

struct slow_reader {
    struct log_fixture *f;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_in;
    bool may_leave;
    size_t count;
};

static status read_slowly(void *context, const struct stream_record *record, bool *enough)
{
    struct slow_reader *reader = context;
    (void)record, (void)enough;
    pthread_mutex_lock(&reader->lock);
    reader->is_in = true;
    reader->count++;
    pthread_cond_broadcast(&reader->changed);
    while (!reader->may_leave)
        pthread_cond_wait(&reader->changed, &reader->lock);
    pthread_mutex_unlock(&reader->lock);
    return status_ok();
}

static void *read_all_slowly(void *context)
{
    struct slow_reader *reader = context;
    const struct stream_part part = {.after = beginning_of(reader->f)};
    const struct stream_query query = query_after(&part);
    struct stream_position reached;
    assert_ok(stream_log_read(reader->f->log, &query, read_slowly, reader, &reached));
    return NULL;
}

static void *truncate_all(void *context)
{
    truncate_log(context, INT64_MAX, UINT64_MAX);
    return NULL;
}

static void a_segment_stays_until_its_reader_has_left(void **state)
{
    struct log_fixture *f = *state;
    struct slow_reader reader = {
        .f = f, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t reading, truncating;
    write_row(f, "1:a");
    write_row(f, "1:b");
    begin_segment(f);
    write_row(f, "1:c");
    assert_int_equal(pthread_create(&reading, NULL, read_all_slowly, &reader), 0);
    pthread_mutex_lock(&reader.lock);
    while (!reader.is_in)
        pthread_cond_wait(&reader.changed, &reader.lock);
    pthread_mutex_unlock(&reader.lock);
    uint64_t oldest = stream_log_oldest(f->log);
    assert_int_equal(pthread_create(&truncating, NULL, truncate_all, f), 0);
    while (stream_log_oldest(f->log) == oldest)
        sched_yield();           /* from then on it waits for the reader */
    for (int i = 0; i < 50; i++) /* in which it would be gone, if it did not */
        write_row(f, "1:d");
    assert_true(has_keyspace(f, FIRST_SEGMENT));
    assert_out_of_range(f, before_all);
    pthread_mutex_lock(&reader.lock);
    reader.may_leave = true;
    pthread_cond_broadcast(&reader.changed);
    pthread_mutex_unlock(&reader.lock);
    pthread_join(reading, NULL);
    pthread_join(truncating, NULL);
    assert_true(reader.count >= 3);
    assert_false(has_keyspace(f, FIRST_SEGMENT));
}

/* --- times --- */

/* From where it finds on there is all of that time and later, and not much before. */
static void assert_finds(struct log_fixture *f, int64_t time_us, uint64_t first, uint64_t before)
{
    struct stream_position found;
    assert_ok(stream_log_find_time(f->log, time_us, &found));
    assert_true(found.sequence < first);
    assert_true(found.sequence >= before);
}

static void assert_is_before_all(struct log_fixture *f, int64_t time_us)
{
    struct stream_position found;
    assert_status(stream_log_find_time(f->log, time_us, &found), STATUS_OUT_OF_RANGE);
}

static void a_time_is_found(void **state)
{
    struct log_fixture *f = *state;
    enum { SECONDS = 20 };
    uint64_t sequences[SECONDS];
    int64_t times[SECONDS];
    for (int i = 0; i < SECONDS; i++) {
        pass_time(f, TEST_SECOND);
        times[i] = now_us(f);
        sequences[i] = write_row(f, "1:a");
        if (i == 7 || i == 13)
            begin_segment(f);
    }
    for (int round = 0; round < 2; round++) {
        assert_finds(f, stream_log_since(f->log), sequences[0], 0);
        assert_is_before_all(f, stream_log_since(f->log) - 1);
        for (int i = 1; i < SECONDS; i++)
            assert_finds(f, times[i], sequences[i], sequences[i - 1] - (i > 1 ? 0 : 1));
        assert_finds(f, INT64_MAX, UINT64_MAX, sequences[SECONDS - 1]);
        reopen(f);
    }
    truncate_log(f, times[8] + 1, UINT64_MAX);
    assert_int_equal(stream_log_oldest(f->log) > sequences[7], true);
    assert_in_range(stream_log_since(f->log), times[7], times[8]);
    assert_is_before_all(f, times[2]);
    assert_is_before_all(f, stream_log_since(f->log) - 1);
    assert_finds(f, stream_log_since(f->log), sequences[8], stream_log_oldest(f->log) - 1);
    assert_finds(f, times[10], sequences[10], sequences[9]);
}

/* --- what is lost, copied, replayed --- */

static void what_is_behind_a_lost_segment_is_out_of_range(void **state)
{
    struct log_fixture *f = *state;
    write_row(f, "1:a");
    begin_segment(f);
    write_row(f, "1:b");
    begin_segment(f);
    write_row(f, "1:c");
    close_all(f);
    open_queue(f->t);
    assert_ok(
        store_keyspace_drop(f->t->store, store_keyspace_find(f->t->store, FIRST_SEGMENT + 1)));
    open_log(f);
    assert_out_of_range(f, before_all);
    struct stream_position from = {stream_log_oldest(f->log) - 1, UINT32_MAX};
    assert_rows(f, from, "1:c ");
    truncate_log(f, 0, UINT64_MAX); /* what nobody can come to any more */
    assert_false(has_keyspace(f, FIRST_SEGMENT));
    assert_rows(f, from, "1:c ");
    close_all(f);
    open_queue(f->t);
    assert_ok(
        store_keyspace_drop(f->t->store, store_keyspace_find(f->t->store, FIRST_SEGMENT + 2)));
    open_log(f);
    assert_false(stream_log_has_segment(f->log));
    assert_out_of_range(f, from);
    begin_segment(f);
    write_row(f, "1:d");
    truncate_log(f, 0, UINT64_MAX);
    reopen(f);
    assert_out_of_range(f, from);
    assert_rows(f, beginning_of(f), "1:d ");
}

static status count_segment(void *context, const struct stream_segment_record *record)
{
    (*(size_t *)context)++;
    assert_true(record->keyspace >= FIRST_SEGMENT);
    return status_ok();
}

static void a_record_that_does_not_parse_is_damage(void **state)
{
    struct log_fixture *f = *state;
    size_t count = 0;
    struct stream_log *other;
    begin_segment(f);
    assert_ok(stream_segments_visit(f->t->options.catalog, count_segment, &count));
    assert_int_equal(count, 2);
    put(f->t->store, f->t->options.catalog, "L1234567", "x");
    assert_status(stream_log_open(&f->options, &other), STATUS_DATA_LOSS);
    assert_null(other);
}

/* As the log of another store: a checkpoint's, or one that a replay has made. */
static void assert_same_log(struct log_fixture *f, struct store *store, const char *expected)
{
    struct stream_log_options options = f->options;
    struct stream_log *mine = f->log, *other;
    options.store = store;
    options.system = store_keyspace_find(store, CATALOG);
    assert_ok(stream_log_open(&options, &other));
    assert_int_equal(stream_log_oldest(other), stream_log_oldest(mine));
    struct stream_position from = beginning_of(f), found, expected_position;
    assert_ok(stream_log_find_time(mine, now_us(f), &expected_position));
    assert_ok(stream_log_find_time(other, now_us(f), &found));
    assert_int_equal(stream_position_compare(found, expected_position), 0);
    f->log = other;
    assert_rows(f, from, expected);
    f->log = mine;
    stream_log_close(other);
}

/* Opens a checkpoint of the store. */
static struct store *copy_store(struct log_fixture *f)
{
    struct store_checkpoint *checkpoint;
    struct store *copied;
    char copy[512];
    snprintf(copy, sizeof copy, "%s/copy", f->t->directory);
    assert_ok(store_checkpoint_begin(f->t->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, copy));
    store_checkpoint_end(checkpoint);
    struct store_options options = test_options(copy);
    options.fold = &row_fold;
    assert_ok(store_open(&options, &copied));
    return copied;
}

static void a_checkpoint_has_the_log(void **state)
{
    struct log_fixture *f = *state;
    write_row(f, "1:a");
    assert_ok(keyspace_flush(store_keyspace_find(f->t->store, FIRST_SEGMENT)));
    begin_segment(f);
    pass_time(f, TEST_SECOND);
    write_row(f, "2:b");
    pass_time(f, TEST_SECOND);
    struct store *copied = copy_store(f);
    assert_same_log(f, copied, "1:a 2:b ");
    store_close(copied);
}

/* --- the archive --- */

/* The queue with a change log, which is asked after the stream's log. */
static struct change_log *begin_archive(struct log_fixture *f)
{
    enum { CHANGES = 50 };
    const struct change_log_state state = {
        .keyspace = CHANGES, .stream = 1, .began = 1, .is_on = true, .taken = 1};
    const struct change_log_options options = {.store = f->t->store,
                                               .catalog = f->t->options.catalog,
                                               .limit_bytes = UINT64_MAX / 2,
                                               .visit_beside = stream_log_visit_prepared,
                                               .beside_context = f->log};
    struct change_log *changes;
    struct store_batch *batch = store_batch_create();
    commit_queue_destroy(f->t->queue);
    make_keyspace(f->t->store, CHANGES);
    change_log_put(batch, f->t->options.catalog, &state);
    assert_ok(store_write(f->t->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    assert_ok(change_log_open(&options, &state, &changes));
    f->observers[1] = change_log_observer(changes);
    f->t->options.has_change_log = true;
    assert_ok(commit_queue_create(&f->t->options, &f->t->queue));
    return changes;
}

static void end_archive(struct log_fixture *f, struct change_log *changes)
{
    commit_queue_destroy(f->t->queue);
    change_log_close(changes);
    f->observers[1] = (struct commit_observer){.context = f, .prepare = refuse_some};
    f->t->options.has_change_log = false;
    assert_ok(commit_queue_create(&f->t->options, &f->t->queue));
}

static status replay_entry(void *context, bytes entry, bool *enough)
{
    (void)enough;
    TRY(replayer_apply(context, entry));
    return replayer_flush(context); /* the entry does not stay */
}

static void replay(struct log_fixture *f, struct change_log *changes, struct store *into)
{
    const struct replay_options options = {.store = into,
                                           .catalog = store_keyspace_find(into, CATALOG),
                                           .clock = &f->t->clock.clock,
                                           .until = UINT64_MAX};
    struct replayer *replayer;
    assert_ok(replayer_create(&options, &replayer));
    assert_ok(change_log_read_waiting(changes, replay_entry, replayer));
    assert_ok(replayer_finish(replayer, 1));
    replayer_destroy(replayer);
}

/* Marks, records, large values, segments that came and went. */
static void a_replay_makes_the_log_as_it_was(void **state)
{
    struct log_fixture *f = *state;
    const char *const rows[] = {"2:x", "1:x", "2:y"};
    struct change_log *changes = begin_archive(f);
    struct store *replayed = copy_store(f);
    begin_segment(f);
    write_row(f, "1:gone");
    begin_segment(f);
    pass_time(f, TEST_SECOND);
    fill_segment(f, "1:large");
    assert_ok(try_write_rows(f, rows, 3, NULL));
    truncate_log(f, 0, 1); /* all but the open one */
    fill_segment(f, "3:large");
    write_row(f, "3:c");
    pass_time(f, TEST_SECOND);
    replay(f, changes, replayed);
    assert_null(store_keyspace_find(replayed, FIRST_SEGMENT));
    assert_int_equal(keyspace_kind(store_keyspace_find(replayed, FIRST_SEGMENT + 2)), KEYSPACE_LOG);
    assert_same_log(f, replayed, "2:x 1:x 2:y 3:large 3:c ");
    struct tablet_fixture of_replayed = *f->t;
    of_replayed.rows = store_keyspace_find(replayed, ROWS_KEYSPACE);
    of_replayed.store = replayed;
    keyspace_set_rules(of_replayed.rows, &f->t->rules);
    assert_row(&of_replayed, "3:c", "f:q@1=v");
    store_close(replayed);
    end_archive(f, changes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_segment_nothing_is_logged, setup_without_segment,
                                        teardown),
        TEST(a_segment_is_over_when_it_is_old_and_has_something),
        TEST(a_segment_is_over_when_it_is_large),
        TEST(a_small_segment_is_not_over_with_its_first_row),
        TEST(a_beginning_that_fails_changes_nothing),
        TEST(memory_that_runs_out_is_said),
        TEST(the_log_is_cut_by_time),
        TEST(the_log_is_cut_by_size),
        TEST(a_segment_stays_until_its_reader_has_left),
        TEST(a_time_is_found),
        TEST(what_is_behind_a_lost_segment_is_out_of_range),
        TEST(a_record_that_does_not_parse_is_damage),
        TEST(a_checkpoint_has_the_log),
        cmocka_unit_test_setup_teardown(a_replay_makes_the_log_as_it_was, setup_without_segment,
                                        teardown),
    };
    return cmocka_run_group_tests_name("stream_segments", tests, NULL, NULL);
}
