/* Tests of rows in many pieces: readers put them together, and never undo a change by it. */
#include "base/testing/failmalloc.h"
#include "cluster/foreign_rows.h"
#include "cluster/row_jobs.h"
#include "cluster/row_rewrite.h"
#include "cluster/testing/testing.h"
#include "row/row_key.h"

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    assert_ok(metrics_create(&f->options.metrics));
    f->options.durability = STORE_SYNCED;
    f->options.overflow_bytes = 64 << 10;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

/* --- what there is of a row, and what became of it --- */

static struct keyspace *keyspace_of(struct cluster_fixture *f)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    struct keyspace *keyspace = tablet->keyspace;
    tablet_release(tablet);
    return keyspace;
}

static size_t pieces_of(struct cluster_fixture *f, const char *row_key,
                        enum store_presence *is_there)
{
    struct buffer key = {0};
    struct store_value value;
    row_record_key(&key, bytes_of(row_key));
    assert_ok(
        store_get(keyspace_of(f), NULL, buffer_bytes(&key), STORE_READ_ANY, &value, is_there));
    size_t count = value.folded.count;
    store_value_release(&value);
    buffer_free(&key);
    return count;
}

static void assert_pieces(struct cluster_fixture *f, const char *row_key, size_t expected)
{
    enum store_presence is_there;
    assert_int_equal(pieces_of(f, row_key, &is_there), expected);
    assert_int_equal(is_there, STORE_FOUND);
}

/* With this empty commit all that was submitted before is over. */
static void wait_until_idle(struct cluster_fixture *f)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(f->cluster->home->commits, &barrier));
}

static void assert_counted(struct cluster_fixture *f, int64_t rewritten, int64_t unmended)
{
    wait_until_idle(f);
    assert_int_equal(metrics_value(f->options.metrics, METRIC_rows_mended_total), rewritten);
    assert_int_equal(metrics_value(f->options.metrics, METRIC_rows_unmended_total), unmended);
}

static uint64_t syncs(struct cluster_fixture *f)
{
    struct store_statistics statistics;
    store_statistics(f->cluster->home->store, &statistics);
    return statistics.syncs;
}

/* Values "1", "2", …, each an operand of its own. */
static void overwrite(struct cluster_fixture *f, const char *row_key, char last)
{
    for (char value = '1'; value <= last; value++)
        set_cell(f, row_key, (char[]){value, '\0'});
}

/* --- a row in hand, as a reader has it --- */

static void read_row(struct cluster_fixture *f, const char *row_key, struct row *row)
{
    struct row_read_options options = {.store = f->cluster->home->store,
                                       .commits = f->cluster->home->commits,
                                       .schema = table_schema(f->table),
                                       .size_limit = UINT64_MAX};
    enum row_outcome outcome;
    *row = (struct row){.cells.arena = f->arena};
    assert_ok(row_read(keyspace_of(f), &options, bytes_of(row_key), STORE_READ_ANY, row, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
}

static void heal(struct cluster_fixture *f, struct row *row)
{
    row_rewriter_offer(f->cluster->home->row_rewriter, f->table, keyspace_of(f), row);
    row_clear(row);
}

/* --- what readers do --- */

/* A range offers some of its rows at random: often enough that all have been. */
static void scan_until_whole(struct cluster_fixture *f, const char *row_key, const char *expected)
{
    enum { OFTEN = 1000 };
    enum store_presence is_there;
    for (int i = 0; i < OFTEN && pieces_of(f, row_key, &is_there) > 1; i++) {
        assert_scan(f, "", "", false, expected);
        wait_until_idle(f);
    }
}

static void a_scan_puts_rows_together(void **state)
{
    struct cluster_fixture *f = *state;
    overwrite(f, "a", '5');
    overwrite(f, "b", '1');
    overwrite(f, "c", '3');
    uint64_t before = syncs(f);
    scan_until_whole(f, "a", "a=5 b=1 c=3");
    scan_until_whole(f, "c", "a=5 b=1 c=3");
    assert_int_equal(syncs(f), before);
    assert_pieces(f, "a", 0);
    assert_pieces(f, "b", 1);
    assert_pieces(f, "c", 0);
    assert_scan(f, "", "", true, "c=3 b=1 a=5");
    set_cell(f, "a", "6");
    assert_pieces(f, "a", 1);
    assert_scan(f, "", "", false, "a=6 b=1 c=3");
}

static void a_point_read_puts_its_row_together(void **state)
{
    struct cluster_fixture *f = *state;
    const struct key_range points[] = {{.from = bytes_of("a"), .is_point = true},
                                       {.from = bytes_of("b"), .is_point = true}};
    struct buffer text = {0};
    overwrite(f, "a", '5');
    overwrite(f, "b", '5');
    overwrite(f, "c", '5');
    assert_ok(scan_text(f, points, 2, false, 0, &text));
    assert_string_equal((const char *)text.data, "a=5 b=5");
    assert_counted(f, 2, 0);
    assert_pieces(f, "a", 0);
    assert_pieces(f, "b", 0);
    assert_pieces(f, "c", 5);
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=5 b=5 c=5");
    buffer_free(&text);
}

/* The row has pieces, but no cell that a reader is shown. */
static void a_deleted_row_goes(void **state)
{
    struct cluster_fixture *f = *state;
    enum store_presence is_there;
    overwrite(f, "a", '5');
    overwrite(f, "b", '1');
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_row(change);
    assert_ok(try_write(f, "a", change));
    assert_int_equal(pieces_of(f, "a", &is_there), 6);
    scan_until_whole(f, "a", "b=1");
    assert_int_equal(pieces_of(f, "a", &is_there), 0);
    assert_int_equal(is_there, STORE_ABSENT);
    assert_scan(f, "", "", false, "b=1");
}

/* A large row in small pieces: every reader would have it rewritten. */
static void a_large_row_with_small_pieces_is_left(void **state)
{
    struct cluster_fixture *f = *state;
    char large[3000] = {0};
    memset(large, 'v', sizeof large - 1);
    set_cell(f, "a", large);
    assert_ok(keyspace_flush(keyspace_of(f)));
    assert_ok(keyspace_compact(keyspace_of(f), bytes_of(""), bytes_of("")));
    for (int i = 0; i < 5; i++)
        assert_ok(try_write(f, "a", setting(f, FAMILY_F, "small", i, "x")));
    struct row row;
    read_row(f, "a", &row);
    assert_int_equal(row.value.folded.count, 5);
    assert_false(row.wants_rewrite);
    row_clear(&row);
    for (int i = 0; i < 2; i++)
        set_cell(f, "a", large);
    read_row(f, "a", &row);
    assert_true(row.wants_rewrite);
    row_clear(&row);
}

/* --- what comes in between --- */

static void a_row_that_was_left_alone_is_rewritten(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    overwrite(f, "a", '3');
    read_row(f, "a", &row);
    assert_true(row.wants_rewrite);
    heal(f, &row);
    assert_counted(f, 1, 0);
    assert_pieces(f, "a", 0);
}

static void a_write_in_between_stays(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    overwrite(f, "a", '3');
    read_row(f, "a", &row);
    set_cell(f, "a", "new");
    heal(f, &row);
    assert_counted(f, 0, 1);
    assert_scan(f, "", "", false, "a=new");
}

/* Its version is older than all that the reader saw: where it stands in the queue decides. */
static void late_change_in_between_stays(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    struct packed_change late;
    overwrite(f, "a", '3');
    read_row(f, "a", &row);
    assert_ok(row_change_pack(setting(f, FAMILY_F, "late", 1, "x"), SIZE_MAX, &late));
    assert_ok(foreign_row_write(f->table, bytes_of("a"), &late, 5 * VERSION_STEP + 1));
    buffer_free(&late.fragment);
    heal(f, &row);
    assert_counted(f, 0, 1);
    read_row(f, "a", &row);
    assert_int_equal(row.cells.count, 2);
    row_clear(&row);
}

static void a_dropped_row_stays_dropped(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    overwrite(f, "a", '3');
    read_row(f, "a", &row);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    heal(f, &row);
    assert_counted(f, 0, 1);
    assert_scan(f, "", "", false, "");
}

/* Or else the cells would be there twice, and no mark would say so. */
static void an_overflow_row_stays_overflow(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    overwrite(f, "a", '3');
    read_row(f, "a", &row);
    f->cluster->options.overflow_bytes = 1;
    assert_ok(row_jobs_maintain(f->table, bytes_of("a")));
    f->cluster->options.overflow_bytes = 64 << 10;
    heal(f, &row);
    assert_counted(f, 0, 1);
    read_row(f, "a", &row);
    assert_true(fragment_has_overflow(row.record));
    row_clear(&row);
    assert_scan(f, "", "", false, "a=3");
}

static void a_row_that_is_locked_is_left(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    uint64_t hash = row_lock_hash(keyspace_id(keyspace_of(f)), bytes_of("a"));
    overwrite(f, "a", '3');
    assert_true(row_lock_try(f->cluster->home->locks, hash));
    read_row(f, "a", &row);
    heal(f, &row);
    row_lock_release(f->cluster->home->locks, hash);
    assert_counted(f, 0, 1);
    assert_pieces(f, "a", 3);
}

/* --- when it cannot be --- */

static void without_space_rows_are_left(void **state)
{
    struct cluster_fixture *f = *state;
    overwrite(f, "a", '3');
    f->options.disk_reserve_bytes = UINT64_MAX;
    reopen_test_cluster(f);
    struct row row;
    read_row(f, "a", &row);
    heal(f, &row);
    assert_counted(f, 0, 1);
    assert_pieces(f, "a", 3);
}

/* Readers go, and their rows are still under way. */
static void a_cluster_closes_when_the_last_row_is_rewritten(void **state)
{
    enum { ROWS = 300 };
    struct cluster_fixture *f = *state;
    struct buffer before = {0}, after = {0};
    char keys[ROWS][8];
    struct key_range all[ROWS];
    for (int i = 0; i < ROWS; i++) {
        snprintf(keys[i], sizeof keys[i], "%03d", i);
        all[i] = (struct key_range){.from = bytes_of(keys[i]), .is_point = true};
        overwrite(f, keys[i], '2');
    }
    assert_ok(scan_text(f, all, ROWS, false, 0, &before));
    reopen_test_cluster(f);
    assert_true(metrics_value(f->options.metrics, METRIC_rows_mended_total) > ROWS / 2);
    assert_ok(scan_text(f, all, ROWS, false, 0, &after));
    assert_true(bytes_equal(buffer_bytes(&before), buffer_bytes(&after)));
    buffer_free(&before);
    buffer_free(&after);
}

/* A row stays as it is without memory, and the next reader puts it together. */
static void without_memory_rows_are_left(void **state)
{
    struct cluster_fixture *f = *state;
    struct row row;
    overwrite(f, "a", '5');
    read_row(f, "a", &row);
    wait_until_idle(f);
    failmalloc_start(0);
    heal(f, &row);
    assert_true(failmalloc_stop());
    assert_counted(f, 0, 1);
    assert_pieces(f, "a", 5);
    read_row(f, "a", &row);
    heal(f, &row);
    assert_counted(f, 1, 1);
    assert_pieces(f, "a", 0);
    assert_scan(f, "", "", false, "a=5");
}

static void without_memory_there_is_no_row_rewriter(void **state)
{
    struct cluster_fixture *f = *state;
    struct row_rewriter *row_rewriter;
    failmalloc_start(0);
    status s = row_rewriter_create(f->cluster->home, &row_rewriter);
    assert_true(failmalloc_stop());
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    assert_null(row_rewriter);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, cluster_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_scan_puts_rows_together),
        TEST(a_point_read_puts_its_row_together),
        TEST(a_deleted_row_goes),
        TEST(a_large_row_with_small_pieces_is_left),
        TEST(a_row_that_was_left_alone_is_rewritten),
        TEST(a_write_in_between_stays),
        TEST(late_change_in_between_stays),
        TEST(a_dropped_row_stays_dropped),
        TEST(an_overflow_row_stays_overflow),
        TEST(a_row_that_is_locked_is_left),
        TEST(without_space_rows_are_left),
        TEST(without_memory_rows_are_left),
        TEST(without_memory_there_is_no_row_rewriter),
        TEST(a_cluster_closes_when_the_last_row_is_rewritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
