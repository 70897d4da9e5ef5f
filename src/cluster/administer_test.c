/* Tests of tables and tablets as administration sees them: created, changed, split, merged,
 * deleted, and found again after a restart. */
#include "cluster/cluster_private.h"
#include "cluster/index.h"
#include "cluster/reshape.h"
#include "stream/segment_records.h"

#include "base/testing/testing.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char instance[] = "projects/p/instances/i";
static const char table_t[] = "projects/p/instances/i/tables/t";

struct fixture {
    char directory[64];
    struct log log;
    struct pool *pool;
    struct cluster *cluster;
    struct arena *arena;
};

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

static void remove_directory(const struct fixture *fixture)
{
    assert_int_equal(nftw(fixture->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void open_cluster(struct fixture *fixture)
{
    struct cluster_options options = {.data_directory = fixture->directory,
                                      .log = &fixture->log,
                                      .clock = clock_system(),
                                      .pool = fixture->pool,
                                      .durability = STORE_SYNCED,
                                      .cache_bytes = 8 << 20,
                                      .write_buffer_bytes = 8 << 20,
                                      .open_files = 64,
                                      .background_threads = 1,
                                      .overflow_bytes = 64 << 10,
                                      .split_bytes = 1 << 30,
                                      .split_rows_per_second = 1000000,
                                      .merge_after_us = INT64_C(3600) * 1000000,
                                      .gc_on_read = true,
                                      .gc_interval_us = INT64_C(3600) * 1000000,
                                      .heat_window_us = INT64_C(3600) * 1000000};
    assert_ok(cluster_open(&options, &fixture->cluster));
}

static void reopen(struct fixture *fixture)
{
    cluster_close(fixture->cluster);
    open_cluster(fixture);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/trestle-administer-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    fixture->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    fixture->arena = arena_create(64 << 20);
    assert_ok(pool_create(1, 16, "test", &fixture->pool));
    open_cluster(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    cluster_close(fixture->cluster);
    pool_destroy(fixture->pool);
    arena_destroy(fixture->arena);
    remove_directory(fixture);
    free(fixture);
    return 0;
}

/* A table with one family `f`, split at the keys given (NULL at the end), held. */
static struct table *create_table(struct fixture *fixture, const char *name,
                                  const char *const *splits)
{
    bytes keys[8];
    struct family family = {.id = 1, .name = bytes_of("f")};
    struct schema *schema;
    struct table *table;
    struct table_spec spec = {.name = name, .split_keys = keys};
    for (; splits != NULL && splits[spec.split_count] != NULL; spec.split_count++)
        keys[spec.split_count] = bytes_of(splits[spec.split_count]);
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    spec.schema = schema;
    assert_ok(cluster_create_table(fixture->cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

/* The tablets' starts, separated by bars: "|a|m" for three tablets. */
static void check_starts(struct table *table, const char *expected)
{
    struct buffer text = {0};
    struct tablet **tablets;
    size_t count;
    assert_ok(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        buffer_append_bytes(&text, bytes_of(i == 0 ? "" : "|"));
        buffer_append_bytes(&text, tablets[i]->start);
        assert_true(i + 1 == count ? tablets[i]->end.size == 0
                                   : bytes_equal(tablets[i]->end, tablets[i + 1]->start));
        tablet_release(tablets[i]);
    }
    free(tablets);
    assert_true(bytes_equal(buffer_bytes(&text), bytes_of(expected)));
    buffer_free(&text);
}

static struct table *find(struct fixture *fixture, const char *name)
{
    struct table *table;
    assert_ok(cluster_table(fixture->cluster, bytes_of(name), &table));
    return table;
}

static size_t count_keyspaces(struct fixture *fixture)
{
    size_t count = 0;
    while (store_keyspace_at(fixture->cluster->home->store, count) != NULL)
        count++;
    return count;
}

static void test_a_table_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    const char *const splits[] = {"d", "m", NULL};
    table_release(create_table(fixture, table_t, splits));
    reopen(fixture);
    struct table *table = find(fixture, table_t);
    check_starts(table, "|d|m");
    assert_string_equal(table_name(table), table_t);
    assert_int_equal(table_schema(table)->family_count, 1);
    assert_non_null(schema_family_named(table_schema(table), bytes_of("f")));
    table_release(table);
}

static void test_names_are_taken_once(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = create_table(fixture, table_t, NULL);
    struct table *second;
    struct table_spec spec = {.name = table_t, .schema = table_schema(table)};
    assert_status(cluster_create_table(fixture->cluster, &spec, &second), STATUS_ALREADY_EXISTS);
    table_release(table);
}

static void test_an_unknown_table_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct table *table;
    status s = cluster_table(fixture->cluster, bytes_of(table_t), &table);
    assert_int_equal(s.code, STATUS_NOT_FOUND);
    assert_string_equal(status_message(s), "Not found: projects/p/instances/i/tables/t");
    status_free(s);
}

static void test_routing(void **state)
{
    struct fixture *fixture = *state;
    const char *const splits[] = {"d", "m", NULL};
    struct table *table = create_table(fixture, table_t, splits);
    const struct {
        const char *key;
        const char *start;
    } cases[] = {{"", ""}, {"a", ""}, {"d", "d"}, {"lzz", "d"}, {"m", "m"}, {"z", "m"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tablet *tablet = table_route(table, bytes_of(cases[i].key));
        assert_true(bytes_equal(tablet->start, bytes_of(cases[i].start)));
        assert_true(tablet_contains(tablet, bytes_of(cases[i].key)));
        tablet_release(tablet);
    }
    const struct {
        const char *end;
        const char *start;
    } backwards[] = {{"", "m"}, {"m", "d"}, {"mm", "m"}, {"d", ""}, {"a", ""}};
    for (size_t i = 0; i < sizeof backwards / sizeof *backwards; i++) {
        struct tablet *tablet = table_route_before(table, bytes_of(backwards[i].end));
        assert_true(bytes_equal(tablet->start, bytes_of(backwards[i].start)));
        tablet_release(tablet);
    }
    table_release(table);
}

static void test_splits_and_merges_survive_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = create_table(fixture, table_t, NULL);
    struct tablet *whole = table_route(table, bytes_of("m"));
    assert_ok(reshape_split(table, whole, bytes_of("m")));
    assert_status(reshape_split(table, whole, bytes_of("x")), STATUS_NOT_FOUND);
    tablet_release(whole);
    struct tablet *right = table_route(table, bytes_of("m"));
    assert_ok(reshape_split(table, right, bytes_of("t")));
    tablet_release(right);
    check_starts(table, "|m|t");
    table_release(table);

    reopen(fixture);
    table = find(fixture, table_t);
    check_starts(table, "|m|t");
    struct tablet *left = table_route(table, bytes_of("a"));
    struct tablet *middle = table_route(table, bytes_of("m"));
    assert_ok(reshape_merge(table, left, middle));
    assert_status(reshape_merge(table, left, middle), STATUS_NOT_FOUND);
    tablet_release(left);
    tablet_release(middle);
    check_starts(table, "|t");
    table_release(table);

    reopen(fixture);
    table = find(fixture, table_t);
    check_starts(table, "|t");
    table_release(table);
}

/* --- deleting --- */

static void test_a_deleted_table_is_gone_and_its_keyspace_too(void **state)
{
    struct fixture *fixture = *state;
    struct table *held = create_table(fixture, table_t, NULL);
    size_t keyspaces = count_keyspaces(fixture);
    assert_ok(cluster_delete_table(fixture->cluster, bytes_of(table_t), NULL));
    struct table *table;
    assert_status(cluster_table(fixture->cluster, bytes_of(table_t), &table), STATUS_NOT_FOUND);
    assert_status(cluster_delete_table(fixture->cluster, bytes_of(table_t), NULL),
                  STATUS_NOT_FOUND);
    cluster_reclaim_dropped(fixture->cluster);
    assert_int_equal(count_keyspaces(fixture), keyspaces); /* `held` still refers to it */
    table_release(held);
    reopen(fixture);
    assert_int_equal(count_keyspaces(fixture), keyspaces - 1);
}

/* The deletion is on the disk, the keyspace is still there, and the process ends. */
static void test_what_a_crash_leaves_of_a_deletion_is_dropped_at_start(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = create_table(fixture, table_t, NULL);
    size_t keyspaces = count_keyspaces(fixture);
    struct store_batch *batch = store_batch_create();
    catalog_delete_table(batch, fixture->cluster->catalog, table->id);
    catalog_delete_tablets(batch, fixture->cluster->catalog, table->id);
    assert_ok(store_write(fixture->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    table_release(table);
    reopen(fixture);
    assert_int_equal(count_keyspaces(fixture), keyspaces - 1);
    assert_int_equal(fixture->cluster->table_count, 0);
}

/* A keyspace was made, and the process ended before any record named it. */
static void test_what_a_crash_leaves_of_a_creation_is_dropped_at_start(void **state)
{
    struct fixture *fixture = *state;
    size_t keyspaces = count_keyspaces(fixture);
    uint64_t id = fixture->cluster->next_id;
    assert_ok(store_keyspaces_create(fixture->cluster->home->store, id, 2));
    reopen(fixture);
    assert_int_equal(count_keyspaces(fixture), keyspaces);
    assert_true(fixture->cluster->next_id >= id + 2); /* ids are not given twice */
}

/* Segments of the log of change streams, whether a stream is on or not. */
static void test_a_log_that_a_record_names_stays(void **state)
{
    struct fixture *fixture = *state;
    struct shard *home = fixture->cluster->home;
    uint64_t id = fixture->cluster->next_id;
    struct stream_segment_record record = {.number = 3, .keyspace = id, .from = 17};
    struct store_batch *batch = store_batch_create();
    assert_ok(store_log_keyspace_create(home->store, id));
    assert_ok(store_log_keyspace_create(home->store, id + 1));
    stream_segment_put(batch, home->system, &record);
    assert_ok(store_write(home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    reopen(fixture);
    home = fixture->cluster->home;
    assert_non_null(store_keyspace_find(home->store, id));
    assert_int_equal(keyspace_kind(store_keyspace_find(home->store, id)), KEYSPACE_LOG);
    assert_null(store_keyspace_find(home->store, id + 1));
}

static void test_preallocated_keyspaces_are_used_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    table_release(create_table(fixture, table_t, NULL));
    size_t keyspaces = count_keyspaces(fixture);
    size_t preallocated = fixture->cluster->home->preallocated_count;
    assert_true(preallocated > 0);
    reopen(fixture);
    assert_int_equal(fixture->cluster->home->preallocated_count, preallocated);
    table_release(create_table(fixture, "projects/p/instances/i/tables/u", NULL));
    assert_int_equal(count_keyspaces(fixture), keyspaces);
    assert_int_equal(fixture->cluster->home->preallocated_count, preallocated - 1);
}

/* --- changing --- */

static status protect(void *context, const struct table_info *now, struct arena *arena,
                      struct table_change *next)
{
    (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .deletion_protection = *(const bool *)context};
    return status_ok();
}

static void test_protection_from_deletion(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = create_table(fixture, table_t, NULL);
    bool protection = true;
    assert_ok(table_change_schema(table, fixture->arena, protect, &protection));
    assert_status(cluster_delete_table(fixture->cluster, bytes_of(table_t), NULL),
                  STATUS_FAILED_PRECONDITION);
    table_release(table);
    reopen(fixture);
    assert_status(cluster_delete_table(fixture->cluster, bytes_of(table_t), NULL),
                  STATUS_FAILED_PRECONDITION);
    table = find(fixture, table_t);
    protection = false;
    assert_ok(table_change_schema(table, fixture->arena, protect, &protection));
    table_release(table);
    assert_ok(cluster_delete_table(fixture->cluster, bytes_of(table_t), NULL));
}

/* The family `f` goes, a new one of the same name comes. */
static status drop_family(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    (void)context, (void)now, (void)arena;
    *next = (struct table_change){.family_count = 0};
    return status_ok();
}

static status add_family(void *context, const struct table_info *now, struct arena *arena,
                         struct table_change *next)
{
    struct family *families =
        arena_zalloc(arena, (now->schema->family_count + 1) * sizeof *families);
    size_t count = now->schema->family_count;
    if (count > 0)
        memcpy(families, now->schema->families, count * sizeof *families);
    families[count].name = bytes_of(context);
    *next = (struct table_change){.families = families, .family_count = count + 1};
    return status_ok();
}

static void test_a_family_made_again_gets_a_new_id(void **state)
{
    struct fixture *fixture = *state;
    char f[] = "f";
    struct table *table = create_table(fixture, table_t, NULL);
    const struct schema *before = table_schema(table);
    uint32_t old_id = schema_family_named(before, bytes_of(f))->id;
    assert_ok(table_change_schema(table, fixture->arena, drop_family, NULL));
    assert_ok(table_change_schema(table, fixture->arena, add_family, f));
    assert_int_equal(before->family_count, 1); /* a holder of the old schema keeps it */
    table_release(table);
    reopen(fixture);
    table = find(fixture, table_t);
    assert_true(schema_family_named(table_schema(table), bytes_of(f))->id > old_id);
    struct table_info info;
    assert_ok(table_describe(table, fixture->arena, &info));
    assert_int_equal(info.generation, 3);
    table_release(table);
}

static status fail_to_change(void *context, const struct table_info *now, struct arena *arena,
                             struct table_change *next)
{
    (void)context, (void)now, (void)arena, (void)next;
    return status_make(STATUS_INVALID_ARGUMENT, "no");
}

static void test_a_refused_change_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = create_table(fixture, table_t, NULL);
    const struct schema *before = table_schema(table);
    assert_status(table_change_schema(table, fixture->arena, fail_to_change, NULL),
                  STATUS_INVALID_ARGUMENT);
    assert_ptr_equal(table_schema(table), before);
    table_release(table);
}

/* --- listing --- */

static bool write_name(void *context, struct table *table)
{
    struct buffer *seen = context;
    buffer_append_bytes(seen, bytes_of(strrchr(table_name(table), '/') + 1));
    return seen->size < 3;
}

static void test_listing(void **state)
{
    struct fixture *fixture = *state;
    const char *const names[] = {
        "projects/p/instances/i/tables/c",  "projects/p/instances/i/tables/a",
        "projects/p/instances/ii/tables/x", "projects/p/instances/i/tables/b",
        "projects/p/instances/i/tables/d",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        table_release(create_table(fixture, names[i], NULL));
    const bytes prefix = bytes_of("projects/p/instances/i/tables/");
    struct buffer seen = {0};
    assert_ok(cluster_list_tables(fixture->cluster, prefix, bytes_of(""), write_name, &seen));
    assert_true(bytes_equal(buffer_bytes(&seen), bytes_of("abc")));
    buffer_clear(&seen);
    assert_ok(cluster_list_tables(fixture->cluster, prefix, bytes_of(names[3]), write_name, &seen));
    assert_true(bytes_equal(buffer_bytes(&seen), bytes_of("cd")));
    buffer_free(&seen);
    assert_int_equal(index_count(fixture->cluster, bytes_of(instance)), 5);
    assert_int_equal(index_count(fixture->cluster, prefix), 4);
}

/* --- damage --- */

/* Writes the batch, and finds that the cluster does not open, with these words. */
static void check_is_refused(struct fixture *fixture, struct store_batch *batch, const char *words)
{
    assert_ok(store_write(fixture->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    struct cluster_options options = fixture->cluster->options;
    cluster_close(fixture->cluster);
    status s = cluster_open(&options, &fixture->cluster);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
    remove_directory(fixture);
    open_cluster(fixture); /* for tear_down */
}

static void test_a_hole_in_the_map_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const char *const splits[] = {"d", "m", NULL};
    struct table *table = create_table(fixture, table_t, splits);
    struct store_batch *batch = store_batch_create();
    assert_ok(catalog_delete_tablet(batch, fixture->cluster->catalog, table->id, bytes_of("d")));
    table_release(table);
    check_is_refused(fixture, batch, "hole");
}

/* A rule of no kind used to count as an intersection of nothing known, and to decide what
 * compactions delete. */
static void test_a_rule_of_no_kind_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct gc_rule rule = {.kind = (enum gc_kind)(GC_INTERSECTION + 1)};
    const struct family family = {.id = 1, .name = bytes_of("f"), .gc = &rule};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    struct table *table = create_table(fixture, table_t, NULL);
    const struct table_record record = {.id = table->id, .name = table_t, .schema = schema};
    struct store_batch *batch = store_batch_create();
    assert_ok(catalog_put_table(batch, fixture->cluster->catalog, &record));
    schema_destroy(schema);
    table_release(table);
    check_is_refused(fixture, batch, "families cannot be");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_table_survives_a_restart),
        TEST(test_names_are_taken_once),
        TEST(test_an_unknown_table_is_named),
        TEST(test_routing),
        TEST(test_splits_and_merges_survive_a_restart),
        TEST(test_a_deleted_table_is_gone_and_its_keyspace_too),
        TEST(test_what_a_crash_leaves_of_a_deletion_is_dropped_at_start),
        TEST(test_what_a_crash_leaves_of_a_creation_is_dropped_at_start),
        TEST(test_a_log_that_a_record_names_stays),
        TEST(test_preallocated_keyspaces_are_used_after_a_restart),
        TEST(test_protection_from_deletion),
        TEST(test_a_family_made_again_gets_a_new_id),
        TEST(test_a_refused_change_changes_nothing),
        TEST(test_listing),
        TEST(test_a_hole_in_the_map_is_refused),
        TEST(test_a_rule_of_no_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
