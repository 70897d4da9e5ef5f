/* Tests of what commits have left of busy entities. Whether a row has changed since is made up
 * here: this file's row_group_is_newest comes before the cluster's. */
#include "datastore/commit/recent.h"

#include "base/arena.h"
#include "base/testing/testing.h"
#include "cluster/row_group.h"

#include <stdio.h>

static uint64_t newest; /* sequence of the row */

bool row_group_is_newest(struct table *table, bytes row_key, uint64_t sequence)
{
    (void)table, (void)row_key;
    return sequence == newest;
}

struct fixture {
    struct ds_recent recent;
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    ds_recent_init(&f->recent);
    f->arena = arena_create(1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_recent_free(&f->recent);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static void tell(struct fixture *f, const char *row_key, bytes record, uint64_t sequence)
{
    const struct ds_recent_entity entity = {.row_key = bytes_of(row_key),
                                            .record = record,
                                            .at_us = (int64_t)sequence * 10,
                                            .sequence = sequence};
    ds_recent_tell(&f->recent, &entity);
}

static void assert_found(struct fixture *f, const char *row_key, uint64_t sequence,
                         const char *record)
{
    struct ds_recent_entity found;
    newest = sequence;
    assert_true(ds_recent_find(&f->recent, NULL, bytes_of(row_key), f->arena, &found));
    assert_true(bytes_equal(found.record, bytes_of(record)));
    assert_int_equal(found.at_us, sequence * 10);
}

static void assert_unknown(struct fixture *f, const char *row_key, uint64_t sequence)
{
    struct ds_recent_entity found;
    newest = sequence;
    assert_false(ds_recent_find(&f->recent, NULL, bytes_of(row_key), f->arena, &found));
}

static void the_last_that_was_told_is_found(void **state)
{
    struct fixture *f = *state;
    assert_unknown(f, "a", 0);
    tell(f, "a", bytes_of("one"), 1);
    assert_found(f, "a", 1, "one");
    assert_found(f, "a", 1, "one"); /* it stays */
    tell(f, "a", bytes_of("two, longer"), 2);
    assert_found(f, "a", 2, "two, longer");
    assert_unknown(f, "b", 2);
}

static void a_row_that_has_changed_since_is_unknown(void **state)
{
    struct fixture *f = *state;
    tell(f, "a", bytes_of("one"), 1);
    assert_unknown(f, "a", 2);
}

static void what_is_large_is_passed_over(void **state)
{
    static uint8_t large[DS_RECENT_MOST];
    struct fixture *f = *state;
    tell(f, "a", bytes_make(large, DS_RECENT_MOST - 1), 1);
    newest = 1;
    struct ds_recent_entity found;
    assert_true(ds_recent_find(&f->recent, NULL, bytes_of("a"), f->arena, &found));
    assert_int_equal(found.record.size, DS_RECENT_MOST - 1);
    tell(f, "b", bytes_make(large, DS_RECENT_MOST), 1);
    assert_unknown(f, "b", 1);
}

/* Those that share a place take it from one another. */
static void many_are_known_and_none_is_taken_for_another(void **state)
{
    enum { MANY = 4 * DS_RECENT_PLACES };
    struct fixture *f = *state;
    char keys[MANY][8];
    int known = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        tell(f, keys[i], bytes_of(keys[i]), 1);
    }
    newest = 1;
    for (int i = 0; i < MANY; i++) {
        struct ds_recent_entity found;
        if (!ds_recent_find(&f->recent, NULL, bytes_of(keys[i]), f->arena, &found))
            continue;
        assert_true(bytes_equal(found.record, bytes_of(keys[i])));
        known++;
    }
    assert_in_range(known, DS_RECENT_PLACES / 2, DS_RECENT_PLACES);
}

static void without_memory_nothing_is_found(void **state)
{
    struct fixture *f = *state;
    struct ds_recent_entity found;
    struct arena *none = arena_create(0);
    tell(f, "a", bytes_of("one"), 1);
    newest = 1;
    assert_false(ds_recent_find(&f->recent, NULL, bytes_of("a"), none, &found));
    arena_destroy(none);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_that_was_told_is_found), TEST(a_row_that_has_changed_since_is_unknown),
        TEST(what_is_large_is_passed_over),    TEST(many_are_known_and_none_is_taken_for_another),
        TEST(without_memory_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
