/* Definitions of composite indexes. */
#include "datastore/index/index_definition.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"

static int set_up(void **state)
{
    *state = arena_create(1 << 20);
    return *state == NULL;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* JSON without the braces. */
static status make(struct arena *arena, const char *fields, Datastore__CompositeIndex **out)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{%s}%c", fields, 0);
    const DsAdmin__Index *asked =
        (const void *)test_message(arena, &ds_admin__index__descriptor, (const char *)json.data);
    buffer_free(&json);
    return ds_definition_make(asked, "p", arena, out);
}

static Datastore__CompositeIndex *made(struct arena *arena, const char *fields)
{
    Datastore__CompositeIndex *definition;
    assert_ok(make(arena, fields, &definition));
    return definition;
}

#define KIND     "'kind': 'K', 'ancestor': 'NONE', "
#define ANCESTOR "'kind': 'K', 'ancestor': 'ALL_ANCESTORS', "
#define UP(p)    "{'name': '" p "', 'direction': 'ASCENDING'}"
#define DOWN(p)  "{'name': '" p "', 'direction': 'DESCENDING'}"

static void test_there_and_back(void **state)
{
    Datastore__CompositeIndex *definition =
        made(*state, ANCESTOR "'properties': [" UP("a") ", " DOWN("b.c") ", " DOWN("__key__") "]");
    bytes value;
    DsAdmin__Index *shown;
    definition->id = 7;
    definition->state = DS_ADMIN__INDEX__STATE__READY;
    assert_ok(ds_definition_encode(definition, *state, &value));
    assert_ok(ds_definition_decode(value, *state, &definition));
    assert_ok(ds_definition_show(definition, "p", *state, &shown));
    assert_json(&shown->base,
                "{'projectId':'p','indexId':'7','kind':'K','ancestor':'ALL_ANCESTORS',"
                "'properties':[{'name':'a','direction':'ASCENDING'},"
                "{'name':'b.c','direction':'DESCENDING'},"
                "{'name':'__key__','direction':'DESCENDING'}],'state':'READY'}");
    assert_status(ds_definition_decode(bytes_of("\x0a\x7f"), *state, &definition), STATUS_INTERNAL);
}

static void test_what_rows_are_made_by(void **state)
{
    struct ds_index index;
    assert_ok(ds_definition_index(
        made(*state, ANCESTOR "'properties': [" UP("a") ", " DOWN("b") ", " DOWN("__key__") "]"),
        *state, &index));
    assert_string_equal(index.kind, "K");
    assert_int_equal(index.shape.values, 2);
    assert_string_equal(index.properties[1], "b");
    assert_int_equal(index.shape.flips[0], DS_ASCENDING);
    assert_int_equal(index.shape.flips[1], DS_DESCENDING);
    assert_int_equal(index.shape.key_flip, DS_DESCENDING);
    assert_true(index.shape.has_ancestors);
    assert_ok(ds_definition_index(made(*state, KIND "'properties': [" DOWN("__key__") "]"), *state,
                                  &index));
    assert_int_equal(index.shape.values, 0);
    assert_false(index.shape.has_ancestors);
}

/* Every index ends with its entities' keys, ascending if nothing is said. */
static void test_which_are_the_same(void **state)
{
    const Datastore__CompositeIndex *definition =
        made(*state, KIND "'properties': [" UP("a") ", " DOWN("b") "]");
    static const struct {
        const char *fields;
        bool is_same;
    } others[] = {
        {KIND "'properties': [" UP("a") ", " DOWN("b") "]", true},
        {KIND "'properties': [" UP("a") ", " DOWN("b") ", " UP("__key__") "]", true},
        {KIND "'properties': [" UP("a") ", " DOWN("b") ", " DOWN("__key__") "]", false},
        {KIND "'properties': [" DOWN("b") ", " UP("a") "]", false},
        {KIND "'properties': [" UP("a") ", " UP("b") "]", false},
        {KIND "'properties': [" UP("a") ", " DOWN("c") "]", false},
        {ANCESTOR "'properties': [" UP("a") ", " DOWN("b") "]", false},
        {"'kind': 'L', 'ancestor': 'NONE', 'properties': [" UP("a") ", " DOWN("b") "]", false},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(ds_definition_is_same(definition, made(*state, others[i].fields)),
                         others[i].is_same);
}

static void test_what_is_of_use(void **state)
{
    static const char *const good[] = {ANCESTOR "'properties': [" UP("a") "]",
                                       KIND "'properties': [" DOWN("__key__") "]",
                                       ANCESTOR "'properties': [" DOWN("__key__") "]",
                                       KIND "'properties': [" UP("a") ", " DOWN("__key__") "]"};
    static const char *const useless[] = {
        KIND "'properties': []",
        KIND "'properties': [" DOWN("a") "]",
        KIND "'properties': [" UP("a") ", " UP("__key__") "]",
        KIND "'properties': [" UP("__key__") "]",
        ANCESTOR "'properties': [" UP("__key__") "]",
        KIND "'properties': [" UP("a") ", " DOWN("a") "]",
        KIND "'properties': [" DOWN("__key__") ", " UP("a") "]",
        KIND "'properties': [" UP("") ", " UP("a") "]",
        KIND "'properties': [{'name': 'a'}, {'name': 'b'}]",
        KIND "'projectId': 'q', 'properties': [" UP("a") ", " UP("b") "]",
        "'kind': 'K', 'properties': [" UP("a") ", " UP("b") "]",
        "'ancestor': 'NONE', 'properties': [" UP("a") ", " UP("b") "]"};
    Datastore__CompositeIndex *definition;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        made(*state, good[i]);
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        assert_status(make(*state, useless[i], &definition), STATUS_INVALID_ARGUMENT);
    assert_status(ds_definition_make(NULL, "p", *state, &definition), STATUS_INVALID_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_and_back),
        TEST(what_rows_are_made_by),
        TEST(which_are_the_same),
        TEST(what_is_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
