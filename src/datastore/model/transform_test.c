/* Tests of property transforms. */
#include "datastore/model/transform.h"

#include "base/testing/testing.h"
#include "datastore/model/value.h"
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

static const int64_t now_us = 1600000000123456;

static char *join(struct arena *arena, const char *before, const char *text, const char *after)
{
    struct buffer out = {0};
    buffer_append_format(&out, "%s%s%s", before, text, after);
    char *joined = arena_string(arena, buffer_bytes(&out));
    assert_non_null(joined);
    buffer_free(&out);
    return joined;
}

/* The outcome: the property "p" afterwards, and what is said of it. */
struct outcome {
    Ds__Value *becomes;
    Ds__Value *result;
};

/* By one transform; `present` is a value, or NULL. */
static status try_transform(struct arena *arena, const char *present, const char *by,
                            struct outcome *out)
{
    Ds__Entity *entity = test_entity(
        arena, present == NULL ? "{}" : join(arena, "{'properties': {'p': ", present, "}}"));
    Ds__Mutation *mutation =
        test_mutation(arena, join(arena, "{'propertyTransforms': [{'property': 'p', ", by, "}]}"));
    Ds__Entity *changed;
    Ds__Value **results;
    TRY(ds_transform(entity, mutation->property_transforms, 1, now_us, arena, &changed, &results));
    assert_int_equal(changed->n_properties, 1);
    *out = (struct outcome){.becomes = changed->properties[0]->value, .result = results[0]};
    return status_ok();
}

static struct outcome transform(struct arena *arena, const char *present, const char *by)
{
    struct outcome outcome = {0};
    assert_ok(try_transform(arena, present, by, &outcome));
    return outcome;
}

static const struct {
    const char *present;
    const char *by;
    const char *expected;
} numbers[] = {
    {NULL, "'increment': {'integerValue': 3}", "{'integerValue':'3'}"},
    {"{'integerValue': 4}", "'increment': {'integerValue': 3}", "{'integerValue':'7'}"},
    {"{'integerValue': 4}", "'increment': {'doubleValue': 0.5}", "{'doubleValue':4.5}"},
    {"{'doubleValue': 0.5}", "'increment': {'integerValue': -1}", "{'doubleValue':-0.5}"},
    {"{'stringValue': 'x'}", "'increment': {'integerValue': 3}", "{'integerValue':'3'}"},
    {"{'integerValue': '9223372036854775800'}", "'increment': {'integerValue': 100}",
     "{'integerValue':'9223372036854775807'}"},
    {"{'integerValue': '-9223372036854775800'}", "'increment': {'integerValue': -100}",
     "{'integerValue':'-9223372036854775808'}"},
    {"{'integerValue': 4, 'excludeFromIndexes': true}", "'increment': {'integerValue': 3}",
     "{'integerValue':'7','excludeFromIndexes':true}"},
    {NULL, "'maximum': {'doubleValue': 3}", "{'doubleValue':3}"},
    {"{'integerValue': 3}", "'maximum': {'doubleValue': 3}", "{'integerValue':'3'}"},
    {"{'integerValue': 3}", "'maximum': {'doubleValue': 3.5}", "{'doubleValue':3.5}"},
    {"{'integerValue': 3}", "'maximum': {'integerValue': 2}", "{'integerValue':'3'}"},
    {"{'doubleValue': 3}", "'maximum': {'integerValue': 4}", "{'integerValue':'4'}"},
    {"{'integerValue': 3}", "'maximum': {'doubleValue': 'NaN'}", "{'doubleValue':'NaN'}"},
    {"{'doubleValue': 'NaN'}", "'maximum': {'integerValue': 3}", "{'doubleValue':'NaN'}"},
    {"{'booleanValue': true}", "'maximum': {'integerValue': 3}", "{'integerValue':'3'}"},
    /* a double is 2^53; the integer one more, of which no double is */
    {"{'integerValue': '9007199254740993'}", "'maximum': {'doubleValue': 9007199254740992}",
     "{'integerValue':'9007199254740993'}"},
    {"{'integerValue': '9223372036854775807'}", "'minimum': {'doubleValue': 9223372036854775808}",
     "{'integerValue':'9223372036854775807'}"},
    {"{'integerValue': '-9223372036854775808'}", "'minimum': {'doubleValue': -1e300}",
     "{'doubleValue':-1e+300}"},
    {"{'integerValue': 3}", "'minimum': {'doubleValue': 2.5}", "{'doubleValue':2.5}"},
    {"{'integerValue': -3}", "'minimum': {'doubleValue': -2.5}", "{'integerValue':'-3'}"},
    {"{'integerValue': 3}", "'minimum': {'doubleValue': 3}", "{'integerValue':'3'}"},
    {"{'integerValue': 3}", "'minimum': {'doubleValue': 'NaN'}", "{'doubleValue':'NaN'}"},
};

static void test_numbers(void **state)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct outcome outcome = transform(*state, numbers[i].present, numbers[i].by);
        assert_json(&outcome.becomes->base, numbers[i].expected);
        assert_json(&outcome.result->base, numbers[i].expected);
    }
}

static void test_zero_stays_as_it_is(void **state)
{
    struct outcome outcome =
        transform(*state, "{'doubleValue': -0.0}", "'maximum': {'integerValue': 0}");
    assert_json(&outcome.becomes->base, "{'doubleValue':-0}");
}

static void test_the_requests_time_has_milliseconds(void **state)
{
    struct outcome outcome = transform(*state, "{'integerValue': 1, 'excludeFromIndexes': true}",
                                       "'setToServerValue': 'REQUEST_TIME'");
    assert_json(&outcome.becomes->base,
                "{'timestampValue':'2020-09-13T12:26:40.123Z','excludeFromIndexes':true}");
    assert_ptr_equal(outcome.result, outcome.becomes);
}

#define ONE_TO_NAN                                                                                 \
    "{'arrayValue': {'values': [{'integerValue': 1}, {'doubleValue': 3}, {'integerValue': 1},"     \
    " {'doubleValue': 'NaN'}, {'stringValue': 'x'}]}}"

static const struct {
    const char *present;
    const char *by;
    const char *expected;
} arrays[] = {
    {NULL, "'appendMissingElements': {'values': [{'integerValue': 3}, {'doubleValue': 3}]}",
     "{'arrayValue':{'values':[{'integerValue':'3'}]}}"},
    {"{'stringValue': 'x'}", "'appendMissingElements': {}", "{'arrayValue':{}}"},
    {ONE_TO_NAN,
     "'appendMissingElements': {'values': [{'integerValue': 3}, {'blobValue': 'eA=='},"
     " {'doubleValue': 'NaN'}, {'doubleValue': 1.5}, {'stringValue': 'x'}]}",
     "{'arrayValue':{'values':[{'integerValue':'1'},{'doubleValue':3},{'integerValue':'1'},"
     "{'doubleValue':'NaN'},{'stringValue':'x'},{'blobValue':'eA=='},{'doubleValue':1.5}]}}"},
    {ONE_TO_NAN,
     "'removeAllFromArray': {'values': [{'integerValue': 3}, {'doubleValue': 'NaN'},"
     " {'doubleValue': 1}, {'blobValue': 'eA=='}]}",
     "{'arrayValue':{'values':[{'stringValue':'x'}]}}"},
    {ONE_TO_NAN, "'removeAllFromArray': {}",
     "{'arrayValue':{'values':[{'integerValue':'1'},{'doubleValue':3},{'integerValue':'1'},"
     "{'doubleValue':'NaN'},{'stringValue':'x'}]}}"},
    {NULL, "'removeAllFromArray': {'values': [{'integerValue': 3}]}", "{'arrayValue':{}}"},
    {"{'arrayValue': {'values': [{'entityValue': {'properties': {'a': {'integerValue': 1}}}},"
     " {'entityValue': {}}]}}",
     "'removeAllFromArray': {'values': [{'excludeFromIndexes': true,"
     " 'entityValue': {'properties': {'a': {'integerValue': 1}}}}]}",
     "{'arrayValue':{'values':[{'entityValue':{}}]}}"},
};

static void test_arrays(void **state)
{
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        struct outcome outcome = transform(*state, arrays[i].present, arrays[i].by);
        assert_json(&outcome.becomes->base, arrays[i].expected);
        assert_int_equal(ds_value_type(outcome.result), DS__VALUE__VALUE_TYPE_NULL_VALUE);
    }
}

static void test_transforms_follow_one_another(void **state)
{
    struct arena *arena = *state;
    const Ds__Entity *entity = test_entity(arena, "{'properties': {'n': {'integerValue': 1}}}");
    Ds__Mutation *mutation = test_mutation(
        arena, "{'propertyTransforms': [{'property': 'n', 'increment': {'integerValue': 2}},"
               " {'property': 'n', 'increment': {'integerValue': 3}},"
               " {'property': 'e.a\\\\.b', 'maximum': {'integerValue': 4}}]}");
    Ds__Entity *changed;
    Ds__Value **results;
    assert_ok(
        ds_transform(entity, mutation->property_transforms, 3, now_us, arena, &changed, &results));
    assert_json(&changed->base,
                "{'properties':{'e':{'entityValue':{'properties':{'a.b':{'integerValue':'4'}}}},"
                "'n':{'integerValue':'6'}}}");
    assert_json(&results[0]->base, "{'integerValue':'3'}");
    assert_json(&results[1]->base, "{'integerValue':'6'}");
    assert_json(&results[2]->base, "{'integerValue':'4'}");
    assert_json(&entity->base, "{'properties':{'n':{'integerValue':'1'}}}");
}

static void test_what_is_no_transform_is_refused(void **state)
{
    const struct {
        const char *by;
        const char *says;
    } cases[] = {
        {"'increment': {'stringValue': 'x'}",
         "The operand of the transform of property \"p\" must be an integer or a double."},
        {"'maximum': {}",
         "The operand of the transform of property \"p\" must be an integer or a double."},
        {"'setToServerValue': 0", "Property transform of \"p\" sets an unknown server value."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome;
        status s = try_transform(*state, NULL, cases[i].by, &outcome);
        assert_string_equal(status_message(s), cases[i].says);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
    Ds__PropertyTransform none = DS__PROPERTY_TRANSFORM__INIT, *transforms[501];
    Ds__Entity empty = DS__ENTITY__INIT, *changed;
    Ds__Value **results;
    none.property = "p";
    for (size_t i = 0; i < 501; i++)
        transforms[i] = &none;
    status s = ds_transform(&empty, transforms, 1, now_us, *state, &changed, &results);
    assert_string_equal(status_message(s), "Property transform of \"p\" has no operation.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    s = ds_transform(&empty, transforms, 501, now_us, *state, &changed, &results);
    assert_string_equal(status_message(s), "At most 500 property transforms are supported.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    none.property = "p.";
    assert_status(ds_transform(&empty, transforms, 1, now_us, *state, &changed, &results),
                  STATUS_INVALID_ARGUMENT);
}

static void test_without_memory_nothing_is_changed(void **state)
{
    const Ds__Entity *entity = test_entity(*state, "{'properties': {'p': " ONE_TO_NAN "}}");
    Ds__Mutation *mutation =
        test_mutation(*state, "{'propertyTransforms': [{'property': 'p', 'removeAllFromArray':"
                              " {'values': [{'integerValue': 1}]}}]}");
    for (size_t limit = 0; limit < 4096; limit += 64) {
        struct arena *small = arena_create(limit);
        Ds__Entity *changed;
        Ds__Value **results;
        status s = ds_transform(entity, mutation->property_transforms, 1, now_us, small, &changed,
                                &results);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        arena_destroy(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_zero_stays_as_it_is),
        cmocka_unit_test(test_the_requests_time_has_milliseconds),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_transforms_follow_one_another),
        cmocka_unit_test(test_what_is_no_transform_is_refused),
        cmocka_unit_test(test_without_memory_nothing_is_changed),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
