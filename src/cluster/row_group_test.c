/* Tests of changes of several rows: all or none, in one order, over tablets. */
#include "cluster/row_group.h"

#include "cluster/cluster_private.h"
#include "cluster/testing/testing.h"
#include "tablet/key_bounds.h"

enum { ROWS = 9, WRITERS = 4, ROUNDS = 50 };

static const char *const keys[ROWS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

struct test_group {
    struct row_group group;
    struct event *event;
};

static void group_done(struct row_group *group, status result)
{
    event_add(((struct test_group *)(void *)group)->event, result);
}

static status submit_and_wait(struct test_group *group)
{
    struct event event;
    event_init(&event);
    group->event = &event;
    group->group.done = group_done;
    TRY(row_group_submit(&group->group));
    return event_wait(&event, 1);
}

/* f:q of each row is set to the value; the rows' order is another for each `turn`. Without a loop
 * this thread is the one that waits. */
static status write_rows(struct cluster_fixture *f, const char *const *names, size_t count,
                         size_t turn, const char *value, struct loop *loop)
{
    struct arena *arena = arena_create(1 << 20);
    struct grouped_row rows[ROWS];
    struct test_group group = {
        .group = {.table = f->table, .rows = rows, .count = count, .arena = arena, .loop = loop}};
    assert_non_null(arena);
    for (size_t i = 0; i < count; i++) {
        struct row_change *change = row_change_create(arena);
        row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_of(value));
        rows[i].row_key = bytes_of(names[(i + turn) % count]);
        assert_ok(row_change_pack(change, rows_big_value(f->table), &rows[i].change));
    }
    status s = loop == NULL ? row_group_write(&group.group) : submit_and_wait(&group);
    arena_destroy(arena);
    return s;
}

static status write_group(struct cluster_fixture *f, size_t count, size_t turn, const char *value,
                          struct loop *loop)
{
    return write_rows(f, keys, count, turn, value, loop);
}

static void rows_of_several_tablets_change_together(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "c");
    assert_ok(write_group(f, 4, 0, "1", f->loop));
    assert_scan(f, "", "", false, "a=1 b=1 c=1 d=1");
    assert_ok(write_group(f, 1, 0, "2", NULL));
    assert_scan(f, "", "", false, "a=2 b=1 c=1 d=1");
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=2 b=1 c=1 d=1");
}

/* Values that get records of their own were left out, so that a load of large cells looked idle: to
 * the splits of tablets, and to the heat map. */
static void big_cells_count(void **state)
{
    enum { SIZE = 10000 };
    struct cluster_fixture *f = *state;
    char value[SIZE + 1];
    memset(value, 'x', SIZE);
    value[SIZE] = '\0';
    assert_true(rows_big_value(f->table) < SIZE);
    struct tablet *tablet = table_route(f->table, bytes_of("a"));
    assert_ok(write_group(f, 3, 0, value, f->loop));
    uint64_t written = atomic_load(&tablet->bytes_written);
    assert_true(written > 3 * SIZE && written < 4 * SIZE);
    tablet_release(tablet);
}

/* The 4 KiB of Bigtable's row keys are a limit of its requests: index rows of Datastore's entities
 * are longer, up to 2 MiB. */
static void row_keys_may_be_long(void **state)
{
    enum { LONGEST = 2 << 20 };
    struct cluster_fixture *f = *state;
    struct buffer expected = {0};
    char *longest = malloc(LONGEST + 1), *shorter = malloc(LONGEST);
    assert_non_null(longest);
    assert_non_null(shorter);
    memset(longest, 'x', LONGEST);
    memset(shorter, 'x', LONGEST - 1);
    longest[LONGEST] = shorter[LONGEST - 1] = '\0';
    const char *const names[] = {longest, shorter};
    assert_ok(write_rows(f, names, 2, 0, "1", NULL));
    split_at(f, longest);
    assert_ok(write_rows(f, names, 2, 1, "2", NULL));
    buffer_append_format(&expected, "%s=2 %s=2", shorter, longest);
    buffer_append_byte(&expected, 0);
    assert_scan(f, "", "", false, (const char *)expected.data);
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, (const char *)expected.data);
    buffer_free(&expected);
    free(longest);
    free(shorter);
}

/* As the repair of a damaged range does. */
static void delete_all_keys(struct cluster_fixture *f)
{
    struct key_bounds records, overflow;
    const bytes all = bytes_make(NULL, 0);
    assert_true(record_bounds(all, all, &records));
    assert_true(overflow_bounds(all, all, &overflow));
    assert_ok(shard_delete_keys(f->cluster->home, f->table, f->table->spaces[0].keyspace, &records,
                                &overflow));
    key_bounds_free(&records);
    key_bounds_free(&overflow);
}

/* Writes f:q of "a"; the sequence of that. */
static uint64_t write_and_tell(struct cluster_fixture *f, const char *value)
{
    struct arena *arena = arena_create(1 << 20);
    struct grouped_row row = {.row_key = bytes_of("a")};
    struct row_group group = {.table = f->table, .rows = &row, .count = 1, .arena = arena};
    assert_non_null(arena);
    struct row_change *change = row_change_create(arena);
    row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_of(value));
    assert_ok(row_change_pack(change, rows_big_value(f->table), &row.change));
    assert_ok(row_group_write(&group));
    arena_destroy(arena);
    return group.commit.sequence;
}

static void a_row_is_as_a_group_left_it_until_something_else_changes_it(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t sequence = write_and_tell(f, "1");
    bytes row = bytes_of("a");
    assert_true(row_group_is_newest(f->table, row, sequence));
    assert_false(row_group_is_newest(f->table, row, sequence - 1));
    split_at(f, "a");
    assert_true(row_group_is_newest(f->table, row, sequence));
    assert_ok(try_write(f, "a", setting(f, FAMILY_F, "q", 1, "2")));
    assert_false(row_group_is_newest(f->table, row, sequence));
    sequence = write_and_tell(f, "3");
    assert_true(row_group_is_newest(f->table, row, sequence));
    delete_all_keys(f);
    assert_false(row_group_is_newest(f->table, row, sequence));
    sequence = write_and_tell(f, "4");
    assert_true(row_group_is_newest(f->table, row, sequence));
    assert_ok(table_drop_rows(f->table, row));
    assert_false(row_group_is_newest(f->table, row, sequence));
}

static void a_row_that_somebody_writes_is_not_known(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t sequence = write_and_tell(f, "1");
    struct tablet *tablet = table_route(f->table, bytes_of("a"));
    uint64_t hash = row_lock_hash(keyspace_id(tablet->keyspace), bytes_of("a"));
    assert_true(row_lock_try(tablet->shard->locks, hash));
    assert_false(row_group_is_newest(f->table, bytes_of("a"), sequence));
    row_lock_release(tablet->shard->locks, hash);
    assert_true(row_group_is_newest(f->table, bytes_of("a"), sequence));
    tablet_release(tablet);
}

static void without_memory_nothing_is_taken(void **state)
{
    struct cluster_fixture *f = *state;
    struct grouped_row row = {.row_key = bytes_of("a")};
    struct arena *none = arena_create(0);
    struct row_group group = {
        .table = f->table, .rows = &row, .count = 1, .arena = none, .done = group_done};
    for (int waits = 0; waits < 2; waits++) {
        assert_ok(row_change_pack(setting(f, FAMILY_F, "q", 1, "1"), 1 << 20, &row.change));
        assert_status(waits ? row_group_write(&group) : row_group_submit(&group),
                      STATUS_RESOURCE_EXHAUSTED);
    }
    arena_destroy(none);
    assert_scan(f, "", "", false, "");
}

/* --- several writers --- */

struct writer {
    struct cluster_fixture *f;
    unsigned number;
};

static void *write_often(void *argument)
{
    struct writer *writer = argument;
    char value[16];
    for (unsigned round = 0; round < ROUNDS; round++) {
        snprintf(value, sizeof value, "%u.%u", writer->number, round);
        assert_ok(write_group(writer->f, ROWS, writer->number + round, value, NULL));
    }
    return NULL;
}

/* The last group wrote all rows: there is one order, whatever order the rows are given in. */
static void groups_have_one_order(void **state)
{
    struct cluster_fixture *f = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    struct buffer expected = {0}, text = {0};
    split_at(f, "d");
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){f, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_often, &writers[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct key_range all = {.from = bytes_of("")};
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    const char *value = strchr((char *)text.data, '=') + 1;
    int size = (int)strcspn(value, " ");
    for (size_t i = 0; i < ROWS; i++)
        buffer_append_format(&expected, "%s%s=%.*s", i == 0 ? "" : " ", keys[i], size, value);
    buffer_append_byte(&expected, 0);
    assert_string_equal((const char *)text.data, (const char *)expected.data);
    buffer_free(&expected);
    buffer_free(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_several_tablets_change_together),
        TEST(big_cells_count),
        TEST(row_keys_may_be_long),
        TEST(a_row_is_as_a_group_left_it_until_something_else_changes_it),
        TEST(a_row_that_somebody_writes_is_not_known),
        TEST(without_memory_nothing_is_taken),
        TEST(groups_have_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
