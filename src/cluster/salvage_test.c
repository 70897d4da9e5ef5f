/* Tests of what a start with --salvage makes of a catalog that has lost records with the log. */
#include "base/condition.h"
#include "cluster/catalog.h"
#include "cluster/heat/heat_store.h"
#include "cluster/salvage.h"
#include "cluster/testing/view_testing.h"
#include "stream/segment_records.h"

#include <glob.h>

static const char TABLE_U[] = "projects/p/instances/i/tables/u";

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    struct cluster_fixture *f = *state;
    if (f->table != NULL)
        table_release(f->table);
    close_test_cluster(f);
    pool_destroy(f->pool);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
    free(f);
    return 0;
}

/* --- what happens to a directory --- */

static void stop(struct cluster_fixture *f)
{
    if (f->table != NULL)
        table_release(f->table);
    f->table = NULL;
    close_test_cluster(f);
}

/* Takes away what matches; there is something. */
static void take_away(struct cluster_fixture *f, const char *names)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s", f->directory, names);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(unlink(found.gl_pathv[i]), 0);
    globfree(&found);
}

static struct keyspace *keyspace_of(const struct table *table)
{
    return table->tablets[0]->keyspace;
}

/* The loss keeps a start away, unless it may salvage. */
static void salvage(struct cluster_fixture *f)
{
    struct cluster *cluster;
    assert_status(cluster_open(&f->options, &cluster), STATUS_DATA_LOSS);
    f->options.salvage = true;
    open_test_cluster(f);
    f->options.salvage = false;
}

static bool find_table(struct cluster_fixture *f, const char *name)
{
    status s = cluster_table(f->cluster, bytes_of(name), &f->table);
    bool found = status_is_ok(s);
    status_free(s);
    return found;
}

static void create(struct cluster_fixture *f, const char *name)
{
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f")}};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 1, 2, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &f->table));
    schema_destroy(schema);
}

static bool is_salvaged(struct cluster_fixture *f)
{
    struct condition_view view;
    condition_look(cluster_condition(f->cluster), &view);
    for (size_t i = 0; i < view.count; i++)
        if (view.reasons[i].reason == REASON_salvaged)
            return true;
    return false;
}

static void restart(struct cluster_fixture *f)
{
    stop(f);
    open_test_cluster(f);
}

/* --- keyspaces --- */

/* Its rows are in tables, its name was in the log. */
static void a_keyspace_whose_table_was_lost_is_kept(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t id = keyspace_id(keyspace_of(f->table));
    set_cell(f, "row", "value");
    assert_ok(keyspace_flush(keyspace_of(f->table)));
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_false(find_table(f, TEST_TABLE));
    assert_true(is_salvaged(f));
    for (int i = 0; i < 3; i++) { /* and by every later start */
        bool is_empty = true;
        assert_non_null(store_keyspace_find(f->cluster->home->store, id));
        assert_ok(salvage_is_empty(store_keyspace_find(f->cluster->home->store, id), &is_empty));
        assert_false(is_empty);
        assert_int_equal(f->cluster->home->unclaimed_count, 1);
        assert_int_equal(f->cluster->home->unclaimed[0], id);
        assert_true(is_salvaged(f));
        restart(f);
    }
    create(f, TABLE_U); /* no table gets its keyspace or its number */
    assert_int_not_equal(keyspace_id(keyspace_of(f->table)), id);
    assert_true(f->table->id > id);
}

static void make_segment(struct cluster_fixture *f, uint64_t number, uint64_t id)
{
    struct shard *home = f->cluster->home;
    const struct stream_segment_record record = {.number = number, .keyspace = id, .from = 7};
    struct store_batch *batch = store_batch_create();
    assert_ok(store_log_keyspace_create(home->store, id));
    store_batch_put(batch, store_keyspace_find(home->store, id), bytes_of("R"), bytes_of("x"));
    stream_segment_put(batch, home->system, &record);
    assert_ok(store_write(home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    assert_ok(keyspace_flush(store_keyspace_find(home->store, id)));
}

/* Without its record a part of the log of change streams is of no use, and has no rows. */
static void the_log_of_change_streams_is_no_lost_table(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t id = f->cluster->next_id;
    make_segment(f, 1, id);
    assert_ok(keyspace_flush(f->cluster->home->system));
    make_segment(f, 2, id + 1);
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_non_null(store_keyspace_find(f->cluster->home->store, id));
    assert_int_equal(f->cluster->home->unclaimed_count, 0);
    restart(f);
    assert_non_null(store_keyspace_find(f->cluster->home->store, id));
    assert_null(store_keyspace_find(f->cluster->home->store, id + 1));
    assert_true(f->cluster->next_id > id + 1);
    assert_true(find_table(f, TEST_TABLE));
}

/* A view with a row and a record in tables; the catalog as well, if `with_catalog`. */
static struct table *make_view(struct cluster_fixture *f, bool with_catalog)
{
    struct table *view = create_view(f, TEST_VIEW);
    put_both(f, view, "a", "1");
    assert_ok(keyspace_flush(view->view.records));
    assert_ok(keyspace_flush(keyspace_of(view)));
    if (with_catalog)
        assert_ok(keyspace_flush(f->cluster->home->system));
    return view;
}

/* What is lost of it nobody knows. */
static void a_view_is_made_anew_after_a_loss(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = make_view(f, true);
    uint64_t records = keyspace_id(view->view.records), rows = keyspace_id(keyspace_of(view));
    set_cell(f, "row", "value");
    table_release(view);
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_false(find_table(f, TEST_VIEW));
    assert_null(store_keyspace_find(f->cluster->home->store, records));
    assert_null(store_keyspace_find(f->cluster->home->store, rows));
    assert_int_equal(f->cluster->home->unclaimed_count, 0);
    assert_true(find_table(f, TEST_TABLE));
    assert_false(table_is_viewed(f->table));
}

/* Its rows may be a table's; what has no rows is none's. */
static void the_records_of_a_lost_view_are_no_lost_table(void **state)
{
    struct cluster_fixture *f = *state;
    assert_ok(keyspace_flush(f->cluster->home->system));
    struct table *view = make_view(f, false);
    uint64_t records = keyspace_id(view->view.records), rows = keyspace_id(keyspace_of(view));
    table_release(view);
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_null(store_keyspace_find(f->cluster->home->store, records));
    assert_int_equal(f->cluster->home->unclaimed_count, 1);
    assert_int_equal(f->cluster->home->unclaimed[0], rows);
}

/* A row of each kind; some of what is large overflows. */
static void write_heat(struct cluster_fixture *f)
{
    char key[1000];
    memset(key, 'k', sizeof key);
    struct heat_entry entry = {.start = bytes_make(key, sizeof key), .sum.numbers = {1}};
    struct heat_record record = {
        .from_us = 1000000, .until_us = 2000000, .count = 1, .entries = &entry};
    const struct hot_tablet hot = {.id = 1, .table = TEST_TABLE, .start = entry.start};
    struct own_batch batch = {.arena = f->arena};
    for (enum heat_level level = HEAT_WINDOWS; level < HEAT_LEVELS; level++)
        assert_ok(heat_batch_put(&batch, 7, level, &record));
    assert_ok(heat_batch_put_hot(&batch, &hot));
    assert_ok(heat_batch_put_usage(&batch, 7, 1, bytes_of("usage")));
    assert_ok(heat_batch_write(&batch, f->cluster));
}

/* Has it, in tables, and nothing in the log; its number. */
static uint64_t make_heat(struct cluster_fixture *f)
{
    table_release(f->table);
    write_heat(f);
    assert_true(find_table(f, HEAT_TABLE));
    assert_ok(keyspace_flush(keyspace_of(f->table)));
    return keyspace_id(keyspace_of(f->table));
}

/* Heat is of use to the server alone, which makes it again. */
static void the_keyspace_of_heat_is_dropped(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t id = make_heat(f);
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_int_equal(f->cluster->home->unclaimed_count, 0);
    assert_null(store_keyspace_find(f->cluster->home->store, id));
    assert_false(find_table(f, HEAT_TABLE));
    write_heat(f);
    restart(f);
    assert_true(find_table(f, HEAT_TABLE));
}

/* With a row that heat never has, the keyspace may be a table's. */
static void a_keyspace_that_only_looks_like_heat_is_kept(void **state)
{
    static const struct {
        const char *key;
        size_t size;
    } others[] = {{"Rrow", 4}, {"R\0\0\0\0\0\0\0\7x\0\0\0\0\0\0\0\0", 18}, {"Sx", 2}};
    struct cluster_fixture *f = *state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t id = make_heat(f);
        struct store_batch *batch = store_batch_create();
        store_batch_put(batch, keyspace_of(f->table), bytes_make(others[i].key, others[i].size),
                        bytes_of("something"));
        assert_ok(store_write(f->cluster->home->store, batch, STORE_ASYNC));
        store_batch_destroy(batch);
        assert_ok(keyspace_flush(keyspace_of(f->table)));
        stop(f);
        take_away(f, "*.log");
        salvage(f);
        assert_int_equal(f->cluster->home->unclaimed_count, i + 1);
        assert_non_null(store_keyspace_find(f->cluster->home->store, id));
        f->table = create_test_table(f->cluster, NULL);
    }
}

/* That it was taken was in the log. */
static void a_preallocated_keyspace_with_rows_is_never_used(void **state)
{
    struct cluster_fixture *f = *state;
    size_t preallocated = f->cluster->home->preallocated_count;
    table_release(f->table);
    assert_ok(keyspace_flush(f->cluster->catalog));
    create(f, TABLE_U);
    uint64_t id = keyspace_id(keyspace_of(f->table));
    assert_int_equal(f->cluster->home->preallocated_count, preallocated - 1);
    set_cell(f, "row", "value");
    assert_ok(keyspace_flush(keyspace_of(f->table)));
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_true(find_table(f, TEST_TABLE));
    table_release(f->table);
    assert_false(find_table(f, TABLE_U));
    assert_int_equal(f->cluster->home->preallocated_count, preallocated - 1);
    assert_int_equal(f->cluster->home->unclaimed_count, 1);
    assert_int_equal(f->cluster->home->unclaimed[0], id);
    create(f, TABLE_U);
    assert_scan(f, "", "", false, "");
}

/* However it came to that. */
static void a_preallocated_keyspace_is_looked_into_when_it_is_taken(void **state)
{
    struct cluster_fixture *f = *state;
    struct cluster *cluster = f->cluster;
    uint64_t id = cluster->home->preallocated[cluster->home->preallocated_count - 1];
    struct store_batch *batch = store_batch_create();
    store_batch_put(batch, store_keyspace_find(cluster->home->store, id), bytes_of("Rrow"),
                    bytes_of("old"));
    assert_ok(store_write(cluster->home->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    table_release(f->table);
    create(f, TABLE_U);
    assert_int_not_equal(keyspace_id(keyspace_of(f->table)), id);
    assert_scan(f, "", "", false, "");
}

/* That a table took it, and was deleted. */
static void a_preallocated_keyspace_that_is_gone_is_forgotten(void **state)
{
    struct cluster_fixture *f = *state;
    size_t preallocated = f->cluster->home->preallocated_count;
    assert_ok(keyspace_flush(f->cluster->catalog));
    table_release(f->table);
    create(f, TABLE_U);
    table_release(f->table);
    f->table = NULL;
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TABLE_U), NULL));
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_int_equal(f->cluster->home->preallocated_count, preallocated - 1);
    restart(f);
    assert_true(find_table(f, TEST_TABLE));
}

/* --- tables --- */

static void a_table_whose_deletion_was_lost_stays_deleted(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "row", "value");
    assert_ok(keyspace_flush(keyspace_of(f->table)));
    assert_ok(keyspace_flush(f->cluster->catalog));
    table_release(f->table);
    f->table = NULL;
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    stop(f);
    take_away(f, "*.log");
    salvage(f);
    assert_false(find_table(f, TEST_TABLE));
    assert_int_equal(f->cluster->home->unclaimed_count, 0);
    restart(f);
    assert_false(find_table(f, TEST_TABLE));
}

/* A hole, or a record that belongs to no table. */
static void tablets_that_do_not_fit_become_one(void **state)
{
    struct cluster_fixture *f = *state;
    struct store_batch *batch = store_batch_create();
    const struct tablet_record stray = {
        .table_id = 77777, .id = 77778, .keyspace_id = 77779, .start = {NULL, 0}};
    set_cell(f, "a", "1");
    set_cell(f, "n", "2");
    set_cell(f, "z", "3");
    split_at(f, "m");
    split_at(f, "t");
    assert_ok(catalog_delete_tablet(batch, f->cluster->catalog, f->table->id, bytes_of("m")));
    assert_ok(catalog_put_tablet(batch, f->cluster->catalog, &stray));
    assert_ok(store_write(f->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    stop(f);
    take_away(f, "SYNCED");
    salvage(f);
    assert_true(find_table(f, TEST_TABLE));
    assert_int_equal(f->table->tablet_count, 1);
    assert_scan(f, "", "", false, "a=1 n=2 z=3");
    assert_true(f->cluster->next_id > 77778);
    restart(f);
    assert_true(find_table(f, TEST_TABLE));
    split_at(f, "m");
    assert_scan(f, "", "", false, "a=1 n=2 z=3");
}

/* --- edits behind one that is lost --- */

/* Flips a byte of that text where it comes first in the log that is not empty. */
static void flip_in_log(struct cluster_fixture *f, const char *text)
{
    enum { MOST = 1 << 20 };
    char pattern[128], *log = malloc(MOST);
    glob_t found;
    bool is_flipped = false;
    assert_non_null(log);
    snprintf(pattern, sizeof pattern, "%s/*.log", f->directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && !is_flipped; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r+");
        assert_non_null(file);
        size_t size = fread(log, 1, MOST, file);
        char *at = memmem(log, size, text, strlen(text));
        is_flipped = at != NULL;
        if (is_flipped) {
            assert_int_equal(fseek(file, at - log, SEEK_SET), 0);
            assert_int_equal(fputc(*at ^ 1, file), (unsigned char)(*at ^ 1));
        }
        assert_int_equal(fclose(file), 0);
    }
    assert_true(is_flipped);
    globfree(&found);
    free(log);
}

/* The table that it made is lost, and its rows are kept; a table that was made after it is there,
 * with its rows, and so are all others. */
static void edits_behind_a_lost_one_are_kept(void **state)
{
    static const char TABLE_LOST[] = "projects/p/instances/i/tables/lost";
    struct cluster_fixture *f = *state;
    set_cell(f, "before", "1");
    table_release(f->table);
    create(f, TABLE_LOST);
    uint64_t lost = keyspace_id(keyspace_of(f->table));
    set_cell(f, "row", "of the lost one");
    table_release(f->table);
    create(f, TABLE_U);
    set_cell(f, "row", "2");
    split_at(f, "z");
    set_cell(f, "zz", "3");
    stop(f);
    flip_in_log(f, TABLE_LOST);
    salvage(f);
    assert_true(find_table(f, TABLE_U));
    assert_int_equal(f->table->tablet_count, 2);
    assert_scan(f, "", "", false, "row=2 zz=3");
    table_release(f->table);
    assert_false(find_table(f, TABLE_LOST));
    assert_int_equal(f->cluster->home->unclaimed_count, 1);
    assert_int_equal(f->cluster->home->unclaimed[0], lost);
    assert_true(find_table(f, TEST_TABLE));
    assert_scan(f, "", "", false, "before=1");
    restart(f);
    assert_true(find_table(f, TABLE_U));
    assert_scan(f, "", "", false, "row=2 zz=3");
    set_cell(f, "row", "new");
    assert_scan(f, "", "", false, "row=new zz=3");
}

/* --- nothing lost --- */

/* What a crash left behind goes, as ever; and nothing is told. */
static void without_a_loss_there_is_nothing_to_salvage(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t id = f->cluster->next_id;
    assert_ok(store_keyspaces_create(f->cluster->home->store, id, 1));
    f->options.salvage = true;
    restart(f);
    assert_null(store_keyspace_find(f->cluster->home->store, id));
    assert_false(is_salvaged(f));
    assert_true(find_table(f, TEST_TABLE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_keyspace_whose_table_was_lost_is_kept),
        TEST(the_log_of_change_streams_is_no_lost_table),
        TEST(a_view_is_made_anew_after_a_loss),
        TEST(the_records_of_a_lost_view_are_no_lost_table),
        TEST(the_keyspace_of_heat_is_dropped),
        TEST(a_keyspace_that_only_looks_like_heat_is_kept),
        TEST(a_preallocated_keyspace_with_rows_is_never_used),
        TEST(a_preallocated_keyspace_is_looked_into_when_it_is_taken),
        TEST(a_preallocated_keyspace_that_is_gone_is_forgotten),
        TEST(a_table_whose_deletion_was_lost_stays_deleted),
        TEST(tablets_that_do_not_fit_become_one),
        TEST(edits_behind_a_lost_one_are_kept),
        TEST(without_a_loss_there_is_nothing_to_salvage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
