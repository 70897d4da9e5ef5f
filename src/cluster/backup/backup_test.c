/* Backups: made under load, restored elsewhere, damaged, cut short. */
#include "base/testing/testing_clock.h"
#include "cluster/backup/backup_private.h"
#include "cluster/testing/testing.h"

#include <stdio.h>

static const char BACKUP[] = "projects/p/instances/i/clusters/c/backups/b";
static const char OTHER[] = "projects/p/instances/j/clusters/c/backups/b2";
static const char RESTORED[] = "projects/p/instances/i/tables/restored";

struct fixture {
    struct cluster_fixture *f;
    char directory[64];
    struct backups *backups;
    struct arena *arena;
};

static struct backups *open_backups(struct cluster_fixture *f, const char *directory, uint64_t rate)
{
    struct backups_options options = {
        .cluster = f->cluster, .directory = directory, .bytes_per_second = rate, .log = &f->log};
    struct backups *backups;
    assert_ok(backups_open(&options, &backups));
    return backups;
}

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->f = cluster_fixture_create(NULL);
    t->f->log.fd = -1;
    t->arena = arena_create(1 << 24);
    snprintf(t->directory, sizeof t->directory, "/tmp/trestle-backups-XXXXXX");
    assert_non_null(mkdtemp(t->directory));
    t->backups = open_backups(t->f, t->directory, 0);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;
    backups_close(t->backups);
    cluster_fixture_destroy(t->f);
    remove_test_directory(t->directory);
    arena_destroy(t->arena);
    free(t);
    return 0;
}

static status make_backup(struct fixture *t, const char *name)
{
    struct backup_work work = {0};
    TRY(backup_reserve(t->backups, name, TEST_TABLE, bytes_of("extra")));
    return backup_create(t->backups, name, t->f->table, &work);
}

static status restore(struct backups *backups, const char *name, const char *table_name,
                      struct table **out)
{
    struct backup_work work = {0};
    struct staged_backup *staged;
    struct restore_spec spec = {.table = table_name, .extra = bytes_of("more")};
    TRY(backup_stage(backups, name, &work, &staged));
    assert_int_equal(work.bytes_done, work.bytes_total);
    status s = staged_backup_restore(staged, &spec, out);
    staged_backup_destroy(staged);
    return s;
}

/* The rows of some table as scan_text writes them; the caller frees them. */
static char *rows_of(struct cluster_fixture *f, struct table *table)
{
    struct cluster_fixture view = *f;
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct buffer text = {0};
    view.table = table;
    assert_ok(scan_text(&view, &all, 1, false, 0, &text));
    return (char *)text.data;
}

static void assert_restores_to(struct fixture *t, const char *name, const char *expected)
{
    struct table *table = NULL;
    assert_ok(restore(t->backups, name, RESTORED, &table));
    char *rows = rows_of(t->f, table);
    assert_string_equal(rows, expected);
    free(rows);
    table_release(table);
    assert_ok(cluster_delete_table(t->f->cluster, bytes_of(RESTORED), NULL));
}

/* --- what comes back --- */

static void test_a_restored_table_is_the_table(void **state)
{
    struct fixture *t = *state;
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    set_cell(t->f, "a", "1");
    set_cell(t->f, "b", big); /* overflows */
    set_cell(t->f, "c", "gone");
    set_cell(t->f, "d", "4");
    split_at(t->f, "b");
    split_at(t->f, "c");
    assert_ok(keyspace_compact(t->f->table->tablets[0]->keyspace, bytes_of(""), bytes_of("")));
    assert_ok(table_drop_rows(t->f->table, bytes_of("c")));
    assert_ok(make_backup(t, BACKUP));
    set_cell(t->f, "a", "too late");

    struct table *table = NULL;
    assert_ok(restore(t->backups, BACKUP, RESTORED, &table));
    struct buffer expected = {0};
    buffer_append_format(&expected, "a=1 b=%s d=4%c", big, 0);
    char *rows = rows_of(t->f, table);
    assert_string_equal(rows, (const char *)expected.data);
    free(rows);
    buffer_free(&expected);
    assert_int_equal(table_tablet_count(table), 3);
    assert_non_null(schema_family_named(table_schema(table), bytes_of("sum")));
    assert_int_equal(schema_family_named(table_schema(table), bytes_of("g"))->id, FAMILY_G);
    struct table_info info;
    assert_ok(table_describe(table, t->arena, &info));
    assert_true(bytes_equal(info.extra, bytes_of("more")));

    /* The restored table is there after a restart, and takes writes. */
    table_release(table);
    backups_close(t->backups);
    reopen_test_cluster(t->f);
    t->backups = open_backups(t->f, t->directory, 0);
    assert_ok(cluster_table(t->f->cluster, bytes_of(RESTORED), &table));
    struct cluster_fixture view = *t->f;
    view.table = table;
    assert_ok(table_drop_rows(table, bytes_of("b")));
    set_cell(&view, "a", "5");
    rows = rows_of(t->f, table);
    assert_string_equal(rows, "a=5 d=4");
    free(rows);
    table_release(table);
    struct table *again;
    assert_status(restore(t->backups, BACKUP, RESTORED, &again), STATUS_ALREADY_EXISTS);
}

static void test_an_empty_table(void **state)
{
    struct fixture *t = *state;
    assert_ok(make_backup(t, BACKUP));
    assert_restores_to(t, BACKUP, "");
}

/* --- under load --- */

enum { KEYS = 40, DROP_EVERY = 97, LEAST_CHANGES = 400 };

/* Change number n, one after the other: a row is set to n, or rows are dropped. */
static void make_change(struct cluster_fixture *f, unsigned n)
{
    char key[16], value[16];
    snprintf(key, sizeof key, "%c%02u", 'a' + n % 3, n * 7 % KEYS);
    snprintf(value, sizeof value, "%u", n);
    if (n % DROP_EVERY == 0) {
        key[1] = 0;
        assert_ok(table_drop_rows(f->table, bytes_of(key)));
    } else {
        set_cell(f, key, value);
    }
}

struct writer {
    struct cluster_fixture f; /* with an arena of its own */
    atomic_bool stop;
    atomic_uint changes;
};

static void *write_on(void *context)
{
    struct writer *writer = context;
    while (!atomic_load(&writer->stop)) {
        make_change(&writer->f, atomic_load(&writer->changes) + 1);
        atomic_fetch_add(&writer->changes, 1);
        arena_reset(writer->f.arena);
    }
    return NULL;
}

static void wait_for_changes(struct writer *writer, unsigned least)
{
    while (atomic_load(&writer->changes) < least)
        sched_yield();
}

/* The greatest number among the values: the last change that set something. */
static unsigned newest_in(const char *rows)
{
    unsigned newest = 0, n;
    for (const char *at = strchr(rows, '='); at != NULL; at = strchr(at + 1, '='))
        if (sscanf(at, "=%u", &n) == 1 && n > newest)
            newest = n;
    return newest;
}

/* What the table says after so many changes, each made for real. */
static char *rows_after(struct fixture *t, unsigned changes)
{
    static const char name[] = "projects/p/instances/i/tables/model";
    struct table *all_rows = t->f->table;
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    assert_ok(cluster_create_table(t->f->cluster, &spec, &t->f->table));
    schema_destroy(schema);
    for (unsigned n = 1; n <= changes; n++)
        make_change(t->f, n);
    char *rows = rows_of(t->f, t->f->table);
    table_release(t->f->table);
    assert_ok(cluster_delete_table(t->f->cluster, bytes_of(name), NULL));
    t->f->table = all_rows;
    return rows;
}

/* Some change it was, whole, and between the call and its return. The next one may be a drop, which
 * the newest value does not show. */
static void assert_is_an_instant(struct fixture *t, const char *rows, unsigned from, unsigned to)
{
    unsigned newest = newest_in(rows);
    assert_in_range(newest, from > 0 ? from - 1 : 0, to + 1);
    char *expected = rows_after(t, newest);
    if (strcmp(rows, expected) != 0 && (newest + 1) % DROP_EVERY == 0) {
        free(expected);
        expected = rows_after(t, newest + 1);
    }
    assert_string_equal(rows, expected);
    free(expected);
}

static void test_a_backup_under_load_is_one_instant(void **state)
{
    struct fixture *t = *state;
    struct writer writer = {.f = *t->f};
    pthread_t thread;
    writer.f.arena = arena_create(SIZE_MAX / 2);
    assert_ok(thread_start(&thread, "writer", write_on, &writer));
    for (unsigned i = 1; i <= 3; i++) {
        wait_for_changes(&writer, i * LEAST_CHANGES / 3);
        unsigned from = atomic_load(&writer.changes);
        assert_ok(make_backup(t, BACKUP));
        unsigned to = atomic_load(&writer.changes);
        struct table *table = NULL;
        assert_ok(restore(t->backups, BACKUP, RESTORED, &table));
        char *rows = rows_of(t->f, table);
        assert_is_an_instant(t, rows, from, to);
        free(rows);
        table_release(table);
        assert_ok(cluster_delete_table(t->f->cluster, bytes_of(RESTORED), NULL));
        assert_ok(backup_delete(t->backups, BACKUP));
    }
    atomic_store(&writer.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    arena_destroy(writer.f.arena);
}

/* --- a schema that changes meanwhile --- */

static status drop_all_but_f(void *context, const struct table_info *now, struct arena *arena,
                             struct table_change *next)
{
    (void)context;
    struct family *families = arena_alloc(arena, sizeof *families);
    assert_non_null(families);
    *families = *schema_family_named(now->schema, bytes_of("f"));
    *next = (struct table_change){.families = families, .family_count = 1};
    return status_ok();
}

/* Once, when some rows have been read. */
static bool drop_meanwhile(struct backup_work *work)
{
    struct fixture *t = work->context;
    struct backup_info info;
    if (work->bytes_done == 0 || t == NULL)
        return true;
    assert_ok(table_change_schema(t->f->table, t->f->arena, drop_all_but_f, NULL));
    assert_ok(backup_describe(t->backups, BACKUP, t->arena, &info));
    assert_false(info.is_ready);
    assert_status(backup_delete(t->backups, BACKUP), STATUS_FAILED_PRECONDITION);
    work->context = NULL;
    return true;
}

/* A family goes while the rows are being read, and folds forget it: all its cells are in the
 * backup, since it was there at the instant. */
static void test_a_family_that_goes_meanwhile_is_whole(void **state)
{
    enum { ROWS = 300, VALUE = 4000 };
    struct fixture *t = *state;
    char key[16], value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    t->f->options.overflow_bytes = 1 << 20; /* so that each row is operands to fold */
    backups_close(t->backups);
    reopen_test_cluster(t->f);
    t->backups = open_backups(t->f, t->directory, 0);
    for (unsigned i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%04u", i);
        assert_ok(try_write(t->f, key, setting(t->f, FAMILY_G, "r", 1, value)));
        assert_ok(try_write(t->f, key, setting(t->f, FAMILY_G, "q", 1, "g")));
    }
    struct backup_work work = {.goes_on = drop_meanwhile, .context = t};
    assert_ok(backup_reserve(t->backups, BACKUP, TEST_TABLE, bytes_of("")));
    assert_ok(backup_create(t->backups, BACKUP, t->f->table, &work));
    assert_null(work.context);

    struct table *table = NULL;
    assert_ok(restore(t->backups, BACKUP, RESTORED, &table));
    char *rows = rows_of(t->f, table);
    unsigned found = 0;
    for (const char *at = strchr(rows, '='); at != NULL; at = strchr(at + 1, '='))
        found += at[1] == 'g';
    assert_int_equal(found, ROWS);
    free(rows);
    table_release(table);
}

/* --- rows that are dropped meanwhile --- */

/* Once, when some rows have been read: and then all is done to get rid of them. */
static bool drop_rows_meanwhile(struct backup_work *work)
{
    struct fixture *t = work->context;
    if (work->bytes_done == 0 || t == NULL)
        return true;
    struct keyspace *keyspace = t->f->table->spaces[0].keyspace;
    assert_ok(table_drop_rows(t->f->table, bytes_of("")));
    assert_ok(try_write(t->f, "0007", setting(t->f, FAMILY_F, "q", 1, "new")));
    assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    maintenance_run_once(t->f->cluster->maintenance);
    work->context = NULL;
    return true;
}

/* What was dropped before the instant is not in the backup, what is dropped later is, also what
 * folds of then would have thrown away. */
static void test_rows_that_are_dropped_meanwhile_are_in_it(void **state)
{
    enum { ROWS = 300, VALUE = 4000 };
    struct fixture *t = *state;
    char key[16], value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    t->f->options.overflow_bytes = 1 << 20;
    t->f->options.maintenance_by_hand = true;
    backups_close(t->backups);
    reopen_test_cluster(t->f);
    t->backups = open_backups(t->f, t->directory, 0);
    for (unsigned i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%04u", i);
        assert_ok(try_write(t->f, key, setting(t->f, FAMILY_F, "r", 1, value)));
        if (i == 1) /* the first row becomes a whole value, which no reader folds */
            assert_ok(
                keyspace_compact(t->f->table->spaces[0].keyspace, bytes_of(""), bytes_of("")));
        assert_ok(try_write(t->f, key, setting(t->f, FAMILY_F, "q", 1, "f")));
    }
    assert_ok(table_drop_rows(t->f->table, bytes_of("000")));
    struct backup_work work = {.goes_on = drop_rows_meanwhile, .context = t};
    assert_ok(backup_reserve(t->backups, BACKUP, TEST_TABLE, bytes_of("")));
    assert_ok(backup_create(t->backups, BACKUP, t->f->table, &work));
    assert_null(work.context);
    assert_int_equal(row_drops_count(t->f->table->spaces[0].drops), 2);
    assert_scan(t->f, "", "", false, "0007=new");

    struct table *table = NULL;
    assert_ok(restore(t->backups, BACKUP, RESTORED, &table));
    char *rows = rows_of(t->f, table);
    unsigned found = 0;
    for (const char *at = strchr(rows, '='); at != NULL; at = strchr(at + 1, '='))
        found += at[1] == 'f';
    assert_int_equal(found, ROWS - 10);
    free(rows);
    table_release(table);
    for (int i = 0; i < 2; i++)
        maintenance_run_once(t->f->cluster->maintenance);
    assert_int_equal(row_drops_count(t->f->table->spaces[0].drops), 0);
    assert_scan(t->f, "", "", false, "0007=new");
}

/* --- elsewhere --- */

/* A backup is restored on a machine whose clock is an hour behind, and the server is restarted
 * there: later writes still have greater versions than restored rows. */
static void test_a_clock_that_is_behind(void **state)
{
    static struct ahead_clock behind = {.clock = AHEAD_CLOCK,
                                        .wall_ahead_us = INT64_C(-3600) * 1000000};
    struct fixture *t = *state;
    set_cell(t->f, "a", "old");
    assert_ok(make_backup(t, BACKUP));
    backups_close(t->backups);

    struct cluster_fixture *there = cluster_fixture_create(NULL);
    table_release(there->table);
    close_test_cluster(there);
    there->options.clock = &behind.clock;
    /* The ceiling that the right clock left goes with the directory. */
    remove_test_directory(there->directory);
    open_test_cluster(there);
    there->table = create_test_table(there->cluster, NULL);
    struct backups *backups = open_backups(there, t->directory, 0);
    struct table *table = NULL;
    assert_ok(restore(backups, BACKUP, RESTORED, &table));
    table_release(table);
    backups_close(backups);
    reopen_test_cluster(there);
    struct cluster_fixture view = *there;
    assert_ok(cluster_table(there->cluster, bytes_of(RESTORED), &view.table));
    set_cell(&view, "a", "new");
    char *rows = rows_of(there, view.table);
    assert_string_equal(rows, "a=new");
    free(rows);
    table_release(view.table);
    cluster_fixture_destroy(there);
    t->backups = open_backups(t->f, t->directory, 0);
}

/* What the clock of `t->f` is put ahead by. */
static void reopen_ahead(struct fixture *t, struct ahead_clock *clock, int64_t ahead_us)
{
    atomic_store(&clock->wall_ahead_us, ahead_us);
    backups_close(t->backups);
    t->f->options.clock = &clock->clock;
    reopen_test_cluster(t->f);
    t->backups = open_backups(t->f, t->directory, 0);
}

static struct row_change *deleting(struct cluster_fixture *f, uint32_t family)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_delete_family(change, family);
    return change;
}

/* Rows whose cells are in records of their own, some covered since by a tombstone that has not done
 * its work; sums; cells written twice. */
static void fill_by_a_clock_ahead(struct cluster_fixture *f)
{
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    set_cell(f, "a", "older");
    set_cell(f, "a", "old");
    set_cell(f, "b", big); /* overflows */
    assert_ok(try_write(f, "b", setting(f, FAMILY_G, "q", 1, big)));
    assert_ok(try_write(f, "b", deleting(f, FAMILY_F)));
    set_cell(f, "c", "gone");
    assert_ok(try_write(f, "c", deleting(f, FAMILY_F)));
    assert_ok(try_write(f, "c", setting(f, FAMILY_G, "q", 1, "c")));
    set_cell(f, "d", big);
    set_cell(f, "d", "d");
}

/* One restore of a backup from a server whose clock was ahead put this server's clock ahead for
 * good: versions of all tables, and with them the server's timestamps and all that was judged by
 * them. Now the backup's versions are lowered to the present, in their order. */
static void test_a_backup_by_a_clock_that_was_ahead(void **state)
{
    static const int64_t ahead_us = INT64_C(400) * 86400 * 1000000;
    static struct ahead_clock there = {.clock = AHEAD_CLOCK};
    struct fixture *t = *state;
    reopen_ahead(t, &there, ahead_us);
    fill_by_a_clock_ahead(t->f);
    char *expected = rows_of(t->f, t->f->table);
    assert_ok(make_backup(t, BACKUP));
    backups_close(t->backups);

    struct cluster_fixture *here = cluster_fixture_create(NULL);
    struct backups *backups = open_backups(here, t->directory, 0);
    struct table *table = NULL;
    here->log.fd = -1;
    int64_t before_us = cluster_version_us(here->cluster);
    assert_ok(restore(backups, BACKUP, RESTORED, &table));
    assert_true(cluster_version_us(here->cluster) < before_us + ahead_us / 2);
    char *rows = rows_of(here, table);
    assert_string_equal(rows, expected);
    free(rows);

    /* Later writes win, also after a restart. */
    struct cluster_fixture view = *here;
    view.table = table;
    set_cell(&view, "a", "new");
    set_cell(&view, "b", "b");
    assert_ok(try_write(&view, "b", deleting(&view, FAMILY_G)));
    assert_ok(try_write(&view, "c", deleting(&view, FAMILY_G)));
    table_release(table);
    backups_close(backups);
    reopen_test_cluster(here);
    assert_ok(cluster_table(here->cluster, bytes_of(RESTORED), &view.table));
    view.cluster = here->cluster;
    view.loop = here->loop;
    assert_ok(try_write(&view, "d", deleting(&view, FAMILY_F)));
    rows = rows_of(here, view.table);
    assert_string_equal(rows, "a=new b=b");
    free(rows);
    free(expected);
    table_release(view.table);
    cluster_fixture_destroy(here);
    t->backups = open_backups(t->f, t->directory, 0);
}

static void test_lists_copies_edits_and_deletes(void **state)
{
    struct fixture *t = *state;
    struct backup_info *infos, info;
    struct backup_work work = {0};
    size_t count;
    set_cell(t->f, "a", "1");
    assert_ok(make_backup(t, BACKUP));
    assert_status(make_backup(t, BACKUP), STATUS_ALREADY_EXISTS);
    assert_ok(backup_reserve(t->backups, OTHER, TEST_TABLE, bytes_of("copied")));
    assert_ok(backup_copy(t->backups, BACKUP, OTHER, &work));
    assert_ok(backup_set_extra(t->backups, BACKUP, bytes_of("changed")));
    assert_ok(backups_list(t->backups, "projects/p/instances/i/", t->arena, &infos, &count));
    assert_int_equal(count, 1);

    /* The same from the directory alone. */
    backups_close(t->backups);
    t->backups = open_backups(t->f, t->directory, 0);
    assert_ok(backups_list(t->backups, "projects/p/", t->arena, &infos, &count));
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].name, BACKUP);
    assert_string_equal(infos[0].source_table, TEST_TABLE);
    assert_true(infos[0].is_ready && infos[0].size_bytes > 0);
    assert_true(infos[0].start_us > 0 && infos[0].end_us >= infos[0].start_us);
    assert_true(bytes_equal(infos[0].extra, bytes_of("changed")));
    assert_string_equal(infos[1].name, OTHER);
    assert_true(bytes_equal(infos[1].extra, bytes_of("copied")));
    assert_int_equal(infos[1].size_bytes, infos[0].size_bytes);

    assert_ok(backup_delete(t->backups, BACKUP));
    assert_status(backup_delete(t->backups, BACKUP), STATUS_NOT_FOUND);
    assert_status(backup_describe(t->backups, BACKUP, t->arena, &info), STATUS_NOT_FOUND);
    struct table *table = NULL;
    assert_status(restore(t->backups, BACKUP, RESTORED, &table), STATUS_NOT_FOUND);
    assert_restores_to(t, OTHER, "a=1");
}

static void test_another_process_keeps_out(void **state)
{
    struct fixture *t = *state;
    struct backups_options options = {
        .cluster = t->f->cluster, .directory = t->directory, .log = &t->f->log};
    struct backups *second;
    assert_status(backups_open(&options, &second), STATUS_FAILED_PRECONDITION);
}

static void test_names(void **state)
{
    struct fixture *t = *state;
    static const char *const bad[] = {"", "projects/p",
                                      "projects/p/instances/i/clusters/c/backups/",
                                      "projects//instances/i/clusters/c/backups/b",
                                      "projects/p/instances/i/clusters/c/backups/b/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(backup_reserve(t->backups, bad[i], TEST_TABLE, bytes_of("")),
                      STATUS_INVALID_ARGUMENT);
    static const char odd[] = "projects/a.b:c/instances/,%/clusters/..\xc3\xa9/backups/.";
    struct buffer directory = {0}, name = {0};
    assert_ok(backup_directory_name(odd, &directory));
    assert_string_equal((const char *)directory.data, "a.b:c,%2C%25,..%C3%A9,.");
    assert_true(backup_name_of_directory((const char *)directory.data, &name));
    assert_string_equal((const char *)name.data, odd);
    static const char *const foreign[] = {"a,b,c",    "a,b,c,d,e",  "a,b,c,",   "a,b,c,%41",
                                          "a,b,c,%2", "lost+found", "a,b,c,d d"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        buffer_clear(&name);
        assert_false(backup_name_of_directory(foreign[i], &name));
    }
    buffer_free(&directory);
    buffer_free(&name);
}

/* --- damage --- */

struct verdict {
    unsigned backups;
    unsigned damaged;
};

static void note_verdict(void *context, const char *name, uint64_t size_bytes, const char *wrong)
{
    struct verdict *verdict = context;
    assert_string_equal(name, BACKUP);
    assert_true(size_bytes > 0 || wrong != NULL);
    verdict->backups++;
    verdict->damaged += wrong != NULL;
}

static struct verdict verify(struct fixture *t)
{
    struct verdict verdict = {0};
    struct backups_check check = {.context = &verdict, .visit = note_verdict};
    assert_ok(backups_verify(files_of_system(), t->directory, &check));
    return verdict;
}

static void path_of_file(const struct fixture *t, const char *file, char *path, size_t size)
{
    assert_true(snprintf(path, size, "%s/p,i,c,b/%s", t->directory, file) < (int)size);
}

static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void test_each_flipped_byte_of_a_manifest_is_found(void **state)
{
    struct fixture *t = *state;
    char path[128];
    struct stat info;
    set_cell(t->f, "a", "1");
    assert_ok(make_backup(t, BACKUP));
    assert_int_equal(verify(t).damaged, 0);
    path_of_file(t, "MANIFEST", path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < info.st_size; at++) {
        flip(path, at);
        assert_int_equal(verify(t).damaged, 1);
        flip(path, at);
    }
    assert_int_equal(verify(t).damaged, 0);
    for (long size = info.st_size - 1; size >= 0; size -= 7) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(verify(t).damaged, 1);
    }
}

static void test_a_flipped_byte_of_rows_is_found(void **state)
{
    struct fixture *t = *state;
    char path[128];
    struct stat info;
    struct table *table = NULL;
    set_cell(t->f, "a", "1");
    assert_ok(make_backup(t, BACKUP));
    path_of_file(t, "000001.sst", path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < info.st_size; at += 61) {
        flip(path, at);
        assert_int_equal(verify(t).damaged, 1);
        assert_status(restore(t->backups, BACKUP, RESTORED, &table), STATUS_DATA_LOSS);
        flip(path, at);
    }
    assert_restores_to(t, BACKUP, "a=1");
    assert_int_equal(remove(path), 0);
    assert_int_equal(verify(t).damaged, 1);
}

/* What has no manifest is cleared away; what has a damaged one is kept for its owner to look at. */
static void test_a_start_clears_what_is_unfinished(void **state)
{
    struct fixture *t = *state;
    char manifest[128], rows[128], name[] = "/p,i,c,b";
    struct table *table = NULL;
    set_cell(t->f, "a", "1");
    assert_ok(make_backup(t, BACKUP));
    backups_close(t->backups);
    path_of_file(t, "MANIFEST", manifest, sizeof manifest);
    path_of_file(t, "000001.sst", rows, sizeof rows);
    flip(manifest, 40);
    t->backups = open_backups(t->f, t->directory, 0);
    assert_status(restore(t->backups, BACKUP, RESTORED, &table), STATUS_DATA_LOSS);
    assert_status(make_backup(t, BACKUP), STATUS_ALREADY_EXISTS);
    assert_int_equal(access(rows, F_OK), 0);
    backups_close(t->backups);
    assert_int_equal(remove(manifest), 0);
    t->backups = open_backups(t->f, t->directory, 0);
    assert_int_equal(access(rows, F_OK), -1);
    char path[128];
    snprintf(path, sizeof path, "%s%s", t->directory, name);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(make_backup(t, BACKUP));
}

static bool never(struct backup_work *work)
{
    (void)work;
    return false;
}

static void test_cancelling_leaves_nothing(void **state)
{
    struct fixture *t = *state;
    struct backup_work work = {.goes_on = never};
    struct staged_backup *staged;
    char path[128];
    set_cell(t->f, "a", "1");
    assert_ok(backup_reserve(t->backups, BACKUP, TEST_TABLE, bytes_of("")));
    assert_status(backup_create(t->backups, BACKUP, t->f->table, &work), STATUS_CANCELLED);
    path_of_file(t, "", path, sizeof path);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(make_backup(t, BACKUP));
    assert_status(backup_stage(t->backups, BACKUP, &work, &staged), STATUS_CANCELLED);
    assert_ok(backup_reserve(t->backups, OTHER, TEST_TABLE, bytes_of("")));
    assert_status(backup_copy(t->backups, BACKUP, OTHER, &work), STATUS_CANCELLED);
    struct backup_info *infos;
    size_t count;
    assert_ok(backups_list(t->backups, "", t->arena, &infos, &count));
    assert_int_equal(count, 1);
}

/* Backups must not take the room that writes need, where they are on the same disk. */
static void test_a_disk_that_is_short_of_space(void **state)
{
    struct fixture *t = *state;
    set_cell(t->f, "a", "1");
    assert_ok(make_backup(t, BACKUP));
    t->backups->reserve.reserve_bytes = UINT64_MAX;
    t->backups->reserve.asked_us = 0;
    assert_status(make_backup(t, OTHER), STATUS_RESOURCE_EXHAUSTED);
    struct backup_work work = {0};
    assert_ok(backup_reserve(t->backups, OTHER, TEST_TABLE, bytes_of("")));
    assert_status(backup_copy(t->backups, BACKUP, OTHER, &work), STATUS_RESOURCE_EXHAUSTED);
    struct backup_info *infos;
    size_t count;
    assert_ok(backups_list(t->backups, "", t->arena, &infos, &count));
    assert_int_equal(count, 1);
    assert_restores_to(t, BACKUP, "a=1");
}

static void test_a_held_backup_stays(void **state)
{
    struct fixture *t = *state;
    assert_status(backup_hold(t->backups, BACKUP), STATUS_NOT_FOUND);
    assert_ok(backup_reserve(t->backups, BACKUP, TEST_TABLE, bytes_of("")));
    assert_status(backup_hold(t->backups, BACKUP), STATUS_FAILED_PRECONDITION);
    backup_give_up(t->backups, BACKUP);
    assert_ok(make_backup(t, BACKUP));
    assert_ok(backup_hold(t->backups, BACKUP));
    assert_ok(backup_hold(t->backups, BACKUP));
    assert_ok(backup_set_extra(t->backups, BACKUP, bytes_of("still held")));
    backup_let_go(t->backups, BACKUP);
    assert_status(backup_delete(t->backups, BACKUP), STATUS_FAILED_PRECONDITION);
    backup_let_go(t->backups, BACKUP);
    assert_ok(backup_delete(t->backups, BACKUP));
    assert_status(backup_hold(t->backups, BACKUP), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_restored_table_is_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_empty_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_backup_under_load_is_one_instant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rows_that_are_dropped_meanwhile_are_in_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_family_that_goes_meanwhile_is_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_backup_by_a_clock_that_was_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lists_copies_edits_and_deletes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_held_backup_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_disk_that_is_short_of_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_process_keeps_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_flipped_byte_of_a_manifest_is_found, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_flipped_byte_of_rows_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_start_clears_what_is_unfinished, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancelling_leaves_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
