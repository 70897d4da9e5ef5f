/* Our sketches against every vector of hashes, states, merges, estimates and errors that Google's
 * Zetasketch, compiled from its source, was seen to give.
 *
 * usage: test_hll_vectors VECTORS.json */
#include "row/hll.h"
#include "vectors.h"

#include <stdio.h>

/* --- making sketches --- */

enum input { INT64, INT32, DECIMAL, EIGHT_BYTES };

static uint64_t hash_of(enum input input, int64_t number)
{
    uint8_t raw[24];
    size_t size = 0;
    switch (input) {
    case INT64:
        return hll_hash_int64(number);
    case INT32:
        for (; size < 4; size++)
            raw[size] = (uint8_t)(number >> 8 * size);
        break;
    case DECIMAL:
        size = (size_t)snprintf((char *)raw, sizeof raw, "%lld", (long long)number);
        break;
    case EIGHT_BYTES:
        for (; size < 8; size++)
            raw[size] = (uint8_t)(number >> (56 - 8 * size));
        break;
    }
    return hll_hash(bytes_make(raw, size));
}

static enum hll_value_type type_of(enum input input)
{
    if (input == INT64)
        return HLL_INT64;
    return input == INT32 ? HLL_INT32 : HLL_BYTES;
}

struct range {
    enum input input;
    int precision;
    int sparse_precision;
    int64_t first;
    int64_t last;
};

static struct hll_sketch begin(const struct range *range)
{
    struct hll_sketch sketch = {0};
    struct hll_state nothing = {.value_type = type_of(range->input),
                                .precision = (uint8_t)range->precision,
                                .sparse_precision = (uint8_t)range->sparse_precision};
    assert_true(hll_sketch_merge(&sketch, &nothing));
    return sketch;
}

static struct hll_sketch sketch_of(const struct range *range)
{
    struct hll_sketch sketch = begin(range);
    for (int64_t i = range->first; i <= range->last; i++)
        assert_true(hll_sketch_add(&sketch, hash_of(range->input, i)));
    return sketch;
}

static struct buffer written(struct hll_sketch *sketch)
{
    struct buffer out = {0};
    assert_true(hll_sketch_write(sketch, &out));
    return out;
}

static struct buffer state_of(const struct range *range)
{
    struct hll_sketch sketch = sketch_of(range);
    struct buffer out = written(&sketch);
    hll_sketch_free(&sketch);
    return out;
}

/* --- holding them against vectors --- */

/* The state's bytes, what they parse to, that they are written the same again, the estimate. */
static void assert_state(bytes wire, const json_t *vector)
{
    struct hll_state state;
    struct buffer again = {0};
    assert_sha256(wire, text_of(vector, "sha256"));
    assert_ok(hll_state_parse(wire, &state));
    hll_state_write(&state, &again);
    assert_true(bytes_equal(buffer_bytes(&again), wire));
    assert_int_equal(hll_estimate(&state), number_of(vector, "estimate"));
    buffer_free(&again);
    if (json_object_get(vector, "length") == NULL)
        return;
    assert_int_equal(wire.size, number_of(vector, "length"));
    assert_int_equal(state.num_values, number_of(vector, "num_values"));
    assert_int_equal(state.precision, number_of(vector, "precision"));
    assert_int_equal(state.sparse_precision, number_of(vector, "sparse_precision"));
    assert_int_equal(state.sparse_size, number_of(vector, "sparse_size"));
    assert_int_equal(state.value_type, number_of(vector, "value_type"));
}

/* Given in hexadecimal, or by its length alone. */
static struct buffer input_of(const json_t *vector)
{
    struct buffer in = {0};
    if (json_object_get(vector, "in_hex") != NULL)
        return from_hex(text_of(vector, "in_hex"));
    assert_string_equal(text_of(vector, "pattern"), "byte[i]=(7*i+1)&255");
    for (int64_t i = 0; i < number_of(vector, "len"); i++)
        buffer_append_byte(&in, (uint8_t)(7 * i + 1));
    return in;
}

static void assert_hash(uint64_t hash, const json_t *vector)
{
    assert_int_equal(hash, strtoull(text_of(vector, "hash"), NULL, 16));
}

static void check_hash_int64(const json_t *vector)
{
    assert_hash(hll_hash_int64(number_of(vector, "in")), vector);
}

static void check_hash_int32(const json_t *vector)
{
    assert_hash(hash_of(INT32, number_of(vector, "in")), vector);
}

static void check_hash_bytes(const json_t *vector)
{
    struct buffer in = input_of(vector);
    assert_hash(hll_hash(buffer_bytes(&in)), vector);
    buffer_free(&in);
}

static void test_hashes(void **unused)
{
    (void)unused;
    each("hash_int64", check_hash_int64);
    each("hash_int32", check_hash_int32);
    each("hash_bytes", check_hash_bytes);
}

/* 1..n of growing n: the sketch grows along, and is looked at on the way. */
static void check_growing(const char *name, enum input input)
{
    const json_t *all = section(name);
    struct range range = {.input = input};
    struct hll_sketch sketch = {0};
    int64_t added = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *vector = json_array_get(all, i);
        struct range next = {input, (int)number_of(vector, "p"), 0, 1, number_of(vector, "n")};
        next.sparse_precision = (int)json_integer_value(json_object_get(vector, "sp"));
        if (i == 0 || next.precision != range.precision ||
            next.sparse_precision != range.sparse_precision || next.last < added) {
            hll_sketch_free(&sketch);
            sketch = begin(&next);
            added = 0;
        }
        range = next;
        while (added < range.last)
            assert_true(hll_sketch_add(&sketch, hash_of(input, ++added)));
        struct buffer state = written(&sketch);
        assert_state(buffer_bytes(&state), vector);
        buffer_free(&state);
    }
    hll_sketch_free(&sketch);
}

static void test_int64(void **unused)
{
    (void)unused;
    check_growing("int64_1_to_n", INT64);
}

static void test_int64_never_sparse(void **unused)
{
    (void)unused;
    check_growing("int64_1_to_n_no_sparse", INT64);
    check_growing("estimates_int64_no_sparse", INT64);
}

static void test_other_types(void **unused)
{
    (void)unused;
    check_growing("int32_1_to_n", INT32);
    check_growing("bytes_ascii_decimal_1_to_n", DECIMAL);
    check_growing("bytes_be64_1_to_n", EIGHT_BYTES);
}

static void check_upgrade(const json_t *vector)
{
    struct range range = {INT64, (int)number_of(vector, "p"), (int)number_of(vector, "sp"), 1,
                          number_of(vector, "last_sparse_n")};
    struct buffer last_sparse = state_of(&range);
    range.last++;
    struct buffer first_normal = state_of(&range);
    assert_state(buffer_bytes(&last_sparse), json_object_get(vector, "last_sparse"));
    assert_state(buffer_bytes(&first_normal), json_object_get(vector, "first_normal"));
    buffer_free(&last_sparse);
    buffer_free(&first_normal);
}

/* Around the value with which a list becomes registers. */
static void test_upgrades(void **unused)
{
    (void)unused;
    each("upgrade_threshold_int64_sequential", check_upgrade);
}

static void check_incremental(const json_t *vector)
{
    struct range range = {INT64, 15, 20, 1, number_of(vector, "n")};
    struct range none = {INT64, 15, 20, 1, 0};
    struct buffer batch = state_of(&range), grown = state_of(&none);
    for (int64_t n = 1; n <= range.last; n++) {
        struct hll_sketch sketch = {0};
        struct hll_state state;
        assert_ok(hll_state_parse(buffer_bytes(&grown), &state));
        assert_true(hll_sketch_merge(&sketch, &state));
        assert_true(hll_sketch_add(&sketch, hash_of(INT64, n)));
        buffer_free(&grown);
        grown = written(&sketch);
        hll_sketch_free(&sketch);
    }
    assert_true(json_is_true(json_object_get(vector, "equal_to_batch")));
    assert_true(bytes_equal(buffer_bytes(&grown), buffer_bytes(&batch)));
    buffer_free(&grown);
    buffer_free(&batch);
}

/* Adding one value at a time to what was written comes to the same as all in one. */
static void test_incremental(void **unused)
{
    (void)unused;
    each("incremental_vs_batch", check_incremental);
}

static void test_duplicates(void **unused)
{
    struct range ten = {INT64, 15, 20, 1, 10};
    struct hll_sketch sketch = begin(&ten);
    (void)unused;
    assert_int_equal(json_array_size(section("duplicates")), 1);
    for (int64_t i = 0; i < 30; i++)
        assert_true(hll_sketch_add(&sketch, hash_of(INT64, 1 + i % 10)));
    struct buffer state = written(&sketch);
    assert_state(buffer_bytes(&state), json_array_get(section("duplicates"), 0));
    buffer_free(&state);
    hll_sketch_free(&sketch);
}

/* The sketches printed in GoogleSQL's documentation: of two customers, and of three. */
static void test_documented(void **unused)
{
    const json_t *all = section("googlesql_doc_sketches_reproduced");
    (void)unused;
    assert_int_equal(json_array_size(all), 2);
    for (size_t i = 0; i < 2; i++) {
        struct buffer wire = from_hex(text_of(json_array_get(all, i), "hex"));
        struct hll_state state;
        assert_ok(hll_state_parse(buffer_bytes(&wire), &state));
        assert_int_equal(hll_estimate(&state), i + 2);
        buffer_free(&wire);
    }
    struct range none = {DECIMAL, 10, 15, 1, 0};
    struct hll_sketch sketch = begin(&none);
    assert_true(hll_sketch_add(&sketch, hll_hash(bytes_of("customer_id_1"))));
    assert_true(hll_sketch_add(&sketch, hll_hash(bytes_of("customer_id_2"))));
    struct buffer ours = written(&sketch);
    struct buffer theirs = from_hex(text_of(json_array_get(all, 0), "hex"));
    assert_true(bytes_equal(buffer_bytes(&ours), buffer_bytes(&theirs)));
    buffer_free(&ours);
    buffer_free(&theirs);
    hll_sketch_free(&sketch);
}

/* --- merging --- */

/* A side of a merge's description, such as `p15/sp20 {1..100}`; 15/20 and no values by default. */
static struct range described(const char *side, enum input input)
{
    struct range range = {input, 15, 20, 1, 0};
    char text[64];
    size_t size = 0;
    for (; *side != '\0' && strncmp(side, " + ", 3) != 0 && size < sizeof text - 1; side++)
        if (*side != '"')
            text[size++] = *side;
    text[size] = '\0';
    const char *precisions = strstr(text, "p"), *values = strstr(text, "{");
    long long first, last;
    while (precisions != NULL &&
           sscanf(precisions, "p%d/sp%d", &range.precision, &range.sparse_precision) != 2)
        precisions = strstr(precisions + 1, "p");
    if (values != NULL && sscanf(values, "{%lld..%lld}", &first, &last) == 2) {
        range.first = first;
        range.last = last;
    } else {
        assert_non_null(strstr(text, "empty"));
    }
    return range;
}

static struct buffer merge_states(bytes left, bytes right)
{
    struct hll_sketch sketch = {0};
    struct hll_state into, state;
    assert_ok(hll_state_parse(left, &into));
    assert_ok(hll_state_parse(right, &state));
    assert_ok(hll_check_types(into.value_type, state.value_type));
    assert_true(hll_sketch_merge(&sketch, &into));
    assert_true(hll_sketch_merge(&sketch, &state));
    struct buffer out = written(&sketch);
    hll_sketch_free(&sketch);
    return out;
}

static void check_merge(const json_t *vector)
{
    const char *words = text_of(vector, "desc");
    enum input input = strncmp(words, "bytes", 5) == 0 ? DECIMAL : INT64;
    struct range left_range = described(strchr(words, ' ') + 1, input);
    struct range right_range = described(strstr(words, " + ") + 3, input);
    struct buffer left = state_of(&left_range), right = state_of(&right_range);
    assert_sha256(buffer_bytes(&left), text_of(vector, "left_sha256"));
    assert_sha256(buffer_bytes(&right), text_of(vector, "right_sha256"));
    struct buffer merged = merge_states(buffer_bytes(&left), buffer_bytes(&right));
    struct buffer swapped = merge_states(buffer_bytes(&right), buffer_bytes(&left));
    assert_state(buffer_bytes(&merged), vector);
    assert_true(bytes_equal(buffer_bytes(&merged), buffer_bytes(&swapped)));
    buffer_free(&left);
    buffer_free(&right);
    buffer_free(&merged);
    buffer_free(&swapped);
}

static void test_merges(void **unused)
{
    (void)unused;
    each("merges", check_merge);
}

/* The library's three defects: what it should have come to. */
static void test_defects_are_not_copied(void **unused)
{
    const json_t *buffered = json_array_get(section("java_quirks"), 0);
    struct range fine = {INT64, 15, 20, 1, 100}, coarse = {INT64, 14, 19, 51, 150};
    struct hll_sketch sketch = sketch_of(&fine);
    struct hll_sketch other = sketch_of(&coarse);
    struct hll_state state;
    (void)unused;
    assert_true(hll_sketch_state(&other, &state));
    assert_true(hll_sketch_merge(&sketch, &state));
    assert_int_equal(state.sparse_data.size, other.sparse_data.size); /* is not used up */
    assert_true(hll_sketch_state(&sketch, &state));
    assert_int_equal(hll_estimate(&state), number_of(buffered, "estimate_serialised_first"));
    hll_sketch_free(&sketch);
    hll_sketch_free(&other);

    struct range many = {INT64, 15, 20, 1, 100000}, few = {INT64, 10, 15, 1, 10};
    sketch = sketch_of(&many);
    other = sketch_of(&few);
    assert_true(hll_sketch_state(&other, &state));
    assert_true(hll_sketch_merge(&sketch, &state));
    for (int64_t i = 0; i < 1000; i++)
        assert_true(hll_sketch_add(&sketch, hash_of(INT64, i)));
    assert_true(hll_sketch_state(&sketch, &state));
    assert_int_equal(state.precision, 10);
    hll_sketch_free(&sketch);
    hll_sketch_free(&other);
}

/* --- errors --- */

/* Where the library's parser lets pass what it never wrote, ours does not. */
static const char *stricter_words(const char *words)
{
    static const char *const ours[][2] = {
        {"parse: truncated nested", "The sketch is not a whole protobuf message"},
        {"parse: garbage", "The sketch is not a whole protobuf message"},
        {"parse: sparse_data truncated varint", "sparse_data ends within a value"},
        {"parse: sparse_size 5 lies over one value",
         "Expected sparse_data to hold sparse_size (5) values but got 1"},
    };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(words, ours[i][0]) == 0)
            return ours[i][1];
    return NULL;
}

/* `ok estimate=E reserialised=HEX …` */
static void assert_parsed(const struct hll_state *state, const char *result)
{
    long long estimate;
    struct buffer again = {0};
    char hex[128] = "";
    assert_int_equal(sscanf(result, "ok estimate=%lld reserialised=%127[0-9a-f]", &estimate, hex),
                     2);
    assert_int_equal(hll_estimate(state), estimate);
    hll_state_write(state, &again);
    struct buffer expected = from_hex(hex);
    assert_true(bytes_equal(buffer_bytes(&again), buffer_bytes(&expected)));
    buffer_free(&again);
    buffer_free(&expected);
}

static int parsed; /* vectors that are about parsing */

static void check_parsing(const json_t *vector)
{
    if (json_object_get(vector, "hex") == NULL)
        return;
    const char *result = text_of(vector, "result");
    const char *expected = stricter_words(text_of(vector, "desc"));
    struct buffer wire = from_hex(text_of(vector, "hex"));
    struct hll_state state;
    status s = hll_state_parse(buffer_bytes(&wire), &state);
    if (expected == NULL && strncmp(result, "ok ", 3) != 0)
        expected = strstr(result, ": ") + 2;
    if (expected != NULL) {
        assert_string_equal(status_message(s), expected);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    } else {
        assert_ok(s);
        assert_parsed(&state, result);
    }
    buffer_free(&wire);
    parsed++;
}

static void test_parse_errors(void **unused)
{
    (void)unused;
    each("errors", check_parsing);
    assert_int_equal(parsed, 20);
}

/* The library's message, without the exception's name. */
static const char *error_about(const char *words)
{
    const json_t *all = section("errors");
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(text_of(json_array_get(all, i), "desc"), words) == 0)
            return strstr(text_of(json_array_get(all, i), "error"), ": ") + 2;
    fail_msg("no vector is about %s", words);
    return NULL;
}

static void test_what_does_not_merge(void **unused)
{
    status s = hll_check_types(HLL_INT64, HLL_BYTES);
    (void)unused;
    assert_string_equal(status_message(s), error_about("int64 + bytes"));
    assert_status(s, STATUS_INVALID_ARGUMENT);
    assert_ok(hll_check_types(HLL_INT64, HLL_UNKNOWN));
}

/* Where the library gives up, the lesser of both precisions are left: adds are stored unread, so it
 * must not matter what a cell already holds. */
static void test_crossed_precisions_merge(void **unused)
{
    struct range fine = {INT64, 15, 20, 1, 100}, crossed = {INT64, 14, 21, 51, 150};
    struct buffer left = state_of(&fine), right = state_of(&crossed);
    struct buffer merged = merge_states(buffer_bytes(&left), buffer_bytes(&right));
    struct hll_state state;
    (void)unused;
    assert_non_null(error_about("sparse p15/sp20 + sparse p14/sp21"));
    assert_ok(hll_state_parse(buffer_bytes(&merged), &state));
    assert_int_equal(state.precision, 14);
    assert_int_equal(state.sparse_precision, 20);
    assert_int_equal(hll_estimate(&state), 150);
    buffer_free(&left);
    buffer_free(&right);
    buffer_free(&merged);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_int64),
        cmocka_unit_test(test_int64_never_sparse),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_upgrades),
        cmocka_unit_test(test_incremental),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_documented),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_defects_are_not_copied),
        cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_what_does_not_merge),
        cmocka_unit_test(test_crossed_precisions_merge),
    };
    if (count != 2 || !vectors_load(arguments[1])) {
        fprintf(stderr, "usage: test_hll_vectors VECTORS.json\n");
        return 2;
    }
    int failed = cmocka_run_group_tests_name("hll_vectors", tests, NULL, NULL);
    vectors_free();
    return failed;
}
