/* Which rows of a table take most, over all that happens to its tablets. */
#include "cluster/weights.h"

#include "cluster/table.h"
#include "cluster/testing/testing.h"

enum { MIB = 1 << 20 };

static struct cluster_fixture *make_fixture(void)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    f->options.write_buffer_bytes = 256 << 20; /* nothing is flushed by itself */
    reopen_test_cluster(f);
    return f;
}

static void put_cell(struct cluster_fixture *f, const char *row_key, const char *qualifier,
                     size_t size)
{
    struct row_change *change = row_change_create(f->arena);
    uint8_t *value = calloc(1, size);
    assert_non_null(change);
    assert_non_null(value);
    row_change_set(change, FAMILY_F, bytes_of(qualifier), 1, bytes_make(value, size));
    assert_ok(try_write(f, row_key, change));
    free(value);
}

static void flush(struct cluster_fixture *f)
{
    struct tablet *tablet = table_route(f->table, bytes_of(""));
    assert_ok(keyspace_flush(tablet->keyspace));
    tablet_release(tablet);
}

/* "a 3 2;": the row a has 3 MiB, its largest value 2. */
static void assert_heaviest(struct cluster_fixture *f, const char *expected)
{
    struct arena *arena = arena_create(MIB);
    struct buffer told = {0};
    struct row_weight *rows;
    size_t count;
    assert_non_null(arena);
    assert_ok(table_weigh(f->table, arena, &rows, &count));
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&told, "%.*s %u %u;", (int)rows[i].row_key.size,
                             (const char *)rows[i].row_key.data, (unsigned)(rows[i].size / MIB),
                             (unsigned)(rows[i].largest_value / MIB));
    buffer_append_byte(&told, 0);
    assert_false(told.failed);
    assert_string_equal((const char *)told.data, expected);
    buffer_free(&told);
    arena_destroy(arena);
}

static void test_restarts_splits_and_merges_forget_nothing(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture();
    put_cell(f, "a", "1", 2 * MIB);
    put_cell(f, "a", "2", 3 * MIB);
    put_cell(f, "m", "1", 4 * MIB);
    assert_heaviest(f, "m 4 4;a 5 3;"); /* in write buffers */
    flush(f);
    assert_heaviest(f, "m 4 4;a 5 3;");
    put_cell(f, "z", "1", 6 * MIB);
    put_cell(f, "b", "1", MIB / 2); /* not worth a note */
    split_at(f, "g");
    assert_heaviest(f, "z 6 6;m 4 4;a 5 3;");
    merge_at(f, "g");
    reopen_test_cluster(f);
    assert_heaviest(f, "z 6 6;m 4 4;a 5 3;");
    cluster_fixture_destroy(f);
}

static void test_keys_are_as_they_were_given(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture();
    struct arena *arena = arena_create(MIB);
    struct row_weight *rows;
    size_t count;
    struct test_write write;
    struct event event;
    struct row_change *change = row_change_create(f->arena);
    uint8_t *value = calloc(1, 5 * MIB);
    bytes key = bytes_make("\0\1\xff\0", 4);
    row_change_set(change, FAMILY_F, bytes_of("q"), 1, bytes_make(value, 5 * MIB));
    event_init(&event);
    post_write(f, &write, key, change, &event);
    assert_ok(event_wait(&event, 1));
    assert_ok(table_weigh(f->table, arena, &rows, &count));
    assert_int_equal(count, 1);
    assert_true(bytes_equal(rows[0].row_key, key));
    free(value);
    arena_destroy(arena);
    cluster_fixture_destroy(f);
}

static void test_without_memory_it_fails(void **state)
{
    (void)state;
    struct cluster_fixture *f = make_fixture();
    struct arena *small = arena_create(1);
    struct row_weight *rows;
    size_t count;
    put_cell(f, "a", "1", 5 * MIB);
    while (arena_alloc(small, 1) != NULL) {
    }
    status s = table_weigh(f->table, small, &rows, &count);
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(small);
    cluster_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts_splits_and_merges_forget_nothing),
        cmocka_unit_test(test_keys_are_as_they_were_given),
        cmocka_unit_test(test_without_memory_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
