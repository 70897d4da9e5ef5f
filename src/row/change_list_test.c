/* Change lists: what was asked for comes back, in its order. */
#include "row/change_list_derive.h"
#include "row/testing/testing.h"

#include "base/testing/failmalloc.h"

enum { ARENA_LIMIT = 64 << 20, LARGE = CHANGE_LIST_INLINE + 1 };

static uint8_t large[LARGE];

static void add_set(struct change_list *list, const char *family, const char *qualifier,
                    int64_t timestamp_us, bytes value)
{
    change_list_add(list, &(struct list_mutation){.kind = LIST_SET,
                                                  .family = bytes_of(family),
                                                  .qualifier = bytes_of(qualifier),
                                                  .timestamp_us = timestamp_us,
                                                  .value = value});
}

static void add_kind(struct change_list *list, enum list_kind kind, const char *family)
{
    change_list_add(list, &(struct list_mutation){.kind = kind, .family = bytes_of(family)});
}

static struct list_mutation next(struct list_reader *reader, enum list_kind kind)
{
    struct list_mutation mutation;
    assert_true(list_reader_next(reader, &mutation));
    assert_int_equal(mutation.kind, kind);
    return mutation;
}

static void assert_text(bytes is, const char *expected)
{
    assert_int_equal(is.size, strlen(expected));
    assert_memory_equal(is.data, expected, is.size);
}

static void every_kind_of_mutation_comes_back(void **state)
{
    (void)state;
    struct change_list list = {0};
    struct list_reader reader;
    add_set(&list, "f", "q", -1000, bytes_of("v"));
    change_list_add(&list, &(struct list_mutation){.kind = LIST_DELETE_COLUMN,
                                                   .family = bytes_of("f"),
                                                   .qualifier = bytes_of(""),
                                                   .timestamp_us = 7,
                                                   .end_us = INT64_MAX});
    add_kind(&list, LIST_DELETE_FAMILY, "g");
    change_list_add(&list, &(struct list_mutation){.kind = LIST_ADD_INT,
                                                   .family = bytes_of("g"),
                                                   .qualifier = bytes_of("n"),
                                                   .number = INT64_MIN});
    change_list_add(&list, &(struct list_mutation){.kind = LIST_MERGE,
                                                   .family = bytes_of("f"),
                                                   .qualifier = bytes_of("h"),
                                                   .value = bytes_of("")});
    assert_false(list.failed);
    list_reader_start(&reader, buffer_bytes(&list.list));
    struct list_mutation mutation = next(&reader, LIST_SET);
    assert_int_equal(mutation.timestamp_us, -1000);
    assert_text(mutation.value, "v");
    mutation = next(&reader, LIST_DELETE_COLUMN);
    assert_text(mutation.family, "f");
    assert_int_equal(mutation.timestamp_us, 7);
    assert_true(mutation.end_us == INT64_MAX);
    assert_text(next(&reader, LIST_DELETE_FAMILY).family, "g");
    mutation = next(&reader, LIST_ADD_INT);
    assert_text(mutation.family, "g");
    assert_true(mutation.number == INT64_MIN);
    mutation = next(&reader, LIST_MERGE);
    assert_text(mutation.family, "f");
    assert_text(mutation.qualifier, "h");
    assert_false(list_reader_next(&reader, &mutation) || reader.is_bad);
    change_list_free(&list);
}

static void large_values_lie_beside_the_list(void **state)
{
    (void)state;
    struct change_list list = {0};
    struct list_reader reader;
    add_set(&list, "f", "q", 1, bytes_make(large, LARGE));
    add_set(&list, "f", "q", 2, bytes_make(large, LARGE - 1));
    assert_int_equal(list.apart_count, 1);
    assert_int_equal(change_list_size(&list), list.list.size + LARGE);
    list_reader_start(&reader, buffer_bytes(&list.list));
    struct list_mutation mutation = next(&reader, LIST_SET);
    assert_true(mutation.is_apart);
    assert_int_equal(mutation.size, LARGE);
    assert_int_equal(mutation.value.size, 0);
    mutation = next(&reader, LIST_SET);
    assert_false(mutation.is_apart);
    assert_int_equal(mutation.value.size, LARGE - 1);
    change_list_free(&list);
}

/* As a deletion of the row acts: on what was there, and on what the request has set by then. */
static void deletion_of_the_row_becomes_one_of_each_family(void **state)
{
    (void)state;
    struct change_list list = {0};
    struct list_reader reader;
    const bytes families[] = {bytes_of("b"), bytes_of("c")};
    add_set(&list, "a", "q", 1, bytes_of("v"));
    add_set(&list, "b", "q", 1, bytes_make(large, LARGE));
    add_kind(&list, LIST_DELETE_ROW, "");
    add_set(&list, "d", "q", 1, bytes_make(large, LARGE));
    add_kind(&list, LIST_DELETE_ROW, "");
    assert_true(change_list_expand(&list, families, 2));
    assert_false(list.deletes_row);
    list_reader_start(&reader, buffer_bytes(&list.list));
    assert_text(next(&reader, LIST_SET).family, "a");
    assert_true(next(&reader, LIST_SET).is_apart);
    assert_text(next(&reader, LIST_DELETE_FAMILY).family, "b");
    assert_text(next(&reader, LIST_DELETE_FAMILY).family, "c");
    assert_text(next(&reader, LIST_DELETE_FAMILY).family, "a");
    assert_text(next(&reader, LIST_SET).family, "d");
    assert_text(next(&reader, LIST_DELETE_FAMILY).family, "d");
    struct list_mutation mutation;
    assert_false(list_reader_next(&reader, &mutation) || reader.is_bad);
    assert_int_equal(list.apart_count, 2);
    change_list_free(&list);
}

static void deletion_of_a_row_that_is_not_there_is_nothing(void **state)
{
    (void)state;
    struct change_list list = {0};
    add_kind(&list, LIST_DELETE_ROW, "");
    assert_false(change_list_is_empty(&list));
    assert_true(change_list_expand(&list, NULL, 0));
    assert_true(change_list_is_empty(&list));
    change_list_free(&list);
}

static void deletions_come_before_what_is_set_in_a_derived_list(void **state)
{
    (void)state;
    const struct family families[] = {{.id = 2, .name = bytes_of("a")},
                                      {.id = 1, .name = bytes_of("b"), .aggregate = AGGREGATE_SUM}};
    const uint8_t minus_two[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe};
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct schema *schema;
    status_ignore(schema_create(GRANULARITY_MILLIS, families, 2, 3, &schema));
    struct row_change *change = row_change_create(arena);
    struct packed_change packed;
    row_change_set(change, 2, bytes_of("gone"), 1, bytes_of("x"));
    row_change_delete_row(change);
    row_change_set(change, 2, bytes_of("big"), 5, bytes_of("0123456789"));
    row_change_add(change, ENTRY_SUM, 1, bytes_of("n"), 3, bytes_make(minus_two, 8));
    row_change_delete_column(change, 2, bytes_of("q"), 4, 9);
    assert_true(status_is_ok(row_change_pack(change, 10, &packed)));
    change_list_derive(&packed.list, &packed, schema);
    struct list_reader reader;
    list_reader_start(&reader, buffer_bytes(&packed.list.list));
    next(&reader, LIST_DELETE_ROW);
    assert_true(next(&reader, LIST_ADD_INT).number == -2);
    struct list_mutation mutation = next(&reader, LIST_DELETE_COLUMN);
    assert_true(mutation.timestamp_us == 4 && mutation.end_us == 9);
    assert_text(next(&reader, LIST_SET).value, "0123456789");
    assert_false(list_reader_next(&reader, &mutation) || reader.is_bad);
    packed_change_free(&packed);
    schema_destroy(schema);
    arena_destroy(arena);
}

static void make_list(void *context)
{
    const bytes family = bytes_of("b");
    struct change_list list = {0};
    (void)context;
    for (int i = 0; i < 6; i++)
        add_set(&list, "f", "q", i, bytes_make(large, LARGE));
    add_kind(&list, LIST_DELETE_ROW, "");
    size_t size = list.list.size;
    if (!list.failed && !change_list_expand(&list, &family, 1))
        assert_true(list.deletes_row && list.list.size == size);
    else if (!list.failed)
        assert_true(!list.deletes_row && list.apart_count == 6);
    change_list_free(&list);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    failmalloc_each(make_list, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_mutation_comes_back),
        cmocka_unit_test(large_values_lie_beside_the_list),
        cmocka_unit_test(deletion_of_the_row_becomes_one_of_each_family),
        cmocka_unit_test(deletion_of_a_row_that_is_not_there_is_nothing),
        cmocka_unit_test(deletions_come_before_what_is_set_in_a_derived_list),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
