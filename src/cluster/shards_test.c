/* Two shards in one process: a table that lies in both. Its rows from "g" up to "p" are in the
 * second, those before and behind in the home. */
#include "base/condition.h"
#include "cluster/backup/backup_private.h"
#include "cluster/checkpoint.h"
#include "cluster/row_group.h"
#include "cluster/row_jobs.h"
#include "cluster/shard_directories.h"
#include "cluster/testing/parts_testing.h"

static const char BACKUP[] = "projects/p/instances/i/clusters/c/backups/b";
static const char RESTORED[] = "projects/p/instances/i/tables/restored";
static const char IN_TWO[] = "projects/p/instances/i/tables/two";
static const char IN_SECOND[] = "projects/p/instances/i/tables/second";

static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};

/* --- the table --- */

static status try_create(struct cluster_fixture *f, const char *name, const struct gc_rule *gc,
                         const char *const *split_keys, const unsigned *shards, size_t tablets,
                         struct table **out)
{
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f"), .gc = gc},
                                      {.id = FAMILY_G, .name = bytes_of("g")}};
    bytes keys[4];
    struct schema *schema;
    for (size_t i = 0; i + 1 < tablets; i++)
        keys[i] = bytes_of(split_keys[i]);
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    const struct table_spec spec = {.name = name,
                                    .schema = schema,
                                    .split_keys = keys,
                                    .split_count = tablets - 1,
                                    .shards = shards};
    status s = cluster_create_table(f->cluster, &spec, out);
    schema_destroy(schema);
    return s;
}

static struct table *create_in_two(struct cluster_fixture *f, const struct gc_rule *gc)
{
    static const char *const split_keys[] = {"g", "p"};
    static const unsigned shards[] = {0, 1, 0};
    struct table *table;
    assert_ok(try_create(f, IN_TWO, gc, split_keys, shards, 3, &table));
    return table;
}

static void reopen(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(IN_TWO), &f->table));
}

/* A cluster of two shards; `f->table` is the one that lies in both. */
static struct cluster_fixture *create(const struct gc_rule *gc)
{
    struct cluster_fixture *f = cluster_fixture_create_in(NULL, 2);
    table_release(f->table);
    f->table = create_in_two(f, gc);
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

static struct shard *second(struct cluster_fixture *f)
{
    return f->cluster->shards[1];
}

/* --- rows --- */

static void rows_lie_in_their_shard(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t before = commit_applied(second(f)->commits);
    assert_int_equal(f->table->space_count, 2);
    assert_ptr_equal(f->table->spaces[0].shard, f->cluster->home);
    assert_ptr_equal(f->table->spaces[1].shard, second(f));
    set_cells(f, "zqpfa");
    assert_int_equal(commit_applied(second(f)->commits), before);
    set_cells(f, "og");
    assert_true(commit_applied(second(f)->commits) > before);
    assert_scan(f, "", "", false, "a=a f=f g=g o=o p=p q=q z=z");
    assert_scan(f, "b", "p", true, "o=o g=g f=f");
    assert_int_equal(count_keys(f, 0, bytes_of("R"), bytes_of("S")), 5);
    assert_int_equal(count_keys(f, 1, bytes_of("R"), bytes_of("S")), 2);
    reopen(f);
    assert_scan(f, "", "", false, "a=a f=f g=g o=o p=p q=q z=z");
    set_cells(f, "bh");
    assert_scan(f, "b", "h", false, "b=b f=f g=g");
}

/* A row with overflow cells is read at a snapshot of its own store: here the second has come
 * further than the home's has. */
static void large_rows_are_read_in_their_shard(void **state)
{
    enum { WRITES = 300 };
    struct cluster_fixture *f = *state;
    struct buffer expected = {0};
    for (unsigned i = 0; i < WRITES; i++)
        set_cell(f, "h", "h");
    assert_ok(try_write(f, "i", setting(f, FAMILY_F, "q", 1, large_value())));
    buffer_append_format(&expected, "i=%s%c", large_value(), 0);
    assert_scan(f, "i", "o", false, (const char *)expected.data);
    buffer_free(&expected);
}

static void tablets_split_and_merge_in_their_shard(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "aghiz");
    split_at(f, "h");
    split_at(f, "i");
    split_at(f, "b");
    set_cells(f, "ghi");
    assert_int_equal(table_tablet_count(f->table), 6);
    reopen(f);
    assert_int_equal(table_tablet_count(f->table), 6);
    assert_scan(f, "", "", false, "a=a g=g h=h i=i z=z");
    merge_at(f, "i");
    merge_at(f, "h");
    merge_at(f, "b");
    set_cells(f, "j");
    reopen(f);
    assert_int_equal(table_tablet_count(f->table), 3);
    assert_scan(f, "", "", false, "a=a g=g h=h i=i j=j z=z");
}

enum { KEYS = 60 };

struct writing {
    struct cluster_fixture *fixture;
    atomic_bool is_over;
    unsigned rounds;
};

/* Keys of both shards, one after the other, again and again. */
static void *keep_writing(void *argument)
{
    struct writing *writing = argument;
    while (!atomic_load(&writing->is_over)) {
        for (unsigned i = 0; i < KEYS; i++) {
            char key[8], value[16];
            snprintf(key, sizeof key, "%c%u", 'a' + (char)(i % 26), i);
            snprintf(value, sizeof value, "%u", writing->rounds);
            struct row_change *change = row_change_create(writing->fixture->arena);
            row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_of(value));
            assert_ok(try_write(writing->fixture, key, change));
        }
        writing->rounds++;
    }
    return NULL;
}

/* Writes are routed again by the thread of their own shard. */
static void writes_go_on_while_tablets_split_and_merge(void **state)
{
    struct cluster_fixture *f = *state;
    struct writing writing = {.fixture = f};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_writing, &writing), 0);
    for (unsigned round = 0; round < 30; round++) {
        split_at(f, "j");
        split_at(f, "c");
        merge_at(f, "j");
        merge_at(f, "c");
    }
    atomic_store(&writing.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct buffer text = {0};
    const struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    size_t rows = 0;
    for (const char *at = (const char *)text.data; *at != '\0'; at++)
        rows += *at == '=';
    buffer_free(&text);
    assert_int_equal(rows, writing.rounds > 0 ? KEYS : 0);
    assert_true(writing.rounds > 0);
}

static status write_group(struct cluster_fixture *f, const char *first, const char *other)
{
    struct grouped_row rows[2] = {{.row_key = bytes_of(first)}, {.row_key = bytes_of(other)}};
    struct row_group group = {.table = f->table, .rows = rows, .count = 2, .arena = f->arena};
    for (size_t i = 0; i < 2; i++)
        assert_ok(row_change_pack(setting(f, FAMILY_F, "q", 1, "v"), rows_big_value(f->table),
                                  &rows[i].change));
    return row_group_write(&group);
}

static void a_group_lies_in_one_shard(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(write_group(f, "a", "z"));
    assert_ok(write_group(f, "g", "h"));
    assert_status(write_group(f, "b", "i"), STATUS_FAILED_PRECONDITION);
    assert_scan(f, "", "", false, "a=v g=v h=v z=v");
    assert_false(table_is_in_one_shard(f->table));
}

/* --- what is done to all of a table --- */

static void rows_are_dropped_in_both(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "agz");
    assert_ok(try_write(f, "h", setting(f, FAMILY_F, "q", 1, large_value())));
    assert_ok(table_drop_rows(f->table, bytes_of("h")));
    assert_scan(f, "", "", false, "a=a g=g z=z");
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_scan(f, "", "", false, "");
    set_cells(f, "ah");
    maintenance_run_once(f->cluster->maintenance);
    assert_scan(f, "", "", false, "a=a h=h");
    reopen(f);
    assert_scan(f, "", "", false, "a=a h=h");
}

static void a_deleted_table_takes_no_writes_in_either(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.undelete_window_us = INT64_C(3600) * 1000000;
    reopen(f);
    set_cells(f, "ag");
    assert_ok(cluster_delete_table(f->cluster, bytes_of(IN_TWO), NULL));
    assert_status(try_write(f, "a", setting(f, FAMILY_F, "q", 1, "x")), STATUS_NOT_FOUND);
    assert_status(try_write(f, "g", setting(f, FAMILY_F, "q", 1, "x")), STATUS_NOT_FOUND);
    struct table *table;
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(IN_TWO), &table));
    assert_ok(cluster_undelete_table(f->cluster, table, NULL));
    table_release(table);
    set_cells(f, "bh");
    assert_scan(f, "", "", false, "a=a b=b g=g h=h");
}

static size_t keyspaces_in(const struct shard *shard)
{
    size_t count = 0;
    while (store_keyspace_at(shard->store, count) != NULL)
        count++;
    return count;
}

static void a_table_that_ends_leaves_no_keyspace(void **state)
{
    struct cluster_fixture *f = *state;
    size_t in_home = keyspaces_in(f->cluster->home), in_second = keyspaces_in(second(f));
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(IN_TWO), NULL));
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(keyspaces_in(f->cluster->home), in_home - 1);
    assert_int_equal(keyspaces_in(second(f)), in_second - 1);
    f->table = create_in_two(f, NULL);
    set_cells(f, "g");
    reopen(f);
    assert_scan(f, "", "", false, "g=g");
}

static void a_table_may_lie_in_the_second_alone(void **state)
{
    static const unsigned shards[] = {1};
    struct cluster_fixture *f = *state;
    struct cluster_fixture view = *f;
    size_t preallocated = f->cluster->home->preallocated_count;
    assert_ok(try_create(f, IN_SECOND, NULL, NULL, shards, 1, &view.table));
    assert_true(table_is_in_one_shard(view.table));
    assert_int_equal(f->cluster->home->preallocated_count, preallocated);
    set_cells(&view, "ab");
    table_release(view.table);
    reopen(f);
    assert_ok(cluster_table(f->cluster, bytes_of(IN_SECOND), &view.table));
    view.cluster = f->cluster;
    view.loop = f->loop;
    assert_scan(&view, "", "", false, "a=a b=b");
    assert_ok(write_group(&view, "a", "b"));
    table_release(view.table);
}

static void garbage_is_collected_in_both(void **state)
{
    static const char *const keys[] = {"a", "h", "z"};
    struct cluster_fixture *f = *state;
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(IN_TWO), NULL));
    f->table = create_in_two(f, &one_version);
    for (unsigned i = 0; i < 3; i++)
        for (int64_t version = 1; version <= 2; version++)
            assert_ok(
                try_write(f, keys[i], setting(f, FAMILY_F, "q", version * 1000, large_value())));
    for (unsigned i = 0; i < 3; i++)
        assert_ok(row_jobs_maintain(f->table, bytes_of(keys[i])));
    assert_int_equal(count_keys(f, 0, bytes_of("S"), bytes_of("T")), 2);
    assert_int_equal(count_keys(f, 1, bytes_of("S"), bytes_of("T")), 1);
}

/* --- backups --- */

static void a_backup_is_of_both(void **state)
{
    struct cluster_fixture *f = *state;
    const struct restore_spec spec = {.table = RESTORED, .extra = bytes_of("")};
    char directory[] = "/tmp/trestle-backups-XXXXXX";
    struct backup_work work = {0};
    struct staged_backup *staged;
    struct backups *backups;
    assert_non_null(mkdtemp(directory));
    const struct backups_options options = {
        .cluster = f->cluster, .directory = directory, .log = &f->log};
    assert_ok(backups_open(&options, &backups));
    set_cells(f, "afgopz");
    assert_ok(try_write(f, "b", setting(f, FAMILY_G, "q", 1, large_value())));
    assert_ok(try_write(f, "h", setting(f, FAMILY_G, "q", 1, large_value())));
    assert_ok(backup_reserve(backups, BACKUP, IN_TWO, bytes_of("")));
    assert_ok(backup_create(backups, BACKUP, f->table, &work));
    set_cells(f, "c"); /* too late */
    assert_ok(backup_stage(backups, BACKUP, &work, &staged));
    struct cluster_fixture view = *f;
    assert_ok(staged_backup_restore(staged, &spec, &view.table));
    staged_backup_destroy(staged);
    assert_true(table_is_in_one_shard(view.table));
    assert_int_equal(table_tablet_count(view.table), 3);
    assert_int_equal(count_keys(&view, 0, bytes_of("S"), bytes_of("T")), 2);
    assert_scan(&view, "c", "h", false, "f=f g=g");
    assert_scan(&view, "i", "", false, "o=o p=p z=z");
    table_release(view.table);
    backups_close(backups);
    remove_test_directory(directory);
}

/* --- versions --- */

/* Also after restarts a row's times do not depend on its shard. */
static void the_clocks_of_all_shards_go_alike(void **state)
{
    const int64_t ahead_us = INT64_C(3600) * 1000000;
    struct cluster_fixture *f = *state;
    int64_t later_us = cluster_wall_us(f->cluster) + ahead_us;
    assert_ok(commit_raise_version(second(f)->commits, version_at(later_us)));
    assert_true(cluster_version_us(f->cluster) > later_us);
    reopen(f);
    for (size_t i = 0; i < f->cluster->shard_count; i++)
        assert_true(commit_version_us(f->cluster->shards[i]->commits) > later_us);
}

/* --- health --- */

static enum health_level level_of(struct cluster_fixture *f)
{
    struct condition_view view;
    condition_look(cluster_condition(f->cluster), &view);
    return view.level;
}

static void a_shard_that_takes_no_writes_leaves_the_other_alone(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "ag");
    assert_int_equal(level_of(f), HEALTH_OK);
    store_seal(second(f)->store, "a test");
    assert_status(try_write(f, "g", setting(f, FAMILY_F, "q", 1, "x")), STATUS_FAILED_PRECONDITION);
    set_cells(f, "b");
    assert_scan(f, "", "", false, "a=a b=b g=g");
    assert_int_equal(level_of(f), HEALTH_NO_WRITES);
    assert_int_equal(level_of(f), HEALTH_NO_WRITES); /* the home does not take it back */

    /* What is recorded in the home is so, also in a shard that takes no commits. */
    split_at(f, "h");
    assert_int_equal(table_tablet_count(f->table), 4);
    reopen(f);
    assert_int_equal(table_tablet_count(f->table), 4);
    set_cells(f, "hi");
    assert_scan(f, "", "", false, "a=a b=b g=g h=h i=i");
}

/* A server that starts with a disk that is short of space reads and deletes. */
static void shards_start_on_a_disk_that_is_short(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "ag");
    f->options.disk_reserve_bytes = UINT64_C(1) << 60;
    reopen(f);
    assert_scan(f, "", "", false, "a=a g=g");
    assert_status(try_write(f, "b", setting(f, FAMILY_F, "q", 1, "x")), STATUS_RESOURCE_EXHAUSTED);
}

/* --- what needs one store --- */

static void checkpoints_and_salvage_need_one_store(void **state)
{
    struct cluster_fixture *f = *state;
    struct checkpoint_facts facts;
    struct cluster *cluster;
    char directory[128];
    snprintf(directory, sizeof directory, "%s/checkpoint", f->directory);
    assert_status(cluster_checkpoint(f->cluster, directory, &facts), STATUS_FAILED_PRECONDITION);
    struct cluster_options options = f->options;
    options.salvage = true;
    assert_status(cluster_open(&options, &cluster), STATUS_FAILED_PRECONDITION);
}

/* --- which shards a directory has --- */

static void assert_refused(struct cluster_fixture *f, unsigned shards, enum status_code code,
                           const char *words)
{
    struct cluster *cluster;
    struct cluster_options options = f->options;
    options.shards = shards;
    status s = cluster_open(&options, &cluster);
    assert_int_equal(s.code, code);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

static void a_directory_is_opened_with_the_shards_that_it_has(void **state)
{
    struct cluster_fixture *f = *state;
    set_cells(f, "ag");
    table_release(f->table);
    close_test_cluster(f);
    assert_refused(f, 1, STATUS_FAILED_PRECONDITION, "has 2 shards, not 1");
    assert_refused(f, 3, STATUS_FAILED_PRECONDITION, "has 2 shards, not 3");
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(IN_TWO), &f->table));
    assert_scan(f, "", "", false, "a=a g=g");
}

/* A table's rows must not be taken for lost because its shard is not there. */
static void a_table_without_its_shard_is_not_opened(void **state)
{
    struct cluster_fixture *f = *state;
    char place[96], apart[96];
    snprintf(place, sizeof place, "%s/shard-1", f->directory);
    snprintf(apart, sizeof apart, "%s/apart", f->directory);
    set_cells(f, "ag");
    table_release(f->table);
    close_test_cluster(f);
    assert_int_equal(rename(place, apart), 0);
    assert_refused(f, 1, STATUS_DATA_LOSS, "has no shard");
    assert_refused(f, 2, STATUS_FAILED_PRECONDITION, "has 1 shards, not 2");
    assert_int_equal(rename(apart, place), 0);
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(IN_TWO), &f->table));
    assert_scan(f, "", "", false, "a=a g=g");
}

/* A start that makes the stores may be killed before each of them. */
static void a_first_start_that_was_cut_short_is_taken_up(void **state)
{
    char directory[] = "/tmp/trestle-cluster-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(shard_directories_count(directory), 1);
    assert_ok(shard_directories_prepare(directory, 3));
    assert_int_equal(shard_directories_count(directory), 3);
    snprintf(path, sizeof path, "%s/shard-2", directory);
    assert_int_equal(rmdir(path), 0);
    assert_ok(shard_directories_prepare(directory, 3));
    assert_int_equal(shard_directories_count(directory), 3);
    assert_status(shard_directories_prepare(directory, 2), STATUS_FAILED_PRECONDITION);
    remove_test_directory(directory);
}

/* --- where new tables lie --- */

static void assert_lies(struct cluster_fixture *f, const char *name, const char *const *split_keys,
                        size_t tablets, const char *shards)
{
    struct table *table;
    assert_ok(try_create(f, name, NULL, split_keys, NULL, tablets, &table));
    assert_int_equal(table_tablet_count(table), strlen(shards));
    for (size_t i = 0; i < tablets; i++)
        assert_int_equal(table->tablets[i]->shard->number, shards[i] - '0');
    table_release(table);
}

static void new_tables_are_spread_in_turn(void **state)
{
    static const char *const split_keys[] = {"g", "p"};
    struct cluster_fixture *f = *state;
    assert_lies(f, "projects/p/instances/i/tables/home", split_keys, 3, "000");
    f->options.spreads_tablets = true;
    reopen(f);
    assert_lies(f, "projects/p/instances/i/tables/first", split_keys, 3, "010");
    assert_lies(f, "projects/p/instances/i/tables/next", split_keys, 3, "101");
    assert_lies(f, "projects/p/instances/i/tables/third", NULL, 1, "0");
    assert_lies(f, "projects/p/instances/i/tables/fourth", NULL, 1, "1");
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(IN_TWO), NULL));
    f->table = create_in_two(f, NULL); /* which says where */
    assert_ptr_equal(f->table->tablets[1]->shard, second(f));
}

static void the_caches_have_equal_parts(void **state)
{
    struct cluster_fixture *f = *state;
    cluster_limit_cache(f->cluster, 6 << 20);
    for (size_t i = 0; i < f->cluster->shard_count; i++) {
        struct store_statistics statistics;
        store_statistics(f->cluster->shards[i]->store, &statistics);
        assert_int_equal(statistics.cache_capacity_bytes, 3 << 20);
    }
    uint64_t before = cluster_growth(f->cluster);
    cluster_limit_cache(f->cluster, 16 << 20);
    assert_in_range(cluster_growth(f->cluster), before + (9 << 20), before + (11 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_caches_have_equal_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_lie_in_their_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(large_rows_are_read_in_their_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(tablets_split_and_merge_in_their_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_go_on_while_tablets_split_and_merge, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_group_lies_in_one_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_dropped_in_both, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_table_takes_no_writes_in_either, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_that_ends_leaves_no_keyspace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_may_lie_in_the_second_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(garbage_is_collected_in_both, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_is_of_both, setup, teardown),
        cmocka_unit_test_setup_teardown(the_clocks_of_all_shards_go_alike, setup, teardown),
        cmocka_unit_test_setup_teardown(a_shard_that_takes_no_writes_leaves_the_other_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(shards_start_on_a_disk_that_is_short, setup, teardown),
        cmocka_unit_test_setup_teardown(checkpoints_and_salvage_need_one_store, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_is_opened_with_the_shards_that_it_has, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_table_without_its_shard_is_not_opened, setup, teardown),
        cmocka_unit_test(a_first_start_that_was_cut_short_is_taken_up),
        cmocka_unit_test_setup_teardown(new_tables_are_spread_in_turn, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
