/* Tests of keys: their bytes, their order, and the way back. */
#include "datastore/model/key.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"

static int make_arena(void **state)
{
    *state = arena_create(16 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

static bytes path_of(struct arena *arena, const Ds__Key *key)
{
    struct buffer out = {0};
    ds_path_append(&out, key);
    bytes path = arena_copy(arena, buffer_bytes(&out));
    buffer_free(&out);
    assert_non_null(path.data);
    return path;
}

static bytes path(struct arena *arena, const char *text)
{
    return path_of(arena, test_key(arena, "", text));
}

#define LITERAL(string) bytes_make(string, sizeof(string) - 1)

static void test_paths_are_as_documented(void **state)
{
    assert_true(bytes_equal(path(*state, "K/5"), LITERAL("K\0\1\1\x80\0\0\0\0\0\0\5")));
    assert_true(
        bytes_equal(path(*state, "K/-1/J/'n'"), LITERAL("K\0\1\1\x7f\xff\xff\xff\xff\xff\xff\xff"
                                                        "J\0\1\2n\0\1")));
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* As both of Google's emulators order them, and what lies between. */
static const char *const rising[] = {
    "A/'r'",
    "A/'r'/K/5",
    "K/-9223372036854775808",
    "K/-5",
    "K/1",
    "K/1/K/3",
    "K/1/K/3/K/1",
    "K/1/K/'3'",
    "K/2",
    "K/10",
    "K/9223372036854775807",
    "K/'1'",
    "K/'1'/A/1",
    "K/'B'",
    "K/'a'",
    "K/'a'/\1/1",
    "K/'a\1'",
    "K/'aa'",
    "K\1/1",
    "Ka/1",
    "\xc3\xa9/1",
    "\xf0\x9f\x98\x80/1",
};
enum { RISING = sizeof rising / sizeof rising[0] };

static void test_keys_order_as_production_has_them(void **state)
{
    struct arena *arena = *state;
    for (size_t i = 0; i < RISING; i++)
        for (size_t j = 0; j < RISING; j++) {
            int expected = (i > j) - (i < j);
            const Ds__Key *a = test_key(arena, "", rising[i]), *b = test_key(arena, "", rising[j]);
            assert_int_equal(sign(ds_key_compare(a, b)), expected);
            assert_int_equal(sign(bytes_compare(path_of(arena, a), path_of(arena, b))), expected);
        }
}

static void test_descendants_begin_as_their_ancestor(void **state)
{
    struct arena *arena = *state;
    assert_true(bytes_start_with(path(arena, "K/1/K/3"), path(arena, "K/1")));
    assert_false(bytes_start_with(path(arena, "K/'ab'"), path(arena, "K/'a'")));
    assert_false(bytes_start_with(path(arena, "Kab/1"), path(arena, "K/1")));
}

static void test_paths_come_back(void **state)
{
    struct arena *arena = *state;
    for (size_t i = 0; i < RISING; i++) {
        Ds__Key *back;
        bytes encoded = path(arena, rising[i]);
        assert_ok(ds_path_decode(encoded, arena, &back));
        assert_int_equal(ds_key_compare(back, test_key(arena, "", rising[i])), 0);
        assert_null(back->partition_id);
        assert_true(ds_path_is_valid(encoded));
    }
}

static void test_what_is_no_path_is_refused(void **state)
{
    const bytes bad[] = {
        LITERAL(""),
        LITERAL("K"),
        LITERAL("K\0\1"),
        LITERAL("K\0\1\1"),
        LITERAL("K\0\1\1123"),
        LITERAL("K\0\1\2n"),
        LITERAL("K\0\1\3aaaaaaaa"),
        LITERAL("\0\1\2n\0\1"),
        LITERAL("K\0\1\2n\0\1K"),
        LITERAL("K\0\2\2n\0\1"),
    };
    Ds__Key *key;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(ds_path_is_valid(bad[i]));
        assert_status(ds_path_decode(bad[i], *state, &key), STATUS_INTERNAL);
    }
    assert_status(ds_path_decode(LITERAL("K\0\xff\0\1\2n\0\1"), *state, &key), STATUS_INTERNAL);
    assert_status(ds_path_decode(LITERAL("K\0\1\1\x80\0\0\0\0\0\0\0"), *state, &key),
                  STATUS_INTERNAL);
}

static void test_ancestors_end(void **state)
{
    struct arena *arena = *state;
    struct buffer out = {0};
    bytes parent = path(arena, "K/1");
    ds_ancestor_append(&out, parent);
    buffer_append_bytes(&out, path(arena, "J/2"));
    assert_int_equal(ds_ancestor_size(buffer_bytes(&out), DS_ASCENDING), parent.size + 2);
    for (size_t i = 0; i < out.size; i++)
        out.data[i] = (uint8_t)~out.data[i];
    assert_int_equal(ds_ancestor_size(buffer_bytes(&out), DS_DESCENDING), parent.size + 2);
    assert_int_equal(ds_ancestor_size(buffer_bytes(&out), DS_ASCENDING), 0);
    assert_int_equal(ds_ancestor_size(parent, DS_ASCENDING), 0);
    assert_int_equal(ds_ancestor_size(LITERAL("\0\1"), DS_ASCENDING), 0);
    buffer_free(&out);
}

static void test_an_id_of_zero_is_none(void **state)
{
    assert_true(ds_key_is_complete(test_key(*state, "", "K/1")));
    assert_true(ds_key_is_complete(test_key(*state, "", "K/-1")));
    assert_false(ds_key_is_complete(test_key(*state, "", "K/0")));
    assert_false(ds_key_is_complete(test_key(*state, "", "K/1/K")));
    assert_false(ds_key_is_complete(test_key(*state, "", "K/0/K/1")));
    assert_false(ds_key_is_complete(test_key(*state, "", "")));
}

static void test_without_memory_a_path_is_not_decoded(void **state)
{
    bytes encoded = path(*state, "K/1/J/'name'");
    for (size_t limit = 0; limit < 1024; limit += 16) {
        struct arena *small = arena_create(limit);
        Ds__Key *key;
        status s = ds_path_decode(encoded, small, &key);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        arena_destroy(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_are_as_documented),
        cmocka_unit_test(test_keys_order_as_production_has_them),
        cmocka_unit_test(test_descendants_begin_as_their_ancestor),
        cmocka_unit_test(test_paths_come_back),
        cmocka_unit_test(test_what_is_no_path_is_refused),
        cmocka_unit_test(test_ancestors_end),
        cmocka_unit_test(test_an_id_of_zero_is_none),
        cmocka_unit_test(test_without_memory_a_path_is_not_decoded),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
