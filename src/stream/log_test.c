/* Records of a change stream's log: written with their commits, and read in their order. */
#include "stream/testing/testing.h"

#include "base/testing/failmalloc.h"

#include <glob.h>

/* --- what is written is read --- */

static void rows_come_in_the_order_of_commits(void **state)
{
    struct log_fixture *f = *state;
    uint64_t first = write_row(f, "2:b");
    write_row(f, "1:a");
    write_row(f, "2:a");
    write_row(f, "1:b");
    assert_rows(f, beginning_of(f), "2:b 1:a 2:a 1:b ");
    assert_rows(f, (struct stream_position){first, 0}, "1:a 2:a 1:b ");
    reopen(f);
    assert_rows(f, beginning_of(f), "2:b 1:a 2:a 1:b ");
    write_row(f, "3:c");
    assert_rows(f, (struct stream_position){first, UINT32_MAX}, "1:a 2:a 1:b 3:c ");
}

static void rows_of_a_commit_have_ordinals(void **state)
{
    struct log_fixture *f = *state;
    const char *const rows[] = {"2:x", "1:x", "2:a"};
    uint64_t sequence;
    assert_ok(try_write_rows(f, rows, 3, &sequence));
    write_row(f, "1:y");
    assert_rows(f, beginning_of(f), "2:x 1:x 2:a 1:y ");
    assert_rows(f, (struct stream_position){sequence, 0}, "1:x 2:a 1:y ");
    assert_rows(f, (struct stream_position){sequence, 2}, "1:y ");
}

static status check_record(void *context, const struct stream_record *record, bool *enough)
{
    const struct commit *commit = context;
    (void)enough;
    assert_int_equal(record->kind, STREAM_COLLECTED);
    assert_int_equal(record->tablet, 4);
    assert_int_equal(record->version, commit->version);
    assert_int_equal(record->position.sequence, commit->sequence);
    assert_true(bytes_equal(record->row_key, commit->row_key));
    assert_true(bytes_equal(record->list, bytes_of("list")));
    return status_make(STATUS_ABORTED, "seen");
}

static void a_record_says_what_its_commit_was(void **state)
{
    struct log_fixture *f = *state;
    struct packed_change change = set_cell(f->t, FAMILY_F, "q", 1, "v");
    struct commit commit = commit_of(f->t, "4:row", &change);
    const struct stream_part all = {.after = beginning_of(f)};
    const struct stream_query query = query_after(&all);
    struct stream_position reached;
    commit.kind = COMMIT_COLLECT;
    assert_ok(commit_and_wait(f->t->queue, &commit));
    assert_status(stream_log_read(f->log, &query, check_record, &commit, &reached), STATUS_ABORTED);
    assert_int_equal(stream_position_compare(reached, all.after), 0);
    buffer_free(&change.fragment);
}

/* --- a model --- */

enum { ROWS = 400, QUERIES = 300 };

struct logged {
    char row[16];
    struct stream_position position;
};

/* Rows of tablets 1 to 5, in commits of one to four, over several segments. */
static void write_at_random(struct log_fixture *f, unsigned *seed, struct logged *all)
{
    for (size_t i = 0; i < ROWS;) {
        const char *rows[4];
        uint64_t sequence;
        size_t count = 1 + (size_t)rand_r(seed) % 4;
        count = i + count > ROWS ? ROWS - i : count;
        for (size_t j = 0; j < count; j++) {
            struct logged *one = &all[i + j];
            snprintf(one->row, sizeof one->row, "%d:%03d%zu", 1 + rand_r(seed) % 5,
                     rand_r(seed) % 200, j);
            rows[j] = one->row;
        }
        assert_ok(try_write_rows(f, rows, count, &sequence));
        for (uint32_t j = 0; j < count; j++)
            all[i++].position = (struct stream_position){sequence, j};
        if (rand_r(seed) % 40 == 0)
            begin_segment(f);
        if (rand_r(seed) % 60 == 0)
            assert_ok(keyspace_flush(store_keyspace_find(f->t->store, f->next_keyspace - 1)));
    }
}

static bool is_asked(const struct stream_query *query, const struct logged *one)
{
    bool has_tablet = false;
    uint64_t tablet = strtoul(one->row, NULL, 10);
    for (size_t i = 0; i < query->tablet_count; i++)
        has_tablet |= query->tablets[i] == tablet;
    if (!has_tablet || bytes_compare(bytes_of(one->row), query->start) < 0 ||
        one->position.sequence > query->through)
        return false;
    size_t i = 0;
    while (i < query->part_count && query->parts[i].end.size > 0 &&
           bytes_compare(bytes_of(one->row), query->parts[i].end) >= 0)
        i++;
    return i < query->part_count &&
           stream_position_compare(one->position, query->parts[i].after) > 0;
}

static void assert_as_model(struct log_fixture *f, const struct logged *all,
                            const struct stream_query *query, struct stream_position end)
{
    struct reading_rows rows = {0};
    struct stream_position reached;
    struct buffer expected = {0};
    assert_ok(stream_log_read(f->log, query, note_row, &rows, &reached));
    for (size_t i = 0; i < ROWS; i++)
        if (is_asked(query, &all[i])) {
            buffer_append_bytes(&expected, bytes_of(all[i].row));
            buffer_append_byte(&expected, ' ');
        }
    assert_int_equal(stream_position_compare(reached, end), 0);
    assert_true(bytes_equal(buffer_bytes(&rows.text), buffer_bytes(&expected)));
    buffer_free(&rows.text);
    buffer_free(&expected);
}

static void queries_are_answered_as_a_model_does(void **state)
{
    struct log_fixture *f = *state;
    struct logged *all = calloc(ROWS, sizeof *all);
    unsigned seed = 4711;
    assert_non_null(all);
    write_at_random(f, &seed, all);
    reopen(f);
    for (int i = 0; i < QUERIES; i++) {
        char ends[3][8];
        struct stream_part parts[4];
        struct stream_query query = {.tablets = test_tablets + rand_r(&seed) % 3,
                                     .tablet_count = (size_t)rand_r(&seed) % 4,
                                     .parts = parts,
                                     .part_count = 1 + (size_t)rand_r(&seed) % 4,
                                     .through = all[rand_r(&seed) % ROWS].position.sequence,
                                     .most_bytes = SIZE_MAX};
        for (size_t p = 0; p < query.part_count; p++) {
            parts[p] = (struct stream_part){.after = all[rand_r(&seed) % ROWS].position};
            if (p + 1 == query.part_count && rand_r(&seed) % 2 == 0)
                break;
            snprintf(ends[p % 3], sizeof *ends, "%zu:%03d", p + 2, rand_r(&seed) % 200);
            parts[p].end = bytes_of(ends[p % 3]);
        }
        if (rand_r(&seed) % 2 == 0)
            query.start = bytes_of("2:1");
        assert_as_model(f, all, &query, (struct stream_position){query.through, UINT32_MAX});
    }
    free(all);
}

/* A reader that takes little at a time comes to the same, whatever it stops for. */
static void a_reader_goes_on_where_it_stopped(void **state)
{
    struct log_fixture *f = *state;
    struct logged *all = calloc(ROWS, sizeof *all);
    unsigned seed = 99;
    assert_non_null(all);
    write_at_random(f, &seed, all);
    for (size_t most = 0; most < 3; most++) {
        struct stream_part part = {.after = beginning_of(f)};
        struct stream_query query = query_after(&part);
        size_t seen = 0, calls = 0;
        query.most_bytes = most == 0 ? 500 : SIZE_MAX;
        while (part.after.sequence < query.through) {
            struct reading_rows rows = {.most = most};
            assert_ok(stream_log_read(f->log, &query, note_row, &rows, &part.after));
            assert_true(rows.count < (most == 0 ? 20 : most + 1));
            assert_true(seen + rows.count <= ROWS);
            for (size_t at = 0; at < rows.text.size; seen++, at += strlen(all[seen - 1].row) + 1)
                assert_memory_equal(rows.text.data + at, all[seen].row, strlen(all[seen].row));
            buffer_free(&rows.text);
            calls++;
        }
        assert_int_equal(seen, ROWS);
        assert_true(calls > 20);
    }
    free(all);
}

/* --- large values --- */

static void append_pieces(struct log_fixture *f, uint64_t sequence, uint32_t first, uint32_t count,
                          struct buffer *out)
{
    for (uint32_t i = first; i < first + count; i++)
        assert_ok(stream_log_read_piece(f->log, 1, (struct stream_position){sequence, 0}, i, out));
    assert_false(out->failed);
}

static void large_values_lie_in_pieces(void **state)
{
    struct log_fixture *f = *state;
    enum { LARGE = 3 * STREAM_PIECE_BYTES, ODD = STREAM_PIECE_BYTES + 17 };
    uint8_t *large = malloc(LARGE);
    struct buffer first = {0}, second = {0};
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i * 31 + i / 7919);
    bytes apart[] = {bytes_make(large, LARGE), bytes_make(large + 5, ODD)};
    f->list.apart = apart;
    f->list.apart_count = 2;
    uint64_t sequence = write_row(f, "1:large");
    f->list.apart = NULL;
    f->list.apart_count = 0;
    write_row(f, "1:small");
    assert_rows(f, beginning_of(f), "1:large 1:small ");
    assert_rows(f, (struct stream_position){sequence, 0}, "1:small ");
    append_pieces(f, sequence, 1, stream_piece_count(LARGE), &first);
    append_pieces(f, sequence, 4, stream_piece_count(ODD), &second);
    assert_true(bytes_equal(buffer_bytes(&first), apart[0]));
    assert_true(bytes_equal(buffer_bytes(&second), apart[1]));
    assert_status(
        stream_log_read_piece(f->log, 1, (struct stream_position){sequence, 0}, 6, &first),
        STATUS_DATA_LOSS);
    buffer_free(&first);
    buffer_free(&second);
    free(large);
}

/* --- what is refused --- */

static void a_commit_that_is_refused_leaves_no_record(void **state)
{
    struct log_fixture *f = *state;
    const char *const rows[] = {"1:no", "2:no"};
    write_row(f, "1:a");
    f->refuses = 1;
    assert_status(try_write_rows(f, rows, 2, NULL), STATUS_RESOURCE_EXHAUSTED);
    write_row(f, "1:b");
    assert_rows(f, beginning_of(f), "1:a 1:b ");
}

static void a_batch_that_is_not_written_leaves_no_record(void **state)
{
    struct log_fixture *f = *state;
    const char *const rows[] = {"1:no"};
    struct stream_position found;
    uint64_t sequence = write_row(f, "1:a");
    assert_int_equal(stream_log_newest(f->log), sequence);
    atomic_fetch_add(&f->t->clock.wall_us, 10 * TEST_SECOND); /* it is to have a mark */
    fault_fs_fail(f->t->faults, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    char *large = calloc(1, 8 << 20); /* more than there is room for in the log */
    assert_non_null(large);
    bytes apart[] = {bytes_make(large, 8 << 20)};
    f->list.apart = apart;
    f->list.apart_count = 1;
    assert_status(try_write_rows(f, rows, 1, NULL), STATUS_RESOURCE_EXHAUSTED);
    f->list.apart = NULL;
    f->list.apart_count = 0;
    free(large);
    assert_int_equal(stream_log_newest(f->log), sequence);
    fault_fs_heal(f->t->faults);
    sequence = write_row(f, "1:b");
    assert_int_equal(stream_log_newest(f->log), sequence);
    assert_rows(f, beginning_of(f), "1:a 1:b ");
    assert_ok(stream_log_find_time(f->log, INT64_MAX, &found));
    assert_int_equal(found.sequence, sequence);
}

/* --- memory --- */

static void read_without_memory(void *context)
{
    struct log_fixture *f = context;
    struct stream_part part = {.after = beginning_of(f)};
    const struct stream_query query = query_after(&part);
    struct reading_rows rows = {0};
    buffer_reserve(&rows.text, 64); /* the visitor's, which cannot fail here */
    bool has_room = !rows.text.failed;
    status s = has_room ? stream_log_read(f->log, &query, note_row, &rows, &part.after)
                        : status_out_of_memory();
    assert_true(status_is_ok(s) ? rows.count == 3 : s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    buffer_free(&rows.text);
}

static void a_read_without_memory_says_so(void **state)
{
    struct log_fixture *f = *state;
    write_row(f, "1:a");
    begin_segment(f);
    write_row(f, "2:b");
    write_row(f, "3:c");
    failmalloc_each(read_without_memory, f);
}

static void prepare_without_memory(void *context)
{
    struct log_fixture *f = context;
    struct stream_log log = *f->log; /* what the commit thread has of it is new each time */
    struct stream_append append = {.kind = STREAM_USER,
                                   .tablet = 1,
                                   .position = {.sequence = 9},
                                   .version = version_at(1),
                                   .row_key = bytes_of("1:row"),
                                   .list = &f->list};
    log.values = (struct buffer){0};
    log.prepared = NULL;
    log.prepared_capacity = 0;
    bool is_prepared = true;
    for (size_t i = 0; i < 40 && is_prepared; i++) {
        append.position.ordinal = (uint32_t)i;
        is_prepared = stream_log_prepare(&log, &append);
        assert_int_equal(log.prepared_count, i + is_prepared);
    }
    stream_log_cancel(&log);
    assert_int_equal(log.prepared_count, 0);
    buffer_free(&log.values);
    free(log.prepared);
}

static void a_record_without_memory_is_not_prepared(void **state)
{
    failmalloc_each(prepare_without_memory, *state);
}

/* --- damage --- */

static void flip_tables(const struct log_fixture *f)
{
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.sst", f->t->directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r+");
        assert_non_null(file);
        assert_int_equal(fseek(file, 20, SEEK_SET), 0);
        assert_int_equal(fwrite("damage", 1, 6, file), 6);
        assert_int_equal(fclose(file), 0);
    }
    globfree(&found);
}

static void damage_fails_its_readers_and_nothing_else(void **state)
{
    struct log_fixture *f = *state;
    uint64_t first = write_row(f, "1:a"), last = 0;
    assert_ok(keyspace_flush(store_keyspace_find(f->t->store, FIRST_SEGMENT)));
    begin_segment(f);
    last = write_row(f, "1:b");
    close_all(f);
    flip_tables(f);
    open_queue(f->t);
    open_log(f);
    struct reading_rows rows = {0};
    struct stream_position reached;
    assert_status(try_read(f, beginning_of(f), &rows, &reached), STATUS_DATA_LOSS);
    assert_int_equal(rows.count, 0);
    assert_int_equal(stream_position_compare(reached, beginning_of(f)), 0);
    assert_ok(store_health(f->t->store));
    write_row(f, "1:c");
    assert_rows(f, (struct stream_position){last, 0}, "1:c ");
    assert_rows(f, (struct stream_position){last - 1, UINT32_MAX}, "1:b 1:c ");
    assert_true(first < last);
}

/* --- waking --- */

struct waiting {
    struct stream_waiter waiter;
    int told;
};

static void note_told(struct task *task)
{
    struct waiting *waiting = (void *)LIST_ENTRY(task, struct waiting, waiter.task);
    waiting->told++;
}

static void run_posted(struct loop *loop)
{
    loop_stop(loop);
    loop_run(loop);
}

enum { WAITERS = 1000 };

/* Some are in one line and wait for different tablets. */
static uint64_t tablet_of(size_t waiter)
{
    return 1 + waiter % 5 + waiter / 5 % 2 * WAITER_BUCKETS;
}

static void those_who_wait_are_told_once(void **state)
{
    struct log_fixture *f = *state;
    struct waiting *all = calloc(WAITERS, sizeof *all);
    struct loop *loop;
    assert_non_null(all);
    assert_ok(loop_create(clock_system(), &loop));
    for (size_t i = 0; i < WAITERS; i++) {
        all[i].waiter = (struct stream_waiter){
            .tablet = tablet_of(i), .loop = loop, .task = {.run = note_told}};
        stream_log_wait(f->log, &all[i].waiter);
    }
    write_row(f, "2:a");
    write_row(f, "2:b");
    stream_log_wake(f->log, 3);
    run_posted(loop);
    for (size_t i = 0; i < WAITERS; i++) {
        bool is_told = tablet_of(i) == 2 || tablet_of(i) == 3;
        assert_int_equal(all[i].told, is_told);
        assert_int_equal(stream_log_forget(f->log, &all[i].waiter), !is_told);
    }
    write_row(f, "1:a");
    run_posted(loop);
    assert_int_equal(all[0].told, 0);
    loop_destroy(loop);
    free(all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_come_in_the_order_of_commits),
        TEST(rows_of_a_commit_have_ordinals),
        TEST(a_record_says_what_its_commit_was),
        TEST(queries_are_answered_as_a_model_does),
        TEST(a_reader_goes_on_where_it_stopped),
        TEST(large_values_lie_in_pieces),
        TEST(a_commit_that_is_refused_leaves_no_record),
        TEST(a_batch_that_is_not_written_leaves_no_record),
        TEST(a_read_without_memory_says_so),
        TEST(a_record_without_memory_is_not_prepared),
        TEST(damage_fails_its_readers_and_nothing_else),
        TEST(those_who_wait_are_told_once),
    };
    return cmocka_run_group_tests_name("stream_log", tests, NULL, NULL);
}
