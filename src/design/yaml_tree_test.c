/* What YAML becomes as a tree, and what is refused of it. */
#include "design/yaml_tree.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

static int setup(void **state)
{
    *state = arena_create(64 << 20);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static void values_know_where_they_stand(void **state)
{
    const struct yaml_value *root;
    assert_ok(yaml_tree_read(bytes_of("# first\na: one\nb: [x, 'y z']\n"), *state, &root));
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->count, 2);
    assert_string_equal(root->keys[0]->text, "a");
    assert_string_equal(root->items[0]->text, "one");
    const struct yaml_value *list = root->items[1];
    assert_int_equal(list->kind, YAML_LIST);
    assert_int_equal(list->count, 2);
    assert_string_equal(list->items[1]->text, "y z");
    assert_int_equal(list->items[1]->line, 3);
    assert_int_equal(list->items[1]->column, 8);
}

static void an_alias_is_what_its_anchor_is(void **state)
{
    const struct yaml_value *root;
    assert_ok(yaml_tree_read(bytes_of("a: &x [1, 2]\nb: *x\n"), *state, &root));
    assert_int_equal(root->items[1]->count, 2);
    assert_string_equal(root->items[1]->items[1]->text, "2");
}

static void expect_error(struct arena *arena, const char *text, const char *words)
{
    const struct yaml_value *root;
    status s = yaml_tree_read(bytes_of(text), arena, &root);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), words);
    status_free(s);
}

static void malformed_documents_are_refused(void **state)
{
    expect_error(*state, "", "1:1: nothing is described");
    expect_error(*state, "a: 1\nb: 2\na: 3\n", "3:1: a is there twice");
    expect_error(*state, "? [a]\n: b\n", "1:3: the name of a field is a text");
    expect_error(*state, "a: 1\n---\nb: 2\n", "3:1: a second document");
    expect_error(*state, "a: \"\\0\"\n", "1:4: a text with a zero byte");
    expect_error(*state, "a: [1,\n",
                 "2:1: no YAML: did not find expected node content, while "
                 "parsing a flow node");
    expect_error(*state, "a: *nowhere\n", "1:4: no YAML: found undefined alias");
}

/* An alias within its own anchor, and aliases of aliases. */
static void growth_is_bounded(void **state)
{
    struct buffer text = {0};
    expect_error(*state, "&a [*a]\n", "1:1: more than 16 levels");
    buffer_append_format(&text, "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for (int i = 1; i < 8; i++)
        buffer_append_format(&text, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i,
                             i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    buffer_append_byte(&text, 0);
    assert_false(text.failed);
    expect_error(*state, (const char *)text.data, "1:22: more than 100000 values");
    buffer_clear(&text);
    for (int i = 0; i <= YAML_FIELDS_MOST; i++)
        buffer_append_format(&text, "f%d: 1\n", i);
    buffer_append_byte(&text, 0);
    expect_error(*state, (const char *)text.data, "1:1: more than 1000 fields");
    buffer_free(&text);
}

/* Long before libyaml has read them all, which took it minutes. */
static void depth_is_bounded_before_anything_is_loaded(void **state)
{
    enum { MANY = 200 * 1000 };
    static const char *const starts[] = {"[", "{a: ", "- ", "? "};
    struct buffer text = {0};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const struct yaml_value *root;
        buffer_clear(&text);
        for (size_t j = 0; j < MANY; j++)
            buffer_append_bytes(&text, bytes_of(starts[i]));
        assert_false(text.failed);
        status s = yaml_tree_read(buffer_bytes(&text), *state, &root);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(status_message(s), ": more than 16 levels"));
        status_free(s);
    }
    buffer_clear(&text);
    for (int i = 0; i <= YAML_ANCHORS_MOST; i++)
        buffer_append_format(&text, "- &a%d x\n", i);
    buffer_append_byte(&text, 0);
    expect_error(*state, (const char *)text.data, "1001:3: more than 1000 anchors");
    buffer_free(&text);
    expect_error(*state, "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "1:17: more than 16 levels");
}

/* libyaml's own allocations do not fail here. */
static void read_some(void *context)
{
    const struct yaml_value *root;
    struct arena *arena = arena_create(1 << 20);
    (void)context;
    if (arena == NULL)
        return;
    status s = yaml_tree_read(bytes_of("a: [{b: c}, d]\n"), arena, &root);
    if (!status_is_ok(s))
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(arena);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    failmalloc_each(read_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_know_where_they_stand, setup, teardown),
        cmocka_unit_test_setup_teardown(an_alias_is_what_its_anchor_is, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_documents_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(depth_is_bounded_before_anything_is_loaded, setup,
                                        teardown),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
