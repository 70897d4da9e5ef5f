/* Pages of Scan and of streams, and what is none. */
#include "formats/dynamo_page.h"

#include "base/testing/testing.h"

static void check(const char *answer, const char *elements, const char *next)
{
    struct dynamo_page page;
    struct buffer found = {0};
    bytes element;
    assert_ok(dynamo_page_open(bytes_of(answer), "Items", "LastEvaluatedKey", &page));
    while (dynamo_page_next(&page, &element)) {
        buffer_append_bytes(&found, element);
        buffer_append_byte(&found, '|');
    }
    buffer_append_byte(&found, '\0');
    assert_string_equal((const char *)found.data, elements);
    assert_int_equal(page.next.size, strlen(next));
    assert_memory_equal(page.next.data, next, page.next.size);
    buffer_free(&found);
}

static void elements_come_one_by_one(void **state)
{
    (void)state;
    check("{}", "", "");
    check("{\"Items\":[]}", "", "");
    check(" { \"Items\" : [ ] , \"Count\" : 0 } ", "", "");
    check("{\"Items\":[{\"a\":{\"N\":\"1\"}}],\"LastEvaluatedKey\":null}", "{\"a\":{\"N\":\"1\"}}|",
          "");
    check("{\"Count\":2,\"LastEvaluatedKey\":{\"a\":{\"S\":\"]\"}},"
          "\"Items\" : [ {\"a\":{\"S\":\",]\"}} , {} ]}",
          "{\"a\":{\"S\":\",]\"}}|{}|", "{\"a\":{\"S\":\"]\"}}");
}

static void what_is_no_page_is_damaged(void **state)
{
    static const char *const answers[] = {
        "",
        "[]",
        "{",
        "{\"Items\":[{}",
        "{\"Items\":[{}]",
        "{\"Items\":[{}],}",
        "{\"Items\":{}}",
        "{\"Items\":[,]}",
        "{\"Items\":[{}]} x",
        "{\"Items\" [{}]}",
        "<html>Bad Gateway</html>",
    };
    struct dynamo_page page;
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_status(dynamo_page_open(bytes_of(answers[i]), "Items", "LastEvaluatedKey", &page),
                      STATUS_DATA_LOSS);
}

static void depth_is_bounded(void **state)
{
    struct buffer text = {0};
    struct dynamo_page page;
    (void)state;
    buffer_append_bytes(&text, bytes_of("{\"Items\":"));
    for (int i = 0; i < 100000; i++)
        buffer_append_byte(&text, '[');
    assert_status(dynamo_page_open(buffer_bytes(&text), "Items", "x", &page), STATUS_DATA_LOSS);
    buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_come_one_by_one),
        cmocka_unit_test(what_is_no_page_is_damaged),
        cmocka_unit_test(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
