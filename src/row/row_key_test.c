/* Tests of keys: what they look like, and that they order as their parts do. */
#include "row/row_key.h"

#include "base/testing/testing.h"

static bytes S(const char *string, size_t size)
{
    return bytes_make(string, size);
}

#define LITERAL(string) S(string, sizeof(string) - 1)

static void assert_bytes(const struct buffer *buffer, bytes expected)
{
    assert_false(buffer->failed);
    assert_int_equal(buffer->size, expected.size);
    assert_memory_equal(buffer->data, expected.data, expected.size);
}

static void test_keys_are_as_documented(void **state)
{
    (void)state;
    struct buffer out = {0};
    row_record_key(&out, LITERAL("a\0b"));
    assert_bytes(&out, LITERAL("Ra\0b"));
    buffer_clear(&out);
    overflow_cell_key(&out, LITERAL("a\0b"), 0x01020304, LITERAL("q"), 5);
    assert_bytes(&out, LITERAL("Sa\0\xff"
                               "b\0\1\1\2\3\4q\0\1\x7f\xff\xff\xff\xff\xff\xff\xfa"));
    buffer_free(&out);
}

/* In the order that keys must have. */
struct parts {
    bytes row_key;
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
};

static void test_keys_order_as_their_parts(void **state)
{
    (void)state;
    const struct parts rising[] = {
        {LITERAL("a"), 1, LITERAL(""), INT64_MAX}, {LITERAL("a"), 1, LITERAL(""), 1},
        {LITERAL("a"), 1, LITERAL(""), 0},         {LITERAL("a"), 1, LITERAL(""), -1},
        {LITERAL("a"), 1, LITERAL("\0"), 5},       {LITERAL("a"), 1, LITERAL("\0\0"), 5},
        {LITERAL("a"), 1, LITERAL("\0\xff"), 5},   {LITERAL("a"), 1, LITERAL("\1"), 5},
        {LITERAL("a"), 1, LITERAL("\xff"), 5},     {LITERAL("a"), 2, LITERAL("a"), 5},
        {LITERAL("a"), 256, LITERAL("bc"), 5},     {LITERAL("a\0"), 1, LITERAL("x"), 5},
        {LITERAL("a\0\1"), 1, LITERAL("x"), 5},    {LITERAL("a\1"), 1, LITERAL("x"), 5},
        {LITERAL("ab"), 1, LITERAL("c"), 5},       {LITERAL("\xff\xff"), 1, LITERAL("c"), 5},
    };
    struct buffer key = {0}, former = {0}, scratch = {0};
    for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++) {
        const struct parts *parts = &rising[i];
        struct overflow_key parsed;
        uint32_t family;
        int64_t timestamp_us;
        buffer_clear(&key);
        overflow_cell_key(&key, parts->row_key, parts->family, parts->qualifier,
                          parts->timestamp_us);
        assert_true(i == 0 || bytes_compare(buffer_bytes(&former), buffer_bytes(&key)) < 0);
        assert_true(overflow_key_parse(buffer_bytes(&key), &scratch, &parsed));
        assert_true(bytes_equal(parsed.row_key, parts->row_key));
        assert_true(bytes_equal(parsed.qualifier, parts->qualifier));
        assert_int_equal(parsed.family, parts->family);
        assert_true(parsed.timestamp_us == parts->timestamp_us);
        assert_true(overflow_key_tail(buffer_bytes(&key), &family, &timestamp_us));
        assert_int_equal(family, parts->family);
        assert_true(timestamp_us == parts->timestamp_us);
        buffer_clear(&former);
        buffer_append_bytes(&former, buffer_bytes(&key));
    }
    buffer_free(&key);
    buffer_free(&former);
    buffer_free(&scratch);
}

/* Whether a range of rows takes in the overflow cells of a row. */
static bool range_has(bytes from, bytes to, bytes row_key)
{
    struct buffer start = {0}, end = {0}, key = {0};
    overflow_range_start(&start, from);
    overflow_range_end(&end, to);
    overflow_cell_key(&key, row_key, 1, LITERAL("q"), 5);
    bool has = bytes_compare(buffer_bytes(&start), buffer_bytes(&key)) <= 0 &&
               bytes_compare(buffer_bytes(&key), buffer_bytes(&end)) < 0;
    buffer_free(&start);
    buffer_free(&end);
    buffer_free(&key);
    return has;
}

static void test_ranges_of_rows_are_ranges_of_keys(void **state)
{
    (void)state;
    const bytes rising[] = {LITERAL(""),   LITERAL("\0"),   LITERAL("a"), LITERAL("a\0"),
                            LITERAL("ab"), LITERAL("\xff"), LITERAL("")};
    enum { BOUNDS = sizeof rising / sizeof rising[0] };
    for (size_t from = 0; from < BOUNDS - 1; from++)
        for (size_t to = from + 1; to < BOUNDS; to++)
            for (size_t row = 1; row < BOUNDS - 1; row++)
                assert_int_equal(range_has(rising[from], rising[to], rising[row]),
                                 from <= row && row < to);
}

static void test_prefixes_end(void **state)
{
    (void)state;
    struct buffer out = {0};
    assert_true(key_after_prefix(&out, LITERAL("ab")));
    assert_bytes(&out, LITERAL("ac"));
    buffer_clear(&out);
    assert_true(key_after_prefix(&out, LITERAL("a\xff\xff")));
    assert_bytes(&out, LITERAL("b"));
    buffer_clear(&out);
    assert_false(key_after_prefix(&out, LITERAL("\xff\xff")));
    assert_false(key_after_prefix(&out, LITERAL("")));
    assert_int_equal(out.size, 0);
    buffer_free(&out);
}

static void assert_prefix_end(bytes prefix, bytes expected)
{
    struct arena *arena = arena_create(4096);
    bytes end;
    assert_true(key_prefix_end(arena, prefix, &end));
    assert_true(bytes_equal(end, expected));
    arena_destroy(arena);
    arena = arena_create(0);
    assert_false(key_prefix_end(arena, prefix, &end));
    arena_destroy(arena);
}

static void test_prefixes_end_in_an_arena(void **state)
{
    (void)state;
    assert_prefix_end(LITERAL("ab"), LITERAL("ac"));
    assert_prefix_end(LITERAL("a\xff\xff"), LITERAL("b"));
    assert_prefix_end(LITERAL("\xff\xff"), LITERAL(""));
    assert_prefix_end(LITERAL(""), LITERAL(""));
}

static void test_what_is_no_overflow_key_is_refused(void **state)
{
    (void)state;
    const bytes bad[] = {LITERAL(""),
                         LITERAL("R"),
                         LITERAL("S"),
                         LITERAL("Sa\0"),
                         LITERAL("Sa\0\1"),
                         LITERAL("Sa\0\2aaaaaaaaaaaaaaaaaaaaaaa"),
                         LITERAL("Sa\0\1ffff"),
                         LITERAL("Sa\0\1ffffq\0\1"),
                         LITERAL("Sa\0\1ffffq\0\1tttttttt+")};
    struct buffer scratch = {0};
    struct overflow_key parsed;
    uint32_t family;
    int64_t timestamp_us;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(overflow_key_parse(bad[i], &scratch, &parsed));
        assert_false(overflow_key_tail(bad[i], &family, &timestamp_us));
    }
    buffer_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_as_documented),
        cmocka_unit_test(test_keys_order_as_their_parts),
        cmocka_unit_test(test_ranges_of_rows_are_ranges_of_keys),
        cmocka_unit_test(test_prefixes_end),
        cmocka_unit_test(test_prefixes_end_in_an_arena),
        cmocka_unit_test(test_what_is_no_overflow_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
