/* Tables out of a whole backup: what they have, what they leave behind, and what fails. */
#include "backup/whole_tables.h"

#include "backup/unfinished.h"
#include "backup/whole_copy.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"
#include "base/testing/failmalloc.h"
#include "cluster/checkpoint.h"
#include "cluster/testing/steps_testing.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "google/iam/v1/policy.pb-c.h"
#include "place/place.h"
#include "store/table_names.h"

#define INSTANCE "projects/p/instances/i"
#define OTHER    INSTANCE "/tables/other"
#define EMPTY    "projects/p/instances/empty"
static const char RESTORED[] = INSTANCE "/tables/restored";

struct fixture {
    struct cluster_fixture base;
    struct control *control;
    struct backups *backups;
    struct place *place;
    struct arena *arena;
    struct whole_backup backup;
    struct whole_work work;
    char scratch[128];
    size_t closed; /* ranges of the tables that were restored last */
};

/* --- what is backed up --- */

static status stage_resources(void *context, struct edit *edit)
{
    BtAdmin__Instance instance = BT_ADMIN__INSTANCE__INIT;
    BtAdmin__AuthorizedView view = BT_ADMIN__AUTHORIZED_VIEW__INIT;
    Iam__Policy policy = IAM__POLICY__INIT;
    (void)context;
    instance.name = INSTANCE;
    view.name = INSTANCE "/tables/t/authorizedViews/v";
    policy.version = 3;
    TRY(edit_put(edit, RESOURCE_INSTANCE, INSTANCE, &instance.base, bytes_of("")));
    TRY(edit_put(edit, RESOURCE_AUTHORIZED_VIEW, view.name, &view.base, bytes_of("")));
    return edit_put(edit, RESOURCE_POLICY, TEST_TABLE, &policy.base, bytes_of(""));
}

static void create_other_table(struct fixture *f)
{
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, NULL, 0, 0, &schema));
    struct table_spec spec = {.name = OTHER, .schema = schema, .deletion_protection = true};
    assert_ok(cluster_create_table(f->base.cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
}

static void write_data(struct fixture *f)
{
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    set_cell(&f->base, "a", "1");
    set_cell(&f->base, "b", big); /* overflows */
    set_cell(&f->base, "c", "gone");
    set_cell(&f->base, "d", "4");
    split_at(&f->base, "c"); /* compacted: whole values, which no reader folds, are dropped, too */
    assert_ok(keyspace_compact(f->base.table->tablets[0]->keyspace, bytes_of(""), bytes_of("")));
    assert_ok(table_drop_rows(f->base.table, bytes_of("c")));
    create_other_table(f);
    assert_ok(control_edit(f->control, stage_resources, NULL));
}

/* Of a part of it, unless the scope is empty; after `harm`, unless that is NULL, to what it is made
 * of. */
static void back_up_harmed(struct fixture *f, const char *scope,
                           void (*harm)(const char *directory))
{
    struct checkpoint_facts facts;
    struct place_lock *lock;
    char directory[128], name[WHOLE_NAME_SIZE];
    snprintf(directory, sizeof directory, "%s/checkpoint", f->base.directory);
    assert_ok(cluster_checkpoint(f->base.cluster, directory, &facts));
    if (harm != NULL)
        harm(directory);
    if (scope[0] != '\0')
        assert_ok(whole_scope_narrow(directory, scope, &f->base.log));
    const struct whole_backup said = {.server = facts.identity,
                                      .version = facts.sequence,
                                      .instant_us = facts.wall_us,
                                      .settings = "",
                                      .scope = scope};
    const struct whole_source source = {
        .files = files_of_system(), .directory = directory, .facts = &said};
    assert_ok(place_make(f->place));
    assert_ok(whole_prepare(f->place));
    assert_ok(whole_lock(f->place, &lock));
    assert_ok(whole_create(f->place, &source, &f->work, name));
    place_unlock(f->place, lock);
    assert_ok(cluster_remove_checkpoint(f->base.cluster, directory));
    assert_ok(whole_read(f->place, name, f->arena, &f->backup));
}

static void back_up(struct fixture *f, const char *scope)
{
    back_up_harmed(f, scope, NULL);
}

/* --- fixture --- */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    char place[96], directory[96];
    make_steps_fixture(&f->base);
    f->base.options.maintenance_by_hand = true; /* the backup has a drop that is not forgotten */
    faults = fault_fs_create();
    open_test_cluster(&f->base);
    f->base.table = create_test_table(f->base.cluster, NULL);
    snprintf(place, sizeof place, "%s/place", f->base.directory);
    snprintf(directory, sizeof directory, "%s/backups", f->base.directory);
    snprintf(f->scratch, sizeof f->scratch, "%s/restoring", f->base.directory);
    const struct backups_options options = {
        .cluster = f->base.cluster, .directory = directory, .log = &f->base.log};
    assert_ok(backups_open(&options, &f->backups));
    assert_ok(control_open(f->base.cluster, &f->base.log, &f->control));
    assert_ok(place_of_directory(files_of_system(), place, &f->place));
    f->arena = arena_create(WHOLE_MEMORY);
    f->work.clock = clock_system();
    write_data(f);
    back_up(f, "");
    set_cell(&f->base, "a", "too late");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    table_release(f->base.table);
    place_close(f->place);
    backups_close(f->backups);
    control_close(f->control);
    close_test_cluster(&f->base);
    end_faults();
    free_steps_fixture(&f->base);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static status restore(struct fixture *f, const char *from, const char *to, bool with_policies,
                      size_t *made)
{
    const struct whole_tables order = {.place = f->place,
                                       .backup = &f->backup,
                                       .from = from,
                                       .to = to,
                                       .with_policies = with_policies,
                                       .files = files_of_store(f->base.cluster->home->store),
                                       .scratch = f->scratch,
                                       .work = &f->work,
                                       .control = f->control,
                                       .backups = f->backups};
    struct whole_tables_made now;
    status s = whole_restore_tables(&order, &now);
    *made = now.tables;
    f->closed = now.closed;
    return s;
}

/* --- what there is --- */

static void assert_rows(struct fixture *f, const char *table_name)
{
    struct cluster_fixture view = f->base;
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct buffer rows = {0}, expected = {0};
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    buffer_append_format(&expected, "a=1 b=%s d=4%c", big, 0);
    assert_ok(cluster_table(view.cluster, bytes_of(table_name), &view.table));
    assert_ok(scan_text(&view, &all, 1, false, 0, &rows));
    assert_string_equal((const char *)rows.data, (const char *)expected.data);
    buffer_free(&rows);
    buffer_free(&expected);
    table_release(view.table);
}

static bool has_table(struct fixture *f, const char *name)
{
    struct table *table;
    status s = cluster_table(f->base.cluster, bytes_of(name), &table);
    bool has = status_is_ok(s);
    if (has)
        table_release(table);
    status_free(s);
    return has;
}

static bool has_resource(struct fixture *f, enum resource_kind kind, const char *name)
{
    return control_has(f->control, kind, name);
}

/* --- tests --- */

static void a_table_comes_back_under_another_name(void **state)
{
    struct fixture *f = *state;
    struct table *table;
    struct tablet **tablets;
    size_t made, count;
    assert_ok(restore(f, TEST_TABLE, RESTORED, false, &made));
    assert_int_equal(made, 1);
    assert_rows(f, RESTORED);
    assert_ok(cluster_table(f->base.cluster, bytes_of(RESTORED), &table));
    assert_ok(table_tablets(table, &tablets, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        tablet_release(tablets[i]);
    free(tablets);
    table_release(table);
    assert_false(has_resource(f, RESOURCE_POLICY, RESTORED));
    assert_int_equal(access(f->scratch, F_OK), -1);
}

/* A write after the restore counts for more than what came from the backup. */
static void a_write_after_the_restore_counts(void **state)
{
    struct fixture *f = *state;
    struct cluster_fixture view = f->base;
    struct key_range a = {.from = bytes_of("a"), .to = bytes_of("b")};
    struct buffer rows = {0};
    size_t made;
    assert_ok(restore(f, TEST_TABLE, RESTORED, false, &made));
    assert_ok(cluster_table(view.cluster, bytes_of(RESTORED), &view.table));
    assert_ok(table_drop_rows(view.table, bytes_of("a")));
    assert_ok(scan_text(&view, &a, 1, false, 0, &rows));
    assert_int_equal(rows.data[0], 0);
    buffer_free(&rows);
    table_release(view.table);
}

static void an_instance_comes_with_its_tables_and_policies(void **state)
{
    static const char there[] = "projects/q/instances/j";
    struct fixture *f = *state;
    struct resource *view;
    ProtobufCMessage *message;
    size_t made;
    assert_ok(restore(f, INSTANCE, there, true, &made));
    assert_int_equal(made, 2);
    assert_rows(f, "projects/q/instances/j/tables/t");
    assert_true(has_resource(f, RESOURCE_INSTANCE, there));
    assert_true(has_resource(f, RESOURCE_POLICY, "projects/q/instances/j/tables/t"));
    assert_ok(control_find(f->control, RESOURCE_AUTHORIZED_VIEW,
                           "projects/q/instances/j/tables/t/authorizedViews/v", &view));
    assert_ok(resource_decode(view, f->arena, &message));
    assert_string_equal(((const BtAdmin__AuthorizedView *)(const void *)message)->name, view->name);
    resource_release(view);
    status s = cluster_delete_table(f->base.cluster,
                                    bytes_of("projects/q/instances/j/tables/other"), NULL);
    assert_int_equal(s.code, STATUS_FAILED_PRECONDITION); /* it is protected again */
    status_free(s);
}

static void assert_refused(struct fixture *f, const char *from, const char *to,
                           enum status_code code)
{
    size_t made;
    status s = restore(f, from, to, false, &made);
    assert_int_equal(s.code, code);
    assert_int_equal(made, 0);
    status_free(s);
}

static void what_cannot_be_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, TEST_TABLE, NULL, STATUS_ALREADY_EXISTS);
    assert_refused(f, INSTANCE, NULL, STATUS_ALREADY_EXISTS);
    assert_refused(f, INSTANCE "/tables/tt", NULL, STATUS_NOT_FOUND);
    assert_refused(f, "projects/p/instances/ii", NULL, STATUS_NOT_FOUND);
    assert_refused(f, TEST_TABLE, INSTANCE, STATUS_INVALID_ARGUMENT);
    assert_refused(f, "projects/p", NULL, STATUS_INVALID_ARGUMENT);
    assert_int_equal(access(f->scratch, F_OK), -1);
}

static void make_file_in(const char *directory, const char *name)
{
    char path[256];
    assert_ok(files_make_directory(files_of_system(), directory));
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_ok(files_replace(files_of_system(), path, bytes_of("x")));
}

static void a_foreign_directory_is_not_removed(void **state)
{
    struct fixture *f = *state;
    char mine[160];
    size_t made;
    make_file_in(f->scratch, "mine");
    snprintf(mine, sizeof mine, "%s/mine", f->scratch);
    assert_refused(f, TEST_TABLE, RESTORED, STATUS_FAILED_PRECONDITION);
    assert_int_equal(access(mine, F_OK), 0);
    assert_ok(unfinished_mark(files_of_system(), f->scratch, "a restore"));
    assert_ok(restore(f, TEST_TABLE, RESTORED, false, &made)); /* a killed one has left it */
    assert_rows(f, RESTORED);
    assert_int_equal(access(f->scratch, F_OK), -1);
}

/* Of a table that was restored: "a=1", "" if there is no such row, NULL if it is out of service. To
 * be freed. */
static char *read_row(struct fixture *f, const char *table, const char *key)
{
    struct cluster_fixture view = f->base;
    struct key_range range = {.from = bytes_of(key), .to = bytes_make(key, strlen(key) + 1)};
    struct buffer text = {0};
    assert_ok(cluster_table(view.cluster, bytes_of(table), &view.table));
    status s = scan_text(&view, &range, 1, false, 0, &text);
    bool is_closed = s.code == STATUS_DATA_LOSS;
    assert_true(is_closed || status_is_ok(s));
    status_free(s);
    table_release(view.table);
    char *out = is_closed ? NULL : strdup((const char *)text.data);
    buffer_free(&text);
    return out;
}

static void assert_row(struct fixture *f, const char *key, const char *expected)
{
    char *row = read_row(f, RESTORED, key);
    if (expected == NULL)
        assert_null(row);
    else
        assert_string_equal(row, expected);
    free(row);
}

static status say_lost(void *context, const struct lost_rows *lost)
{
    buffer_append_format(context, "%s\n", lost->words);
    return status_ok();
}

/* Gives up what is out of service of the restored table, and says what that was. */
static void repair(struct fixture *f, struct buffer *lost)
{
    struct table *table;
    const struct table_repair_options options = {.lost = say_lost, .context = lost};
    assert_ok(cluster_table(f->base.cluster, bytes_of(RESTORED), &table));
    assert_ok(table_repair(table, &options));
    table_release(table);
    buffer_append_byte(lost, 0);
}

static void begin_life(struct fixture *f)
{
    char directory[96];
    open_test_cluster(&f->base);
    assert_ok(cluster_table(f->base.cluster, bytes_of(TEST_TABLE), &f->base.table));
    snprintf(directory, sizeof directory, "%s/backups", f->base.directory);
    const struct backups_options options = {
        .cluster = f->base.cluster, .directory = directory, .log = &f->base.log};
    assert_ok(backups_open(&options, &f->backups));
    assert_ok(control_open(f->base.cluster, &f->base.log, &f->control));
}

static void live_again(struct fixture *f)
{
    table_release(f->base.table);
    backups_close(f->backups);
    control_close(f->control);
    close_test_cluster(&f->base);
    begin_life(f);
}

/* Row "b", by the catalog alone. */
static void put_out_of_service(struct fixture *f)
{
    const struct damage_record record = {.keyspace_id =
                                             keyspace_id(f->base.table->tablets[0]->keyspace),
                                         .file = 999,
                                         .from = bytes_of("Rb"),
                                         .to = bytes_of("Rc"),
                                         .what = "damaged"};
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    assert_ok(catalog_put_damage(batch, cluster_catalog(f->base.cluster), &record));
    assert_ok(store_write(f->base.cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    set_cell(&f->base, "a", "1");
    back_up(f, "");
}

/* A range may be out of service long after the file that was damaged is gone: then no file of the
 * backup shows that anything is missing. The catalog does. */
static void ranges_out_of_service_stay_so(void **state)
{
    struct fixture *f = *state;
    struct buffer lost = {0};
    size_t made;
    put_out_of_service(f);
    assert_ok(restore(f, TEST_TABLE, RESTORED, false, &made));
    assert_int_equal(made, 1);
    assert_int_equal(f->closed, 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_row(f, "a", "a=1");
        assert_row(f, "b", NULL);
        assert_row(f, "d", "d=4");
        live_again(f);
    }
    repair(f, &lost);
    assert_non_null(strstr((const char *)lost.data, RESTORED));
    assert_non_null(strstr((const char *)lost.data, "in the backup that it was restored from"));
    buffer_free(&lost);
    assert_row(f, "b", "");
    assert_row(f, "d", "d=4");
    assert_ok(restore(f, OTHER, INSTANCE "/tables/again", false, &made));
    assert_int_equal(f->closed, 0);
}

/* Never a table that lacks rows and does not say so. */
static void restore_closed_without_memory(void *context)
{
    struct fixture *f = context;
    size_t made;
    status s = restore(f, TEST_TABLE, RESTORED, false, &made);
    bool has_failed = failmalloc_stop();
    assert_true(has_failed || status_is_ok(s));
    status_free(s);
    if (!has_table(f, RESTORED))
        return;
    assert_row(f, "a", "a=1");
    assert_row(f, "b", NULL);
    assert_ok(cluster_delete_table(f->base.cluster, bytes_of(RESTORED), NULL));
}

static void without_memory_it_is_out_of_service_too(void **state)
{
    put_out_of_service(*state);
    failmalloc_each(restore_closed_without_memory, *state);
}

/* --- a damaged block --- */

enum { MANY = 240, LONG = 150, FLIPPED_AT = 20000 };

static void key_of(unsigned i, char key[8])
{
    snprintf(key, 8, "m%04u", i);
}

/* A value that cannot be compressed away. */
static void value_of(unsigned i, char value[LONG + 1])
{
    uint64_t random = i * 7919 + 1;
    for (size_t at = 0; at < LONG; at++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        value[at] = (char)('a' + (random >> 33) % 26);
    }
    value[LONG] = '\0';
}

static void write_many(struct fixture *f)
{
    char key[8], value[LONG + 1];
    struct keyspace *keyspace = f->base.table->tablets[0]->keyspace;
    for (unsigned i = 0; i < MANY; i++) {
        key_of(i, key);
        value_of(i, value);
        set_cell(&f->base, key, value);
    }
    assert_ok(keyspace_flush(keyspace));
    assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
}

struct largest {
    const char *directory;
    struct buffer content;
    char path[512];
};

static status keep_larger(void *context, const char *name)
{
    struct largest *largest = context;
    struct buffer content = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", largest->directory, name);
    if (whole_is_table_file(name))
        assert_ok(files_read(files_of_system(), path, 1 << 20, &content));
    if (content.size > largest->content.size) {
        buffer_free(&largest->content);
        largest->content = content;
        snprintf(largest->path, sizeof largest->path, "%s", path);
    } else {
        buffer_free(&content);
    }
    return status_ok();
}

/* Of the largest table, in a copy: the checkpoint shares its files with the store. */
static void harm_block(const char *directory)
{
    struct largest largest = {.directory = directory};
    assert_ok(files_list(files_of_system(), directory, keep_larger, &largest));
    assert_true(largest.content.size > FLIPPED_AT);
    largest.content.data[FLIPPED_AT] ^= 1;
    assert_int_equal(remove(largest.path), 0);
    assert_ok(files_replace(files_of_system(), largest.path, buffer_bytes(&largest.content)));
    buffer_free(&largest.content);
}

/* Of the many, those that are out of service; all others are as they were written. */
static unsigned count_closed_rows(struct fixture *f)
{
    char key[8], value[LONG + 1], expected[LONG + 16];
    unsigned closed = 0;
    for (unsigned i = 0; i < MANY; i++) {
        key_of(i, key);
        value_of(i, value);
        snprintf(expected, sizeof expected, "%s=%s", key, value);
        char *row = read_row(f, RESTORED, key);
        closed += row == NULL;
        if (row != NULL)
            assert_string_equal(row, expected);
        free(row);
    }
    return closed;
}

static void assert_is_restored_around_damage(struct fixture *f, const char *scope)
{
    struct buffer lost = {0};
    size_t made;
    back_up_harmed(f, scope, harm_block);
    assert_ok(restore(f, TEST_TABLE, RESTORED, false, &made));
    assert_int_equal(f->closed, 1);
    unsigned closed = count_closed_rows(f);
    assert_in_range(closed, 1, MANY / 2);
    assert_row(f, "a", "a=1");
    assert_ok(cluster_look_for_damage(f->base.cluster));
    live_again(f);
    assert_int_equal(count_closed_rows(f), closed);
    repair(f, &lost);
    assert_non_null(strstr((const char *)lost.data, "is not what was written"));
    buffer_free(&lost);
    assert_row(f, "a", "a=1");
    assert_ok(cluster_delete_table(f->base.cluster, bytes_of(RESTORED), NULL));
}

/* Out of a backup of all as out of one of the table alone. */
static void a_damaged_block_takes_its_rows_alone(void **state)
{
    struct fixture *f = *state;
    set_cell(&f->base, "a", "1");
    write_many(f);
    assert_is_restored_around_damage(f, "");
    assert_is_restored_around_damage(f, TEST_TABLE);
}

/* Only what the table needs is fetched: the other's file may be gone from the place. */
static void other_tables_files_are_left_alone(void **state)
{
    struct fixture *f = *state;
    struct whole_copy_options options = {.place = f->place,
                                         .backup = &f->backup,
                                         .files = files_of_system(),
                                         .directory = f->scratch,
                                         .name = OTHER,
                                         .work = &f->work};
    struct whole_copy *copy;
    size_t count;
    assert_ok(whole_copy_open(&options, &copy));
    uint64_t of_other = f->work.bytes_done;
    const struct foreign_table *tables = whole_copy_tables(copy, &count);
    assert_int_equal(count, 1);
    assert_string_equal(tables[0].record->name, OTHER);
    whole_copy_close(copy);
    options.name = TEST_TABLE;
    assert_ok(whole_copy_open(&options, &copy));
    assert_true(f->work.bytes_done > of_other);
    whole_copy_close(copy);
}

static status remove_mark(void *context, const struct place_entry *entry)
{
    const struct fixture *f = context;
    char name[64];
    snprintf(name, sizeof name, "holds/%.40s", entry->name);
    return place_remove(f->place, name);
}

/* The first look whether the work goes on comes after the manifest was read. */
static bool remove_first(void *context)
{
    struct fixture *f = context;
    const struct whole_expiry keep_one = {.keep = 1};
    struct whole_work work = {.clock = clock_system()};
    size_t backups, files;
    f->work.goes_on = NULL;
    assert_ok(whole_expire(f->place, &keep_one, &work, &backups, &files));
    assert_int_equal(backups, 0); /* it is held */
    assert_ok(place_list(f->place, "holds", remove_mark, f));
    assert_ok(whole_expire(f->place, &keep_one, &work, &backups, &files));
    assert_int_equal(backups, 1);
    return true;
}

static void an_expiry_meanwhile_is_told(void **state)
{
    struct fixture *f = *state;
    const struct whole_backup first = f->backup;
    set_cell(&f->base, "e", "5");
    assert_ok(keyspace_flush(f->base.table->tablets[0]->keyspace));
    assert_ok(
        keyspace_flush(store_keyspace_find(f->base.cluster->home->store, CATALOG_KEYSPACE_ID)));
    back_up(f, "");
    f->backup = first;
    f->work.goes_on = remove_first;
    f->work.context = f;
    assert_refused(f, TEST_TABLE, RESTORED, STATUS_ABORTED);
}

static bool goes_on(void *context)
{
    unsigned *left = context;
    return (*left)-- > 0;
}

static void a_cancelled_restore_makes_no_table(void **state)
{
    struct fixture *f = *state;
    unsigned most = 0, left;
    status s;
    size_t made;
    f->work.goes_on = goes_on;
    f->work.context = &left;
    do {
        assert_true(most < 1000);
        left = most++;
        s = restore(f, TEST_TABLE, RESTORED, false, &made);
        assert_true(status_is_ok(s) || s.code == STATUS_CANCELLED);
        assert_int_equal(made, has_table(f, RESTORED));
        status_free(s);
    } while (made == 0);
    assert_true(most > 3);
}

/* Each operation on what is fetched and staged fails once. */
static void fail_each(struct fixture *f, enum fault_operation operation, const char *part)
{
    size_t made = 0;
    for (unsigned step = 0; made == 0; step++) {
        assert_true(step < 400);
        fault_fs_fail_here(faults, operation, part, FAULT_IO, step);
        status s = restore(f, TEST_TABLE, RESTORED, false, &made);
        fault_fs_heal(faults);
        assert_true(status_is_ok(s) == (made == 1));
        assert_int_equal(made, has_table(f, RESTORED));
        status_free(s);
    }
    assert_rows(f, RESTORED);
    assert_ok(cluster_delete_table(f->base.cluster, bytes_of(RESTORED), NULL));
}

static void every_failure_of_the_disk_makes_no_table(void **state)
{
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        fail_each(f, operations[i], "/restoring");
        fail_each(f, operations[i], "/restore/");
    }
}

static void restore_without_memory(void *context)
{
    struct fixture *f = context;
    size_t made;
    status s = restore(f, TEST_TABLE, RESTORED, true, &made);
    bool has_failed = failmalloc_stop();
    assert_true(has_failed || status_is_ok(s));
    status_free(s);
    if (has_table(f, RESTORED)) {
        assert_rows(f, RESTORED);
        assert_ok(cluster_delete_table(f->base.cluster, bytes_of(RESTORED), NULL));
    }
}

static void every_allocation_may_fail(void **state)
{
    failmalloc_each(restore_without_memory, *state);
}

/* --- a part by itself --- */

/* A checkpoint with what it is to be left with. */
static void take_checkpoint(struct fixture *f)
{
    struct checkpoint_facts facts;
    assert_ok(cluster_checkpoint(f->base.cluster, f->scratch, &facts));
}

static status narrow(struct fixture *f, const char *scope)
{
    return whole_scope_narrow(f->scratch, scope, &f->base.log);
}

struct census {
    unsigned tables;
    unsigned tablets;
    unsigned preallocated;
    unsigned resources;
};

static status count_table(void *context, const struct table_record *record)
{
    struct census *census = context;
    (void)record;
    census->tables++;
    return status_ok();
}

static status count_tablet(void *context, const struct tablet_record *record)
{
    struct census *census = context;
    (void)record;
    census->tablets++;
    return status_ok();
}

static status count_preallocated(void *context, uint64_t keyspace_id)
{
    (void)keyspace_id;
    ((struct census *)context)->preallocated++;
    return status_ok();
}

static unsigned count_resources(struct keyspace *catalog)
{
    static const uint8_t first = RESOURCE_KEY, end = RESOURCE_KEY + 1;
    const struct store_cursor_options options = {
        .lower = bytes_make(&first, 1), .upper = bytes_make(&end, 1), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    unsigned count = 0;
    assert_ok(store_cursor_create(catalog, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return count;
}

static unsigned count_keyspaces(struct store *store)
{
    unsigned count = 0;
    while (store_keyspace_at(store, count) != NULL)
        count++;
    return count;
}

/* Of what is left, which can be opened, and has a keyspace for each table alone. */
static struct census take_census(struct fixture *f)
{
    const struct store_options options = {.directory = f->scratch,
                                          .fold = &row_fold,
                                          .log = &f->base.log,
                                          .cache_bytes = 1 << 20,
                                          .open_files = 64,
                                          .read_only = true};
    struct census census = {.tables = 0};
    const struct catalog_visitor visitor = {.context = &census,
                                            .table = count_table,
                                            .tablet = count_tablet,
                                            .preallocated = count_preallocated};
    struct store *store;
    assert_ok(store_open(&options, &store));
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    assert_ok(catalog_read(catalog, &visitor));
    census.resources = count_resources(catalog);
    assert_int_equal(count_keyspaces(store), 1 + census.tables);
    assert_int_equal(census.preallocated, 0);
    store_close(store);
    return census;
}

struct word {
    const char *directory;
    const char *word;
};

static status look_for_word(void *context, const char *name)
{
    const struct word *word = context;
    struct buffer path = {0}, content = {0};
    buffer_append_format(&path, "%s/%s%c", word->directory, name, 0);
    assert_ok(files_read(files_of_system(), (const char *)path.data, 1 << 20, &content));
    assert_null(memmem(content.data, content.size, word->word, strlen(word->word)));
    buffer_free(&path);
    buffer_free(&content);
    return status_ok();
}

static void assert_nowhere(const char *directory, const char *what)
{
    struct word word = {.directory = directory, .word = what};
    assert_ok(files_list(files_of_system(), directory, look_for_word, &word));
}

/* Nothing is left of other tables, also of what was flushed already. */
static void a_part_has_nothing_of_other_tables(void **state)
{
    struct fixture *f = *state;
    assert_ok(
        keyspace_flush(store_keyspace_find(f->base.cluster->home->store, CATALOG_KEYSPACE_ID)));
    take_checkpoint(f);
    assert_ok(narrow(f, TEST_TABLE));
    assert_nowhere(f->scratch, "other"); /* what comes before is compressed */
    struct census table = take_census(f);
    assert_int_equal(table.tables, 1);
    assert_int_equal(table.tablets, 2);
    assert_int_equal(table.resources, 3); /* the instance, the view, the policy */
    take_checkpoint(f);
    assert_ok(narrow(f, OTHER));
    struct census other = take_census(f);
    assert_int_equal(other.tables, 1);
    assert_int_equal(other.tablets, 1);
    assert_int_equal(other.resources, 1);
    take_checkpoint(f);
    assert_ok(narrow(f, INSTANCE));
    struct census instance = take_census(f);
    assert_int_equal(instance.tables, 2);
    assert_int_equal(instance.tablets, 3);
    assert_int_equal(instance.resources, 3);
}

static void a_name_of_no_part_is_refused(void **state)
{
    static const struct {
        const char *scope;
        enum status_code code;
    } refused[] = {{INSTANCE "/tables/tt", STATUS_NOT_FOUND},
                   {"projects/p/instances/ii", STATUS_NOT_FOUND},
                   {"projects/p", STATUS_INVALID_ARGUMENT},
                   {INSTANCE "/clusters/c", STATUS_INVALID_ARGUMENT}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        take_checkpoint(f);
        status s = narrow(f, refused[i].scope);
        assert_int_equal(s.code, refused[i].code);
        status_free(s);
    }
}

static void a_part_comes_back_as_out_of_all(void **state)
{
    struct fixture *f = *state;
    size_t made;
    set_cell(&f->base, "a", "1");
    back_up(f, TEST_TABLE);
    assert_string_equal(f->backup.scope, TEST_TABLE);
    assert_ok(restore(f, TEST_TABLE, RESTORED, true, &made));
    assert_rows(f, RESTORED);
    assert_true(has_resource(f, RESOURCE_POLICY, RESTORED));
    assert_true(
        has_resource(f, RESOURCE_AUTHORIZED_VIEW, INSTANCE "/tables/restored/authorizedViews/v"));
    assert_refused(f, OTHER, "projects/p/instances/i/tables/o", STATUS_NOT_FOUND);
    assert_refused(f, INSTANCE, "projects/p/instances/k", STATUS_NOT_FOUND);
}

static status stage_empty(void *context, struct edit *edit)
{
    BtAdmin__Instance instance = BT_ADMIN__INSTANCE__INIT;
    BtAdmin__Cluster cluster = BT_ADMIN__CLUSTER__INIT;
    instance.name = context;
    cluster.name = EMPTY "/clusters/c";
    TRY(edit_put(edit, RESOURCE_INSTANCE, instance.name, &instance.base, bytes_of("")));
    return edit_put(edit, RESOURCE_CLUSTER, cluster.name, &cluster.base, bytes_of(""));
}

/* Out of one of its own, and out of one of all. */
static void an_instance_without_tables_is_one(void **state)
{
    static char name[] = EMPTY;
    static const char there[] = "projects/q/instances/empty";
    struct fixture *f = *state;
    size_t made;
    assert_ok(control_edit(f->control, stage_empty, name));
    back_up(f, EMPTY);
    assert_ok(restore(f, EMPTY, there, false, &made));
    assert_int_equal(made, 0);
    assert_true(has_resource(f, RESOURCE_INSTANCE, there));
    assert_true(has_resource(f, RESOURCE_CLUSTER, "projects/q/instances/empty/clusters/c"));
    assert_false(has_resource(f, RESOURCE_INSTANCE, "projects/q/instances/i"));
    assert_refused(f, EMPTY, there, STATUS_ALREADY_EXISTS);
    assert_refused(f, INSTANCE, "projects/q/instances/i", STATUS_NOT_FOUND);
    back_up(f, "");
    assert_ok(restore(f, EMPTY, "projects/q/instances/again", false, &made));
    assert_true(has_resource(f, RESOURCE_INSTANCE, "projects/q/instances/again"));
}

static status note_file(void *context, const char *name)
{
    buffer_append_format(context, "%s%c", name, 0);
    return status_ok();
}

/* A missing file does not keep the rest from being read: its keys are closed, there as here. */
static void damage_goes_with_the_part(void **state)
{
    struct fixture *f = *state;
    struct buffer path = {0};
    struct keyspace *keyspace = f->base.table->tablets[0]->keyspace;
    /* Or RocksDB would perhaps do so between the checkpoint and the list. */
    assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    take_checkpoint(f);
    buffer_append_format(&path, "%s/", f->scratch);
    assert_ok(keyspace_list_files(keyspace, note_file, &path));
    assert_int_equal(remove((const char *)path.data), 0);
    buffer_free(&path);
    assert_ok(narrow(f, TEST_TABLE));
    assert_int_equal(take_census(f).tablets, 2);
}

static void every_failure_of_the_disk_leaves_no_half_part(void **state)
{
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY, FAULT_READ};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool is_done = false;
        for (unsigned step = 0; !is_done; step++) {
            assert_true(step < 400);
            unsigned failures = fault_fs_failures(faults);
            take_checkpoint(f);
            fault_fs_fail(faults, operations[i], "/restoring", FAULT_IO, step);
            status s = narrow(f, TEST_TABLE);
            is_done = fault_fs_failures(faults) == failures;
            fault_fs_heal(faults);
            assert_true(status_is_ok(s) || !is_done);
            if (status_is_ok(s))
                assert_int_equal(take_census(f).tables, 1);
            status_free(s);
        }
    }
}

static void narrow_without_memory(void *context)
{
    struct fixture *f = context;
    status s = narrow(f, TEST_TABLE);
    bool has_failed = failmalloc_stop();
    assert_true(has_failed || status_is_ok(s));
    status_free(s);
    take_checkpoint(f);
}

static void every_allocation_for_a_part_may_fail(void **state)
{
    take_checkpoint(*state);
    failmalloc_each(narrow_without_memory, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_table_comes_back_under_another_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_after_the_restore_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(an_instance_comes_with_its_tables_and_policies, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_foreign_directory_is_not_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_out_of_service_stay_so, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory_it_is_out_of_service_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_block_takes_its_rows_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(other_tables_files_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(an_expiry_meanwhile_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_restore_makes_no_table, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_the_disk_makes_no_table, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_has_nothing_of_other_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_of_no_part_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_comes_back_as_out_of_all, setup, teardown),
        cmocka_unit_test_setup_teardown(an_instance_without_tables_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_goes_with_the_part, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_the_disk_leaves_no_half_part, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_allocation_for_a_part_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
