/* Tests of property masks, and of the paths that they are made of. */
#include "datastore/model/mask.h"

#include "base/testing/testing.h"
#include "datastore/model/property_path.h"
#include "datastore/testing/testing.h"

static int make_arena(void **state)
{
    *state = arena_create(64 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* --- paths --- */

static void test_paths_are_names_with_dots_between(void **state)
{
    const struct {
        const char *text;
        const char *names[4];
    } cases[] = {
        {"a", {"a"}},
        {"a.b.c", {"a", "b", "c"}},
        {"a\\.b.c", {"a.b", "c"}},
        {"a\\\\.b", {"a\\", "b"}},
        {"\xc3\xa9", {"\xc3\xa9"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ds_property_path path;
        assert_ok(ds_property_path_parse(cases[i].text, *state, &path));
        for (size_t name = 0; name < path.count; name++) {
            assert_non_null(cases[i].names[name]);
            assert_string_equal(path.names[name], cases[i].names[name]);
        }
        assert_null(cases[i].names[path.count]);
    }
}

static void test_what_is_no_path_is_refused(void **state)
{
    const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a\\", "a\\b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ds_property_path path;
        status s = ds_property_path_parse(bad[i], *state, &path);
        assert_non_null(strstr(status_message(s), bad[i]));
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void test_properties_are_set_at_their_paths(void **state)
{
    struct arena *arena = *state;
    const struct {
        const char *entity;
        const char *path;
        const char *expected;
    } cases[] = {
        {"{}", "b", "{'properties':{'b':{'integerValue':'7'}}}"},
        {"{'properties':{'a':{'integerValue':'1'},'c':{'integerValue':'1'}}}", "b",
         "{'properties':{'a':{'integerValue':'1'},'b':{'integerValue':'7'},"
         "'c':{'integerValue':'1'}}}"},
        {"{'properties':{'b':{'integerValue':'1'},'c':{'integerValue':'1'}}}", "b",
         "{'properties':{'b':{'integerValue':'7'},'c':{'integerValue':'1'}}}"},
        {"{'properties':{'a':{'excludeFromIndexes':true,'integerValue':'1'}}}", "a.b",
         "{'properties':{'a':{'entityValue':{'properties':{'b':{'integerValue':'7'}}},"
         "'excludeFromIndexes':true}}}"},
        {"{'properties':{'a':{'entityValue':{'properties':{'c':{'integerValue':'1'}}}}}}", "a.b",
         "{'properties':{'a':{'entityValue':{'properties':{'b':{'integerValue':'7'},"
         "'c':{'integerValue':'1'}}}}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ds_property_path path;
        Ds__Entity *changed;
        Ds__Value *seven = test_value(arena, "{'integerValue': 7}");
        const Ds__Entity *entity = test_entity(arena, cases[i].entity);
        assert_ok(ds_property_path_parse(cases[i].path, arena, &path));
        assert_ok(ds_property_set(entity, &path, seven, arena, &changed));
        assert_json(&changed->base, cases[i].expected);
        assert_ptr_equal(ds_property_get(changed, &path), seven);
        assert_ptr_not_equal(ds_property_get(entity, &path), seven);
    }
}

/* --- masks --- */

/* An entity with these properties, which are sorted, and no key. */
static Ds__Entity *entity_of(struct arena *arena, const char *properties)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{'properties': {%s}}", properties);
    char *text = arena_string(arena, buffer_bytes(&json));
    assert_non_null(text);
    buffer_free(&json);
    return test_entity(arena, text);
}

static Ds__PropertyMask mask_of(const char **paths, size_t count)
{
    Ds__PropertyMask mask = DS__PROPERTY_MASK__INIT;
    mask.n_paths = count;
    mask.paths = paths;
    return mask;
}

#define A_TO_D                                                                                     \
    "'a':{'integerValue':'1'},"                                                                    \
    "'b':{'entityValue':{'properties':{'x':{'integerValue':'2'},'y':{'integerValue':'3'}}}},"      \
    "'c.d':{'integerValue':'4'}"

static void test_reading_leaves_what_is_named(void **state)
{
    struct arena *arena = *state;
    const struct {
        const char *paths[4];
        const char *expected;
    } cases[] = {
        {{NULL}, "{}"},
        {{"__key__"}, "{}"},
        {{"a", "a"}, "{'properties':{'a':{'integerValue':'1'}}}"},
        {{"c\\.d", "__key__"}, "{'properties':{'c.d':{'integerValue':'4'}}}"},
        {{"c.d", "z", "a.z"}, "{}"},
        {{"b.y"}, "{'properties':{'b':{'entityValue':{'properties':{'y':{'integerValue':'3'}}}}}}"},
        {{"b.y", "b"},
         "{'properties':{'b':{'entityValue':{'properties':{'x':{'integerValue':'2'},"
         "'y':{'integerValue':'3'}}}}}}"},
        {{"b.z"}, "{}"},
        {{"b", "a", "c\\.d"}, "{'properties':{" A_TO_D "}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *paths[4];
        size_t count = 0;
        Ds__Entity *read;
        for (; count < 4 && cases[i].paths[count] != NULL; count++)
            paths[count] = cases[i].paths[count];
        Ds__PropertyMask mask = mask_of(paths, count);
        assert_ok(ds_mask_read(entity_of(arena, A_TO_D), &mask, arena, &read));
        assert_json(&read->base, cases[i].expected);
    }
}

static void test_writing_changes_what_is_named(void **state)
{
    struct arena *arena = *state;
    const struct {
        const char *old; /* NULL: none */
        const char *new_one;
        const char *path;
        const char *expected;
    } cases[] = {
        {"'a':{'integerValue':'1'}", "'a':{'integerValue':'2'},'b':{'integerValue':'2'}", "b",
         "{'properties':{'a':{'integerValue':'1'},'b':{'integerValue':'2'}}}"},
        {"'a':{'integerValue':'1'},'b':{'integerValue':'1'}", "'b':{'integerValue':'2'}", "a",
         "{'properties':{'b':{'integerValue':'1'}}}"},
        {NULL, "'a':{'integerValue':'2'},'b':{'integerValue':'2'}", "b",
         "{'properties':{'b':{'integerValue':'2'}}}"},
        {A_TO_D, "", "b.x",
         "{'properties':{'a':{'integerValue':'1'},"
         "'b':{'entityValue':{'properties':{'y':{'integerValue':'3'}}}},"
         "'c.d':{'integerValue':'4'}}}"},
        {"'b':{'integerValue':'1'}",
         "'b':{'entityValue':{'properties':{'x':{'integerValue':'2'},'y':{'integerValue':'2'}}}}",
         "b.x", "{'properties':{'b':{'entityValue':{'properties':{'x':{'integerValue':'2'}}}}}}"},
        {"'b':{'integerValue':'1'}", "", "b.x", "{'properties':{'b':{'integerValue':'1'}}}"},
        {"'b':{'integerValue':'1'}", "'b':{'entityValue':{}}", "b.x",
         "{'properties':{'b':{'integerValue':'1'}}}"},
        {"'b':{'entityValue':{'properties':{'x':{'integerValue':'1'}}}}",
         "'b':{'integerValue':'2'}", "b.x", "{'properties':{'b':{'entityValue':{}}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = cases[i].path;
        Ds__PropertyMask mask = mask_of(&path, 1);
        Ds__Entity *old = cases[i].old == NULL ? NULL : entity_of(arena, cases[i].old);
        Ds__Entity *new_one = entity_of(arena, cases[i].new_one), *written;
        new_one->key = test_key(arena, "", "K/1");
        assert_ok(ds_mask_write(old, new_one, &mask, arena, &written));
        assert_ptr_equal(written->key, new_one->key);
        written->key = NULL;
        assert_json(&written->base, cases[i].expected);
    }
}

static void test_a_mask_with_what_is_no_path_is_refused(void **state)
{
    const char *path = "a..b";
    Ds__PropertyMask mask = mask_of(&path, 1);
    Ds__Entity *read;
    assert_status(ds_mask_read(entity_of(*state, ""), &mask, *state, &read),
                  STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_are_names_with_dots_between),
        cmocka_unit_test(test_what_is_no_path_is_refused),
        cmocka_unit_test(test_properties_are_set_at_their_paths),
        cmocka_unit_test(test_reading_leaves_what_is_named),
        cmocka_unit_test(test_writing_changes_what_is_named),
        cmocka_unit_test(test_a_mask_with_what_is_no_path_is_refused),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
