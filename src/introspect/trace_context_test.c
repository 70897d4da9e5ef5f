/* Tests of traceparent. */
#include "introspect/trace_context.h"

#include "base/testing/testing.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static bool parse(const char *header, struct trace_context *out)
{
    return trace_context_parse(bytes_of(header), out);
}

static void test_valid_headers(void **state)
{
    struct trace_context context;
    char text[TRACE_ID_TEXT_SIZE];
    (void)state;
    assert_true(parse("00-" TRACE "-" SPAN "-01", &context));
    assert_true(context.is_sampled);
    assert_int_equal(context.trace_id[0], 0x0a);
    assert_int_equal(context.trace_id[TRACE_ID_SIZE - 1], 0x9c);
    assert_int_equal(context.span_id[0], 0xb7);
    assert_int_equal(context.span_id[SPAN_ID_SIZE - 1], 0x31);
    trace_context_id_text(&context, text);
    assert_string_equal(text, TRACE);
    assert_true(parse("00-" TRACE "-" SPAN "-00", &context));
    assert_false(context.is_sampled);
    assert_true(parse("00-" TRACE "-" SPAN "-fe", &context)); /* other flags */
    assert_false(context.is_sampled);
}

static void test_later_versions(void **state)
{
    struct trace_context context;
    (void)state;
    assert_true(parse("01-" TRACE "-" SPAN "-01", &context));
    assert_true(parse("cc-" TRACE "-" SPAN "-01-more", &context));
    assert_false(parse("cc-" TRACE "-" SPAN "-01more", &context));
    assert_false(parse("ff-" TRACE "-" SPAN "-01", &context));
}

static void test_invalid_headers(void **state)
{
    static const char *const headers[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-0g",
        "00-" TRACE "_" SPAN "-01",
        "0-" TRACE "-" SPAN "-0001",
        "00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
    };
    struct trace_context context;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_false(parse(headers[i], &context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_headers),
        cmocka_unit_test(test_later_versions),
        cmocka_unit_test(test_invalid_headers),
    };
    return cmocka_run_group_tests_name("insight_trace_context", tests, NULL, NULL);
}
