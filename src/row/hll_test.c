/* Sketches: merging in any order and grouping, what is refused, and memory that runs out. What they
 * come to, byte for byte, is held against Zetasketch's own in tests/hll/. */
#include "row/fold.h"
#include "row/hll_private.h"
#include "row/testing/testing.h"

#include "base/testing/failmalloc.h"
#include "base/varint.h"

#include <stdio.h>

/* --- chance: each round has a seed of its own, which a failure prints --- */

struct chance {
    uint64_t state;
};

static struct chance chance_of(uint64_t seed)
{
    return (struct chance){.state = seed * 0x9e3779b97f4a7c15 + 1};
}

static uint64_t below(struct chance *chance, uint64_t end)
{
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return (chance->state >> 11) % end;
}

/* --- states --- */

static struct hll_sketch fresh(struct hll_precisions at, enum hll_value_type type)
{
    struct hll_sketch sketch = {0};
    struct hll_state nothing = {.value_type = type,
                                .precision = (uint8_t)at.precision,
                                .sparse_precision = (uint8_t)at.sparse_precision};
    assert_true(hll_sketch_merge(&sketch, &nothing));
    return sketch;
}

/* Writes the sketch and frees it. */
static struct buffer ended(struct hll_sketch *sketch)
{
    struct buffer out = {0};
    assert_true(hll_sketch_write(sketch, &out));
    hll_sketch_free(sketch);
    return out;
}

static struct buffer state_of(struct hll_precisions at, int64_t first, int64_t end)
{
    struct hll_sketch sketch = fresh(at, HLL_INT64);
    for (int64_t i = first; i < end; i++)
        assert_true(hll_sketch_add(&sketch, hll_hash_int64(i)));
    return ended(&sketch);
}

static struct hll_state parsed(const struct buffer *wire)
{
    struct hll_state state;
    assert_ok(hll_state_parse(buffer_bytes(wire), &state));
    return state;
}

static struct buffer merged(const struct buffer *left, const struct buffer *right)
{
    struct hll_sketch sketch = {0};
    struct hll_state a = parsed(left), b = parsed(right);
    assert_true(hll_sketch_merge(&sketch, &a));
    assert_true(hll_sketch_merge(&sketch, &b));
    return ended(&sketch);
}

static const struct hll_precisions usual = {HLL_PRECISION, HLL_SPARSE_PRECISION};

static void test_one_value_is_a_sketch_of_one_value(void **unused)
{
    (void)unused;
    for (int64_t i = -1000; i < 1000; i++) {
        uint8_t one[HLL_ONE_MOST];
        size_t size = hll_state_write_one(HLL_INT64, hll_hash_int64(i), one);
        struct buffer grown = state_of(usual, i, i + 1);
        assert_true(bytes_equal(bytes_make(one, size), buffer_bytes(&grown)));
        buffer_free(&grown);
    }
}

/* --- merging --- */

enum { MOST_STATES = 12, ROUNDS = 60 };

struct heap_of_states {
    struct buffer states[MOST_STATES];
    size_t count;
};

/* Sizes of every order of magnitude: most sketches stay sparse, some do not. Counted are runs of
 * numbers that overlap. */
static void fill(struct heap_of_states *heap, struct chance *chance, bool is_usual)
{
    heap->count = 2 + below(chance, MOST_STATES - 1);
    for (size_t i = 0; i < heap->count; i++) {
        unsigned precision = is_usual ? HLL_PRECISION : 4 + (unsigned)below(chance, 10);
        unsigned most = HLL_MOST_SPARSE_PRECISION - precision;
        struct hll_precisions at = {precision, precision + (unsigned)below(chance, most + 1)};
        if (is_usual)
            at = usual;
        else if (below(chance, 8) == 0)
            at.sparse_precision = 0;
        int64_t first = (int64_t)below(chance, 5000);
        int64_t size = (int64_t)below(chance, 1 << below(chance, 14));
        heap->states[i] = state_of(at, first, first + size);
    }
}

/* Two of them, picked by chance, become one, until one is left. */
static struct buffer merge_all(const struct heap_of_states *given, struct chance *chance)
{
    struct heap_of_states left = {.count = given->count};
    for (size_t i = 0; i < given->count; i++)
        buffer_append_bytes(&left.states[i], buffer_bytes(&given->states[i]));
    while (left.count > 1) {
        size_t a = below(chance, left.count), b = below(chance, left.count - 1);
        b += b >= a;
        struct buffer both = merged(&left.states[a], &left.states[b]);
        buffer_free(&left.states[a]);
        buffer_free(&left.states[b]);
        left.states[a] = both;
        left.states[b] = left.states[--left.count];
        if (a == left.count)
            left.states[b] = both;
    }
    return left.states[0];
}

/* The state's registers, whether it is sparse or not. */
static struct buffer registers_of(const struct buffer *wire)
{
    struct hll_state state = parsed(wire);
    struct hll_state never_sparse = {.precision = state.precision};
    struct hll_sketch sketch = {0};
    assert_true(hll_sketch_merge(&sketch, &state));
    assert_true(hll_sketch_merge(&sketch, &never_sparse));
    return ended(&sketch);
}

static void compare_groupings(uint64_t seed, bool is_usual)
{
    struct chance chance = chance_of(seed);
    struct heap_of_states heap;
    fill(&heap, &chance, is_usual);
    struct buffer one = merge_all(&heap, &chance), other = merge_all(&heap, &chance);
    struct buffer registers = registers_of(&one), others = registers_of(&other);
    bool is_same = bytes_equal(buffer_bytes(&registers), buffer_bytes(&others)) &&
                   (!is_usual || bytes_equal(buffer_bytes(&one), buffer_bytes(&other)));
    if (!is_same)
        fail_msg("seed %d: two orders of merging differ", (int)seed);
    for (size_t i = 0; i < heap.count; i++)
        buffer_free(&heap.states[i]);
    buffer_free(&one);
    buffer_free(&other);
    buffer_free(&registers);
    buffer_free(&others);
}

static void test_merging_has_no_order(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        compare_groupings(seed, true);
}

/* Of any precisions. When a list becomes registers may depend on the order then, as in the library,
 * but never what they are. */
static void test_merging_across_precisions_has_no_order(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        compare_groupings(seed, false);
}

/* A value that several sketches counted is still one. */
static void test_merging_is_counting_all(void **unused)
{
    (void)unused;
    for (int64_t n = 1; n <= 50000; n *= 3) {
        struct buffer left = state_of(usual, 0, 2 * n), right = state_of(usual, n, 3 * n);
        struct buffer both = merged(&left, &right), whole = state_of(usual, 0, 3 * n);
        struct hll_state state = parsed(&both), expected = parsed(&whole);
        assert_int_equal(state.num_values, 4 * n);
        expected.num_values = state.num_values;
        buffer_clear(&whole);
        hll_state_write(&expected, &whole);
        assert_int_equal(hll_estimate(&state), hll_estimate(&expected));
        buffer_free(&left);
        buffer_free(&right);
        buffer_free(&both);
        buffer_free(&whole);
    }
}

/* A state that says nothing of what it counted takes the type of the other, on either side. */
static void test_merging_finds_the_type(void **unused)
{
    struct hll_sketch unknown = fresh(usual, HLL_UNKNOWN), strings = fresh(usual, HLL_BYTES);
    (void)unused;
    struct buffer left = ended(&unknown), right = ended(&strings);
    struct buffer both = merged(&left, &right), swapped = merged(&right, &left);
    assert_int_equal(parsed(&both).value_type, HLL_BYTES);
    assert_true(bytes_equal(buffer_bytes(&both), buffer_bytes(&swapped)));
    buffer_free(&left);
    buffer_free(&right);
    buffer_free(&both);
    buffer_free(&swapped);
}

static void test_a_cleared_sketch_is_fresh(void **unused)
{
    struct buffer many = state_of(usual, 0, 100000), few = state_of(usual, 0, 10), out = {0};
    struct hll_sketch sketch = {0};
    struct hll_state state = parsed(&many);
    (void)unused;
    assert_true(hll_sketch_merge(&sketch, &state));
    hll_sketch_clear(&sketch);
    state = parsed(&few);
    assert_true(hll_sketch_merge(&sketch, &state));
    assert_true(hll_sketch_write(&sketch, &out));
    assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&few)));
    hll_sketch_free(&sketch);
    buffer_free(&many);
    buffer_free(&few);
    buffer_free(&out);
}

/* --- what no values lead to --- */

static void assert_refused(const struct hll_state *state, const char *words)
{
    struct buffer wire = {0};
    struct hll_state again;
    hll_state_write(state, &wire);
    status s = hll_state_parse(buffer_bytes(&wire), &again);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
    buffer_free(&wire);
}

static void assert_list_refused(struct hll_precisions at, bytes list, uint32_t size,
                                const char *words)
{
    struct hll_state state = {.precision = (uint8_t)at.precision,
                              .sparse_precision = (uint8_t)at.sparse_precision,
                              .sparse_size = size,
                              .sparse_data = list};
    assert_refused(&state, words);
}

/* A list of two values. */
static void assert_pair_refused(struct hll_precisions at, uint32_t first, uint32_t second,
                                const char *words)
{
    uint8_t list[2 * VARINT_MAX_SIZE];
    const uint8_t *end = varint_write(varint_write(list, first), second - first);
    assert_list_refused(at, bytes_make(list, (size_t)(end - list)), 2, words);
}

static void test_impossible_lists(void **unused)
{
    static const uint8_t twice_7[] = {7, 0}, too_long[] = {0xff, 0xff, 0xff, 0xff, 0x1f};
    uint32_t flag = hll_flag(usual);
    (void)unused;
    const char *first = "Value 0 of sparse_data is not one that can follow";
    const char *second = "Value 1 of sparse_data is not one that can follow";
    assert_list_refused(usual, bytes_make(twice_7, sizeof twice_7), 2, second);
    assert_list_refused(usual, bytes_make(too_long, sizeof too_long), 1,
                        "sparse_data ends within a value");
    assert_pair_refused(usual, 32, 33, first);                   /* could have said its rho */
    assert_pair_refused(usual, 1 << 20, flag | 1, first);        /* index out of range */
    assert_pair_refused(usual, flag, flag | 1 << 6 | 1, first);  /* rho of 0 */
    assert_pair_refused(usual, flag | 46, flag | 1 << 6, first); /* rho beyond 65 - 20 */
    assert_pair_refused(usual, flag | 1, flag | 2, second);      /* one index twice */
    assert_pair_refused(usual, 7, flag | 1 << 22 | 1, second);   /* index out of range */
    assert_pair_refused(usual, 7, UINT32_MAX, second);
}

static void test_impossible_registers(void **unused)
{
    uint8_t data[16] = {[3] = 61};
    struct hll_state state = {.precision = 4, .data = bytes_make(data, sizeof data)};
    struct buffer wire = {0};
    (void)unused;
    hll_state_write(&state, &wire);
    assert_ok(hll_state_parse(buffer_bytes(&wire), &state));
    buffer_free(&wire);
    data[3] = 62;
    state.data = bytes_make(data, sizeof data);
    assert_refused(&state, "Expected data to hold at most 61 at precision 4 but got 62");
}

/* Longer than the library lets a list become: it may be read, and is registers when it is written
 * again. All its 16 indexes being there, linear counting knows no end. */
static void test_a_list_of_everything(void **unused)
{
    const struct hll_precisions at = {4, 4};
    uint8_t list[16 * VARINT_MAX_SIZE];
    uint8_t *end = varint_write(list, hll_flag(at) | 1);
    struct buffer wire = {0};
    (void)unused;
    for (int i = 1; i < 16; i++)
        end = varint_write(end, 1 << HLL_RHO_BITS);
    struct hll_state state = {.precision = 4,
                              .sparse_precision = 4,
                              .sparse_size = 16,
                              .sparse_data = bytes_make(list, (size_t)(end - list))};
    hll_state_write(&state, &wire);
    state = parsed(&wire);
    assert_int_equal(hll_estimate(&state), INT64_MAX);
    struct hll_sketch sketch = {0};
    assert_true(hll_sketch_merge(&sketch, &state));
    struct buffer again = ended(&sketch);
    state = parsed(&again);
    assert_false(hll_state_is_sparse(&state));
    assert_int_equal(state.data.size, 16);
    buffer_free(&wire);
    buffer_free(&again);
}

/* --- in fragments --- */

static struct entry sketch_entry(const struct buffer *state, uint64_t version)
{
    return (struct entry){.kind = ENTRY_HLL,
                          .family = 1,
                          .qualifier = bytes_of("q"),
                          .version = version,
                          .value = buffer_bytes(state)};
}

/* Folds and frees the operands. */
static void assert_folds_to(const char *expected, struct buffer *operands, size_t count)
{
    bytes slices[4];
    struct buffer out = {0};
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&operands[i]);
    struct store_history history = {
        .key = bytes_of("Rr"), .operands = slices, .operand_count = count};
    assert_true(row_fold.part(NULL, &history, &out));
    assert_fragment(buffer_bytes(&out), expected);
    for (size_t i = 0; i < count; i++)
        buffer_free(&operands[i]);
    buffer_free(&out);
}

#define FOLDS_TO(expected, ...)                                                                    \
    assert_folds_to(expected, (struct buffer[]){__VA_ARGS__},                                      \
                    sizeof((struct buffer[]){__VA_ARGS__}) / sizeof(struct buffer))

static void test_folds_merge(void **unused)
{
    struct buffer low = state_of(usual, 0, 10), high = state_of(usual, 5, 15),
                  many = state_of(usual, 0, 30000);
    (void)unused;
    FOLDS_TO("1:q:0#20~15@3", FRAGMENT(sketch_entry(&low, 3)), FRAGMENT(sketch_entry(&high, 2)));
    FOLDS_TO("1:q:0#40~15@4", FRAGMENT(sketch_entry(&low, 1)), FRAGMENT(sketch_entry(&high, 2)),
             FRAGMENT(sketch_entry(&low, 3)), FRAGMENT(sketch_entry(&high, 4)));
    FOLDS_TO("1:q:0#30010~30215@2", FRAGMENT(sketch_entry(&low, 1)),
             FRAGMENT(sketch_entry(&many, 2)));
    FOLDS_TO("r@2 1:q:0#10~10@2", FRAGMENT(sketch_entry(&many, 1)),
             FRAGMENT(row_tombstone(2), sketch_entry(&low, 2)));
    buffer_free(&low);
    buffer_free(&high);
    buffer_free(&many);
}

static bool folds(struct buffer *left, struct buffer *right)
{
    bytes slices[] = {buffer_bytes(left), buffer_bytes(right)};
    struct store_history history = {.key = bytes_of("Rr"), .operands = slices, .operand_count = 2};
    struct buffer out = {0};
    bool ok = row_fold.part(NULL, &history, &out);
    buffer_free(&out);
    return ok;
}

static void test_what_is_no_sketch_does_not_fold(void **unused)
{
    struct buffer good = state_of(usual, 0, 10), bad = {0};
    struct hll_sketch strings = fresh(usual, HLL_BYTES);
    struct buffer other = ended(&strings);
    (void)unused;
    buffer_append_bytes(&bad, bytes_of("12345678"));
    struct buffer fine = FRAGMENT(sketch_entry(&good, 1)), broken = FRAGMENT(sketch_entry(&bad, 2)),
                  of_strings = FRAGMENT(sketch_entry(&other, 3));
    assert_false(folds(&fine, &broken));
    assert_false(folds(&broken, &fine));
    assert_false(folds(&fine, &of_strings));
    assert_true(folds(&fine, &fine));
    buffer_free(&good);
    buffer_free(&bad);
    buffer_free(&other);
    buffer_free(&fine);
    buffer_free(&broken);
    buffer_free(&of_strings);
}

/* --- without memory --- */

static void try_to_merge(void *context)
{
    const struct buffer *states = context;
    struct hll_sketch sketch = {0};
    struct buffer out = {0};
    bool ok = true;
    for (int i = 0; ok && i < 4; i++) {
        struct hll_state state = parsed(&states[i]);
        ok = hll_sketch_merge(&sketch, &state);
    }
    if (ok && hll_sketch_write(&sketch, &out)) {
        struct hll_state state = parsed(&out);
        assert_int_equal(state.precision, 12);
        assert_int_equal(state.num_values, 100 + 200 + 300 + 20000);
    }
    hll_sketch_free(&sketch);
    buffer_free(&out);
}

/* Lists, finer ones, and registers: each way to merge. */
static void test_memory_of_sketches(void **unused)
{
    struct buffer states[] = {
        state_of(usual, 0, 100),
        state_of((struct hll_precisions){14, 19}, 50, 250),
        state_of((struct hll_precisions){12, 20}, 0, 300),
        state_of(usual, 0, 20000),
    };
    (void)unused;
    failmalloc_each(try_to_merge, states);
    for (int i = 0; i < 4; i++)
        buffer_free(&states[i]);
}

static void try_to_fold(void *context)
{
    struct buffer *operands = context, out = {0};
    bytes slices[] = {buffer_bytes(&operands[0]), buffer_bytes(&operands[1])};
    struct store_history history = {.key = bytes_of("Rr"), .operands = slices, .operand_count = 2};
    if (row_fold.part(NULL, &history, &out))
        assert_fragment(buffer_bytes(&out), "1:q:0#4000~3000@2");
    buffer_free(&out);
}

static void test_memory_of_folds(void **unused)
{
    struct buffer low = state_of(usual, 0, 2000), high = state_of(usual, 1000, 3000);
    struct buffer operands[] = {FRAGMENT(sketch_entry(&low, 1)), FRAGMENT(sketch_entry(&high, 2))};
    (void)unused;
    failmalloc_each(try_to_fold, operands);
    buffer_free(&low);
    buffer_free(&high);
    buffer_free(&operands[0]);
    buffer_free(&operands[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_value_is_a_sketch_of_one_value),
        cmocka_unit_test(test_merging_has_no_order),
        cmocka_unit_test(test_merging_across_precisions_has_no_order),
        cmocka_unit_test(test_merging_is_counting_all),
        cmocka_unit_test(test_merging_finds_the_type),
        cmocka_unit_test(test_a_cleared_sketch_is_fresh),
        cmocka_unit_test(test_impossible_lists),
        cmocka_unit_test(test_impossible_registers),
        cmocka_unit_test(test_a_list_of_everything),
        cmocka_unit_test(test_folds_merge),
        cmocka_unit_test(test_what_is_no_sketch_does_not_fold),
        cmocka_unit_test(test_memory_of_sketches),
        cmocka_unit_test(test_memory_of_folds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
