/* Views in whole backups: definitions alone come back. The table of a view, its rows and records
 * are left out, of all of a server and of a part, and nothing says that its source is viewed. */
#include "backup/whole_private.h"
#include "backup/whole_restore.h"
#include "backup/whole_scope.h"
#include "cluster/checkpoint.h"
#include "cluster/testing/view_testing.h"
#include "place/place.h"

#define INSTANCE "projects/p/instances/i"

struct fixture {
    struct cluster_fixture *base;
    struct table *view;
    struct place *place;
    struct arena *arena;
    struct whole_work work;
    char checkpoint[128];
    char restored[128];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char place[128];
    assert_non_null(f);
    f->base = cluster_fixture_create(NULL);
    snprintf(place, sizeof place, "%s-place", f->base->directory);
    snprintf(f->checkpoint, sizeof f->checkpoint, "%s/checkpoint", f->base->directory);
    snprintf(f->restored, sizeof f->restored, "%s-restored", f->base->directory);
    assert_ok(place_of_directory(files_of_system(), place, &f->place));
    f->arena = arena_create(WHOLE_MEMORY);
    f->work.clock = clock_system();
    f->view = create_view(f->base, TEST_VIEW);
    set_cell(f->base, "a", "1");
    put_both(f->base, f->view, "a", "1");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char place[128];
    snprintf(place, sizeof place, "%s-place", f->base->directory);
    table_release(f->view);
    place_close(f->place);
    arena_destroy(f->arena);
    cluster_fixture_destroy(f->base);
    if (access(place, F_OK) == 0)
        remove_test_directory(place);
    if (access(f->restored, F_OK) == 0)
        remove_test_directory(f->restored);
    free(f);
    return 0;
}

static struct whole_backup back_up(struct fixture *f)
{
    struct checkpoint_facts facts;
    struct place_lock *lock;
    struct whole_backup backup;
    char name[WHOLE_NAME_SIZE];
    assert_ok(cluster_checkpoint(f->base->cluster, f->checkpoint, &facts));
    const struct whole_backup said = {.server = facts.identity,
                                      .version = facts.sequence,
                                      .instant_us = facts.wall_us,
                                      .settings = "",
                                      .scope = ""};
    const struct whole_source source = {
        .files = files_of_system(), .directory = f->checkpoint, .facts = &said};
    assert_ok(place_make(f->place));
    assert_ok(whole_prepare(f->place));
    assert_ok(whole_lock(f->place, &lock));
    assert_ok(whole_create(f->place, &source, &f->work, name));
    place_unlock(f->place, lock);
    assert_ok(cluster_remove_checkpoint(f->base->cluster, f->checkpoint));
    assert_ok(whole_read(f->place, name, f->arena, &backup));
    return backup;
}

static void a_restore_leaves_out_what_views_have(void **state)
{
    struct fixture *f = *state;
    const struct whole_backup backup = back_up(f);
    const struct whole_restore what = {.place = f->place,
                                       .backup = &backup,
                                       .files = files_of_system(),
                                       .directory = f->restored,
                                       .log = &f->base->log,
                                       .work = &f->work};
    struct cluster_fixture *restored = cluster_fixture_create_at(f->restored);
    struct table *view;
    bool is_new;
    assert_ok(whole_restore(&what));
    open_test_cluster(restored);
    assert_ok(cluster_table(restored->cluster, bytes_of(TEST_TABLE), &restored->table));
    assert_scan(restored, "", "", false, "a=1");
    assert_false(table_is_viewed(restored->table));
    assert_status(cluster_table(restored->cluster, bytes_of(TEST_VIEW), &view), STATUS_NOT_FOUND);
    const struct view_spec spec = view_spec_of(restored, TEST_VIEW);
    assert_ok(cluster_ensure_view(restored->cluster, &spec, &view, &is_new));
    assert_true(is_new);
    assert_view(restored, view, "", "");
    table_release(view);
    table_release(restored->table);
    close_test_cluster(restored);
    pool_destroy(restored->pool);
    arena_destroy(restored->arena);
    free(restored);
}

static size_t count_keyspaces(struct store *store)
{
    size_t count = 0;
    while (store_keyspace_at(store, count) != NULL)
        count++;
    return count;
}

static status find_view_record(void *context, const struct table_record *record)
{
    *(bool *)context |= record->view.source_id != 0;
    return status_ok();
}

/* Of an instance: its catalog, and one keyspace, its table's. */
static void a_part_has_no_view(void **state)
{
    struct fixture *f = *state;
    struct checkpoint_facts facts;
    struct store *store;
    bool has_view = false;
    const struct catalog_visitor visitor = {.context = &has_view, .table = find_view_record};
    assert_ok(cluster_checkpoint(f->base->cluster, f->checkpoint, &facts));
    assert_ok(whole_scope_narrow(f->checkpoint, INSTANCE, &f->base->log));
    const struct store_options options = {.directory = f->checkpoint,
                                          .fold = &row_fold,
                                          .log = &f->base->log,
                                          .cache_bytes = 1 << 20,
                                          .write_buffer_bytes = 1 << 20,
                                          .open_files = 64,
                                          .background_threads = 1,
                                          .read_only = true};
    assert_ok(store_open(&options, &store));
    assert_int_equal(count_keyspaces(store), 2);
    assert_ok(catalog_read(store_keyspace_find(store, CATALOG_KEYSPACE_ID), &visitor));
    assert_false(has_view);
    store_close(store);
    assert_ok(cluster_remove_checkpoint(f->base->cluster, f->checkpoint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_restore_leaves_out_what_views_have, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_has_no_view, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
