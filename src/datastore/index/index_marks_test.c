/* Tests of the marks of indexes that answer queries: what was marked is found, also in what was
 * kept, and a set that is full says so. */
#include "datastore/index/index_marks.h"

#include "base/testing/testing.h"
#include "os/thread.h"

#include <stdio.h>

static uint64_t of_property(const char *property)
{
    return ds_index_mark_built_in(bytes_of("Kind"), bytes_of(property), DS_ASCENDING);
}

static struct ds_index_marks *make_marks(void)
{
    struct ds_index_marks *marks = ds_index_marks_create();
    assert_non_null(marks);
    return marks;
}

static void indexes_are_told_apart(void **state)
{
    (void)state;
    const uint64_t all[] = {
        of_property("a"),
        of_property(""),
        ds_index_mark_built_in(bytes_of("Kind"), bytes_of("a"), DS_DESCENDING),
        ds_index_mark_built_in(bytes_of("Kin"), bytes_of("da"), DS_ASCENDING),
        ds_index_mark_composite(1),
        ds_index_mark_composite(2),
    };
    struct ds_index_marks *marks = make_marks();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_not_equal(all[i], 0);
        assert_int_equal(ds_index_marks_get(marks, all[i]), 0);
        ds_index_marks_set(marks, all[i], 10 + (uint32_t)i);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(ds_index_marks_get(marks, all[i]), 10 + i);
    ds_index_marks_destroy(marks);
}

static void the_last_use_counts(void **state)
{
    (void)state;
    struct ds_index_marks *marks = make_marks();
    ds_index_marks_set(marks, of_property("a"), 20);
    ds_index_marks_set(marks, of_property("a"), 19); /* the clock was set back */
    assert_int_equal(ds_index_marks_get(marks, of_property("a")), 20);
    ds_index_marks_begin(marks, 5);
    ds_index_marks_begin(marks, 6);
    assert_int_equal(ds_index_marks_since(marks), 5);
    ds_index_marks_destroy(marks);
}

/* Only that is to be kept. */
static void a_change_is_told_once(void **state)
{
    (void)state;
    struct ds_index_marks *marks = make_marks();
    assert_false(ds_index_marks_take_change(marks));
    ds_index_marks_begin(marks, 5);
    assert_true(ds_index_marks_take_change(marks));
    assert_false(ds_index_marks_take_change(marks));
    ds_index_marks_set(marks, of_property("a"), 20);
    assert_true(ds_index_marks_take_change(marks));
    ds_index_marks_set(marks, of_property("a"), 20);
    assert_false(ds_index_marks_take_change(marks));
    ds_index_marks_destroy(marks);
}

static void kept_marks_are_found_again(void **state)
{
    (void)state;
    struct ds_index_marks *marks = make_marks(), *again = make_marks();
    struct buffer record = {0};
    ds_index_marks_begin(marks, 5);
    ds_index_marks_set(marks, of_property("a"), 20);
    ds_index_marks_set(marks, of_property("b"), 30);
    ds_index_marks_encode(marks, &record);
    assert_false(record.failed);
    ds_index_marks_begin(again, 50);
    ds_index_marks_set(again, of_property("a"), 51);
    ds_index_marks_decode(again, buffer_bytes(&record));
    assert_int_equal(ds_index_marks_since(again), 5);
    assert_int_equal(ds_index_marks_get(again, of_property("a")), 51);
    assert_int_equal(ds_index_marks_get(again, of_property("b")), 30);
    for (size_t size = 0; size < record.size; size++) /* damaged, or of another version */
        ds_index_marks_decode(again, bytes_make(record.data, size));
    assert_int_equal(ds_index_marks_since(again), 5);
    assert_int_equal(ds_index_marks_get(again, of_property("a")), 51);
    buffer_free(&record);
    ds_index_marks_destroy(marks);
    ds_index_marks_destroy(again);
}

static void fill(struct ds_index_marks *marks)
{
    char name[16];
    for (size_t i = 0; i < 2 * DS_INDEX_MARKS; i++) {
        snprintf(name, sizeof name, "p%zu", i);
        ds_index_marks_set(marks, of_property(name), 7);
    }
}

static void a_full_set_says_so(void **state)
{
    (void)state;
    struct ds_index_marks *marks = make_marks(), *again = make_marks();
    struct buffer record = {0};
    assert_false(ds_index_marks_is_full(marks));
    fill(marks);
    assert_true(ds_index_marks_is_full(marks));
    ds_index_marks_encode(marks, &record);
    assert_true(record.size <= DS_INDEX_MARKS_BYTES);
    ds_index_marks_decode(again, buffer_bytes(&record));
    assert_true(ds_index_marks_is_full(again));
    buffer_free(&record);
    ds_index_marks_destroy(marks);
    ds_index_marks_destroy(again);
}

static void *mark_all(void *context)
{
    char name[16];
    for (uint32_t minute = 1; minute <= 20; minute++)
        for (size_t i = 0; i < 200; i++) {
            snprintf(name, sizeof name, "p%zu", i);
            ds_index_marks_set(context, of_property(name), minute);
        }
    return NULL;
}

static void threads_lose_no_mark(void **state)
{
    (void)state;
    struct ds_index_marks *marks = make_marks();
    pthread_t threads[4];
    char name[16];
    for (size_t i = 0; i < 4; i++)
        assert_ok(thread_start(&threads[i], "marks", mark_all, marks));
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "p%zu", i);
        assert_int_not_equal(ds_index_marks_get(marks, of_property(name)), 0);
    }
    assert_false(ds_index_marks_is_full(marks));
    ds_index_marks_destroy(marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_are_told_apart), cmocka_unit_test(the_last_use_counts),
        cmocka_unit_test(a_change_is_told_once),  cmocka_unit_test(kept_marks_are_found_again),
        cmocka_unit_test(a_full_set_says_so),     cmocka_unit_test(threads_lose_no_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
