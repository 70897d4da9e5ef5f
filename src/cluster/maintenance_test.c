/* Tests of maintenance: what takes long keeps nothing else from its turn, and ends soon at a stop;
 * dropped rows give back their space in pieces. Time passes when a test says so; where a long job
 * stands, it does so at a barrier. */
#include "cluster/maintenance.h"

#include "base/testing/failmalloc.h"
#include "cluster/gc_pass.h"
#include "cluster/midpoint.h"
#include "cluster/testing/heat_testing.h"
#include "os/testing/job_testing.h"
#include "store/testing/snapshot_testing.h"
#include "tablet/key_bounds.h"

#include <stdatomic.h>

enum { SECOND_US = 1000000, SPLIT_BYTES = 64 << 10, VALUE_BYTES = 1000, PIECE_BYTES = 64 << 10 };

static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};

static int setup(void **state)
{
    struct cluster_fixture *f = cluster_fixture_create(&one_version);
    hands.now_us = BEGIN_US;
    assert_ok(metrics_create(&f->options.metrics));
    f->options.clock = &hands.clock;
    f->options.heat_window_us = MINUTE_US;
    f->options.maintenance_by_hand = true;
    f->options.balance = false;
    f->options.overflow_bytes = 1 << 20;
    f->options.split_bytes = SPLIT_BYTES;
    f->options.gc_interval_us = 1;
    f->options.piece_bytes = PIECE_BYTES;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static int64_t counted(struct cluster_fixture *f, enum metric metric)
{
    cluster_measure(f->cluster);
    return metrics_value(f->options.metrics, metric);
}

/* Letters that do not compress well. */
static void write_rows(struct cluster_fixture *f, char prefix, unsigned count)
{
    char value[VALUE_BYTES + 1] = {0};
    uint64_t random = (uint64_t)prefix;
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        for (unsigned j = 0; j < VALUE_BYTES; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            value[j] = (char)('A' + (random >> 33) % 58);
        }
        snprintf(key, sizeof key, "%c%05u", prefix, i);
        set_cell(f, key, value);
        arena_reset(f->arena);
    }
}

static struct keyspace *keyspace_of_rows(struct cluster_fixture *f)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    struct keyspace *keyspace = tablet->keyspace;
    tablet_release(tablet);
    return keyspace;
}

static uint64_t size_of_rows(struct cluster_fixture *f)
{
    return rows_size(keyspace_of_rows(f), bytes_of(""), bytes_of(""));
}

static void run_round(struct cluster_fixture *f)
{
    hands.now_us += SECOND_US;
    maintenance_run_round(f->cluster->maintenance);
}

/* --- a job that stands --- */

static void release_table(struct pool_job *job)
{
    table_release(LIST_ENTRY(job, struct door, job)->context);
}

/* Returns when it stands. */
static void let_stand(struct cluster_fixture *f, enum maintenance_kind kind, struct door *door)
{
    door_init(door, kind, NULL, release_table);
    door->context = f->table;
    maintenance_submit(f->cluster->maintenance, f->table, &door->job);
    door_await(door);
}

/* --- what goes on meanwhile --- */

static void assert_splits_go_on(struct cluster_fixture *f)
{
    int64_t before = counted(f, METRIC_tablet_splits_total);
    write_rows(f, 's', 200);
    assert_ok(keyspace_flush(keyspace_of_rows(f)));
    f->cluster->options.balance = true;
    run_round(f);
    f->cluster->options.balance = false;
    assert_true(counted(f, METRIC_tablet_splits_total) > before);
}

static void assert_windows_end(struct cluster_fixture *f)
{
    int64_t before = heat_window_begin_us(f->cluster);
    hands.now_us += MINUTE_US;
    run_round(f);
    assert_true(heat_window_begin_us(f->cluster) > before);
}

static void assert_garbage_is_collected(struct cluster_fixture *f)
{
    int64_t before = counted(f, METRIC_gc_passes_total);
    set_cell(f, "g", "anything");
    while (counted(f, METRIC_gc_passes_total) == before)
        run_round(f);
}

static void assert_deleted_tables_go(struct cluster_fixture *f)
{
    static const char OTHER[] = "projects/p/instances/i/tables/other";
    struct table_spec spec = {.name = OTHER, .schema = table_schema(f->table)};
    struct table *table;
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    struct store *store = f->cluster->home->store;
    uint64_t id = keyspace_id(table->spaces[0].keyspace);
    table_release(table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(OTHER), NULL));
    while (store_keyspace_find(store, id) != NULL)
        run_round(f);
}

static void a_long_job_delays_nothing_of_another_kind(void **state)
{
    struct cluster_fixture *f = *state;
    struct door door;
    let_stand(f, MAINTENANCE_DROPPED_ROWS, &door);
    assert_splits_go_on(f);
    assert_garbage_is_collected(f);
    assert_windows_end(f);
    assert_deleted_tables_go(f);
    assert_int_equal(counted(f, METRIC_maintenance_jobs_running_dropped_rows), 1);
    let_go(&door);
    maintenance_run_once(f->cluster->maintenance);
    close_door(&door);
}

static void rounds_wait_for_no_job(void **state)
{
    struct cluster_fixture *f = *state;
    struct door rows, idle;
    let_stand(f, MAINTENANCE_DROPPED_ROWS, &rows);
    let_stand(f, MAINTENANCE_IDLE_COMPACTION, &idle); /* no thread is left */
    int64_t passes = counted(f, METRIC_gc_passes_total);
    set_cell(f, "g", "anything");
    run_round(f);
    assert_splits_go_on(f);
    assert_windows_end(f);
    assert_true(counted(f, METRIC_maintenance_jobs_queued_garbage_collection) > 0);
    let_go(&idle);
    while (counted(f, METRIC_gc_passes_total) == passes)
        run_round(f);
    let_go(&rows);
    maintenance_run_once(f->cluster->maintenance);
    close_door(&rows);
    close_door(&idle);
}

/* --- dropped rows --- */

static int64_t pieces_of_drops(struct cluster_fixture *f)
{
    return counted(f, METRIC_maintenance_pieces_total_dropped_rows);
}

static size_t drop_count(struct cluster_fixture *f)
{
    return row_drops_count(f->table->spaces[0].drops);
}

static void space_comes_back_in_pieces(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 'a', 200);
    write_rows(f, 'b', 400);
    assert_ok(keyspace_flush(keyspace_of_rows(f)));
    uint64_t before = size_of_rows(f);
    assert_ok(table_drop_rows(f->table, bytes_of("b")));
    maintenance_run_once(f->cluster->maintenance);
    assert_true(pieces_of_drops(f) > 1);
    assert_int_equal(drop_count(f), 0);
    assert_true(size_of_rows(f) < before / 2);
    struct buffer text = {0};
    struct key_range all = {.is_point = false};
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    assert_int_equal(text.size, 200 * (strlen("a00000=") + VALUE_BYTES + 1));
    buffer_free(&text);
}

/* A piece is a run at least: the job goes on as long as there is one. */
static void one_job_forgets_all_drops_of_a_table(void **state)
{
    enum { DROPS = 4 };
    struct cluster_fixture *f = *state;
    struct door door;
    let_stand(f, MAINTENANCE_DROPPED_ROWS, &door);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_ok(table_drop_rows(f->table, bytes_of("a1")));
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_ok(table_drop_rows(f->table, bytes_of("b")));
    run_round(f);
    run_round(f);
    assert_int_equal(counted(f, METRIC_maintenance_jobs_queued_dropped_rows), 1);
    assert_int_equal(drop_count(f), DROPS);
    let_go(&door);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 0);
    assert_true(pieces_of_drops(f) >= 1 + DROPS);
    close_door(&door);
}

static void whoever_drops_rows_asks_for_the_job(void **state)
{
    struct cluster_fixture *f = *state;
    struct door door;
    f->options.maintenance_by_hand = false;
    reopen_test_cluster(f);
    let_stand(f, MAINTENANCE_DROPPED_ROWS, &door);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_int_equal(counted(f, METRIC_maintenance_jobs_queued_dropped_rows), 1);
    let_go(&door);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 0);
    close_door(&door);
}

/* A view keeps a table's value from a compaction, beneath what was written after. */
static void what_is_kept_is_looked_at_again_after_ten_seconds(void **state)
{
    if (!snapshots_keep_values())
        skip();
    struct cluster_fixture *f = *state;
    write_rows(f, 'a', 10);
    assert_ok(keyspace_compact(keyspace_of_rows(f), bytes_of(""), bytes_of("")));
    struct store_snapshot *view = store_snapshot_create(f->cluster->home->store);
    assert_non_null(view);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_ok(try_write(f, "a00000", setting(f, FAMILY_G, "other", 1, "new")));
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 1);
    store_snapshot_release(view);
    int64_t before = pieces_of_drops(f);
    assert_true(before > 0);
    hands.now_us += 10 * SECOND_US - 1;
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(pieces_of_drops(f), before);
    hands.now_us++;
    maintenance_run_once(f->cluster->maintenance);
    assert_true(pieces_of_drops(f) > before);
    assert_int_equal(drop_count(f), 0);
}

static void a_deleted_table_gives_nothing_back_piece_by_piece(void **state)
{
    struct cluster_fixture *f = *state;
    struct door door;
    struct store *store = f->cluster->home->store;
    uint64_t id = keyspace_id(keyspace_of_rows(f));
    write_rows(f, 'a', 400);
    let_stand(f, MAINTENANCE_DROPPED_ROWS, &door);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    run_round(f);
    assert_int_equal(counted(f, METRIC_maintenance_jobs_queued_dropped_rows), 1);
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    int64_t before = pieces_of_drops(f);
    let_go(&door);
    while (store_keyspace_find(store, id) != NULL)
        run_round(f);
    assert_int_equal(pieces_of_drops(f), before + 1);
    close_door(&door);
    f->table = create_test_table(f->cluster, NULL);
}

static void drop_without_memory(void *context)
{
    struct cluster_fixture *f = context;
    status_ignore(table_drop_rows(f->table, bytes_of("a")));
}

/* What is dropped is given back, whether or not it was said that it is. */
static void a_drop_needs_no_memory_for_its_space(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 'a', 10);
    failmalloc_each(drop_without_memory, f);
    assert_true(drop_count(f) > 0);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 0);
    assert_true(pieces_of_drops(f) > 0);
    assert_scan(f, "", "", false, "");
}

/* --- pieces --- */

static void pieces_are_as_large_as_they_may(void **state)
{
    enum { ROWS = 400, LEAST = 4 };
    struct cluster_fixture *f = *state;
    struct buffer from = {0}, end = {0};
    unsigned pieces = 0;
    write_rows(f, 'p', ROWS);
    struct keyspace *keyspace = keyspace_of_rows(f);
    assert_ok(keyspace_flush(keyspace));
    do {
        buffer_clear(&end);
        assert_ok(rows_piece_end(keyspace, buffer_bytes(&from), PIECE_BYTES, &end));
        assert_true(end.size == 0 || bytes_compare(buffer_bytes(&from), buffer_bytes(&end)) < 0);
        assert_true(rows_size(keyspace, buffer_bytes(&from), buffer_bytes(&end)) <= PIECE_BYTES);
        buffer_clear(&from);
        buffer_append_bytes(&from, buffer_bytes(&end));
        pieces++;
    } while (end.size > 0);
    assert_true(pieces >= LEAST);
    assert_true(pieces <= ROWS);
    buffer_free(&from);
    buffer_free(&end);
}

static void delete_all_rows(struct cluster_fixture *f)
{
    struct key_bounds records, overflow;
    assert_true(record_bounds(bytes_of(""), bytes_of(""), &records));
    assert_true(overflow_bounds(bytes_of(""), bytes_of(""), &overflow));
    assert_ok(
        shard_delete_keys(f->cluster->home, f->table, keyspace_of_rows(f), &records, &overflow));
    key_bounds_free(&records);
    key_bounds_free(&overflow);
}

/* What was deleted has bytes, and no row where it could be parted. (What was dropped has rows here
 * as long as nothing has folded them.) */
static void garbage_is_collected_in_pieces_where_no_row_is_seen(void **state)
{
    struct cluster_fixture *f = *state;
    write_rows(f, 'b', 400);
    assert_ok(keyspace_flush(keyspace_of_rows(f)));
    delete_all_rows(f);
    gc_pass_hurry(f->table);
    while (counted(f, METRIC_gc_passes_total) == 0)
        pass(f, SECOND_US);
    assert_true(counted(f, METRIC_maintenance_pieces_total_garbage_collection) > 1);
}

/* --- the end --- */

struct long_job {
    struct pool_job job;
    struct cluster_fixture *f;
    pthread_barrier_t entered;
    atomic_uint pieces;
};

static bool go_on_until_stopped(struct pool_job *job)
{
    struct long_job *of = LIST_ENTRY(job, struct long_job, job);
    pthread_barrier_wait(&of->entered);
    while (!maintenance_is_stopping(of->f->cluster->maintenance))
        sched_yield();
    status s = keyspace_compact(keyspace_of_rows(of->f), bytes_of(""), bytes_of(""));
    atomic_fetch_add(&of->pieces, s.code == STATUS_CANCELLED || status_is_ok(s));
    status_free(s);
    return true;
}

static void release_long(struct pool_job *job)
{
    table_release(LIST_ENTRY(job, struct long_job, job)->f->table);
}

/* What waits does not begin any more: closing finds no table that somebody holds. The next start
 * goes on with it. */
static void a_stop_ends_what_is_under_way(void **state)
{
    struct cluster_fixture *f = *state;
    struct long_job of = {.job = {.kind = MAINTENANCE_DROPPED_ROWS,
                                  .run = go_on_until_stopped,
                                  .ended = release_long},
                          .f = f};
    pthread_barrier_init(&of.entered, NULL, 2);
    write_rows(f, 'a', 100);
    maintenance_submit(f->cluster->maintenance, f->table, &of.job);
    pthread_barrier_wait(&of.entered);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    run_round(f);
    assert_int_equal(counted(f, METRIC_maintenance_jobs_queued_dropped_rows), 1);
    reopen_test_cluster(f);
    assert_int_equal(atomic_load(&of.pieces), 1);
    assert_scan(f, "", "", false, "");
    assert_int_equal(drop_count(f), 1);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 0);
    pthread_barrier_destroy(&of.entered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, cluster_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_job_delays_nothing_of_another_kind),
        TEST(rounds_wait_for_no_job),
        TEST(space_comes_back_in_pieces),
        TEST(one_job_forgets_all_drops_of_a_table),
        TEST(whoever_drops_rows_asks_for_the_job),
        TEST(what_is_kept_is_looked_at_again_after_ten_seconds),
        TEST(a_deleted_table_gives_nothing_back_piece_by_piece),
        TEST(a_drop_needs_no_memory_for_its_space),
        TEST(pieces_are_as_large_as_they_may),
        TEST(garbage_is_collected_in_pieces_where_no_row_is_seen),
        TEST(a_stop_ends_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
