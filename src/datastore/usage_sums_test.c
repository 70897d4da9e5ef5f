/* Tests of what is added up of clients' calls: what stands out is found, what looks like it is not,
 * what is old goes, and memory is bounded. */
#include "datastore/usage_sums.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <math.h>
#include <stdio.h>

#define SECOND_US (INT64_C(1000) * 1000)
#define MINUTE_US (60 * SECOND_US)

struct fixture {
    struct ds_usage_sums *sums;
    struct arena *arena;
    int64_t now_us;
    struct ds_usage_view view;
};

static int setup(void **state)
{
    struct fixture *f = *state = calloc(1, sizeof *f);
    assert_non_null(f);
    f->now_us = 1000 * MINUTE_US;
    f->sums = ds_usage_sums_create(f->now_us);
    f->arena = arena_create(64 << 20);
    assert_non_null(f->sums);
    assert_non_null(f->arena);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_usage_sums_destroy(f->sums);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

/* A call that takes a millisecond and begins `gap_us` after the one before ended. */
static struct ds_usage_event call(struct fixture *f, enum ds_usage_call what, const char *kind,
                                  int64_t gap_us)
{
    struct ds_usage_event event = {.call = what,
                                   .weight = 1,
                                   .begun_us = f->now_us + gap_us,
                                   .ended_us = f->now_us + gap_us + 1000};
    ds_usage_set_name(&event.kind, bytes_of(kind));
    f->now_us = event.ended_us;
    return event;
}

static void set_key(struct ds_usage_event *event, const char *key)
{
    ds_usage_set_key(&event->key, bytes_of(key));
    event->keys[event->key_count++] = event->key.hash;
}

static void look(struct fixture *f)
{
    assert_ok(ds_usage_sums_view(f->sums, f->now_us, INT64_MIN, f->arena, &f->view));
}

/* The kind's number; 0 if it is not known. */
static uint64_t number(struct fixture *f, const char *kind, enum ds_usage_number which)
{
    struct ds_usage_name name;
    ds_usage_set_name(&name, bytes_of(kind));
    look(f);
    for (size_t i = 0; i < f->view.kind_count; i++)
        if (f->view.kinds[i].name.hash == name.hash)
            return f->view.kinds[i].numbers[which];
    return 0;
}

static void queries_are_counted_by_kind(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 10; i++) {
        struct ds_usage_event event = call(f, DS_USAGE_QUERY, i < 7 ? "A" : "B", 0);
        event.weight = i < 7 ? 4 : 1;
        event.items = 20;
        event.skipped = i < 7 ? 100 : 0;
        event.is_scan = event.begins_scan = i >= 7;
        event.ends_scan = i == 9;
        ds_usage_sums_add(f->sums, &event);
    }
    assert_int_equal(number(f, "A", DS_QUERIES), 28);
    assert_int_equal(number(f, "A", DS_OFFSETS), 28);
    assert_int_equal(number(f, "A", DS_SKIPPED), 2800);
    assert_int_equal(number(f, "A", DS_OFFSET_RESULTS), 560);
    assert_int_equal(number(f, "A", DS_SCANS_BEGUN), 0);
    assert_int_equal(number(f, "B", DS_OFFSETS), 0);
    assert_int_equal(number(f, "B", DS_SCANS_BEGUN), 3);
    assert_int_equal(number(f, "B", DS_SCANS_ENDED), 1);
    assert_int_equal(number(f, "B", DS_SCANNED), 60);
}

static void sums_of_an_hour_ago_are_forgotten(void **state)
{
    struct fixture *f = *state;
    struct ds_usage_event event = call(f, DS_USAGE_QUERY, "A", 0);
    ds_usage_sums_add(f->sums, &event);
    f->now_us += 31 * MINUTE_US;
    assert_int_equal(number(f, "A", DS_QUERIES), 1);
    event = call(f, DS_USAGE_QUERY, "A", 0);
    ds_usage_sums_add(f->sums, &event);
    assert_int_equal(number(f, "A", DS_QUERIES), 2);
    f->now_us += 31 * MINUTE_US;
    assert_int_equal(number(f, "A", DS_QUERIES), 1);
    assert_true(f->view.span_us <= DS_USAGE_PERIODS * DS_USAGE_PERIOD_US);
    f->now_us += 600 * MINUTE_US;
    assert_int_equal(number(f, "A", DS_QUERIES), 0);
    assert_int_equal(f->view.kind_count, 0);
}

static void kinds_are_bounded(void **state)
{
    struct fixture *f = *state;
    char kind[16];
    for (size_t i = 0; i < 2 * DS_USAGE_KINDS; i++) {
        snprintf(kind, sizeof kind, "K%zu", i);
        struct ds_usage_event event = call(f, DS_USAGE_QUERY, kind, 0);
        ds_usage_sums_add(f->sums, &event);
    }
    look(f);
    assert_int_equal(f->view.kind_count, DS_USAGE_KINDS);
}

/* --- loops --- */

static void make_singles(struct fixture *f, size_t count, int64_t gap_us, uint64_t caller)
{
    for (size_t i = 0; i < count; i++) {
        struct ds_usage_event event = call(f, DS_USAGE_LOOKUP, "A", gap_us);
        event.is_single = true;
        event.caller = caller;
        ds_usage_sums_add(f->sums, &event);
    }
}

static void calls_in_a_row_are_a_loop(void **state)
{
    struct fixture *f = *state;
    make_singles(f, DS_USAGE_RUN - 1, 2000, 1);
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), 0);
    make_singles(f, 11, 2000, 1);
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), DS_USAGE_RUN + 10);
    assert_int_equal(number(f, "A", DS_SINGLE_LOOKUPS), DS_USAGE_RUN + 10);
    assert_int_equal(number(f, "A", DS_WRITES_IN_LOOPS), 0);
}

static void calls_that_come_now_and_then_are_no_loop(void **state)
{
    struct fixture *f = *state;
    make_singles(f, 300, 2 * DS_USAGE_RUN_GAP_US, 1);
    make_singles(f, 300, 2 * DS_USAGE_RUN_MEAN_US, 2); /* as people click */
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), 0);
    assert_int_equal(number(f, "A", DS_SINGLE_LOOKUPS), 600);
}

/* The gap before the next call of many that come by chance, some hundred a second: as a logarithm
 * of a number that is drawn. */
static int64_t gap_by_chance(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    double drawn = (double)((*state >> 11) + 1) / (double)(UINT64_C(1) << 53);
    return (int64_t)(-log(drawn) * 5000);
}

static void calls_that_come_by_chance_are_no_loop(void **state)
{
    struct fixture *f = *state;
    uint64_t draws = 1;
    for (size_t i = 0; i < 5000; i++)
        make_singles(f, 1, gap_by_chance(&draws), 1);
    assert_int_equal(number(f, "A", DS_SINGLE_LOOKUPS), 5000);
    assert_true(number(f, "A", DS_LOOKUPS_IN_LOOPS) < 1000);
}

/* A loop beside other work is held up now and then. */
static void a_loop_may_be_held_up(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 300; i++)
        make_singles(f, 1, i % 5 == 0 ? 40000 : 2000 + 10 * (int64_t)i, 1);
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), 300);
}

/* Each begins before the last has ended: many at once share the connection. */
static void calls_that_overlap_are_no_loop(void **state)
{
    struct fixture *f = *state;
    make_singles(f, 300, -500, 1);
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), 0);
}

static void calls_of_many_are_no_loop(void **state)
{
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 300; i++)
        make_singles(f, 1, 1000, 1 + i % (2 * DS_USAGE_CALLERS));
    make_singles(f, 300, 1000, 0); /* of no known caller */
    assert_int_equal(number(f, "A", DS_LOOKUPS_IN_LOOPS), 0);
}

/* Of calls that stand for others it is not known what came between. */
static void sampled_calls_are_not_followed(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 300; i++) {
        struct ds_usage_event event = call(f, DS_USAGE_COMMIT, "A", 1000);
        event.is_single = true;
        event.caller = 1;
        event.weight = 2;
        ds_usage_sums_add(f->sums, &event);
    }
    assert_int_equal(number(f, "A", DS_COMMITS), 600);
    assert_int_equal(number(f, "A", DS_SINGLE_WRITES), 0);
    assert_int_equal(number(f, "A", DS_WRITES_IN_LOOPS), 0);
}

/* --- keys that stand out --- */

static void look_up(struct fixture *f, const char *a, const char *b)
{
    struct ds_usage_event event = call(f, DS_USAGE_LOOKUP, "A", 0);
    set_key(&event, a);
    set_key(&event, b);
    ds_usage_sums_add(f->sums, &event);
}

static void an_entity_in_every_lookup_is_found(void **state)
{
    struct fixture *f = *state;
    char other[16];
    for (size_t i = 0; i < 1000; i++) {
        snprintf(other, sizeof other, "%zu", i);
        look_up(f, i % 2 == 0 ? "hot" : other, i % 2 == 0 ? other : "hot");
    }
    look(f);
    assert_int_equal(f->view.lookups, 1000);
    assert_int_equal(f->view.entity.count - f->view.entity.error, 1000);
    assert_memory_equal(f->view.entity.key.text, "hot", 3);
}

static void where_none_stands_out_little_is_sure(void **state)
{
    struct fixture *f = *state;
    char a[16], b[16];
    for (size_t i = 0; i < 1000; i++) {
        snprintf(a, sizeof a, "%zu", i);
        snprintf(b, sizeof b, "%zu", 2000 - i);
        look_up(f, a, b);
    }
    look(f);
    assert_true(f->view.entity.count - f->view.entity.error < 10);
}

static void write_to(struct fixture *f, const char *group, int64_t gap_us)
{
    struct ds_usage_event event = call(f, DS_USAGE_COMMIT, "A", gap_us);
    set_key(&event, group);
    ds_usage_sums_add(f->sums, &event);
}

static void groups_are_counted_minute_by_minute(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 300; i++) /* one a second, for five minutes */
        write_to(f, "slow", SECOND_US - 1000);
    look(f);
    assert_in_range(f->view.group.count, 59, 61);
    for (size_t i = 0; i < 200; i++)
        write_to(f, "busy", SECOND_US / 10);
    look(f);
    assert_memory_equal(f->view.group.key.text, "busy", 4);
    assert_in_range(f->view.group.count, 100, 200);
    f->now_us += 31 * MINUTE_US;
    write_to(f, "slow", 0);
    look(f);
    assert_memory_equal(f->view.group.key.text, "busy", 4);
}

static void aborts_and_transactions(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 30; i++) {
        struct ds_usage_event event = call(f, DS_USAGE_ABORTED, "A", 0);
        set_key(&event, "group");
        ds_usage_sums_add(f->sums, &event);
        event = call(f, DS_USAGE_BEGIN, "", 0);
        event.weight = 2;
        ds_usage_sums_add(f->sums, &event);
        event = call(f, DS_USAGE_EXPIRED, "B", 0);
        ds_usage_sums_add(f->sums, &event);
    }
    assert_int_equal(number(f, "A", DS_ABORTED), 30);
    assert_int_equal(number(f, "A", DS_COMMITS), 0);
    assert_int_equal(number(f, "B", DS_EXPIRED), 30);
    assert_int_equal(f->view.begun, 60);
    assert_int_equal(f->view.aborted.count, 30);
    assert_int_equal(f->view.group.count, 0);
}

/* --- since --- */

static void look_since(struct fixture *f, int64_t since_us)
{
    assert_ok(ds_usage_sums_view(f->sums, f->now_us, since_us, f->arena, &f->view));
}

/* A key that stands out of all periods together need not stand out of any, and what is told since
 * some time is of periods that began then or later. */
static void periods_are_added_up(void **state)
{
    struct fixture *f = *state;
    const int64_t begin_us = f->now_us;
    static const char *const often[] = {"first", "second", "third"};
    for (size_t period = 0; period < 3; period++) {
        for (size_t i = 0; i < 35; i++)
            look_up(f, "without a text", i < 15 ? "always" : often[period]);
        f->now_us = begin_us + (int64_t)(period + 1) * DS_USAGE_PERIOD_US;
    }
    look_up(f, "last", "last but one");
    look(f);
    assert_int_equal(f->view.lookups, 106);
    assert_int_equal(f->view.entity.count, 45); /* of a period it is 15 */
    assert_memory_equal(f->view.entity.key.text, "always", 6);
    look_since(f, begin_us + 1);
    assert_int_equal(f->view.lookups, 71);
    assert_true(f->view.span_us <= 2 * DS_USAGE_PERIOD_US);
    look_since(f, f->now_us - MINUTE_US);
    assert_int_equal(f->view.lookups, 1);
    look_since(f, f->now_us + 1);
    assert_int_equal(f->view.lookups, 0);
    assert_int_equal(f->view.kind_count, 0);
    assert_int_equal(f->view.span_us, 0);
}

/* --- without memory --- */

static void count_some(void *context)
{
    struct fixture f = {.sums = ds_usage_sums_create(0), .arena = context};
    char kind[16];
    if (f.sums == NULL)
        return;
    for (size_t i = 0; i < 20; i++) {
        snprintf(kind, sizeof kind, "K%zu", i);
        struct ds_usage_event event = call(&f, DS_USAGE_QUERY, kind, 0);
        ds_usage_sums_add(f.sums, &event);
    }
    status_ignore(ds_usage_sums_view(f.sums, f.now_us, INT64_MIN, f.arena, &f.view));
    ds_usage_sums_destroy(f.sums);
}

static void without_memory_nothing_is_counted(void **state)
{
    struct fixture *f = *state;
    failmalloc_each(count_some, f->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(queries_are_counted_by_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_of_an_hour_ago_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(periods_are_added_up, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_in_a_row_are_a_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_that_come_now_and_then_are_no_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_that_come_by_chance_are_no_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_may_be_held_up, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_that_overlap_are_no_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_of_many_are_no_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(sampled_calls_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(an_entity_in_every_lookup_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(where_none_stands_out_little_is_sure, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_are_counted_minute_by_minute, setup, teardown),
        cmocka_unit_test_setup_teardown(aborts_and_transactions, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory_nothing_is_counted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
