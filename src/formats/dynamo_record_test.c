/* Lines of exports, of both kinds and both formats. */
#include "formats/dynamo_record.h"

#include "formats/testing/testing.h"

static void check_item(const struct dynamo_record *record, struct arena *arena, const char *json)
{
    struct item_value expected;
    assert_ok(item_read_json_map(bytes_of(json), arena, &expected));
    assert_true(item_equal(&record->item, &expected));
}

static void full_exports_have_items(void **state)
{
    struct dynamo_record record;
    assert_ok(dynamo_record_read(DYNAMO_JSON, bytes_of("{\"Item\":{\"Id\":{\"N\":\"1\"}}}"), *state,
                                 &record));
    assert_false(record.is_incremental || record.is_gone);
    check_item(&record, *state, "{\"Id\":{\"N\":\"1\"}}");
    assert_ok(dynamo_record_read(DYNAMO_ION, bytes_of("$ion_1_0 {Item:{Id:1.}}"), *state, &record));
    check_item(&record, *state, "{\"Id\":{\"N\":\"1\"}}");
}

static void incremental_exports_have_what_became_of_them(void **state)
{
    static const struct {
        enum dynamo_format format;
        const char *line, *item;
        bool is_gone;
    } cases[] = {
        {DYNAMO_JSON,
         "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"1680109764000000\"}},"
         "\"Keys\":{\"PK\":{\"S\":\"a\"}},\"OldImage\":{\"PK\":{\"S\":\"a\"}},"
         "\"NewImage\":{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}}",
         "{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}", false},
        {DYNAMO_JSON,
         "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"1680109764000000\"}},"
         "\"Keys\":{\"PK\":{\"S\":\"a\"}}}",
         "{\"PK\":{\"S\":\"a\"}}", true},
        {DYNAMO_ION,
         "$ion_1_0 {Other:{Keys:{}}, Metadata:{WriteTimestampMicros:1680109764000000.},"
         "Keys:{PK:\"a\"},NewImage:{PK:\"a\",v:2.}}",
         "{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}", false},
        {DYNAMO_ION,
         "$ion_1_0 {Record:{Metadata:{WriteTimestampMicros:1680109764000000.},Keys:{PK:\"a\"},"
         "NewImage:{PK:\"a\",v:2.}}}",
         "{\"PK\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dynamo_record record;
        assert_ok(dynamo_record_read(cases[i].format, bytes_of(cases[i].line), *state, &record));
        assert_true(record.is_incremental);
        assert_int_equal(record.is_gone, cases[i].is_gone);
        assert_int_equal(record.written_us, 1680109764000000);
        check_item(&record, *state, cases[i].item);
    }
}

static void mistakes_are_told(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "byte 1: '{' is expected"},
        {"{}", "byte 2: a name and ':' are expected"},
        {"{\"Other\":1}", "the line has neither Item nor Keys"},
        {"{\"Item\":{\"a\":{\"N\":\"x\"}}}", "byte 22: x is no number"},
        {"{\"Item\":{}", "byte 11: ',' or '}' is expected"},
        {"{\"Item\":{}} {}", "byte 13: something follows the item"},
        {"{\"Item\":{},\"Item\":{}}", "byte 19: the name before is there twice"},
        {"{\"Keys\":{}}", "Metadata has no WriteTimestampMicros"},
        {"{\"Keys\":{},\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"-1\"}}}",
         "WriteTimestampMicros is no time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dynamo_record record;
        status s = dynamo_record_read(DYNAMO_JSON, bytes_of(cases[i].line), *state, &record);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
    struct dynamo_record record;
    assert_status(dynamo_record_read(DYNAMO_ION, bytes_of("{Item:1}"), *state, &record),
                  STATUS_INVALID_ARGUMENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#define STREAM_HEAD                                                                                \
    "{\"awsRegion\":\"r\",\"userIdentity\":{\"type\":\"Service\"},\"dynamodb\":{"                  \
    "\"ApproximateCreationDateTime\":1.480642020123E9,\"SizeBytes\":5,"

static void records_of_streams_say_the_same(void **state)
{
    struct dynamo_record record;
    bytes sequence;
    assert_ok(dynamo_record_read_stream(
        bytes_of(STREAM_HEAD "\"Keys\":{\"k\":{\"S\":\"a\"}},\"SequenceNumber\":\"42\","
                             "\"NewImage\":{\"k\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}},"
                             "\"eventName\":\"MODIFY\"}"),
        *state, &record, &sequence));
    assert_true(record.is_incremental && !record.is_gone);
    assert_int_equal(record.written_us, 1480642020123000);
    assert_true(bytes_equal(sequence, bytes_of("42")));
    check_item(&record, *state, "{\"k\":{\"S\":\"a\"},\"v\":{\"N\":\"2\"}}");
    assert_ok(dynamo_record_read_stream(
        bytes_of("{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"k\":{\"S\":\"a\"}},"
                 "\"SequenceNumber\":\"43\",\"ApproximateCreationDateTime\":7}}"),
        *state, &record, &sequence));
    assert_true(record.is_gone);
    assert_int_equal(record.written_us, 7000000);
    check_item(&record, *state, "{\"k\":{\"S\":\"a\"}}");
}

static void mistakes_in_streams_are_told(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "byte 1: '{' is expected"},
        {"{\"dynamodb\":1}", "byte 13: '{' is expected"},
        {"{\"dynamodb\":{\"SequenceNumber\":\"1\"}}",
         "the record has no ApproximateCreationDateTime"},
        {STREAM_HEAD "\"Keys\":{}}}", "the record has no SequenceNumber"},
        {STREAM_HEAD "\"SequenceNumber\":\"1\",\"Keys\":{}},\"eventName\":\"INSERT\"}",
         "the record has no NewImage"},
        {"{\"dynamodb\":{\"ApproximateCreationDateTime\":-1}}",
         "ApproximateCreationDateTime is no time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dynamo_record record;
        bytes sequence;
        status s = dynamo_record_read_stream(bytes_of(cases[i].text), *state, &record, &sequence);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(full_exports_have_items),
        TEST(incremental_exports_have_what_became_of_them),
        TEST(mistakes_are_told),
        TEST(records_of_streams_say_the_same),
        TEST(mistakes_in_streams_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
