/* Tests of sets of strings: against a look at each string and prefix by itself. */
#include "row/string_set.h"

#include "base/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>

enum { ARENA_LIMIT = 16 << 20, ROUNDS = 2000, MOST = 6, LONGEST = 3 };

static bool has(const struct string_set *set, const char *text)
{
    return string_set_has(set, bytes_of(text));
}

static ProtobufCBinaryData data_of(const char *text)
{
    return proto_data(bytes_of(text));
}

static void test_strings_and_prefixes(void **state)
{
    (void)state;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct string_set set;
    const ProtobufCBinaryData strings[] = {data_of("b"), data_of("")};
    const ProtobufCBinaryData prefixes[] = {data_of("user#"), data_of("us"), data_of("ut")};
    assert_ok(string_set_make(strings, 2, prefixes, 3, arena, &set));
    assert_int_equal(set.count, 3); /* "us" and "ut" touch, and "user#" is in them */
    assert_true(has(&set, "") && has(&set, "b") && has(&set, "us") && has(&set, "utz"));
    assert_false(has(&set, "a") || has(&set, "ba") || has(&set, "u") || has(&set, "uu"));
    assert_true(bytes_equal(string_set_seek(&set, bytes_of("c"))->from, bytes_of("us")));
    assert_null(string_set_seek(&set, bytes_of("uu")));
    assert_false(string_set_has_all(&set));
    arena_destroy(arena);
}

static void test_all_and_nothing(void **state)
{
    (void)state;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct string_set set;
    const ProtobufCBinaryData all[] = {data_of("a"), data_of("")};
    assert_ok(string_set_make(NULL, 0, all, 2, arena, &set));
    assert_true(string_set_has_all(&set) && has(&set, "") && has(&set, "\xff\xff"));
    assert_ok(string_set_make(NULL, 0, NULL, 0, arena, &set));
    assert_false(string_set_has_all(&set) || has(&set, ""));
    assert_null(string_set_seek(&set, bytes_of("")));
    const ProtobufCBinaryData last[] = {data_of("\xff\xff")};
    assert_ok(string_set_make(NULL, 0, last, 1, arena, &set));
    assert_true(has(&set, "\xff\xff\xff"));
    assert_false(has(&set, "\xff\xfe\xff"));
    arena_destroy(arena);
}

/* --- at random --- */

static uint64_t random_state;

static unsigned random_below(unsigned bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % bound;
}

/* Of letters that make neighbours likely. */
static bytes random_string(struct arena *arena)
{
    static const char letters[] = {'\0', '\1', 'a', '\xfe', '\xff'};
    size_t size = random_below(LONGEST + 1);
    char *text = arena_alloc(arena, size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = letters[random_below(sizeof letters)];
    return bytes_make(text, size);
}

static void test_every_string_is_in_or_out(void **state)
{
    (void)state;
    struct arena *arena = arena_create(ARENA_LIMIT);
    for (unsigned round = 0; round < ROUNDS; round++) {
        ProtobufCBinaryData strings[MOST], prefixes[MOST];
        size_t string_count = random_below(MOST + 1), prefix_count = random_below(MOST + 1);
        struct string_set set;
        arena_reset(arena);
        for (size_t i = 0; i < string_count; i++)
            strings[i] = proto_data(random_string(arena));
        for (size_t i = 0; i < prefix_count; i++)
            prefixes[i] = proto_data(random_string(arena));
        assert_ok(string_set_make(strings, string_count, prefixes, prefix_count, arena, &set));
        for (unsigned look = 0; look < 40; look++) {
            bytes asked = random_string(arena);
            bool expected = false;
            for (size_t i = 0; i < string_count; i++)
                expected |= bytes_equal(asked, proto_bytes(strings[i]));
            for (size_t i = 0; i < prefix_count; i++)
                expected |= bytes_start_with(asked, proto_bytes(prefixes[i]));
            if (string_set_has(&set, asked) != expected)
                fail_msg("round %u, look %u", round, look);
        }
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings_and_prefixes),
        cmocka_unit_test(test_all_and_nothing),
        cmocka_unit_test(test_every_string_is_in_or_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
