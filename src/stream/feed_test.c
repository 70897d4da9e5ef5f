/* Feeds: what commits leave in them, in pages, and what is read of them. The row "3:abc" is of feed
 * 3, "[3:abc" a range from there on, "=3:abc" the row with a change, which is its key as a whole.
 */
#include "stream/testing/testing.h"

#include "base/testing/failmalloc.h"
#include "os/thread.h"

enum { FEEDS = 5, FIRST_FEED = 50 /* ids that no tablet has */ };

struct feed_fixture {
    struct log_fixture *l;
    struct stream_feed feeds[FEEDS];
    struct commit_observer observers[2];
};

/* --- the observer --- */

static bool prepare_feed(void *context, const struct commit *commit,
                         const struct store_batch *records)
{
    struct feed_fixture *f = context;
    uint32_t ordinals[FEEDS] = {0};
    (void)records;
    for (size_t i = 0; commit_changes_rows(commit->kind) && i <= commit->other_count; i++) {
        bytes key = i == 0 ? commit->row_key : commit->others[i - 1].row_key;
        bool is_range = key.data[0] == '[', has_change = key.data[0] == '=';
        bool is_more = is_range || has_change;
        size_t feed = (size_t)(key.data[is_more] - '0');
        const struct stream_feed_entry entry = {.position = {commit->sequence, ordinals[feed]++},
                                                .version = commit->version,
                                                .key = bytes_from(key, 2 + is_more),
                                                .end = is_range ? bytes_of("end") : bytes_of(""),
                                                .change = has_change ? key : bytes_of(""),
                                                .has_change = has_change,
                                                .is_range = is_range,
                                                .is_drop = is_range && key.size > 3};
        if (!stream_log_prepare_feed(f->l->log, &f->feeds[feed], &entry)) {
            stream_log_cancel(f->l->log);
            return false;
        }
    }
    return true;
}

static void cancel_feed(void *context, const struct commit *commit)
{
    const struct feed_fixture *f = context;
    (void)commit;
    stream_log_cancel(f->l->log);
}

static void see_feed(void *context, const struct commit *commit, const struct store_batch *records,
                     struct store_batch *batch)
{
    const struct feed_fixture *f = context;
    (void)records;
    if (commit->kind == COMMIT_CATALOG)
        stream_log_see_segment(f->l->log, commit, batch);
    stream_log_append(f->l->log, batch);
}

static void end_feed(void *context, struct store_batch *batch)
{
    const struct feed_fixture *f = context;
    if (f->l->log != NULL)
        stream_log_put_feeds(f->l->log, batch);
}

static bool begin_feed(void *context, struct store_batch *batch)
{
    return observe_begin(((struct feed_fixture *)context)->l, batch);
}

static void written_feed(void *context, bool is_written)
{
    observe_written(((struct feed_fixture *)context)->l, is_written);
}

/* --- life --- */

static int setup_feed(void **state)
{
    struct feed_fixture *f = calloc(1, sizeof *f);
    void *log;
    assert_non_null(f);
    setup_without_segment(&log);
    f->l = log;
    close_all(f->l);
    for (size_t i = 0; i < FEEDS; i++)
        f->feeds[i].id = FIRST_FEED + i;
    f->observers[0] = (struct commit_observer){.context = f,
                                               .begin = begin_feed,
                                               .prepare = prepare_feed,
                                               .cancel = cancel_feed,
                                               .see = see_feed,
                                               .end = end_feed,
                                               .written = written_feed};
    f->observers[1] = f->l->observers[1];
    f->l->t->options.observers = f->observers;
    open_queue(f->l->t);
    open_log(f->l);
    begin_segment(f->l);
    *state = f;
    return 0;
}

static int teardown_feed(void **state)
{
    struct feed_fixture *f = *state;
    void *log = f->l;
    teardown(&log);
    free(f);
    return 0;
}

/* --- reading --- */

struct seen {
    struct buffer text;
    size_t most; /* enough; 0: never */
    size_t count;
    struct stream_position last;
};

static status note_entry(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    struct seen *seen = context;
    assert_true(stream_position_compare(entry->position, seen->last) > 0);
    assert_true(version_time_us(entry->version) > 0);
    seen->last = entry->position;
    if (entry->is_range)
        buffer_append_format(&seen->text, entry->is_drop ? "-[" : "[");
    buffer_append_bytes(&seen->text, entry->key);
    if (entry->is_range)
        buffer_append_bytes(&seen->text, entry->end);
    if (entry->has_change)
        buffer_append_bytes(&seen->text, entry->change);
    buffer_append_byte(&seen->text, ' ');
    *enough = ++seen->count == seen->most;
    return status_ok();
}

static status try_read_feed(struct feed_fixture *f, uint64_t feed, struct stream_position after,
                            struct seen *seen, struct stream_position *reached)
{
    const struct stream_feed_query query = {.feed = FIRST_FEED + feed,
                                            .after = after,
                                            .through = UINT64_MAX - 1,
                                            .most_bytes = SIZE_MAX};
    seen->last = after;
    return stream_log_read_feed(f->l->log, &query, note_entry, seen, reached);
}

static void assert_feed(struct feed_fixture *f, uint64_t feed, struct stream_position after,
                        const char *expected)
{
    struct seen seen = {0};
    struct stream_position reached;
    assert_ok(try_read_feed(f, feed, after, &seen, &reached));
    assert_int_equal(reached.sequence, UINT64_MAX - 1);
    buffer_append_byte(&seen.text, 0);
    assert_string_equal((const char *)seen.text.data, expected);
    buffer_free(&seen.text);
}

/* --- entries --- */

static void write_rows(struct feed_fixture *f, const char *first, const char *second,
                       const char *third)
{
    const char *const rows[] = {first, second, third};
    size_t count = 1 + (second != NULL) + (third != NULL);
    assert_ok(try_write_rows(f->l, rows, count, NULL));
}

static void each_feed_has_its_own(void **state)
{
    struct feed_fixture *f = *state;
    write_rows(f, "1:a", NULL, NULL);
    write_rows(f, "2:b", "1:c", "2:d");
    write_rows(f, "[1:", "[1:x", "1:e");
    assert_feed(f, 1, beginning_of(f->l), "a c [end -[xend e ");
    assert_feed(f, 2, beginning_of(f->l), "b d ");
    assert_feed(f, 3, beginning_of(f->l), "");
    assert_rows(f->l, beginning_of(f->l), ""); /* no change stream has them */
    reopen(f->l);
    assert_feed(f, 1, beginning_of(f->l), "a c [end -[xend e ");
}

static void a_row_has_its_change(void **state)
{
    struct feed_fixture *f = *state;
    write_rows(f, "=1:a", NULL, NULL);
    write_rows(f, "=1:b", "1:c", "[1:x");
    write_rows(f, "=2:d", "=1:e", NULL);
    assert_feed(f, 1, beginning_of(f->l), "a=1:a b=1:b c -[xend e=1:e ");
    assert_feed(f, 2, beginning_of(f->l), "d=2:d ");
}

/* Also from amid a page, and to amid one. */
static void a_reader_goes_on_from_each_entry(void **state)
{
    struct feed_fixture *f = *state;
    struct stream_position at = beginning_of(f->l);
    const char *expected[] = {"a ", "b ", "c ", "[end ", "d ", "e "};
    write_rows(f, "1:a", "1:b", NULL);
    write_rows(f, "1:c", "[1:", "1:d");
    write_rows(f, "1:e", NULL, NULL);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct seen seen = {.most = 1};
        assert_ok(try_read_feed(f, 1, at, &seen, &at));
        buffer_append_byte(&seen.text, 0);
        assert_string_equal((const char *)seen.text.data, expected[i]);
        buffer_free(&seen.text);
    }
    assert_feed(f, 1, at, "");
}

static void what_is_refused_leaves_nothing(void **state)
{
    struct feed_fixture *f = *state;
    const char *const rows[] = {"1:b", "1:c"};
    write_rows(f, "1:a", NULL, NULL);
    f->l->refuses = 1;
    assert_status(try_write_rows(f->l, rows, 2, NULL), STATUS_RESOURCE_EXHAUSTED);
    write_rows(f, "1:d", NULL, NULL);
    assert_feed(f, 1, beginning_of(f->l), "a d ");
}

static void what_is_not_written_is_not_told(void **state)
{
    struct feed_fixture *f = *state;
    const char *const row = "1:b";
    write_rows(f, "1:a", NULL, NULL);
    uint64_t newest = atomic_load(&f->feeds[1].newest);
    assert_true(newest > 0 && atomic_load(&f->feeds[2].newest) == 0);
    fault_fs_fail(f->l->t->faults, FAULT_APPEND, ".log", FAULT_IO, 0);
    status s = try_write_rows(f->l, &row, 1, NULL);
    assert_false(status_is_ok(s));
    status_free(s);
    assert_int_equal(atomic_load(&f->feeds[1].newest), newest);
    fault_fs_heal(f->l->t->faults);
}

/* --- segments --- */

struct pending {
    struct commit commit;
    struct packed_change change;
};

static void ignore_done(struct task *task)
{
    (void)task;
}

static void submit_row(struct feed_fixture *f, struct pending *pending, const char *row)
{
    pending->change = set_cell(f->l->t, FAMILY_F, "q", 1, "v");
    pending->commit = commit_of(f->l->t, row, &pending->change);
    pending->commit.done.run = ignore_done;
    assert_ok(commit_submit(f->l->t->queue, &pending->commit));
}

static void *begin_segment_here(void *argument)
{
    begin_segment(argument);
    return NULL;
}

static void await_submitted(struct commit_queue *queue, uint64_t after)
{
    while (commit_submitted(queue) == after)
        sched_yield();
}

/* In one batch: a row, the next segment, a row. */
static void what_was_before_a_segment_is_in_the_one_before(void **state)
{
    struct feed_fixture *f = *state;
    struct pending before, after;
    struct stream_evicted evicted;
    uint64_t applied;
    pthread_t thread;
    commit_hold(f->l->t->queue, &applied);
    submit_row(f, &before, "1:a");
    assert_ok(thread_start(&thread, "segment", begin_segment_here, f->l));
    await_submitted(f->l->t->queue, before.commit.sequence);
    submit_row(f, &after, "1:b");
    commit_release(f->l->t->queue);
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(f->l->t->queue, &barrier));
    buffer_free(&before.change.fragment);
    buffer_free(&after.change.fragment);
    assert_feed(f, 1, beginning_of(f->l), "a b ");
    const struct stream_bounds all = {INT64_MAX, UINT64_MAX, UINT64_MAX};
    assert_ok(stream_log_truncate(f->l->log, f->l->t->queue, &all, &evicted));
    assert_feed(f, 1, beginning_of(f->l), "b ");
}

static size_t segments_after(struct feed_fixture *f, uint64_t keep_from, uint64_t most_bytes)
{
    const struct stream_bounds bounds = {INT64_MAX, keep_from, most_bytes};
    struct stream_evicted evicted;
    assert_ok(stream_log_truncate(f->l->log, f->l->t->queue, &bounds, &evicted));
    return stream_log_segments(f->l->log);
}

static void a_segment_stays_as_long_as_it_is_kept(void **state)
{
    struct feed_fixture *f = *state;
    struct stream_position begin = beginning_of(f->l), reached;
    struct seen seen = {0};
    uint64_t first = write_row(f->l, "1:a");
    begin_segment(f->l);
    uint64_t second = write_row(f->l, "1:b");
    begin_segment(f->l);
    write_row(f->l, "1:c");
    assert_int_equal(segments_after(f, 0, UINT64_MAX), 3);
    assert_int_equal(segments_after(f, first, UINT64_MAX), 3);
    assert_feed(f, 1, begin, "a b c ");
    assert_int_equal(segments_after(f, second, UINT64_MAX), 2);
    begin = beginning_of(f->l);
    assert_feed(f, 1, begin, "b c ");
    assert_int_equal(segments_after(f, second, 0), 1); /* there is no room for it */
    assert_status(try_read_feed(f, 1, begin, &seen, &reached), STATUS_OUT_OF_RANGE);
    assert_int_equal(seen.count, 0);
}

/* --- pages --- */

static void large_pages_are_put_in_the_middle_of_a_batch(void **state)
{
    enum { MANY = 6, SIZE = 40000 };
    struct feed_fixture *f = *state;
    struct pending pending[MANY];
    char *rows[MANY];
    uint64_t applied;
    commit_hold(f->l->t->queue, &applied);
    for (int i = 0; i < MANY; i++) {
        rows[i] = malloc(SIZE + 1);
        assert_non_null(rows[i]);
        memset(rows[i], 'a' + i, SIZE);
        memcpy(rows[i], "1:", 2);
        rows[i][SIZE] = 0;
        submit_row(f, &pending[i], rows[i]);
    }
    commit_release(f->l->t->queue);
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(f->l->t->queue, &barrier));
    struct seen seen = {0};
    struct stream_position reached;
    assert_ok(try_read_feed(f, 1, beginning_of(f->l), &seen, &reached));
    assert_int_equal(seen.count, MANY);
    assert_int_equal(seen.text.size, MANY * (SIZE - 1));
    buffer_free(&seen.text);
    for (int i = 0; i < MANY; i++) {
        buffer_free(&pending[i].change.fragment);
        free(rows[i]);
    }
}

static status pass(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    (void)context, (void)enough;
    assert_true(entry->is_range || entry->key.size > 0);
    return status_ok();
}

static status read_page(struct feed_fixture *f, struct buffer *key, struct buffer *value)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(store_keyspace_find(f->l->t->store, FIRST_SEGMENT), &options, &cursor));
    store_cursor_first(cursor);
    assert_true(store_cursor_valid(cursor));
    buffer_append_bytes(key, store_cursor_key(cursor));
    buffer_append_bytes(value, store_cursor_value(cursor));
    store_cursor_destroy(cursor);
    return status_ok();
}

/* What is cut off is noticed; what is flipped may be, and does no harm. */
static void a_page_that_is_damaged_does_not_parse(void **state)
{
    struct feed_fixture *f = *state;
    struct buffer key = {0}, value = {0};
    bool enough;
    write_rows(f, "1:a", "[1:", "1:cc");
    assert_ok(read_page(f, &key, &value));
    bytes whole = buffer_bytes(&value);
    assert_ok(stream_feed_page_read(buffer_bytes(&key), whole, pass, NULL, &enough));
    for (size_t size = 0; size < whole.size; size++)
        assert_status(stream_feed_page_read(buffer_bytes(&key), bytes_make(whole.data, size), pass,
                                            NULL, &enough),
                      STATUS_DATA_LOSS);
    for (size_t bit = 0; bit < 8 * whole.size; bit++) {
        value.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        status_ignore(stream_feed_page_read(buffer_bytes(&key), whole, pass, NULL, &enough));
        value.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    buffer_free(&key);
    buffer_free(&value);
}

/* --- memory --- */

/* On this thread: nothing else commits. */
static void prepare_without_memory(void *context)
{
    struct feed_fixture *f = context;
    const struct stream_feed_entry entry = {
        .position = {UINT64_MAX - 2, 0}, .version = UINT64_MAX - 2, .key = bytes_of("b")};
    stream_log_begin(f->l->log);
    bool first = stream_log_prepare_feed(f->l->log, &f->feeds[1], &entry);
    bool second = first && stream_log_prepare_feed(f->l->log, &f->feeds[2], &entry);
    (void)second;
    stream_log_cancel(f->l->log);
    stream_log_written(f->l->log, false);
}

static void without_memory_nothing_is_left(void **state)
{
    struct feed_fixture *f = *state;
    failmalloc_each(prepare_without_memory, f);
    write_rows(f, "1:a", "2:c", NULL);
    assert_feed(f, 1, beginning_of(f->l), "a ");
    assert_feed(f, 2, beginning_of(f->l), "c ");
}

#define FEED_TEST(test) cmocka_unit_test_setup_teardown(test, setup_feed, teardown_feed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FEED_TEST(each_feed_has_its_own),
        FEED_TEST(a_row_has_its_change),
        FEED_TEST(a_reader_goes_on_from_each_entry),
        FEED_TEST(what_is_refused_leaves_nothing),
        FEED_TEST(what_is_not_written_is_not_told),
        FEED_TEST(what_was_before_a_segment_is_in_the_one_before),
        FEED_TEST(a_segment_stays_as_long_as_it_is_kept),
        FEED_TEST(large_pages_are_put_in_the_middle_of_a_batch),
        FEED_TEST(a_page_that_is_damaged_does_not_parse),
        FEED_TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
