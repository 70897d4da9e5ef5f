/* Backups with a disk that fails, at each of their steps.
 *
 * A backup is made, copied, restored, and deleted, with the faults and ends of steps_testing.h. The
 * next start must find each backup whole or not at all, the restored table likewise, no keyspace
 * without an owner, and be able to do all of it again. */
#include "cluster/backup/backup_private.h"
#include "cluster/testing/steps_testing.h"

static const char BACKUP[] = "projects/p/instances/i/clusters/c/backups/b";
static const char COPY[] = "projects/p/instances/i/clusters/c/backups/b2";
static const char RESTORED[] = "projects/p/instances/i/tables/restored";
static const char ROWS[] = "a=1 b=2";

struct life {
    struct cluster_fixture f;
    struct backups *backups;
    char backups_directory[96];
};

static void begin_life(struct life *life)
{
    open_test_cluster(&life->f);
    snprintf(life->backups_directory, sizeof life->backups_directory, "%s/backups",
             life->f.options.data_directory);
    struct backups_options options = {
        .cluster = life->f.cluster, .directory = life->backups_directory, .log = &life->f.log};
    assert_ok(backups_open(&options, &life->backups));
}

static void end_life(struct life *life)
{
    table_release(life->f.table);
    backups_close(life->backups);
    close_test_cluster(&life->f);
}

/* --- the story: what fails ends it --- */

static status make(struct life *life)
{
    struct backup_work work = {0};
    TRY(backup_reserve(life->backups, BACKUP, TEST_TABLE, bytes_of("x")));
    return backup_create(life->backups, BACKUP, life->f.table, &work);
}

static status copy(struct life *life)
{
    struct backup_work work = {0};
    TRY(backup_reserve(life->backups, COPY, TEST_TABLE, bytes_of("x")));
    return backup_copy(life->backups, BACKUP, COPY, &work);
}

static status restore(struct life *life)
{
    struct backup_work work = {0};
    struct restore_spec spec = {.table = RESTORED};
    struct staged_backup *staged;
    struct table *table;
    TRY(backup_stage(life->backups, COPY, &work, &staged));
    status s = staged_backup_restore(staged, &spec, &table);
    staged_backup_destroy(staged);
    if (status_is_ok(s))
        table_release(table);
    return s;
}

static status tell(struct life *life)
{
    TRY(make(life));
    TRY(copy(life));
    TRY(restore(life));
    return backup_delete(life->backups, BACKUP);
}

/* --- what there is afterwards --- */

static void assert_whole(void *context, const char *name, uint64_t size_bytes, const char *wrong)
{
    (void)context, (void)size_bytes;
    if (wrong != NULL)
        print_error("%s: %s\n", name, wrong);
    assert_null(wrong);
}

static void assert_no_orphans(struct life *life)
{
    struct cluster *cluster = life->f.cluster;
    size_t keyspaces = 0;
    while (store_keyspace_at(cluster->home->store, keyspaces) != NULL)
        keyspaces++;
    assert_int_equal(keyspaces, 1 + cluster->home->preallocated_count + cluster->table_count);
}

static void assert_rows(struct life *life, const char *table_name)
{
    struct cluster_fixture view = life->f;
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct buffer rows = {0};
    assert_ok(cluster_table(view.cluster, bytes_of(table_name), &view.table));
    assert_ok(scan_text(&view, &all, 1, false, 0, &rows));
    assert_string_equal((const char *)rows.data, ROWS);
    buffer_free(&rows);
    table_release(view.table);
}

/* Takes away what the story had come to, so that it can be told again. */
static void clear(struct life *life)
{
    static const char *const names[] = {BACKUP, COPY};
    for (size_t i = 0; i < 2; i++) {
        status s = backup_delete(life->backups, names[i]);
        assert_true(status_is_ok(s) || s.code == STATUS_NOT_FOUND);
        status_free(s);
    }
    status s = cluster_delete_table(life->f.cluster, bytes_of(RESTORED), NULL);
    assert_true(status_is_ok(s) || s.code == STATUS_NOT_FOUND);
    if (status_is_ok(s))
        cluster_reclaim_dropped(life->f.cluster);
    status_free(s);
}

static void recover(struct life *life)
{
    struct backups_check check = {.visit = assert_whole};
    struct table *restored;
    begin_life(life);
    assert_ok(cluster_table(life->f.cluster, bytes_of(TEST_TABLE), &life->f.table));
    assert_ok(backups_verify(files_of_system(), life->backups_directory, &check));
    assert_no_orphans(life);
    assert_rows(life, TEST_TABLE);
    status s = cluster_table(life->f.cluster, bytes_of(RESTORED), &restored);
    if (status_is_ok(s)) {
        table_release(restored);
        assert_rows(life, RESTORED);
    }
    status_free(s);
    clear(life);
    assert_ok(tell(life));
    assert_rows(life, RESTORED);
    end_life(life);
}

/* --- lives --- */

/* False if nothing came to fail. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct life life = {.backups = NULL};
    char cut[64];
    make_steps_fixture(&life.f);
    snprintf(cut, sizeof cut, "%s-cut", life.f.directory);
    faults = fault_fs_create();
    begin_life(&life);
    life.f.table = create_test_table(life.f.cluster, NULL);
    set_cell(&life.f, "a", "1");
    set_cell(&life.f, "b", "2");
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    status s = tell(&life);
    bool failed = !status_is_ok(s);
    status_free(s);
    bool is_cut = ending != STOP && failed;
    if (is_cut)
        cut_power(&life.f, cut, ending);
    fault_fs_heal(faults);
    end_life(&life);
    end_faults();
    recover(&life);
    if (is_cut)
        remove_test_directory(cut);
    free_steps_fixture(&life.f);
    return failed;
}

static void test_each_write_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_APPEND, tell_with_fault);
}

static void test_each_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, tell_with_fault);
}

static void test_each_directory_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC_DIRECTORY, tell_with_fault);
}

static void test_each_making_of_a_file_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_CREATE, tell_with_fault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_each_sync_fails),
        cmocka_unit_test(test_each_directory_sync_fails),
        cmocka_unit_test(test_each_making_of_a_file_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
