/* Tests of records of heat: their bytes, and what several of them come to. */
#include "heat/heat_grid.h"

#include "base/testing/testing.h"

#include <stdio.h>

static int setup(void **state)
{
    *state = arena_create(1 << 24);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static struct heat_entry entry(const char *start, const char *end, uint64_t reads, uint64_t writes)
{
    return (struct heat_entry){.start = bytes_of(start),
                               .end = bytes_of(end),
                               .sum.numbers = {[HEAT_READS] = reads, [HEAT_WRITES] = writes}};
}

static void assert_same(const struct heat_record *a, const struct heat_record *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->from_us, b->from_us);
    assert_int_equal(a->until_us, b->until_us);
    assert_true(a->cpu_percent - b->cpu_percent < 0.01 && b->cpu_percent - a->cpu_percent < 0.01);
    for (size_t i = 0; i < a->count; i++) {
        const struct heat_entry *x = &a->entries[i], *y = &b->entries[i];
        assert_true(bytes_equal(x->start, y->start) && bytes_equal(x->end, y->end));
        assert_memory_equal(x->sum.numbers, y->sum.numbers, sizeof x->sum.numbers);
        assert_int_equal(x->sum.votes, y->sum.votes);
        assert_true(bytes_equal(x->sum.favourite, y->sum.favourite));
        assert_true(bytes_equal(x->sum.newest, y->sum.newest));
    }
}

static void what_is_written_can_be_read(void **state)
{
    struct heat_entry entries[] = {entry("", "b", 1, 2), entry("b", "bcd", 300, 70000),
                                   entry("bd", "x", UINT64_MAX, 0), entry("xyz", "", 0, 5)};
    entries[1].sum.votes = 7;
    entries[1].sum.favourite = bytes_of("bananas");
    entries[3].sum.newest = bytes_of("zzz");
    struct heat_record record = {.from_us = 60000000,
                                 .until_us = 120000000,
                                 .cpu_percent = 12.345,
                                 .count = 4,
                                 .entries = entries};
    struct heat_record read;
    struct buffer bytes = {0};
    heat_record_encode(&record, &bytes);
    assert_ok(heat_record_decode(buffer_bytes(&bytes), record.from_us, *state, &read));
    assert_same(&read, &record);
    buffer_free(&bytes);
}

/* Cut short anywhere, or with any byte changed, it does not parse, or is a record in order. */
static void damage_does_no_harm(void **state)
{
    struct heat_entry entries[] = {entry("a", "b", 1, 2), entry("b", "c", 3, 4)};
    entries[0].sum.votes = 7;
    entries[0].sum.favourite = bytes_of("abba");
    struct heat_record record = {.until_us = 60, .count = 2, .entries = entries}, read;
    struct buffer bytes = {0};
    heat_record_encode(&record, &bytes);
    for (size_t size = 0; size < bytes.size; size++)
        assert_status(heat_record_decode(bytes_make(bytes.data, size), 0, *state, &read),
                      STATUS_DATA_LOSS);
    for (size_t at = 0; at < bytes.size; at++) {
        for (unsigned value = 0; value < 256; value += 5) {
            uint8_t was = bytes.data[at];
            bytes.data[at] = (uint8_t)value;
            status s = heat_record_decode(buffer_bytes(&bytes), 0, *state, &read);
            for (size_t i = 1; status_is_ok(s) && i < read.count; i++)
                assert_true(bytes_compare(read.entries[i - 1].end, read.entries[i].start) <= 0);
            status_free(s);
            bytes.data[at] = was;
        }
    }
    buffer_free(&bytes);
}

static bool has_newest(struct arena *arena, uint32_t seen, uint64_t rising)
{
    const struct heat_ranges ranges = {.count = 1};
    struct heat_cell cell = {.writes_seen = seen,
                             .numbers = {[HEAT_WRITES] = seen, [HEAT_RISING] = rising},
                             .greatest = {.size = 1, .data = "z"}};
    struct heat_record record;
    assert_ok(heat_record_of(&ranges, &cell, arena, &record));
    return record.entries[0].sum.newest.size > 0;
}

/* A few keys in no order have most of them risen at times, and then the greatest is no newest. */
static void the_newest_key_takes_many_that_rose(void **state)
{
    assert_false(has_newest(*state, 2, 1));
    assert_false(has_newest(*state, 7, 6));
    assert_true(has_newest(*state, 8, 7));
    assert_false(has_newest(*state, 16, 8));
    assert_true(has_newest(*state, 64, 32));
    assert_false(has_newest(*state, 64, 31));
}

static const struct heat_entry *at(const struct heat_record *record, const char *start)
{
    for (size_t i = 0; i < record->count; i++)
        if (bytes_equal(record->entries[i].start, bytes_of(start)))
            return &record->entries[i];
    fail_msg("no range begins with %s", start);
    return NULL;
}

static void records_of_other_ranges_are_added_up(void **state)
{
    struct heat_entry first[] = {entry("", "m", 10, 0), entry("m", "", 8, 3)};
    struct heat_entry second[] = {entry("m", "p", 1, 1), entry("p", "", 2, 2)};
    second[0].sum.votes = 5;
    second[0].sum.favourite = bytes_of("oak");
    const struct heat_record records[] = {
        {.from_us = 0, .until_us = 10, .cpu_percent = 30, .count = 2, .entries = first},
        {.from_us = 20, .until_us = 30, .cpu_percent = 60, .count = 2, .entries = second}};
    struct heat_record sum;
    assert_ok(heat_records_combine(records, 2, 100, *state, &sum));
    assert_int_equal(sum.count, 3);
    assert_int_equal(sum.until_us, 30);
    assert_true(sum.cpu_percent > 29.9 && sum.cpu_percent < 30.1);
    assert_int_equal(at(&sum, "")->sum.numbers[HEAT_READS], 10);
    assert_int_equal(at(&sum, "m")->sum.numbers[HEAT_READS], 5);
    /* 3 are shared out by two ranges: one is left over, and goes to the second. */
    assert_int_equal(at(&sum, "m")->sum.numbers[HEAT_WRITES], 2);
    assert_int_equal(at(&sum, "p")->sum.numbers[HEAT_READS], 6);
    assert_int_equal(at(&sum, "p")->sum.numbers[HEAT_WRITES], 4);
    assert_true(bytes_equal(at(&sum, "m")->sum.favourite, bytes_of("oak")));
    assert_int_equal(at(&sum, "p")->sum.votes, 0);
}

/* What is busy keeps its borders; what is not is joined. Nothing gets lost. */
static void few_ranges_show_what_is_busy(void **state)
{
    enum { RANGES = 1000, MOST = 20, BUSY = 444 };
    static char keys[RANGES + 1][8];
    static struct heat_entry entries[RANGES];
    for (unsigned i = 0; i <= RANGES; i++)
        snprintf(keys[i], sizeof keys[i], "k%04u", i);
    for (unsigned i = 0; i < RANGES; i++)
        entries[i] = entry(keys[i], keys[i + 1], 1, i == BUSY ? 100000 : 1);
    const struct heat_record record = {.until_us = 1, .count = RANGES, .entries = entries};
    struct heat_record sum;
    assert_ok(heat_records_combine(&record, 1, MOST, *state, &sum));
    assert_in_range(sum.count, 2, MOST);
    assert_int_equal(at(&sum, keys[BUSY])->sum.numbers[HEAT_WRITES], 100000);
    assert_true(bytes_equal(at(&sum, keys[BUSY])->end, bytes_of(keys[BUSY + 1])));
    uint64_t reads = 0;
    for (size_t i = 0; i < sum.count; i++)
        reads += sum.entries[i].sum.numbers[HEAT_READS];
    assert_int_equal(reads, RANGES);
}

static void nothing_comes_to_nothing(void **state)
{
    struct heat_record sum;
    assert_ok(heat_records_combine(NULL, 0, 10, *state, &sum));
    assert_int_equal(sum.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_can_be_read, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_key_takes_many_that_rose, setup, teardown),
        cmocka_unit_test_setup_teardown(records_of_other_ranges_are_added_up, setup, teardown),
        cmocka_unit_test_setup_teardown(few_ranges_show_what_is_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_comes_to_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
