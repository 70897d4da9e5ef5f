/* Views as the cluster keeps them: tables, records, commits, the feed of their source. */
#include "cluster/testing/stream_testing.h"
#include "cluster/testing/view_testing.h"

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static const struct view_range all = {.is_reversed = false};

/* --- tables --- */

static void a_view_has_rows_and_records(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    assert_true(table_is_view(view) && !table_is_view(f->table));
    assert_true(table_is_viewed(f->table) && !table_is_viewed(view));
    assert_int_equal(table_view_source_id(view), table_id(f->table));
    assert_int_equal(table_view_count(f->table), 1);
    put_both(f, view, "a", "1");
    put_both(f, view, "b", "2");
    put_both(f, view, "a", "3");
    assert_view(f, view, "a=3 b=2", "a=3 b=2");
    put_both(f, view, "b", NULL);
    assert_view(f, view, "a=3", "a=3");
    table_release(view);
    reopen_test_cluster(f);
    view = find_view(f, TEST_VIEW);
    assert_true(table_is_viewed(f->table));
    assert_view(f, view, "a=3", "a=3");
    table_release(view);
}

/* As the last server left them: a start would drop what nobody names. */
static size_t keyspaces_left(struct cluster_fixture *f)
{
    size_t count = 0;
    const struct store_options options = {.directory = f->directory,
                                          .fold = &row_fold,
                                          .log = &f->log,
                                          .cache_bytes = 1 << 20,
                                          .write_buffer_bytes = 1 << 20,
                                          .open_files = 64,
                                          .background_threads = 1,
                                          .read_only = true};
    struct store *store;
    table_release(f->table);
    close_test_cluster(f);
    assert_ok(store_open(&options, &store));
    while (store_keyspace_at(store, count) != NULL)
        count++;
    store_close(store);
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    return count - f->cluster->home->preallocated_count;
}

static void a_view_goes_for_good(void **state)
{
    struct cluster_fixture *f = *state;
    table_release(create_view(f, TEST_VIEW));
    table_release(create_view(f, OTHER_VIEW));
    size_t before = keyspaces_left(f);
    struct table *view = find_view(f, TEST_VIEW);
    put_both(f, view, "a", "1");
    assert_ok(cluster_delete_view(f->cluster, bytes_of(TEST_VIEW), NULL));
    assert_ok(cluster_delete_view(f->cluster, bytes_of(TEST_VIEW), NULL));
    status s = try_put_both(f, view, "a", "2");
    assert_status(s, STATUS_NOT_FOUND);
    assert_view(f, view, "a=1", "a=1"); /* who has it may go on reading */
    table_release(view);
    assert_int_equal(keyspaces_left(f), before - 2);
    assert_true(table_is_viewed(f->table));
    assert_ok(cluster_delete_view(f->cluster, bytes_of(OTHER_VIEW), NULL));
    assert_false(table_is_viewed(f->table));
    assert_int_equal(keyspaces_left(f), before - 4);
    assert_false(table_is_viewed(f->table));
}

/* Also where nothing of it has any rows: then no tablet says that the view is gone. */
static void records_alone_are_refused_when_the_view_is_gone(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    struct view_commit *commit;
    assert_ok(view_commit_begin(view, NULL, &commit));
    view_commit_put(commit, bytes_of("a"), bytes_of("1"));
    assert_ok(cluster_delete_view(f->cluster, bytes_of(TEST_VIEW), NULL));
    assert_status(view_commit_write(commit, NULL), STATUS_NOT_FOUND);
    table_release(view);
}

static void a_source_is_not_deleted_alone(void **state)
{
    struct cluster_fixture *f = *state;
    table_release(create_view(f, TEST_VIEW));
    assert_status(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL),
                  STATUS_FAILED_PRECONDITION);
    assert_ok(cluster_delete_tables(f->cluster, bytes_of(TEST_TABLE), NULL));
    struct table *view;
    assert_status(cluster_table(f->cluster, bytes_of(TEST_VIEW), &view), STATUS_NOT_FOUND);
    table_release(f->table);
    f->table = create_test_table(f->cluster, NULL);
}

static void what_cannot_be_a_source_is_refused(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW), *second;
    struct view_spec spec = view_spec_of(f, TEST_VIEW);
    assert_status(cluster_create_view(f->cluster, &spec, &second), STATUS_ALREADY_EXISTS);
    spec.name = OTHER_VIEW;
    spec.source = view;
    assert_status(cluster_create_view(f->cluster, &spec, &second), STATUS_FAILED_PRECONDITION);
    table_release(view);
}

/* A table of the name that is another one's view comes anew. */
static void a_view_is_made_sure_of(void **state)
{
    struct cluster_fixture *f = *state;
    struct view_spec spec = view_spec_of(f, TEST_VIEW);
    struct table *view;
    bool is_new;
    assert_ok(cluster_ensure_view(f->cluster, &spec, &view, &is_new));
    assert_true(is_new);
    put_both(f, view, "a", "1");
    table_release(view);
    assert_ok(cluster_ensure_view(f->cluster, &spec, &view, &is_new));
    assert_false(is_new);
    assert_view(f, view, "a=1", "a=1");
    table_release(view);
    spec.family_count = 1;
    assert_ok(cluster_ensure_view(f->cluster, &spec, &view, &is_new));
    assert_true(is_new);
    assert_view(f, view, "", "");
    assert_true(table_is_viewed(f->table));
    table_release(view);
}

/* --- records --- */

static void records_are_walked_both_ways(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    struct view_commit *commit;
    struct view_cursor *cursor;
    assert_ok(view_commit_begin(view, NULL, &commit));
    for (const char *key = "abcd"; *key != 0; key++)
        view_commit_put(commit, bytes_make(key, 1), bytes_of("x"));
    view_commit_delete_range(commit, bytes_of("c"), bytes_of("d"));
    assert_ok(view_commit_write(commit, NULL));
    assert_records(view, &all, "a=x b=x d=x");
    assert_records(view, &(struct view_range){.from = bytes_of("b"), .is_reversed = true},
                   "d=x b=x");
    assert_records(view, &(struct view_range){.to = bytes_of("d"), .is_reversed = true}, "b=x a=x");
    assert_ok(view_cursor_create(view, &cursor));
    view_cursor_seek(cursor, bytes_of("c"));
    assert_true(view_cursor_valid(cursor) && view_cursor_key(cursor).data[0] == 'd');
    view_cursor_seek_before(cursor, bytes_of("c"));
    assert_true(view_cursor_valid(cursor) && view_cursor_key(cursor).data[0] == 'b');
    view_cursor_seek_before(cursor, bytes_make(NULL, 0));
    view_cursor_next(cursor);
    assert_false(view_cursor_valid(cursor));
    assert_ok(view_cursor_status(cursor));
    view_cursor_destroy(cursor);
    assert_true(view_sizes(view).records > 0);
    table_release(view);
}

static status note_value(void *context, size_t i, bytes value)
{
    assert_true(bytes_equal(value, bytes_of("x")));
    *(size_t *)context += i;
    return status_ok();
}

static void several_records_are_got_at_once(void **state)
{
    enum { MANY = 300 };
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    struct view_commit *commit;
    char names[MANY][4];
    bytes keys[MANY];
    size_t sum = 0, hot = 0, expected = 0;
    assert_ok(view_commit_begin(view, NULL, &commit));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%03zu", i);
        keys[i] = bytes_of(names[i]);
        if (i % 3 == 0)
            view_commit_put(commit, keys[i], bytes_of("x"));
        expected += i % 3 == 0 ? i : 0;
    }
    assert_ok(view_commit_write(commit, NULL));
    assert_ok(view_records_get_many(view, keys, MANY, false, note_value, &sum));
    assert_int_equal(sum, expected);
    assert_ok(view_records_get_many(view, keys, MANY, true, note_value, &hot));
    assert_int_equal(hot, expected);
    table_release(view);
}

/* --- commits --- */

/* It has one cell, of that qualifier and value; NULL: it goes. */
static void put_view_row(struct cluster_fixture *f, struct table *view, const char *cell)
{
    struct view_commit *commit;
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    if (cell != NULL)
        row_change_set(change, FAMILY_DEFAULT, bytes_of(cell), 0, bytes_of(cell));
    assert_ok(view_commit_begin(view, NULL, &commit));
    view_commit_put_row(commit, bytes_of("a"), change);
    assert_ok(view_commit_write(commit, NULL));
}

static void a_row_that_is_put_is_all_there_is_of_it(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    put_both(f, view, "a", "1");
    put_view_row(f, view, "n");
    assert_view(f, view, "a=n", "a=1");
    put_view_row(f, view, "m");
    assert_view(f, view, "a=m", "a=1");
    put_view_row(f, view, NULL);
    assert_view(f, view, "", "a=1");
    put_both(f, view, "a", "2");
    assert_view(f, view, "a=2", "a=2");
    put_view_row(f, view, "n");
    table_release(view);
    reopen_test_cluster(f);
    view = find_view(f, TEST_VIEW);
    assert_view(f, view, "a=n", "a=2");
    table_release(view);
}

/* A row and a record, in memory that others had before. */
static status put_in(struct cluster_fixture *f, struct table *view,
                     struct view_commit_memory *memory, const char *key, const char *value)
{
    struct view_commit *commit;
    TRY(view_commit_begin(view, memory, &commit));
    change_view_row(f, commit, key, value);
    view_commit_put(commit, bytes_of(key), bytes_of(value));
    return view_commit_write(commit, NULL);
}

static void commits_have_the_same_memory_one_after_another(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    struct view_commit_memory *memory = view_commit_memory_create();
    struct view_commit *cancelled;
    assert_non_null(memory);
    assert_ok(put_in(f, view, memory, "a", "1"));
    assert_ok(view_commit_begin(view, memory, &cancelled));
    change_view_row(f, cancelled, "c", "lost");
    view_commit_put(cancelled, bytes_of("c"), bytes_of("lost"));
    view_commit_cancel(cancelled);
    assert_ok(put_in(f, view, memory, "b", "2"));
    view_commit_memory_destroy(memory);
    assert_view(f, view, "a=1 b=2", "a=1 b=2");
    table_release(view);
}

static void a_commit_of_a_view_that_is_gone_leaves_its_memory_empty(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *gone = create_view(f, OTHER_VIEW), *view = create_view(f, TEST_VIEW);
    struct view_commit_memory *memory = view_commit_memory_create();
    assert_non_null(memory);
    assert_ok(cluster_delete_view(f->cluster, bytes_of(OTHER_VIEW), NULL));
    assert_status(put_in(f, gone, memory, "a", "1"), STATUS_NOT_FOUND);
    assert_ok(put_in(f, view, memory, "b", "2"));
    view_commit_memory_destroy(memory);
    assert_view(f, view, "b=2", "b=2");
    table_release(gone);
    table_release(view);
}

static void a_commit_meets_tablets_that_were_split(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW), *table = f->table;
    struct view_commit *commit;
    assert_ok(view_commit_begin(view, NULL, &commit));
    change_view_row(f, commit, "a", "1");
    change_view_row(f, commit, "m", "2");
    view_commit_put(commit, bytes_of("r"), bytes_of("3"));
    f->table = view;
    split_at(f, "g");
    f->table = table;
    assert_ok(view_commit_write(commit, NULL));
    assert_view(f, view, "a=1 m=2", "r=3");
    table_release(view);
}

static void a_large_cell_of_a_view_is_read_again(void **state)
{
    struct cluster_fixture *f = *state;
    struct table *view = create_view(f, TEST_VIEW);
    char large[2000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    put_both(f, view, "a", large);
    put_both(f, view, "a", "small");
    assert_view(f, view, "a=small", "a=small");
    table_release(view);
}

/* --- the feed --- */

static void the_feed_has_each_changed_row(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "before", "1");
    struct table *view = create_view(f, TEST_VIEW);
    struct stream_position at, begin;
    assert_ok(view_feed_end(f->table, &at));
    begin = at;
    assert_changes(f, &at, "");
    set_cell(f, "a", "1");
    set_cell(f, "b", "1");
    assert_true(view_feed_may_have(f->table, at));
    assert_changes(f, &at, "a b");
    split_at(f, "b");
    set_cell(f, "b", "2");
    set_cell(f, "a", "2");
    merge_at(f, "b");
    delete_row(f, "b");
    assert_changes(f, &at, "b a b");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    set_cell(f, "a", "3");
    assert_changes(f, &at, "-[a,b) a");
    put_both(f, view, "x", "1"); /* the view's own are nobody's */
    assert_changes(f, &at, "");
    table_release(view);
    reopen_test_cluster(f);
    assert_true(view_feed_may_have(f->table, begin));
    assert_changes(f, &begin, "a b b a b -[a,b) a");
}

/* A change stream tells what it told before, and the feed has no record of it. */
static void a_stream_and_a_feed_do_not_meet(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_position at;
    switch_stream(f, RETENTION_US);
    struct reader reader = reader_of(f, "", "");
    table_release(create_view(f, TEST_VIEW));
    assert_ok(view_feed_end(f->table, &at));
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    delete_row(f, "a");
    assert_next(&reader, "a:f.q=1 a:-f");
    assert_changes(f, &at, "a a");
    switch_stream(f, 0);
    set_cell(f, "b", "1");
    assert_changes(f, &at, "b");
    end_reader(&reader);
}

static void no_view_no_feed(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    assert_int_equal(stream_log_written_bytes(f->cluster->home->streams), 0);
    table_release(create_view(f, TEST_VIEW));
    assert_ok(cluster_delete_view(f->cluster, bytes_of(TEST_VIEW), NULL));
    set_cell(f, "a", "2");
    assert_int_equal(stream_log_written_bytes(f->cluster->home->streams), 0);
}

static status change_rule(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    static const struct gc_rule two = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
    struct family *families = arena_alloc(arena, now->schema->family_count * sizeof *families);
    (void)context;
    assert_non_null(families);
    for (size_t i = 0; i < now->schema->family_count; i++)
        families[i] = now->schema->families[i];
    families[0].gc = &two;
    *next = (struct table_change){
        .families = families, .family_count = now->schema->family_count, .extra = now->extra};
    return status_ok();
}

static void a_change_of_rules_concerns_all_rows(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_position at;
    table_release(create_view(f, TEST_VIEW));
    assert_ok(view_feed_end(f->table, &at));
    assert_ok(table_change_schema(f->table, f->arena, change_rule, NULL));
    assert_changes(f, &at, "[,)");
    assert_ok(table_change_schema(f->table, f->arena, change_rule, NULL));
    assert_changes(f, &at, "");
    assert_true(table_is_viewed(f->table));
}

static status drop_last_family(void *context, const struct table_info *now, struct arena *arena,
                               struct table_change *next)
{
    (void)context, (void)arena;
    assert_true(now->schema->family_count > 1);
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count - 1,
                                  .extra = now->extra};
    return status_ok();
}

/* What had cells of it alone is no row any more. */
static void a_family_that_goes_concerns_all_rows(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_position at;
    table_release(create_view(f, TEST_VIEW));
    assert_ok(view_feed_end(f->table, &at));
    assert_ok(table_change_schema(f->table, f->arena, drop_last_family, NULL));
    assert_changes(f, &at, "[,)");
}

/* After a repair: what is in service again may be older. */
static void what_no_commit_says_concerns_all_rows(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_position at;
    table_release(create_view(f, TEST_VIEW));
    assert_ok(view_feed_end(f->table, &at));
    assert_ok(view_feed_tell_all(f->table));
    assert_changes(f, &at, "[,)");
    assert_ok(table_repair(f->table, &(struct table_repair_options){.is_trial = true}));
    assert_changes(f, &at, "");
    assert_ok(table_repair(f->table, &(struct table_repair_options){.is_trial = false}));
    assert_changes(f, &at, "[,)");
}

/* A view lies where its source does. */
static void a_source_lies_in_one_shard(void **state)
{
    struct cluster_fixture *f = *state;
    static const char OTHER_TABLE[] = "projects/p/instances/i/tables/other";
    const bytes half = bytes_of("m");
    const unsigned both[] = {0, 1}, second[] = {1};
    struct table_spec table = {.name = OTHER_TABLE,
                               .schema = table_schema(f->table),
                               .split_keys = &half,
                               .split_count = 1,
                               .shards = both};
    struct table *source = f->table, *view;
    struct stream_position at;
    assert_ok(cluster_create_table(f->cluster, &table, &f->table));
    struct view_spec spec = view_spec_of(f, TEST_VIEW);
    assert_status(cluster_create_view(f->cluster, &spec, &view), STATUS_FAILED_PRECONDITION);
    table_release(f->table);
    assert_ok(cluster_delete_tables(f->cluster, bytes_of(OTHER_TABLE), NULL));
    table.split_count = 0;
    table.shards = second;
    assert_ok(cluster_create_table(f->cluster, &table, &f->table));
    view = create_view(f, TEST_VIEW);
    assert_ok(view_feed_end(f->table, &at));
    assert_int_equal(view->view.shard->number, 1);
    set_cell(f, "a", "1");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_changes(f, &at, "a -[a,b)");
    put_both(f, view, "x", "1");
    assert_view(f, view, "x=1", "x=1");
    table_release(view);
    table_release(f->table);
    f->table = source;
    reopen_test_cluster(f);
    view = find_view(f, TEST_VIEW);
    assert_view(f, view, "x=1", "x=1");
    table_release(view);
}

static int setup_two_shards(void **state)
{
    *state = cluster_fixture_create_in(NULL, 2);
    return 0;
}

struct sleeper {
    struct view_feed_waiter waiter;
    struct event woken;
};

static void note_wake(struct view_feed_waiter *waiter)
{
    event_add(&((struct sleeper *)(void *)waiter)->woken, status_ok());
}

static void who_waits_is_told_once(void **state)
{
    struct cluster_fixture *f = *state;
    struct sleeper sleeper = {.waiter.wake = note_wake};
    event_init(&sleeper.woken);
    table_release(create_view(f, TEST_VIEW));
    view_feed_wait(f->table, &sleeper.waiter);
    set_cell(f, "a", "1");
    assert_ok(event_wait(&sleeper.woken, 1));
    assert_false(view_feed_forget(f->table, &sleeper.waiter));
    set_cell(f, "a", "2");
    assert_int_equal(sleeper.woken.count, 1);
    view_feed_wait(f->table, &sleeper.waiter);
    assert_true(view_feed_forget(f->table, &sleeper.waiter));
}

static void the_first_unread_change_has_its_time(void **state)
{
    struct cluster_fixture *f = *state;
    struct stream_position at;
    int64_t first_us, before_us = cluster_version_us(f->cluster);
    table_release(create_view(f, TEST_VIEW));
    assert_ok(view_feed_end(f->table, &at));
    assert_ok(view_feed_first_us(f->table, at, &first_us));
    assert_true(first_us == INT64_MAX);
    set_cell(f, "a", "1");
    int64_t after_us = cluster_version_us(f->cluster);
    set_cell(f, "b", "1");
    assert_ok(view_feed_first_us(f->table, at, &first_us));
    assert_true(first_us >= before_us && first_us <= after_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_view_has_rows_and_records, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_view_goes_for_good, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(records_alone_are_refused_when_the_view_is_gone, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_source_is_not_deleted_alone, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_source_is_refused, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_view_is_made_sure_of, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(records_are_walked_both_ways, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(several_records_are_got_at_once, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_put_is_all_there_is_of_it, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(commits_have_the_same_memory_one_after_another, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_commit_of_a_view_that_is_gone_leaves_its_memory_empty,
                                        setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_commit_meets_tablets_that_were_split, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_large_cell_of_a_view_is_read_again, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(the_feed_has_each_changed_row, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_stream_and_a_feed_do_not_meet, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(no_view_no_feed, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_change_of_rules_concerns_all_rows, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_family_that_goes_concerns_all_rows, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(what_no_commit_says_concerns_all_rows, setup,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(a_source_lies_in_one_shard, setup_two_shards,
                                        cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(who_waits_is_told_once, setup, cluster_fixture_teardown),
        cmocka_unit_test_setup_teardown(the_first_unread_change_has_its_time, setup,
                                        cluster_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
