/* Giving up what damage has taken from the catalog, with a disk that fails, at each of its steps,
 * and without memory.
 *
 * The catalog's one table file has no footer any more, or a damaged first block. Whatever becomes
 * of a start that may go on without,
 *
 *     no keyspace with rows is dropped, by any later start;
 *     a start that may not refuses, or all was put right before; and
 *     a start without faults puts it right. */
#include "base/testing/failmalloc.h"
#include "cluster/salvage.h"
#include "cluster/testing/damaged_testing.h"

enum { TABLES = 3, POLICIES = 60, POLICY = 900 };

struct story {
    struct cluster_fixture f;
    char copy[64]; /* where a power cut's leavings go */
    uint64_t keyspaces[TABLES];
    uint64_t next_id;
    size_t tables;        /* that are left */
    bool is_seen_between; /* the steps */
};

/* --- a directory --- */

static void create(struct story *story, unsigned i)
{
    struct cluster_fixture *f = &story->f;
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f")}};
    struct schema *schema;
    char name[64];
    snprintf(name, sizeof name, "projects/p/instances/i/tables/t%u", i);
    assert_ok(schema_create(GRANULARITY_MICROS, families, 1, 2, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &f->table));
    schema_destroy(schema);
    set_cell(f, "row", "value");
    story->keyspaces[i] = keyspace_id(f->table->tablets[0]->keyspace);
    table_release(f->table);
    f->table = NULL;
}

static void put_policies(struct cluster_fixture *f)
{
    struct store_batch *batch = store_batch_create();
    for (unsigned i = 0; i < POLICIES; i++) {
        char key[64], value[POLICY + 1];
        snprintf(key, sizeof key, "Ryprojects/p/instances/i%03u", i);
        for (unsigned at = 0; at < POLICY / VALUE; at++)
            value_of(value + (size_t)at * VALUE, i * 100 + at);
        store_batch_put(batch, f->cluster->catalog, bytes_of(key), bytes_of(value));
    }
    assert_ok(store_write(f->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

/* From its end, if that is negative. */
static void flip_table_at(const char *directory, off_t at)
{
    char path[512];
    off_t size = find_table_file(directory, path);
    flip_at(path, at < 0 ? size + at : at);
}

/* Without a footer nothing is left; without the first block the tables are, and no counter. */
static void begin_story(struct story *story, bool is_whole)
{
    struct cluster_fixture *f = &story->f;
    *story = (struct story){.tables = is_whole ? 0 : TABLES};
    make_steps_fixture(f);
    make_steps_directory(story->copy, sizeof story->copy);
    f->options.heat = false;
    open_test_cluster(f);
    for (unsigned i = 0; i < TABLES; i++)
        create(story, i);
    put_policies(f);
    assert_ok(keyspace_flush(f->cluster->catalog));
    story->next_id = f->cluster->next_id;
    close_test_cluster(f);
    flip_table_at(f->directory, is_whole ? -FLIPPED : 10);
}

static void end_story(struct story *story)
{
    remove_test_directory(story->copy);
    free_steps_fixture(&story->f);
}

/* --- what is so --- */

static void assert_keyspaces(struct story *story, struct cluster *cluster)
{
    for (unsigned i = 0; i < TABLES; i++) {
        bool is_empty = true;
        struct keyspace *keyspace = store_keyspace_find(cluster->home->store, story->keyspaces[i]);
        assert_non_null(keyspace);
        assert_ok(salvage_is_empty(keyspace, &is_empty));
        assert_false(is_empty);
    }
}

static void assert_final(struct story *story, struct cluster *cluster)
{
    assert_keyspaces(story, cluster);
    assert_int_equal(cluster->table_count, story->tables);
    assert_int_equal(cluster->home->unclaimed_count, TABLES - story->tables);
    assert_true(cluster->next_id >= story->next_id);
    assert_false(keyspace_has_damage(cluster->catalog));
}

static status open_as(struct story *story, bool accepts, struct cluster **out)
{
    story->f.options.accepts_lost_records = accepts;
    status s = cluster_open(&story->f.options, out);
    if (status_is_ok(s))
        assert_final(story, *out);
    return s;
}

static status count_one(void *context, uint64_t id, int64_t found_us)
{
    (void)id, (void)found_us;
    ++*(size_t *)context;
    return status_ok();
}

/* Between the steps no keyspace is one that a program which knows nothing of them would drop. */
static void assert_all_are_named(struct story *story)
{
    struct store *store;
    size_t count = 0;
    const struct catalog_visitor visitor = {.context = &count, .unclaimed = count_one};
    const struct store_options options = {.directory = story->f.options.data_directory,
                                          .fold = &row_fold,
                                          .log = &story->f.log,
                                          .cache_bytes = 8 << 20,
                                          .write_buffer_bytes = 8 << 20,
                                          .open_files = 64,
                                          .background_threads = 2,
                                          .read_only = true};
    assert_ok(store_open(&options, &store));
    assert_ok(catalog_read(store_keyspace_find(store, CATALOG_KEYSPACE_ID), &visitor));
    assert_true(count >= TABLES);
    story->is_seen_between = true;
    store_close(store);
}

static void open_and_close(struct story *story, bool accepts, bool may_refuse)
{
    struct cluster *cluster;
    status s = open_as(story, accepts, &cluster);
    if (status_is_ok(s))
        cluster_close(cluster);
    else if (!may_refuse || s.code != STATUS_DATA_LOSS)
        fail_msg("%s", status_message(s));
    else if (strstr(status_message(s), "not put right") != NULL)
        assert_all_are_named(story);
    status_free(s);
}

/* --- the story --- */

static bool give_up_with_fault(enum fault_operation operation, unsigned pass, enum ending ending,
                               bool *is_seen_between)
{
    struct story story;
    struct cluster *cluster;
    begin_story(&story, true);
    faults = fault_fs_create();
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    status s = open_as(&story, true, &cluster);
    bool failed = !status_is_ok(s);
    bool came = failed || fault_fs_failures(faults) > 0;
    status_free(s);
    if (ending != STOP && failed)
        cut_power(&story.f, story.copy, ending);
    fault_fs_heal(faults);
    if (!failed)
        cluster_close(cluster);
    end_faults();
    open_and_close(&story, false, true);
    open_and_close(&story, true, false);
    open_and_close(&story, false, false);
    *is_seen_between |= story.is_seen_between;
    end_story(&story);
    return came;
}

/* The ends take turns: each story takes five starts. */
static void tell_in_turn(enum fault_operation operation)
{
    enum { MOST = 500 };
    unsigned pass = 0;
    bool is_seen_between = false;
    while (give_up_with_fault(operation, pass, (enum ending)(pass % ENDINGS), &is_seen_between)) {
        pass++;
        assert_true(pass < MOST);
    }
    assert_true(is_seen_between);
    assert_true(pass > ENDINGS);
    print_message("# each of %u operations failed\n", pass);
}

static void test_each_write_fails(void **state)
{
    (void)state;
    tell_in_turn(FAULT_APPEND);
}

static void test_each_sync_fails(void **state)
{
    (void)state;
    tell_in_turn(FAULT_SYNC);
}

/* Each place where memory runs out after about as many more allocations. */
static void test_allocations_fail(void **state)
{
    enum { MOST = 100000 };
    struct story story;
    bool is_open = false;
    size_t passes = 0;
    (void)state;
    begin_story(&story, false);
    for (size_t count = 0; !is_open; count += 1 + count / 16, passes++) {
        struct cluster *cluster;
        assert_true(count < MOST);
        failmalloc_start(count);
        story.f.options.accepts_lost_records = true;
        status s = cluster_open(&story.f.options, &cluster);
        bool failed = failmalloc_stop();
        is_open = status_is_ok(s) && !failed;
        if (!failed)
            assert_ok(s);
        if (status_is_ok(s)) {
            assert_keyspaces(&story, cluster);
            cluster_close(cluster);
        }
        status_free(s);
    }
    assert_true(passes > 10);
    open_and_close(&story, true, false);
    open_and_close(&story, false, false);
    end_story(&story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_each_sync_fails),
        cmocka_unit_test(test_allocations_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
