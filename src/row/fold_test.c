/* Tests of folding, rule by rule; history_test.c has their interplay. */
#include "row/fold.h"
#include "row/resolve.h"
#include "row/testing/testing.h"

enum { NOW_US = 10000, MOST_OPERANDS = 8 };

struct fixture {
    struct clock clock;
    struct schema *schema;
    struct row_rules rules;
};

static int64_t fixed_wall(struct clock *clock)
{
    (void)clock;
    return NOW_US;
}

/* 1 keeps all, 2 the newest, 3 those of the last millisecond; 4 was dropped, 5 is not known yet. */
static int set_up(void **state)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    static const struct gc_rule young = {.kind = GC_MAX_AGE, .max_age_us = 1000};
    const struct family families[] = {{.id = 1, .name = bytes_of("keep")},
                                      {.id = 2, .name = bytes_of("newest"), .gc = &newest},
                                      {.id = 3, .name = bytes_of("young"), .gc = &young}};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 5, &fixture->schema));
    fixture->clock.wall_us = fixed_wall;
    fixture->rules = (struct row_rules){.schema = fixture->schema, .clock = &fixture->clock};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    schema_destroy(fixture->schema);
    free(fixture);
    return 0;
}

static struct store_history history_of(const char *key, const struct buffer *operands, size_t count,
                                       bytes *slices)
{
    assert_true(count <= MOST_OPERANDS);
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&operands[i]);
    return (struct store_history){.key = bytes_of(key), .operands = slices, .operand_count = count};
}

/* Folds and frees the operands. */
static void assert_part(struct buffer *operands, size_t count, const char *expected)
{
    bytes slices[MOST_OPERANDS];
    struct buffer out = {0};
    struct store_history history = history_of("Rr", operands, count, slices);
    assert_true(row_fold.part(NULL, &history, &out));
    assert_fragment(buffer_bytes(&out), expected);
    for (size_t i = 0; i < count; i++)
        buffer_free(&operands[i]);
    buffer_free(&out);
}

static void assert_whole(const void *rules, struct buffer *operands, size_t count,
                         const char *expected)
{
    bytes slices[MOST_OPERANDS];
    bytes same = {0};
    struct buffer out = {0};
    struct store_history history = history_of("Rr", operands, count, slices);
    assert_true(row_fold.whole(rules, &history, &out, &same));
    assert_fragment(same.size > 0 ? same : buffer_bytes(&out), expected);
    for (size_t i = 0; i < count; i++)
        buffer_free(&operands[i]);
    buffer_free(&out);
}

#define PART(expected, ...)                                                                        \
    assert_part((struct buffer[]){__VA_ARGS__},                                                    \
                sizeof((struct buffer[]){__VA_ARGS__}) / sizeof(struct buffer), expected)
#define WHOLE(rules, expected, ...)                                                                \
    assert_whole(rules, (struct buffer[]){__VA_ARGS__},                                            \
                 sizeof((struct buffer[]){__VA_ARGS__}) / sizeof(struct buffer), expected)

static struct buffer add_fragment(enum entry_kind kind, int64_t number, uint64_t version)
{
    uint64_t word = htobe64((uint64_t)number);
    struct entry entry = {.kind = kind,
                          .family = 1,
                          .qualifier = bytes_of("n"),
                          .value = bytes_make(&word, sizeof word),
                          .version = version};
    return fragment_of(&entry, 1);
}

static struct buffer mark_fragment(uint64_t version, uint64_t moved, uint64_t purged,
                                   bool has_overflow)
{
    struct buffer out = {0};
    row_overflow_mark(&out, version, moved, purged, has_overflow);
    return out;
}

/* --- partial folds --- */

static void test_the_greater_version_counts_in_any_order(void **state)
{
    (void)state;
    PART("1:a:1=new@9", FRAGMENT(cell_entry(1, "a", 1, "old", 3)),
         FRAGMENT(cell_entry(1, "a", 1, "new", 9)));
    PART("1:a:1=new@9", FRAGMENT(cell_entry(1, "a", 1, "new", 9)),
         FRAGMENT(cell_entry(1, "a", 1, "old", 3)));
}

static void test_other_timestamps_are_other_cells(void **state)
{
    (void)state;
    PART("1:a:2=x@3 1:a:1=y@9", FRAGMENT(cell_entry(1, "a", 2, "x", 3)),
         FRAGMENT(cell_entry(1, "a", 1, "y", 9)));
}

static void test_a_tombstone_covers_older_versions_alone(void **state)
{
    (void)state;
    PART("r@5 1:a:2=same@5 1:b:1=later@6",
         FRAGMENT(cell_entry(1, "a", 1, "before", 4), cell_entry(2, "a", 1, "before", 4)),
         FRAGMENT(row_tombstone(5), cell_entry(1, "a", 2, "same", 5)),
         FRAGMENT(cell_entry(1, "b", 1, "later", 6)));
}

static void test_a_family_tombstone_covers_its_family(void **state)
{
    (void)state;
    PART("1:a:1=other@4 2@5 2:c:1=new@7 3:a:1=other@4",
         FRAGMENT(cell_entry(1, "a", 1, "other", 4), cell_entry(2, "b", 1, "x", 4),
                  cell_entry(2, "c", 1, "x", 4), cell_entry(3, "a", 1, "other", 4)),
         FRAGMENT(family_tombstone(2, 5)), FRAGMENT(cell_entry(2, "c", 1, "new", 7)));
}

static void test_a_column_tombstone_covers_its_times(void **state)
{
    (void)state;
    PART("1:a:4=out@4 1:b[2,4)@5 1:b:4=out@4 1:b:1=out@4 1:c:2=out@4",
         FRAGMENT(cell_entry(1, "a", 4, "out", 4), cell_entry(1, "b", 4, "out", 4),
                  cell_entry(1, "b", 3, "in", 4), cell_entry(1, "b", 2, "in", 4),
                  cell_entry(1, "b", 1, "out", 4), cell_entry(1, "c", 2, "out", 4)),
         FRAGMENT(column_tombstone(1, "b", 2, 4, 5)));
}

static void test_tombstones_within_wider_ones_vanish(void **state)
{
    (void)state;
    PART("r@9 2@10", FRAGMENT(family_tombstone(1, 5), column_tombstone(1, "a", 0, 5, 8)),
         FRAGMENT(row_tombstone(9)), FRAGMENT(family_tombstone(2, 10)), FRAGMENT(row_tombstone(3)));
}

static void test_overlapping_ranges_keep_the_newest_version(void **state)
{
    (void)state;
    PART("1:a[0,10)@5 1:a[10,20)@7 1:a[20,30)@5 1:a[30,-)@6 1:a:25=x@6 1:a:15=y@7",
         FRAGMENT(column_tombstone(1, "a", 0, 30, 5)),
         FRAGMENT(column_tombstone(1, "a", 30, INT64_MAX, 6), cell_entry(1, "a", 25, "x", 6),
                  cell_entry(1, "a", 12, "covered", 6)),
         FRAGMENT(column_tombstone(1, "a", 10, 20, 7), cell_entry(1, "a", 15, "y", 7)));
}

static void test_adds_add_up_to_the_tombstone(void **state)
{
    (void)state;
    PART("1:n:0+5@4", add_fragment(ENTRY_SUM, 2, 3), add_fragment(ENTRY_SUM, 3, 4));
    PART("1:n[0,-)@4 1:n:0+7@6", add_fragment(ENTRY_SUM, 2, 3),
         FRAGMENT(column_tombstone(1, "n", 0, INT64_MAX, 4)), add_fragment(ENTRY_SUM, 3, 5),
         add_fragment(ENTRY_SUM, 4, 6));
    PART("1:n:0<-3@5", add_fragment(ENTRY_MIN, 2, 3), add_fragment(ENTRY_MIN, -3, 4),
         add_fragment(ENTRY_MIN, 9, 5));
    PART("1:n:0>9@5", add_fragment(ENTRY_MAX, 2, 3), add_fragment(ENTRY_MAX, -3, 4),
         add_fragment(ENTRY_MAX, 9, 5));
}

static void test_marks_add_up(void **state)
{
    (void)state;
    PART("m@9>5!4 1:a:1=stays@6",
         FRAGMENT(cell_entry(1, "a", 1, "moved", 5), cell_entry(1, "b", 1, "moved", 4)),
         mark_fragment(8, 5, 0, false), mark_fragment(9, 0, 4, true), mark_fragment(7, 3, 2, false),
         FRAGMENT(cell_entry(1, "a", 1, "stays", 6)));
}

static void test_ten_thousand_operands(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct buffer *operands = calloc(COUNT, sizeof *operands);
    bytes *slices = calloc(COUNT, sizeof *slices);
    for (int i = 0; i < COUNT; i++) {
        operands[i] = add_fragment(ENTRY_SUM, i, (uint64_t)i + 1);
        slices[i] = buffer_bytes(&operands[i]);
    }
    struct store_history history = {.operands = slices, .operand_count = COUNT};
    struct buffer out = {0};
    assert_true(row_fold.part(NULL, &history, &out));
    assert_fragment(buffer_bytes(&out), "1:n:0+49995000@10000");
    for (int i = 0; i < COUNT; i++)
        buffer_free(&operands[i]);
    buffer_free(&out);
    free(operands);
    free(slices);
}

/* --- any order --- */

static uint64_t below(uint64_t *state, uint64_t end)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % end;
}

static struct buffer random_operand(struct arena *arena, uint64_t *random, uint64_t version)
{
    static const char *const names[] = {"a", "b"};
    struct row_change *change = row_change_create(arena);
    struct packed_change packed;
    for (int i = 0; i < 4; i++) {
        uint32_t family = 1 + (uint32_t)below(random, 2);
        bytes name = bytes_of(names[below(random, 2)]);
        int64_t time = (int64_t)below(random, 5);
        uint64_t kind = below(random, 10);
        if (kind == 0)
            row_change_delete_row(change);
        else if (kind == 1)
            row_change_delete_family(change, family);
        else if (kind < 5)
            row_change_delete_column(change, family, name, time, time + 1 + (int64_t)kind);
        else
            row_change_set(change, family, name, time, bytes_of(names[kind % 2]));
    }
    assert_ok(row_change_pack(change, SIZE_MAX, &packed));
    fragment_set_version(packed.fragment.data, version);
    return packed.fragment;
}

static void shuffle(bytes *slices, uint64_t *random)
{
    for (size_t i = MOST_OPERANDS - 1; i > 0; i--) {
        size_t other = below(random, i + 1);
        bytes kept = slices[i];
        slices[i] = slices[other];
        slices[other] = kept;
    }
}

/* Folds two and two, then those: another order and another grouping. */
static void fold_in_pairs(bytes *slices, char *text)
{
    struct buffer pairs[MOST_OPERANDS / 2] = {{0}};
    struct buffer out = {0};
    bytes halves[MOST_OPERANDS / 2];
    for (size_t i = 0; i < MOST_OPERANDS / 2; i++) {
        struct store_history history = {.operands = &slices[2 * i], .operand_count = 2};
        assert_true(row_fold.part(NULL, &history, &pairs[i]));
        halves[i] = buffer_bytes(&pairs[i]);
    }
    struct store_history history = {.operands = halves, .operand_count = MOST_OPERANDS / 2};
    assert_true(row_fold.part(NULL, &history, &out));
    print_fragment(buffer_bytes(&out), text);
    for (size_t i = 0; i < MOST_OPERANDS / 2; i++)
        buffer_free(&pairs[i]);
    buffer_free(&out);
}

static void test_plain_changes_fold_in_any_order(void **state)
{
    enum { SEEDS = 500, ARENA_LIMIT = 1 << 20 };
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t random = seed;
        struct arena *arena = arena_create(ARENA_LIMIT);
        struct buffer operands[MOST_OPERANDS], out = {0};
        bytes slices[MOST_OPERANDS];
        char expected[FRAGMENT_TEXT_SIZE], text[FRAGMENT_TEXT_SIZE];
        for (size_t i = 0; i < MOST_OPERANDS; i++)
            operands[i] = random_operand(arena, &random, 10 + i);
        struct store_history history = history_of("Rr", operands, MOST_OPERANDS, slices);
        assert_true(row_fold.part(NULL, &history, &out));
        print_fragment(buffer_bytes(&out), expected);
        shuffle(slices, &random);
        fold_in_pairs(slices, text);
        assert_string_equal(text, expected);
        for (size_t i = 0; i < MOST_OPERANDS; i++)
            buffer_free(&operands[i]);
        buffer_free(&out);
        arena_destroy(arena);
    }
}

/* --- whole folds --- */

static void test_whole_folds_drop_tombstones(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "1:a:1=x@5", FRAGMENT(cell_entry(1, "b", 1, "gone", 4)),
          FRAGMENT(row_tombstone(5), cell_entry(1, "a", 1, "x", 5)));
    WHOLE(&fixture->rules, "", FRAGMENT(row_tombstone(5)));
    WHOLE(NULL, "", FRAGMENT(row_tombstone(5)));
}

static void test_tombstones_wait_for_the_purge(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "m@9>0!5 2@6 2:c[0,9)@8", mark_fragment(9, 0, 5, true),
          FRAGMENT(row_tombstone(5)), FRAGMENT(family_tombstone(2, 6)),
          FRAGMENT(column_tombstone(2, "c", 0, 9, 8)));
}

static void test_a_mark_without_overflow_cells_is_done(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "1:a:1=x@7", FRAGMENT(cell_entry(1, "b", 1, "moved", 4)),
          mark_fragment(6, 4, 0, true), FRAGMENT(row_tombstone(7), cell_entry(1, "a", 1, "x", 7)),
          mark_fragment(8, 0, 7, false));
}

static void test_rules_collect(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "1:a:2=k@1 1:a:1=k@1 2:a:2=k@1 2:b:1=k@1 3:a:9000=k@1",
          FRAGMENT(cell_entry(1, "a", 2, "k", 1), cell_entry(1, "a", 1, "k", 1),
                   cell_entry(2, "a", 2, "k", 1), cell_entry(2, "a", 1, "x", 1),
                   cell_entry(2, "b", 1, "k", 1), cell_entry(3, "a", 9000, "k", 1),
                   cell_entry(3, "a", 8999, "x", 1)));
}

static void test_nothing_is_collected_without_rules_or_by_halves(void **state)
{
    (void)state;
    WHOLE(NULL, "2:a:2=k@1 2:a:1=k@1 4:a:1=k@1",
          FRAGMENT(cell_entry(2, "a", 2, "k", 1), cell_entry(2, "a", 1, "k", 1),
                   cell_entry(4, "a", 1, "k", 1)));
    PART("2:a:2=k@2 2:a:1=k@1", FRAGMENT(cell_entry(2, "a", 1, "k", 1)),
         FRAGMENT(cell_entry(2, "a", 2, "k", 2)));
}

static void test_dropped_families_vanish_and_new_ones_do_not(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "1:a:1=k@1 5:a:1=new@1",
          FRAGMENT(cell_entry(1, "a", 1, "k", 1), cell_entry(4, "a", 1, "dropped", 1),
                   cell_entry(5, "a", 1, "new", 1)));
}

/* Else the old value of the cell at 1, overflowed, could come to light when that at 2 is deleted.
 */
static void test_an_overflow_row_counts_no_versions(void **state)
{
    struct fixture *fixture = *state;
    WHOLE(&fixture->rules, "m@3>1!0 2:a:2=x@3 2:a:1=overwritten@2 3:a:9000=k@2",
          FRAGMENT(cell_entry(2, "a", 1, "old, spilled", 1)), mark_fragment(2, 1, 0, true),
          FRAGMENT(cell_entry(2, "a", 1, "overwritten", 2), cell_entry(3, "a", 9000, "k", 2),
                   cell_entry(3, "a", 1, "too old", 2)),
          FRAGMENT(cell_entry(2, "a", 2, "x", 3)), mark_fragment(3, 0, 0, true));
}

static void test_one_canonical_fragment_is_not_copied(void **state)
{
    struct fixture *fixture = *state;
    struct buffer fragment = FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(2, "a", 1, "x", 1),
                                      cell_entry(3, "a", 9000, "x", 1));
    bytes operand = buffer_bytes(&fragment);
    bytes same = {0};
    struct buffer out = {0};
    struct store_history history = {
        .key = bytes_of("Rr"), .operands = &operand, .operand_count = 1};
    assert_true(row_fold.whole(&fixture->rules, &history, &out, &same));
    assert_ptr_equal(same.data, fragment.data);
    assert_int_equal(out.size, 0);
    history.has_base = true;
    history.base = operand;
    history.operand_count = 0;
    assert_true(row_fold.whole(NULL, &history, &out, &same));
    assert_ptr_equal(same.data, fragment.data);
    buffer_free(&fragment);
    buffer_free(&out);
}

static void test_what_does_not_parse_fails(void **state)
{
    (void)state;
    struct buffer out = {0};
    bytes same;
    bytes operands[] = {bytes_of("not a fragment"), bytes_make("\x10\0\0\0\0\0\0\0\0\x03", 10)};
    for (size_t i = 0; i < 2; i++) {
        struct store_history history = {
            .key = bytes_of("Rr"), .operands = &operands[i], .operand_count = 1};
        assert_false(row_fold.part(NULL, &history, &out));
    }
    struct buffer cell = FRAGMENT(cell_entry(1, "", 0, "v", 1));
    bytes operand = buffer_bytes(&cell);
    struct store_history history = {
        .key = bytes_of("S not a key"), .operands = &operand, .operand_count = 1};
    assert_false(row_fold.whole(NULL, &history, &out, &same));
    buffer_free(&cell);
    buffer_free(&out);
}

static void test_sums_of_wrong_size_fail(void **state)
{
    (void)state;
    struct entry entry = {.kind = ENTRY_SUM, .family = 1, .value = bytes_of("123"), .version = 1};
    struct buffer short_sum = fragment_of(&entry, 1);
    bytes operands[] = {buffer_bytes(&short_sum), buffer_bytes(&short_sum)};
    struct buffer out = {0};
    struct store_history history = {.operands = operands, .operand_count = 2};
    assert_false(row_fold.part(NULL, &history, &out));
    buffer_free(&short_sum);
    buffer_free(&out);
}

/* --- tidying --- */

static void assert_tidy(const struct fixture *fixture, bytes key, struct buffer value,
                        enum store_verdict expected, const char *replacement)
{
    struct buffer out = {0};
    assert_int_equal(row_fold.tidy(&fixture->rules, key, buffer_bytes(&value), &out), expected);
    if (replacement != NULL)
        assert_fragment(buffer_bytes(&out), replacement);
    else
        assert_int_equal(out.size, 0);
    buffer_free(&out);
    buffer_free(&value);
}

static void test_tidy_records(void **state)
{
    bytes key = bytes_of("Rr");
    assert_tidy(*state, key, FRAGMENT(cell_entry(1, "a", 1, "x", 1)), STORE_KEEP, NULL);
    assert_tidy(*state, key, FRAGMENT(cell_entry(3, "a", 1, "x", 1)), STORE_REMOVE, NULL);
    assert_tidy(*state, key, fragment_of(NULL, 0), STORE_REMOVE, NULL);
    assert_tidy(*state, key, FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(3, "a", 1, "x", 1)),
                STORE_REPLACE, "1:a:1=x@1");
    assert_tidy(*state, key, mark_fragment(5, 4, 0, true), STORE_KEEP, NULL);
    assert_tidy(*state, key, mark_fragment(5, 4, 0, false), STORE_REMOVE, NULL);
}

static void test_tidy_overflow_cells(void **state)
{
    struct fixture *fixture = *state;
    const struct {
        uint32_t family;
        int64_t timestamp_us;
        enum store_verdict expected;
    } cases[] = {{1, 0, STORE_KEEP},      {2, 0, STORE_KEEP},   {3, 9000, STORE_KEEP},
                 {3, 8999, STORE_REMOVE}, {4, 0, STORE_REMOVE}, {5, 0, STORE_KEEP}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer key = {0}, value = {0};
        overflow_cell_key(&key, bytes_of("r"), cases[i].family, bytes_of("q"),
                          cases[i].timestamp_us);
        overflow_cell_write(&value, ENTRY_CELL, 7, 0, bytes_of("v"));
        assert_tidy(fixture, buffer_bytes(&key), value, cases[i].expected, NULL);
        buffer_free(&key);
    }
}

/* Of the last in time, which mostly comes last; then it is not copied. */
static void test_a_newer_overflow_cell_takes_the_place_of_others(void **state)
{
    struct fixture *fixture = *state;
    const struct {
        uint64_t first, second;
        uint32_t family;
        const char *expected; /* NULL: rules condemn it */
    } cases[] = {{7, 8, 1, "new"}, {8, 7, 1, "old"}, {7, 8, 4, NULL}, {8, 8, 1, "new"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer key = {0}, older = {0}, newer = {0}, out = {0};
        bytes same = {0};
        overflow_cell_key(&key, bytes_of("r"), cases[i].family, bytes_of("q"), 0);
        overflow_cell_write(&older, ENTRY_CELL, cases[i].first, 0, bytes_of("old"));
        overflow_cell_write(&newer, ENTRY_CELL, cases[i].second, 0, bytes_of("new"));
        bytes last = buffer_bytes(&newer);
        struct store_history history = {.key = buffer_bytes(&key),
                                        .has_base = true,
                                        .base = buffer_bytes(&older),
                                        .operands = &last,
                                        .operand_count = 1};
        assert_true(row_fold.whole(&fixture->rules, &history, &out, &same));
        assert_true((same.data == last.data) == (i == 0));
        bytes result = same.data != NULL ? same : buffer_bytes(&out);
        struct store_history operands = {
            .key = history.key, .operands = (bytes[]){history.base, last}, .operand_count = 2};
        assert_true(row_fold.gives_last(&operands) == (cases[i].first < cases[i].second));
        operands.key = bytes_of("Rr");
        assert_false(row_fold.gives_last(&operands));
        assert_int_equal(fragment_is_empty(result), cases[i].expected == NULL);
        if (cases[i].expected != NULL) {
            struct fragment_reader reader;
            struct entry entry;
            assert_true(fragment_reader_start(&reader, result));
            assert_true(fragment_reader_next(&reader, &entry));
            if (cases[i].first != cases[i].second)
                assert_true(bytes_equal(entry.value, bytes_of(cases[i].expected)));
            assert_false(fragment_reader_next(&reader, &entry));
        }
        buffer_free(&key);
        buffer_free(&older);
        buffer_free(&newer);
        buffer_free(&out);
    }
}

static void test_tidy_leaves_alone_what_is_not_a_row(void **state)
{
    struct fixture *fixture = *state;
    struct buffer out = {0};
    assert_int_equal(row_fold.tidy(NULL, bytes_of("Rr"), bytes_of("anything"), &out), STORE_KEEP);
    assert_int_equal(row_fold.tidy(&fixture->rules, bytes_of("Xr"), bytes_of("anything"), &out),
                     STORE_KEEP);
    assert_int_equal(row_fold.tidy(&fixture->rules, bytes_of("Rr"), bytes_of("damaged"), &out),
                     STORE_KEEP);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_greater_version_counts_in_any_order),
        cmocka_unit_test(test_other_timestamps_are_other_cells),
        cmocka_unit_test(test_a_tombstone_covers_older_versions_alone),
        cmocka_unit_test(test_a_family_tombstone_covers_its_family),
        cmocka_unit_test(test_a_column_tombstone_covers_its_times),
        cmocka_unit_test(test_tombstones_within_wider_ones_vanish),
        cmocka_unit_test(test_overlapping_ranges_keep_the_newest_version),
        cmocka_unit_test(test_adds_add_up_to_the_tombstone),
        cmocka_unit_test(test_marks_add_up),
        cmocka_unit_test(test_ten_thousand_operands),
        cmocka_unit_test(test_plain_changes_fold_in_any_order),
        cmocka_unit_test(test_whole_folds_drop_tombstones),
        cmocka_unit_test(test_tombstones_wait_for_the_purge),
        cmocka_unit_test(test_a_mark_without_overflow_cells_is_done),
        cmocka_unit_test(test_rules_collect),
        cmocka_unit_test(test_nothing_is_collected_without_rules_or_by_halves),
        cmocka_unit_test(test_dropped_families_vanish_and_new_ones_do_not),
        cmocka_unit_test(test_an_overflow_row_counts_no_versions),
        cmocka_unit_test(test_one_canonical_fragment_is_not_copied),
        cmocka_unit_test(test_what_does_not_parse_fails),
        cmocka_unit_test(test_sums_of_wrong_size_fail),
        cmocka_unit_test(test_tidy_records),
        cmocka_unit_test(test_tidy_overflow_cells),
        cmocka_unit_test(test_a_newer_overflow_cell_takes_the_place_of_others),
        cmocka_unit_test(test_tidy_leaves_alone_what_is_not_a_row),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
