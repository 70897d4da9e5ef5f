/* Tables whose rows lie in several keyspaces: whatever is done to a table is done in all of them.
 * Here the rows from "g" up to "p" lie in another keyspace than those before and behind. */
#include "base/limits.h"
#include "base/testing/testing_clock.h"
#include "cluster/backup/backup_private.h"
#include "cluster/row_group.h"
#include "cluster/testing/parts_testing.h"
#include "cluster/weights.h"
#include "tablet/key_bounds.h"

static const char BACKUP[] = "projects/p/instances/i/clusters/c/backups/b";
static const char RESTORED[] = "projects/p/instances/i/tables/restored";

static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};

enum { FORMER = 0, OTHER = 1 }; /* of the table's keyspaces */

/* --- the table --- */

/* The tablet that begins with the key, and has no rows, gets that keyspace. */
static void give_keyspace(struct cluster_fixture *f, const char *key, struct keyspace *keyspace)
{
    struct cluster *cluster = f->cluster;
    struct tablet *tablet = table_route(f->table, bytes_of(key));
    struct tablet_record record = tablet_record_of(f->table, tablet);
    struct catalog_txn *txn = catalog_txn_create(cluster->catalog);
    assert_non_null(txn);
    assert_true(bytes_equal(tablet->start, bytes_of(key)));
    record.keyspace_id = keyspace_id(keyspace);
    assert_ok(catalog_put_tablet(catalog_txn_batch(txn), cluster->catalog, &record));
    catalog_delete_preallocated(catalog_txn_batch(txn), cluster->catalog, record.keyspace_id);
    assert_ok(cluster_write_catalog(cluster, txn));
    catalog_txn_destroy(txn);
    tablet_release(tablet);
}

static void take_apart(struct cluster_fixture *f)
{
    struct keyspace *other;
    split_at(f, "g");
    split_at(f, "p");
    pthread_mutex_lock(&f->cluster->admin);
    assert_ok(shard_take_preallocated(f->cluster->home, &other));
    pthread_mutex_unlock(&f->cluster->admin);
    give_keyspace(f, "g", other);
    reopen_test_cluster(f);
    assert_int_equal(f->table->space_count, 2);
}

static struct cluster_fixture *create(const struct gc_rule *gc)
{
    struct cluster_fixture *f = cluster_fixture_create(gc);
    take_apart(f);
    return f;
}

static int setup(void **state)
{
    *state = create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static size_t count_all(struct cluster_fixture *f, unsigned keyspace)
{
    return count_keys(f, keyspace, bytes_of(""), bytes_of(""));
}

/* --- rows --- */

static void rows_are_found_in_their_keyspace(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "zqpogfa");
    assert_scan(f, "", "", false, "a=a f=f g=g o=o p=p q=q z=z");
    assert_scan(f, "b", "p", true, "o=o g=g f=f");
    assert_int_equal(count_all(f, FORMER), 5);
    assert_int_equal(count_all(f, OTHER), 2);
    split_at(f, "k");
    set_cells(f, "kl");
    merge_at(f, "k");
    reopen_test_cluster(f);
    assert_scan(f, "f", "q", false, "f=f g=g k=k l=l o=o p=p");
    assert_int_equal(count_all(f, OTHER), 4);
}

static void a_group_lies_in_several_keyspaces(void **state)
{
    static const char *const keys[] = {"a", "g", "z"};
    struct cluster_fixture *f = *state;
    struct grouped_row rows[3];
    struct row_group group = {.table = f->table, .rows = rows, .count = 3, .arena = f->arena};
    for (size_t i = 0; i < 3; i++) {
        rows[i].row_key = bytes_of(keys[i]);
        assert_ok(row_change_pack(setting(f, FAMILY_F, "q", 1, "v"), rows_big_value(f->table),
                                  &rows[i].change));
    }
    assert_ok(row_group_write(&group));
    assert_scan(f, "", "", false, "a=v g=v z=v");
    assert_int_equal(count_all(f, OTHER), 1);
}

/* --- parts --- */

static status note_part(void *context, const struct table_part *part)
{
    struct buffer *told = context;
    buffer_append_format(told, "%llu[%.*s,%.*s) ",
                         (unsigned long long)keyspace_id(part->space.keyspace),
                         (int)part->from.size, (const char *)part->from.data, (int)part->to.size,
                         (const char *)part->to.data);
    return status_ok();
}

static void assert_parts(struct cluster_fixture *f, const char *from, const char *to,
                         const char *format)
{
    unsigned long long former = keyspace_id(f->table->spaces[FORMER].keyspace);
    unsigned long long other = keyspace_id(f->table->spaces[OTHER].keyspace);
    struct buffer told = {0}, expected = {0};
    assert_ok(table_visit_parts(f->table, bytes_of(from), bytes_of(to), note_part, &told));
    for (const char *at = format; *at != '\0'; at++) {
        if (*at == 'F' || *at == 'O')
            buffer_append_format(&expected, "%llu", *at == 'F' ? former : other);
        else
            buffer_append_byte(&expected, (uint8_t)*at);
    }
    buffer_append_byte(&told, 0);
    buffer_append_byte(&expected, 0);
    assert_string_equal((const char *)told.data, (const char *)expected.data);
    buffer_free(&told);
    buffer_free(&expected);
}

static void parts_cover_what_was_asked_for(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "c");
    split_at(f, "k");
    assert_parts(f, "", "", "F[,g) O[g,p) F[p,) ");
    assert_parts(f, "b", "d", "F[b,d) ");
    assert_parts(f, "g", "p", "O[g,p) ");
    assert_parts(f, "f", "p", "F[f,g) O[g,p) ");
    assert_parts(f, "h", "q", "O[h,p) F[p,q) ");
    assert_parts(f, "x", "", "F[x,) ");
}

static status refuse(void *context, const struct table_part *part)
{
    ++*(unsigned *)context;
    (void)part;
    return status_make(STATUS_CANCELLED, "no");
}

static void a_failure_ends_a_walk_over_parts(void **state)
{
    struct cluster_fixture *f = *state;
    unsigned calls = 0;
    assert_status(table_visit_parts(f->table, bytes_of(""), bytes_of(""), refuse, &calls),
                  STATUS_CANCELLED);
    assert_int_equal(calls, 1);
}

/* --- what is done to all of a table --- */

static void count_drop(void *context, const struct commit *commit,
                       const struct store_batch *records, struct store_batch *batch)
{
    (void)records, (void)batch;
    atomic_fetch_add((atomic_uint *)context, commit->kind == COMMIT_DROP_ROWS);
}

static void rows_are_dropped_in_all_keyspaces(void **state)
{
    struct cluster_fixture *f = *state;
    atomic_uint drops = 0;
    const struct commit_observer observer = {.context = &drops, .see = count_drop};
    f->options.observers = &observer;
    f->options.observer_count = 1;
    reopen_test_cluster(f);
    set_cells(f, "agz");
    assert_ok(try_write(f, "h", setting(f, FAMILY_F, "q", 1, large_value())));
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_int_equal(atomic_load(&drops), 1);
    assert_scan(f, "", "", false, "");
    set_cells(f, "ah");
    maintenance_run_once(f->cluster->maintenance);
    assert_ok(table_drop_rows(f->table, bytes_of("g")));
    assert_scan(f, "", "", false, "a=a h=h");
    assert_ok(table_drop_rows(f->table, bytes_of("h")));
    assert_scan(f, "", "", false, "a=a");
    for (int i = 0; i < 100 && count_all(f, OTHER) > 0; i++)
        maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(count_all(f, OTHER), 0);
    f->options.observer_count = 0;
    reopen_test_cluster(f);
}

/* --- the limit of drops, which is the table's --- */

static void drop_times(struct cluster_fixture *f, const char *prefix, size_t times)
{
    for (size_t i = 0; i < times; i++)
        assert_ok(table_drop_rows(f->table, bytes_of(prefix)));
}

static size_t drops_of(const struct cluster_fixture *f, unsigned keyspace)
{
    return row_drops_count(f->table->spaces[keyspace].drops);
}

/* As a backup does. */
static void hold_drops(struct cluster_fixture *f)
{
    pthread_mutex_lock(&f->cluster->admin);
    for (size_t i = 0; i < f->table->space_count; i++)
        row_drops_hold(f->table->spaces[i].drops);
    pthread_mutex_unlock(&f->cluster->admin);
}

static void let_go_of_drops(struct cluster_fixture *f)
{
    for (size_t i = 0; i < f->table->space_count; i++)
        row_drops_let_go(f->table->spaces[i].drops);
}

/* Once each keyspace could have as many as a table may. */
static void drops_of_all_keyspaces_count_together(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    hold_drops(f);
    drop_times(f, "a", LIMIT_ROW_DROPS / 2);
    drop_times(f, "h", LIMIT_ROW_DROPS / 2 - 1);
    assert_status(table_drop_rows(f->table, bytes_of("")), STATUS_UNAVAILABLE); /* is two */
    assert_int_equal(drops_of(f, FORMER), LIMIT_ROW_DROPS / 2);
    assert_int_equal(drops_of(f, OTHER), LIMIT_ROW_DROPS / 2 - 1);
    drop_times(f, "h", 1);
    assert_status(table_drop_rows(f->table, bytes_of("h")), STATUS_UNAVAILABLE);
    assert_status(table_drop_rows(f->table, bytes_of("a")), STATUS_UNAVAILABLE);
    let_go_of_drops(f);
    drop_times(f, "", 1); /* waits until the job has made room */
    assert_true(table_drop_count(f->table) <= LIMIT_ROW_DROPS);
}

/* A piece of the job that forgets them, by hand: nobody else runs it. */
static void run_piece(struct cluster_fixture *f)
{
    struct pool_job *job = &f->table->drop_pass.job;
    job->run(job);
}

/* None waits for a large drop of another. */
static void keyspaces_take_turns(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    drop_times(f, "h", 2);
    drop_times(f, "a", 2);
    run_piece(f);
    run_piece(f);
    assert_int_equal(drops_of(f, OTHER), 1);
    assert_int_equal(drops_of(f, FORMER), 1);
}

static void of_a_full_table_the_oldest_drop_goes_first(void **state)
{
    enum { MORE = 4 };
    struct cluster_fixture *f = *state;
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
    drop_times(f, "h", LIMIT_ROW_DROPS / 2);
    drop_times(f, "a", LIMIT_ROW_DROPS / 2);
    for (int i = 0; i < MORE; i++) {
        run_piece(f);
        drop_times(f, "a", 1);
    }
    assert_int_equal(drops_of(f, OTHER), LIMIT_ROW_DROPS / 2 - MORE);
    assert_int_equal(drops_of(f, FORMER), LIMIT_ROW_DROPS / 2 + MORE);
}

static void sizes_are_of_all_keyspaces(void **state)
{
    enum { LARGE = 6 << 20 };
    struct cluster_fixture *f = *state;
    struct row_weight *rows;
    size_t count;
    char *value = malloc(2 * LARGE + 1);
    assert_non_null(value);
    f->options.write_buffer_bytes = 256 << 20; /* nothing is flushed by itself */
    reopen_test_cluster(f);
    memset(value, 'x', 2 * LARGE);
    value[2 * LARGE] = '\0';
    assert_ok(try_write(f, "h", setting(f, FAMILY_F, "q", 1, value)));
    value[LARGE] = '\0';
    assert_ok(try_write(f, "a", setting(f, FAMILY_F, "q", 1, value)));
    assert_ok(table_weigh(f->table, f->arena, &rows, &count));
    assert_int_equal(count, 2);
    assert_true(bytes_equal(rows[0].row_key, bytes_of("h"))); /* the heaviest */
    assert_true(bytes_equal(rows[1].row_key, bytes_of("a")));
    free(value);
}

static size_t keyspaces_in_store(const struct cluster_fixture *f)
{
    size_t count = 0;
    while (store_keyspace_at(f->cluster->home->store, count) != NULL)
        count++;
    return count;
}

static void a_deleted_table_leaves_no_keyspace(void **state)
{
    struct cluster_fixture *f = *state;
    size_t before = keyspaces_in_store(f);
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(keyspaces_in_store(f), before - 2);
    f->table = create_test_table(f->cluster, NULL);
}

/* --- garbage --- */

static int setup_with_rule(void **state)
{
    struct cluster_fixture *f = create(&one_version);
    f->options.gc_interval_us = 1;
    reopen_test_cluster(f);
    *state = f;
    return 0;
}

static size_t overflow_cells(struct cluster_fixture *f, unsigned keyspace)
{
    return count_keys(f, keyspace, bytes_of("S"), bytes_of("T"));
}

/* Folds cannot count versions over overflow cells: the pass comes to such rows. */
static void garbage_is_collected_in_all_keyspaces(void **state)
{
    static const char *const keys[] = {"a", "h", "z"};
    enum { ROUNDS = 10 }; /* a pass takes one for each of the three parts */
    struct cluster_fixture *f = *state;
    for (unsigned i = 0; i < 3; i++)
        for (int64_t version = 1; version <= 2; version++)
            assert_ok(
                try_write(f, keys[i], setting(f, FAMILY_F, "q", version * 1000, large_value())));
    for (unsigned i = 0; i < ROUNDS; i++)
        maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(overflow_cells(f, FORMER), 2);
    assert_int_equal(overflow_cells(f, OTHER), 1);
}

/* --- backups --- */

static void back_up_and_restore(struct cluster_fixture *f, struct backups *backups,
                                struct table **out)
{
    const struct restore_spec spec = {.table = RESTORED, .extra = bytes_of("")};
    struct backup_work work = {0};
    struct staged_backup *staged;
    assert_ok(backup_reserve(backups, BACKUP, TEST_TABLE, bytes_of("")));
    assert_ok(backup_create(backups, BACKUP, f->table, &work));
    assert_ok(backup_stage(backups, BACKUP, &work, &staged));
    assert_ok(staged_backup_restore(staged, &spec, out));
    staged_backup_destroy(staged);
}

static void a_backup_has_all_keyspaces(void **state)
{
    struct cluster_fixture *f = *state;
    char directory[] = "/tmp/trestle-backups-XXXXXX";
    struct backups *backups;
    assert_non_null(mkdtemp(directory));
    const struct backups_options options = {
        .cluster = f->cluster, .directory = directory, .log = &f->log};
    assert_ok(backups_open(&options, &backups));
    set_cells(f, "afgopz");
    assert_ok(try_write(f, "b", setting(f, FAMILY_G, "q", 1, large_value())));
    assert_ok(try_write(f, "h", setting(f, FAMILY_G, "q", 1, large_value())));
    assert_ok(try_write(f, "y", setting(f, FAMILY_G, "q", 1, large_value())));
    struct cluster_fixture view = *f;
    back_up_and_restore(f, backups, &view.table);
    assert_int_equal(view.table->space_count, 1);
    assert_int_equal(table_tablet_count(view.table), 3);
    assert_int_equal(overflow_cells(&view, FORMER), 3);
    assert_scan(&view, "c", "h", false, "f=f g=g");
    assert_scan(&view, "i", "x", false, "o=o p=p");
    table_release(view.table);
    backups_close(backups);
    remove_test_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_found_in_their_keyspace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_lies_in_several_keyspaces, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_cover_what_was_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_ends_a_walk_over_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_dropped_in_all_keyspaces, setup, teardown),
        cmocka_unit_test_setup_teardown(drops_of_all_keyspaces_count_together, setup, teardown),
        cmocka_unit_test_setup_teardown(keyspaces_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_full_table_the_oldest_drop_goes_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(sizes_are_of_all_keyspaces, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_table_leaves_no_keyspace, setup, teardown),
        cmocka_unit_test_setup_teardown(garbage_is_collected_in_all_keyspaces, setup_with_rule,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_backup_has_all_keyspaces, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
