/* Administration with a disk that fails, at each of its steps.
 *
 * A story of tables made, split, merged, changed, deleted and undeleted is told again and again,
 * with the faults and ends of steps_testing.h. The next start must find the state before the step
 * that failed or after it, the tablets covering all keys once, and can tell the story to its end.
 */
#include "cluster/testing/steps_testing.h"

static const char other_table[] = "projects/p/instances/i/tables/u";

/* --- the story --- */

static status create(struct cluster_fixture *f, const char *name, const bytes *splits, size_t count)
{
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f")},
                                      {.id = FAMILY_G, .name = bytes_of("g")}};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    struct table_spec spec = {
        .name = name, .schema = schema, .split_keys = splits, .split_count = count};
    status s = cluster_create_table(f->cluster, &spec, &table);
    schema_destroy(schema);
    if (status_is_ok(s))
        table_release(table);
    return s;
}

static status create_t(struct cluster_fixture *f, const char *split_key)
{
    bytes key = bytes_of(split_key);
    return create(f, TEST_TABLE, &key, 1);
}

static status create_u(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return create(f, other_table, NULL, 0);
}

static status delete_u(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return cluster_delete_table(f->cluster, bytes_of(other_table), NULL);
}

static status undelete_u(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    struct table *u;
    TRY(cluster_deleted_table(f->cluster, bytes_of(other_table), &u));
    status s = cluster_undelete_table(f->cluster, u, NULL);
    table_release(u);
    return s;
}

/* For good, whether it stands or is kept. */
static status drop_u(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    status s = cluster_delete_tables(f->cluster, bytes_of(other_table), NULL);
    cluster_reclaim_dropped(f->cluster);
    return s;
}

static status write_row(struct cluster_fixture *f, const char *key)
{
    return try_write(f, key, setting(f, FAMILY_F, "q", 1, key));
}

static status split(struct cluster_fixture *f, const char *key)
{
    struct tablet *tablet = table_route(f->table, bytes_of(key));
    status s = reshape_split(f->table, tablet, bytes_of(key));
    tablet_release(tablet);
    return s;
}

static status merge(struct cluster_fixture *f, const char *key)
{
    struct tablet *right = table_route(f->table, bytes_of(key));
    struct tablet *left = table_route_before(f->table, right->start);
    status s = reshape_merge(f->table, left, right);
    tablet_release(left);
    tablet_release(right);
    return s;
}

static status drop_rows(struct cluster_fixture *f, const char *prefix)
{
    return table_drop_rows(f->table, bytes_of(prefix));
}

/* The families that there are, and one more. */
static status with_family(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    size_t count = now->schema->family_count;
    struct family *families = arena_zalloc(arena, (count + 1) * sizeof *families);
    assert_non_null(families);
    memcpy(families, now->schema->families, count * sizeof *families);
    families[count].name = bytes_of(context);
    *next = (struct table_change){.families = families, .family_count = count + 1};
    return status_ok();
}

static status without_last_family(void *context, const struct table_info *now, struct arena *arena,
                                  struct table_change *next)
{
    (void)context, (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count - 1};
    return status_ok();
}

static status add_family(struct cluster_fixture *f, const char *name)
{
    char copy[8];
    snprintf(copy, sizeof copy, "%s", name);
    return table_change_schema(f->table, f->arena, with_family, copy);
}

static status drop_family(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return table_change_schema(f->table, f->arena, without_last_family, NULL);
}

/* `after` is what show() says when the step is done. Dropping rows is the last one: what comes then
 * would have to do with the flush that returns their space, in the background. */
static const struct step {
    status (*run)(struct cluster_fixture *f, const char *argument);
    const char *argument;
    const char *after;
} steps[] = {
    {create_t, "m", "t |m: f g: "},
    {write_row, "a", "t |m: f g: a=a"},
    {write_row, "n", "t |m: f g: a=a n=n"},
    {write_row, "z", "t |m: f g: a=a n=n z=z"},
    {split, "c", "t |c|m: f g: a=a n=n z=z"},
    {write_row, "d", "t |c|m: f g: a=a d=d n=n z=z"},
    {merge, "m", "t |c: f g: a=a d=d n=n z=z"},
    {add_family, "x", "t |c: f g x: a=a d=d n=n z=z"},
    {create_u, NULL, "t |c: f g x: a=a d=d n=n z=z; u"},
    {split, "n", "t |c|n: f g x: a=a d=d n=n z=z; u"},
    {delete_u, NULL, "t |c|n: f g x: a=a d=d n=n z=z; u kept"},
    {undelete_u, NULL, "t |c|n: f g x: a=a d=d n=n z=z; u"},
    {delete_u, NULL, "t |c|n: f g x: a=a d=d n=n z=z; u kept"},
    {drop_u, NULL, "t |c|n: f g x: a=a d=d n=n z=z"},
    {write_row, "e", "t |c|n: f g x: a=a d=d e=e n=n z=z"},
    {drop_family, NULL, "t |c|n: f g: a=a d=d e=e n=n z=z"},
    {merge, "c", "t |n: f g: a=a d=d e=e n=n z=z"},
    {drop_rows, "n", "t |n: f g: a=a d=d e=e z=z"},
};

enum { STEPS = sizeof steps / sizeof *steps };

/* --- what there is --- */

static void show_tablets(struct table *table, struct buffer *out)
{
    struct tablet **tablets;
    size_t count;
    assert_ok(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        bytes next = i + 1 < count ? tablets[i + 1]->start : bytes_of("");
        assert_true(bytes_equal(tablets[i]->end, next)); /* no hole, no overlap */
        buffer_append_bytes(out, bytes_of(i == 0 ? " " : "|"));
        buffer_append_bytes(out, tablets[i]->start);
        tablet_release(tablets[i]);
    }
    free(tablets);
}

static void show_t(struct cluster_fixture *f, struct buffer *out)
{
    const struct schema *schema = table_schema(f->table);
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct buffer rows = {0};
    buffer_append_bytes(out, bytes_of("t"));
    show_tablets(f->table, out);
    buffer_append_bytes(out, bytes_of(":"));
    for (size_t i = 0; i < schema->family_count; i++) {
        buffer_append_bytes(out, bytes_of(" "));
        buffer_append_bytes(out, schema->families[i].name);
    }
    buffer_append_bytes(out, bytes_of(": "));
    assert_ok(scan_text(f, &all, 1, false, 0, &rows));
    buffer_append_bytes(out, bytes_of((const char *)rows.data));
    buffer_free(&rows);
}

/* Tables, tablets, families and rows in one line; the caller frees it. */
static void show(struct cluster_fixture *f, struct buffer *out)
{
    struct table *u;
    if (f->table != NULL)
        show_t(f, out);
    status s = cluster_table(f->cluster, bytes_of(other_table), &u);
    if (status_is_ok(s)) {
        buffer_append_bytes(out, bytes_of("; u"));
        table_release(u);
    }
    status_free(s);
    for (size_t i = 0; i < f->cluster->kept_count; i++)
        buffer_append_bytes(out, bytes_of("; u kept"));
    buffer_append_byte(out, 0);
}

static const char *text_after(size_t done)
{
    return done == 0 ? "" : steps[done - 1].after;
}

/* How many steps the state shows as done: `done`, or one more if that was under way. */
static size_t find_state(struct cluster_fixture *f, size_t done)
{
    struct buffer seen = {0};
    show(f, &seen);
    const char *text = (const char *)seen.data;
    if (done < STEPS && strcmp(text, text_after(done)) != 0)
        done++;
    assert_string_equal(text, text_after(done));
    buffer_free(&seen);
    return done;
}

/* Every keyspace belongs to the catalog, to a table, or to those that wait for one. */
static void assert_no_orphans(struct cluster_fixture *f)
{
    size_t keyspaces = 0;
    while (store_keyspace_at(f->cluster->home->store, keyspaces) != NULL)
        keyspaces++;
    assert_int_equal(keyspaces, 1 + f->cluster->home->preallocated_count + f->cluster->table_count +
                                    f->cluster->kept_count);
}

/* --- lives of the process --- */

static void hold_table(struct cluster_fixture *f)
{
    if (f->table == NULL)
        status_free(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
}

static void begin_life(struct cluster_fixture *f)
{
    open_test_cluster(f);
    hold_table(f);
}

static void end_life(struct cluster_fixture *f)
{
    if (f->table != NULL)
        table_release(f->table);
    f->table = NULL;
    close_test_cluster(f);
}

/* Goes on up to `end`, or until a step fails; returns how many are done. */
static size_t tell(struct cluster_fixture *f, size_t done, size_t end)
{
    for (; done < end; done++) {
        status s = steps[done].run(f, steps[done].argument);
        bool failed = !status_is_ok(s);
        status_free(s);
        if (failed)
            break;
        hold_table(f);
    }
    return done;
}

/* The next start, and the rest of the story. */
static void recover(struct cluster_fixture *f, size_t done)
{
    begin_life(f);
    done = find_state(f, done);
    assert_no_orphans(f);
    assert_int_equal(tell(f, done, STEPS), STEPS);
    assert_int_equal(find_state(f, STEPS), STEPS);
    end_life(f);
    begin_life(f);
    assert_int_equal(find_state(f, STEPS), STEPS);
    assert_no_orphans(f);
    end_life(f);
}

/* The story with a fault after `pass` operations that work; false if it did not come to that. */
static bool tell_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    char copy[64];
    make_steps_fixture(&f);
    f.options.undelete_window_us = INT64_C(3600) * 1000000;
    make_steps_directory(copy, sizeof copy);
    faults = fault_fs_create();
    begin_life(&f);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    size_t done = tell(&f, 0, STEPS - 1);
    bool came = fault_fs_failures(faults) > 0; /* afterwards it may be that flush */
    if (done == STEPS - 1)
        done = tell(&f, done, STEPS);
    if (ending != STOP && done < STEPS) /* or else the store is not at rest */
        cut_power(&f, copy, ending);
    fault_fs_heal(faults);
    end_life(&f);
    end_faults();
    recover(&f, done);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came || done < STEPS;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_each_sync_fails),
        cmocka_unit_test(test_each_directory_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
