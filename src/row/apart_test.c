/* Tests of adds that are kept apart, for tombstones that may come late: folds, reads, overflow
 * cells, memory that runs out. (The cluster's foreign_rows_test has random histories of them.) */
#include "row/fold.h"
#include "row/resolve.h"
#include "row/testing/testing.h"

#include "base/testing/failmalloc.h"

enum { MOST_OPERANDS = 600, NOW_US = 10000 };

static struct schema *schema; /* 1 adds up; of its cells the newest counts */
static const struct row_rules from_four = {.tombstones_from = 4};

static int set_up(void **state)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family families[] = {
        {.id = 1, .name = bytes_of("sum"), .aggregate = AGGREGATE_SUM, .gc = &newest}};
    (void)state;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 1, 2, &schema));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    schema_destroy(schema);
    return 0;
}

static struct buffer add_at(enum entry_kind kind, int64_t timestamp_us, int64_t number,
                            uint64_t version)
{
    uint64_t word = htobe64((uint64_t)number);
    const struct entry entry = {.kind = kind,
                                .family = 1,
                                .qualifier = bytes_of("n"),
                                .timestamp_us = timestamp_us,
                                .value = bytes_make(&word, sizeof word),
                                .version = version};
    return fragment_of(&entry, 1);
}

static struct buffer add_number(int64_t number, uint64_t version)
{
    return add_at(ENTRY_SUM, 0, number, version);
}

/* The sketch of one value. */
static struct buffer add_member(int64_t member, uint64_t version)
{
    uint8_t state[HLL_ONE_MOST];
    size_t size = hll_state_write_one(HLL_INT64, hll_hash_int64(member), state);
    const struct entry entry = {.kind = ENTRY_HLL,
                                .family = 1,
                                .qualifier = bytes_of("n"),
                                .value = bytes_make(state, size),
                                .version = version};
    return fragment_of(&entry, 1);
}

static void fold(const struct row_rules *rules, bool is_whole, const char *key,
                 const struct buffer *operands, size_t count, struct buffer *out)
{
    bytes slices[MOST_OPERANDS], same = {0};
    assert_true(count <= MOST_OPERANDS);
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&operands[i]);
    const struct store_history history = {
        .key = bytes_of(key), .operands = slices, .operand_count = count};
    buffer_clear(out);
    assert_true(is_whole ? row_fold.whole(rules, &history, out, &same)
                         : row_fold.part(rules, &history, out));
    if (same.size > 0)
        buffer_append_bytes(out, same);
}

/* Folds, wholly and in part, and frees the operands. */
static void assert_folds(const struct row_rules *rules, struct buffer *operands, size_t count,
                         const char *expected)
{
    struct buffer out = {0};
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        fold(rules, is_whole, "Rr", operands, count, &out);
        assert_fragment(buffer_bytes(&out), expected);
    }
    for (size_t i = 0; i < count; i++)
        buffer_free(&operands[i]);
    buffer_free(&out);
}

#define FOLDS(rules, expected, ...)                                                                \
    assert_folds(rules, (struct buffer[]){__VA_ARGS__},                                            \
                 sizeof((struct buffer[]){__VA_ARGS__}) / sizeof(struct buffer), expected)

/* --- folds --- */

static void older_adds_become_one_and_newer_ones_do_not(void **state)
{
    (void)state;
    FOLDS(&from_four, "1:n:0+5@6 1:n:0+4@4 1:n:0+3@3", add_number(1, 1), add_number(4, 4),
          add_number(2, 3), add_number(5, 6));
    FOLDS(&from_four, "1:n:0+5@6 1:n:0+4@4 1:n:0+3@3", add_number(5, 6), add_number(4, 4),
          add_number(2, 3), add_number(1, 1));
    FOLDS(NULL, "1:n:0+12@6", add_number(1, 1), add_number(4, 4), add_number(2, 3),
          add_number(5, 6));
    FOLDS(&from_four, "1:n:0+5@6", add_number(5, 6));
}

static void all_are_kept_apart_where_no_rules_are_known_yet(void **state)
{
    (void)state;
    FOLDS(row_fold.before, "1:n:0+5@6 1:n:0+4@4 1:n:0+2@3 1:n:0+1@1", add_number(1, 1),
          add_number(4, 4), add_number(2, 3), add_number(5, 6));
}

static void other_aggregates_are_kept_apart_too(void **state)
{
    (void)state;
    FOLDS(&from_four, "1:n:0<9@6 1:n:0<2@3", add_at(ENTRY_MIN, 0, 2, 1), add_at(ENTRY_MIN, 0, 9, 6),
          add_at(ENTRY_MIN, 0, 3, 3));
    FOLDS(&from_four, "1:n:0#1~1@6 1:n:0#2~2@3", add_member(7, 6), add_member(8, 1),
          add_member(9, 3));
    FOLDS(&from_four, "1:n:0#1~1@6 1:n:0#2~2@3", add_member(8, 1), add_member(9, 3),
          add_member(7, 6));
}

static void a_version_counts_once(void **state)
{
    (void)state;
    FOLDS(&from_four, "1:n:0+4@5 1:n:0+3@4", add_number(4, 5), add_number(3, 4), add_number(4, 5),
          add_number(3, 4));
}

/* Its share of what was added before alone, wherever it lies among them. */
static void a_late_tombstone_takes_the_older_adds(void **state)
{
    (void)state;
    static const struct row_rules rules = {.tombstones_from = 1};
    struct buffer out = {0};
    struct buffer adds[] = {add_number(1, 1), add_number(3, 3), add_number(5, 5)};
    fold(&rules, true, "Rr", adds, 3, &out);
    FOLDS(&rules, "1:n[0,-)@4 1:n:0+5@5", out, FRAGMENT(column_tombstone(1, "n", 0, INT64_MAX, 4)));
    for (size_t i = 0; i < 3; i++)
        buffer_free(&adds[i]);
}

/* More than are merged at once. */
static void rounds_keep_them_apart(void **state)
{
    (void)state;
    struct buffer adds[MOST_OPERANDS], out = {0};
    struct fragment_reader reader;
    struct entry entry;
    uint64_t version = MOST_OPERANDS;
    for (size_t i = 0; i < MOST_OPERANDS; i++)
        adds[i] = add_number((int64_t)i, i + 1);
    fold(&from_four, true, "Rr", adds, MOST_OPERANDS, &out);
    assert_ok(fragment_check(buffer_bytes(&out)));
    assert_true(fragment_reader_start(&reader, buffer_bytes(&out)));
    for (; fragment_reader_next(&reader, &entry); version--) {
        assert_int_equal(entry.version, version);
        assert_int_equal(number_of(entry.value), version > 3 ? version - 1 : 3);
    }
    assert_int_equal(version, 2);
    for (size_t i = 0; i < MOST_OPERANDS; i++)
        buffer_free(&adds[i]);
    buffer_free(&out);
}

static void a_rule_counts_them_as_one_cell(void **state)
{
    (void)state;
    const struct row_rules rules = {.schema = schema, .tombstones_from = 4};
    struct buffer out = {0};
    struct buffer adds[] = {add_at(ENTRY_SUM, 9, 1, 5), add_at(ENTRY_SUM, 9, 2, 6),
                            add_at(ENTRY_SUM, 8, 4, 7), add_at(ENTRY_SUM, 8, 8, 8)};
    bool found;
    fold(&rules, true, "Rr", adds, 4, &out);
    assert_fragment(buffer_bytes(&out), "1:n:9+2@6 1:n:9+1@5");
    assert_ok(row_find_condemned(buffer_bytes(&out), schema, NOW_US, &found));
    assert_false(found);
    fold(&from_four, true, "Rr", adds, 4, &out);
    assert_ok(row_find_condemned(buffer_bytes(&out), schema, NOW_US, &found));
    assert_true(found);
    for (size_t i = 0; i < 4; i++)
        buffer_free(&adds[i]);
    buffer_free(&out);
}

static void a_fragment_says_that_it_has_some(void **state)
{
    (void)state;
    struct buffer out = {0};
    struct buffer adds[] = {add_number(1, 5), add_number(2, 6)};
    fold(&from_four, true, "Rr", adds, 2, &out);
    assert_true(fragment_has_apart(buffer_bytes(&out)));
    assert_false(fragment_is_simple(buffer_bytes(&out)));
    assert_true(fragment_is_simple(buffer_bytes(&adds[0])));
    out.data[0] &= (uint8_t)~8u; /* as no writer leaves it */
    status s = fragment_check(buffer_bytes(&out));
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    status_ignore(s);
    buffer_free(&adds[0]);
    buffer_free(&adds[1]);
    buffer_free(&out);
}

/* --- reads, overflow cells --- */

static void a_reader_gets_one_cell(void **state)
{
    (void)state;
    struct buffer record = {0};
    struct buffer adds[] = {add_number(1, 1), add_number(3, 5), add_number(5, 6)};
    struct cell_list cells = {.arena = arena_create(1 << 20)};
    bool too_large;
    fold(&from_four, true, "Rr", adds, 3, &record);
    const struct resolve_request request = {.schema = schema,
                                            .record = buffer_bytes(&record),
                                            .apply_gc = true,
                                            .size_limit = SIZE_MAX};
    assert_ok(row_resolve(&request, &cells, &too_large));
    assert_int_equal(cells.count, 1);
    assert_int_equal(number_of(cells.items[0].value), 9);
    for (size_t i = 0; i < 3; i++)
        buffer_free(&adds[i]);
    buffer_free(&record);
    arena_destroy(cells.arena);
}

struct moved {
    struct buffer operands[4];
    size_t count;
};

static status take_operand(void *context, const struct entry *cell, bytes operand)
{
    struct moved *moved = context;
    (void)cell;
    buffer_append_bytes(&moved->operands[moved->count++], operand);
    return status_ok();
}

static void overflowed_adds_stay_apart(void **state)
{
    (void)state;
    struct buffer record = {0}, value = {0};
    struct buffer adds[] = {add_number(1, 1), add_number(3, 5), add_number(5, 6)};
    struct moved moved = {.count = 0};
    const struct overflow_key key = {.family = 1, .qualifier = bytes_of("n")};
    struct entry cell;
    uint64_t newest;
    bool found;
    fold(&from_four, true, "Rr", adds, 3, &record);
    assert_ok(row_overflow_cells(buffer_bytes(&record), take_operand, &moved, &newest));
    assert_int_equal(moved.count, 3);
    assert_int_equal(newest, 6);
    fold(&from_four, false, "S", moved.operands, 3, &value);
    assert_fragment(buffer_bytes(&value), "0::0+5@6 0::0+3@5 0::0+1@1");
    assert_true(overflow_cell_read(&key, buffer_bytes(&value), &cell, &found));
    assert_int_equal(cell.version, 6);
    for (size_t i = 0; i < 3; i++) {
        buffer_free(&adds[i]);
        buffer_free(&moved.operands[i]);
    }
    buffer_free(&record);
    buffer_free(&value);
}

/* --- memory --- */

static void fold_without_memory(void *context)
{
    const struct store_history *history = context;
    struct buffer out = {0};
    bytes same;
    if (row_fold.whole(&from_four, history, &out, &same)) {
        struct fragment_reader reader;
        struct entry entry;
        size_t count = 0;
        assert_true(fragment_reader_start(&reader, buffer_bytes(&out)));
        while (fragment_reader_next(&reader, &entry))
            count++;
        assert_int_equal(count, 40 - 3 + 1);
    }
    buffer_free(&out);
}

static void a_fold_fails_when_memory_runs_out(void **state)
{
    (void)state;
    struct buffer adds[40];
    bytes slices[40];
    for (size_t i = 0; i < 40; i++) {
        adds[i] = add_number(1, i + 1);
        slices[i] = buffer_bytes(&adds[i]);
    }
    struct store_history history = {.key = bytes_of("Rr"), .operands = slices, .operand_count = 40};
    failmalloc_each(fold_without_memory, &history);
    for (size_t i = 0; i < 40; i++)
        buffer_free(&adds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_adds_become_one_and_newer_ones_do_not),
        cmocka_unit_test(all_are_kept_apart_where_no_rules_are_known_yet),
        cmocka_unit_test(other_aggregates_are_kept_apart_too),
        cmocka_unit_test(a_version_counts_once),
        cmocka_unit_test(a_late_tombstone_takes_the_older_adds),
        cmocka_unit_test(rounds_keep_them_apart),
        cmocka_unit_test(a_rule_counts_them_as_one_cell),
        cmocka_unit_test(a_fragment_says_that_it_has_some),
        cmocka_unit_test(a_reader_gets_one_cell),
        cmocka_unit_test(overflowed_adds_stay_apart),
        cmocka_unit_test(a_fold_fails_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
