/* Tests of protobuf's JSON mapping. The other side is proto_decode, so that each text goes through
 * the wire format to a message, and back. */
#include "wire/json.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "wire/json_private.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "google/rpc/error_details.pb-c.h"

#include <stdio.h>

static const struct json_style compact = {.compact = true};

struct fixture {
    struct arena *arena;
    struct buffer wire;
    struct buffer text;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = arena_create(64 * LIMIT_MB);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_destroy(f->arena);
    buffer_free(&f->wire);
    buffer_free(&f->text);
    free(f);
    return 0;
}

/* --- what the tests say --- */

static const char *written(struct fixture *f, const ProtobufCMessage *message,
                           const struct json_style *style)
{
    buffer_clear(&f->text);
    json_encode(message, style, &f->text);
    buffer_append_byte(&f->text, '\0');
    assert_false(f->text.failed);
    return (const char *)f->text.data;
}

/* The message that is on the wire. */
static ProtobufCMessage *decoded(struct fixture *f, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(type, buffer_bytes(&f->wire), f->arena, &message));
    buffer_clear(&f->wire);
    return message;
}

/* The text becomes a message, which becomes `expected`. */
static void expect(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                   const char *expected)
{
    assert_ok(json_decode(type, bytes_of(text), &f->wire));
    assert_string_equal(written(f, decoded(f, type), &compact), expected);
}

static void expect_failure(struct fixture *f, status s, const char *words)
{
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), words);
    status_free(s);
    buffer_clear(&f->wire);
}

static void refuse(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                   const char *words)
{
    expect_failure(f, json_decode(type, bytes_of(text), &f->wire), words);
}

/* The same for one field of a message. */
#define FIELD_WORDS(place, type, shown) "Invalid value at '" place "' (" type "), " shown
#define BAD_JSON                        "Invalid JSON payload received. Unexpected token."

#define CREATE_TABLE &bt_admin__create_table_request__descriptor
#define TABLE        &bt_admin__table__descriptor
#define CLUSTER      &bt_admin__cluster__descriptor
#define LIST_TABLES  &bt_admin__list_tables_request__descriptor
#define MUTATE_ROW   &bt__mutate_row_request__descriptor
#define ROW_FILTER   &bt__row_filter__descriptor
#define BACKUP       &bt_admin__backup__descriptor
#define UPDATE_TABLE &bt_admin__update_table_request__descriptor

/* --- both ways --- */

/* As gcloud was recorded to send it. */
static void test_create_table(void **state)
{
    expect(*state, CREATE_TABLE,
           "{\"initialSplits\": [{\"key\": \"YQ==\"}, {\"key\": \"Yg==\"}], \"table\": "
           "{\"columnFamilies\": {\"f1\": {\"gcRule\": {\"union\": {\"rules\": [{\"maxAge\": "
           "\"864000s\"}, {\"maxNumVersions\": 5}]}}}, \"f2\": {}}, \"deletionProtection\": "
           "false}, \"tableId\": \"t\"}",
           "{\"tableId\":\"t\",\"table\":{\"columnFamilies\":{\"f1\":{\"gcRule\":{\"union\":"
           "{\"rules\":[{\"maxAge\":\"864000s\"},{\"maxNumVersions\":5}]}}},\"f2\":{}}},"
           "\"initialSplits\":[{\"key\":\"YQ==\"},{\"key\":\"Yg==\"}]}");
}

static void test_names_in_both_spellings(void **state)
{
    expect(*state, CREATE_TABLE, "{\"table_id\":\"a\",\"initial_splits\":[]}",
           "{\"tableId\":\"a\"}");
    refuse(*state, CREATE_TABLE, "{\"tableid\":\"a\"}",
           "Invalid JSON payload received. Unknown name \"tableid\": Cannot find field.");
    refuse(*state, CREATE_TABLE, "{\"table_Id\":\"a\"}",
           "Invalid JSON payload received. Unknown name \"table_Id\": Cannot find field.");
}

static void test_unknown_names_are_placed(void **state)
{
    refuse(*state, CREATE_TABLE, "{\"table\":{\"x\":1}}",
           "Invalid JSON payload received. Unknown name \"x\" at 'table': Cannot find field.");
    refuse(*state, CREATE_TABLE, "{\"initialSplits\":[{},{\"x\":{}}]}",
           "Invalid JSON payload received. Unknown name \"x\" at 'initial_splits[1]': Cannot find "
           "field.");
    refuse(*state, CREATE_TABLE, "{\"table\":{\"columnFamilies\":{\"f\":{\"x\":1}}}}",
           "Invalid JSON payload received. Unknown name \"x\" at "
           "'table.column_families[0].value': Cannot find field.");
}

/* Found by json_fuzz: a name without a byte of memory behind it. */
static void test_an_empty_name(void **state)
{
    refuse(*state, CREATE_TABLE, "{\"\":1}",
           "Invalid JSON payload received. Unknown name \"\": Cannot find field.");
}

static void test_enums(void **state)
{
    expect(*state, LIST_TABLES, "{\"view\":\"FULL\"}", "{\"view\":\"FULL\"}");
    expect(*state, LIST_TABLES, "{\"view\":4}", "{\"view\":\"FULL\"}");
    expect(*state, LIST_TABLES, "{\"view\":77}", "{\"view\":77}");
    refuse(*state, LIST_TABLES, "{\"view\":\"FULLER\"}",
           FIELD_WORDS("view", "type.googleapis.com/google.bigtable.admin.v2.Table.View",
                       "\"FULLER\""));
}

static void test_enums_as_numbers(void **state)
{
    const struct json_style style = {.compact = true, .enum_numbers = true};
    struct fixture *f = *state;
    assert_ok(json_decode(LIST_TABLES, bytes_of("{\"view\":\"FULL\"}"), &f->wire));
    assert_string_equal(written(f, decoded(f, LIST_TABLES), &style), "{\"view\":4}");
}

#define SET_CELL(value) "{\"mutations\":[{\"setCell\":{" value "}}]}"
#define STAMP           "mutations[0].set_cell.timestamp_micros"

static void test_large_integers_are_strings(void **state)
{
    expect(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":\"9223372036854775807\""),
           SET_CELL("\"timestampMicros\":\"9223372036854775807\""));
    expect(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":-9223372036854775808"),
           SET_CELL("\"timestampMicros\":\"-9223372036854775808\""));
    expect(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":1e3"),
           SET_CELL("\"timestampMicros\":\"1000\""));
    refuse(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":9223372036854775808"),
           FIELD_WORDS(STAMP, "TYPE_INT64", "9223372036854775808"));
    refuse(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":1.5"),
           FIELD_WORDS(STAMP, "TYPE_INT64", "1.5"));
    refuse(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":\"x\""),
           FIELD_WORDS(STAMP, "TYPE_INT64", "\"x\""));
    refuse(*state, MUTATE_ROW, SET_CELL("\"timestampMicros\":\"\""),
           FIELD_WORDS(STAMP, "TYPE_INT64", "\"\""));
}

static void test_small_integers(void **state)
{
    expect(*state, LIST_TABLES, "{\"pageSize\":-2147483648}", "{\"pageSize\":-2147483648}");
    expect(*state, LIST_TABLES, "{\"pageSize\":\"7\"}", "{\"pageSize\":7}");
    expect(*state, LIST_TABLES, "{\"pageSize\":0}", "{}");
    refuse(*state, LIST_TABLES, "{\"pageSize\":2147483648}",
           FIELD_WORDS("page_size", "TYPE_INT32", "2147483648"));
    refuse(*state, LIST_TABLES, "{\"pageSize\":true}",
           FIELD_WORDS("page_size", "TYPE_INT32", "true"));
}

static void test_bytes(void **state)
{
    expect(*state, MUTATE_ROW, "{\"rowKey\":\"/-+_\"}", "{\"rowKey\":\"/++/\"}");
    expect(*state, MUTATE_ROW, "{\"rowKey\":\"YQ\"}", "{\"rowKey\":\"YQ==\"}");
    expect(*state, MUTATE_ROW, "{\"rowKey\":\"YWI\"}", "{\"rowKey\":\"YWI=\"}");
    expect(*state, MUTATE_ROW, "{\"rowKey\":\"\"}", "{}");
    refuse(*state, MUTATE_ROW, "{\"rowKey\":\"a*\"}",
           FIELD_WORDS("row_key", "TYPE_BYTES", "\"a*\""));
    refuse(*state, MUTATE_ROW, "{\"rowKey\":5}", FIELD_WORDS("row_key", "TYPE_BYTES", "5"));
}

static void test_booleans(void **state)
{
    expect(*state, TABLE, "{\"deletionProtection\":true}", "{\"deletionProtection\":true}");
    expect(*state, TABLE, "{\"deletionProtection\":\"True\"}", "{\"deletionProtection\":true}");
    expect(*state, TABLE, "{\"deletionProtection\":false}", "{}");
    refuse(*state, TABLE, "{\"deletionProtection\":1}",
           FIELD_WORDS("deletion_protection", "TYPE_BOOL", "1"));
}

static void test_floating_point(void **state)
{
    struct fixture *f = *state;
    static const char *const same[] = {"0.1",     "-2.5e+300",    "1e-310",       "123456789.125",
                                       "\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"rowSampleFilter\":%s}", same[i]);
        expect(f, ROW_FILTER, text, text);
    }
    expect(f, ROW_FILTER, "{\"rowSampleFilter\":\"0.5\"}", "{\"rowSampleFilter\":0.5}");
    refuse(f, ROW_FILTER, "{\"rowSampleFilter\":1e999}",
           FIELD_WORDS("row_sample_filter", "TYPE_DOUBLE", "1e999"));
    refuse(f, ROW_FILTER, "{\"rowSampleFilter\":\"nan\"}",
           FIELD_WORDS("row_sample_filter", "TYPE_DOUBLE", "\"nan\""));
}

static void test_strings(void **state)
{
    expect(*state, CREATE_TABLE,
           "{\"tableId\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"}",
           "{\"tableId\":\"\\\"\\\\/\\u0008\\u000c\\n\\u000d\\u0009\xc3\xa9\xf0\x9f\x98\x80\"}");
    expect(*state, CREATE_TABLE, "{\"tableId\":\"<&>\"}", "{\"tableId\":\"\\u003c&\\u003e\"}");
    static const char *const bad[] = {
        "\"\\x\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\u12\"", "\"\xff\"", "\"a\nb\"", "\"a", "\"\\",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"tableId\":%s}", bad[i]);
        refuse(*state, CREATE_TABLE, text, BAD_JSON);
    }
    refuse(*state, CREATE_TABLE, "{\"tableId\":5}", FIELD_WORDS("table_id", "TYPE_STRING", "5"));
}

static void test_null_is_absent(void **state)
{
    expect(*state, CREATE_TABLE, "{\"tableId\":null,\"table\":null,\"initialSplits\":null}", "{}");
    refuse(*state, CREATE_TABLE, "{\"initialSplits\":[null]}",
           FIELD_WORDS("initial_splits[0]",
                       "type.googleapis.com/google.bigtable.admin.v2.CreateTableRequest.Split",
                       "null"));
}

/* In the oneof of a Value null is one of the values. */
static void test_null_is_a_value(void **state)
{
    const ProtobufCMessageDescriptor *type = &ds__value__descriptor;
    expect(*state, type, "{\"nullValue\":null}", "{\"nullValue\":null}");
    expect(*state, type, "{\"null_value\":\"NULL_VALUE\"}", "{\"nullValue\":null}");
    expect(*state, type, "{\"nullValue\":0,\"meaning\":1}", "{\"nullValue\":null,\"meaning\":1}");
    expect(*state, type, "{\"stringValue\":null}", "{}");
    refuse(*state, type, "{\"nullValue\":null,\"integerValue\":\"1\"}",
           "Invalid value at 'integer_value' (oneof), field 'null_value' is already set. Cannot "
           "set 'integer_value'");
    refuse(*state, type, "{\"nullValue\":true}",
           "Invalid value at 'null_value' (type.googleapis.com/google.protobuf.NullValue), true");
}

/* Messages that stand for JSON are written as that; nothing that is read has them. */
static void test_json_as_messages(void **state)
{
    struct fixture *f = *state;
    Pb__Value null = PB__VALUE__INIT, nothing = PB__VALUE__INIT, number = PB__VALUE__INIT,
              list = PB__VALUE__INIT, text = PB__VALUE__INIT;
    Pb__Value *elements[] = {&null, &nothing, &number};
    Pb__ListValue elements_list = PB__LIST_VALUE__INIT;
    Pb__Struct__FieldsEntry entries[] = {PB__STRUCT__FIELDS_ENTRY__INIT,
                                         PB__STRUCT__FIELDS_ENTRY__INIT};
    Pb__Struct__FieldsEntry *fields[] = {&entries[0], &entries[1]};
    Pb__Struct index = PB__STRUCT__INIT;
    Pb__Struct *indexes[] = {&index};
    Ds__PlanSummary summary = DS__PLAN_SUMMARY__INIT;
    null.kind_case = PB__VALUE__KIND_NULL_VALUE;
    number.kind_case = PB__VALUE__KIND_NUMBER_VALUE;
    number.number_value = 1.5;
    elements_list.n_values = 3;
    elements_list.values = elements;
    list.kind_case = PB__VALUE__KIND_LIST_VALUE;
    list.list_value = &elements_list;
    text.kind_case = PB__VALUE__KIND_STRING_VALUE;
    text.string_value = "Collection Group";
    entries[0].key = "query_scope";
    entries[0].value = &text;
    entries[1].key = "list";
    entries[1].value = &list;
    index.n_fields = 2;
    index.fields = fields;
    summary.n_indexes_used = 1;
    summary.indexes_used = indexes;
    assert_string_equal(written(f, &summary.base, &compact),
                        "{\"indexesUsed\":[{\"query_scope\":\"Collection Group\","
                        "\"list\":[null,null,1.5]}]}");
    summary.n_indexes_used = 0;
    refuse(f, &ds__plan_summary__descriptor, "{\"indexesUsed\":[{}]}",
           "Invalid value at 'indexes_used[0]' (type.googleapis.com/google.protobuf.Struct), {}");
}

static void test_kinds_must_agree(void **state)
{
    refuse(*state, CREATE_TABLE, "{\"table\":5}",
           FIELD_WORDS("table", "type.googleapis.com/google.bigtable.admin.v2.Table", "5"));
    refuse(*state, CREATE_TABLE, "{\"tableId\":[\"a\"]}",
           FIELD_WORDS("table_id", "TYPE_STRING", "[\"a\"]"));
    refuse(*state, CREATE_TABLE, "{\"initialSplits\":{}}",
           FIELD_WORDS("initial_splits",
                       "type.googleapis.com/google.bigtable.admin.v2.CreateTableRequest.Split",
                       "{}"));
    refuse(*state, CREATE_TABLE, "[]",
           "Invalid JSON payload received. Unknown name \"\": Root element must be a message.");
}

static void test_keys_come_once(void **state)
{
    refuse(*state, CREATE_TABLE, "{\"tableId\":\"a\",\"table_id\":\"b\"}",
           "Invalid value at 'table_id' (oneof), field 'table_id' is already set. Cannot set "
           "'table_id'");
    refuse(*state, ROW_FILTER, "{\"passAllFilter\":true,\"blockAllFilter\":true}",
           "Invalid value at 'block_all_filter' (oneof), field 'pass_all_filter' is already set. "
           "Cannot set 'block_all_filter'");
}

static void test_keys_of_maps_come_once(void **state)
{
    refuse(*state, CREATE_TABLE,
           "{\"table\":{\"columnFamilies\":{\"f\":{},\"g\":{},\"\\u0066\":{}}}}",
           "Invalid JSON payload received. Unknown name \"f\" at 'table.column_families': "
           "Repeated map key: 'f' is already set.");
    refuse(*state, CREATE_TABLE, "{\"table\":{\"columnFamilies\":{\"\":{},\"\":{}}}}",
           "Invalid JSON payload received. Unknown name \"\" at 'table.column_families': "
           "Repeated map key: '' is already set.");
    expect(*state, CREATE_TABLE, "{\"table\":{\"columnFamilies\":{\"f\":{},\"ff\":{},\"\":{}}}}",
           "{\"table\":{\"columnFamilies\":{\"f\":{},\"ff\":{},\"\":{}}}}");
}

static void test_times(void **state)
{
    static const char *const same[] = {
        "1970-01-01T00:00:00Z",     "0001-01-01T00:00:00Z",        "9999-12-31T23:59:59.999999999Z",
        "2026-11-23T11:12:28.235Z", "2024-02-29T23:59:59.000001Z", "1969-12-31T23:59:59.500Z",
    };
    char text[100];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(text, sizeof text, "{\"expireTime\":\"%s\"}", same[i]);
        expect(*state, BACKUP, text, text);
    }
    expect(*state, BACKUP, "{\"expireTime\":\"2026-11-23T11:12:28.5+01:30\"}",
           "{\"expireTime\":\"2026-11-23T09:42:28.500Z\"}");
    static const char *const bad[] = {
        "2026-11-23",
        "2026-11-23T11:12:28",
        "2026-02-29T00:00:00Z",
        "2026-11-23T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-11-23T11:12:28.Z",
        "2026-11-23T11:12:28Zx",
        "2026-13-01T00:00:00Z",
        "",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fixture *f = *state;
        snprintf(text, sizeof text, "{\"expireTime\":\"%s\"}", bad[i]);
        status s = json_decode(BACKUP, bytes_of(text), &f->wire);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        status_free(s);
        buffer_clear(&f->wire);
    }
}

/* Days of all the years that have a name, a month apart. */
static void test_every_day_there_and_back(void **state)
{
    struct fixture *f = *state;
    for (int64_t day = -719162; day <= 2932896; day += 31) {
        int64_t seconds;
        int32_t nanos;
        buffer_clear(&f->text);
        json_write_timestamp(day * 86400 + 1, 7, &f->text);
        bytes quoted = buffer_bytes(&f->text);
        assert_true(
            json_parse_timestamp(bytes_make(quoted.data + 1, quoted.size - 2), &seconds, &nanos));
        assert_int_equal(seconds, day * 86400 + 1);
        assert_int_equal(nanos, 7);
    }
}

#define RULE(age) "{\"maxAge\":\"" age "\"}"
static void test_durations(void **state)
{
    const ProtobufCMessageDescriptor *type = &bt_admin__gc_rule__descriptor;
    expect(*state, type, RULE("1.5s"), RULE("1.500s"));
    expect(*state, type, RULE("-0.000000001s"), RULE("-0.000000001s"));
    expect(*state, type, RULE("0s"), RULE("0s"));
    expect(*state, type, RULE("315576000000s"), RULE("315576000000s"));
    static const char *const bad[] = {"5", "s", "-s", "1.s", "315576000001s", "1.0000000001s", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[80], words[200];
        snprintf(text, sizeof text, RULE("%s"), bad[i]);
        snprintf(words, sizeof words,
                 FIELD_WORDS("max_age", "type.googleapis.com/google.protobuf.Duration", "\"%s\""),
                 bad[i]);
        refuse(*state, type, text, words);
    }
}

static void test_field_masks(void **state)
{
    expect(*state, UPDATE_TABLE, "{\"updateMask\":\"changeStreamConfig.retentionPeriod,name\"}",
           "{\"updateMask\":\"changeStreamConfig.retentionPeriod,name\"}");
    struct fixture *f = *state;
    assert_ok(json_decode(UPDATE_TABLE, bytes_of("{\"updateMask\":\"gcRule.a_b,,cD\"}"), &f->wire));
    const BtAdmin__UpdateTableRequest *request = (void *)decoded(f, UPDATE_TABLE);
    assert_int_equal(request->update_mask->n_paths, 2);
    assert_string_equal(request->update_mask->paths[0], "gc_rule.a_b");
    assert_string_equal(request->update_mask->paths[1], "c_d");
}

static void test_wrappers(void **state)
{
    const ProtobufCMessageDescriptor *type = &bt__read_rows_response__cell_chunk__descriptor;
    expect(*state, type, "{\"familyName\":\"f\",\"qualifier\":\"\"}",
           "{\"familyName\":\"f\",\"qualifier\":\"\"}");
    expect(*state, type, "{\"familyName\":null}", "{}");
    refuse(*state, type, "{\"familyName\":{\"value\":\"f\"}}",
           FIELD_WORDS("family_name", "type.googleapis.com/google.protobuf.StringValue",
                       "{\"value\":\"f\"}"));
}

#define URL "type.googleapis.com/"
static void test_any(void **state)
{
    const ProtobufCMessageDescriptor *type = &lro__operation__descriptor;
    static const char *const same[] = {
        "{\"name\":\"operations/1\",\"done\":true,\"response\":{\"@type\":\"" URL
        "google.bigtable.admin.v2.Instance\",\"name\":\"n\",\"state\":\"READY\"}}",
        "{\"response\":{\"@type\":\"" URL "google.protobuf.Empty\"}}",
        "{\"error\":{\"code\":5,\"details\":[{\"@type\":\"" URL
        "google.rpc.RetryInfo\",\"retryDelay\":\"2s\"}]}}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        expect(*state, type, same[i], same[i]);
    expect(*state, type,
           "{\"response\":{\"name\":\"n\",\"@type\":\"x/google.bigtable.admin.v2.Instance\"}}",
           "{\"response\":{\"@type\":\"x/google.bigtable.admin.v2.Instance\",\"name\":\"n\"}}");
    refuse(*state, type, "{\"response\":{\"@type\":\"x/y\"}}",
           FIELD_WORDS("response", URL "google.protobuf.Any", "x/y"));
    refuse(*state, type, "{\"response\":{}}",
           FIELD_WORDS("response", URL "google.protobuf.Any", "\"@type\" is missing"));
    refuse(*state, &pb__any__descriptor, "{}", BAD_JSON); /* there is no field to name */
}

static void test_broken_json(void **state)
{
    static const char *const broken[] = {
        "",
        "{",
        "}",
        "{}}",
        "{\"a\"",
        "{tableId:1}",
        "{\"tableId\":}",
        "{\"tableId\":\"a\",}",
        "{\"tableId\" \"a\"}",
        "{\"initialSplits\":[{}",
        "{\"initialSplits\":[{},]}",
        "{\"pageSize\":01}",
        "nul",
        "//",
        "{\"tableId\":\"a\"} {}",
        "{\"tableId\":tru}",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct fixture *f = *state;
        status s = json_decode(CREATE_TABLE, bytes_of(broken[i]), &f->wire);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        status_free(s);
        buffer_clear(&f->wire);
    }
    expect(*state, CREATE_TABLE, " {\t\"tableId\" :\r\n\"a\" } ", "{\"tableId\":\"a\"}");
}

/* Filters as deep as messages may be, and one level more. */
static void test_depth(void **state)
{
    struct fixture *f = *state;
    for (int extra = 0; extra <= 1; extra++) {
        struct buffer text = {0};
        int levels = (LIMIT_MESSAGE_DEPTH - 2) / 2 + extra; /* a filter and its chain each */
        for (int i = 0; i < levels; i++)
            buffer_append_bytes(&text, bytes_of("{\"chain\":{\"filters\":["));
        buffer_append(&text, "{}", 2);
        for (int i = 0; i < levels; i++)
            buffer_append_bytes(&text, bytes_of("]}}"));
        status s = json_decode(ROW_FILTER, buffer_bytes(&text), &f->wire);
        assert_int_equal(s.code, extra == 0 ? STATUS_OK : STATUS_INVALID_ARGUMENT);
        status_free(s);
        buffer_free(&text);
        buffer_clear(&f->wire);
    }
}

/* The length of a message needs one, two and three bytes. */
static void test_lengths(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 1, 110, 127, 128, 16383, 16384, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buffer text = {0};
        buffer_append_bytes(&text, bytes_of("{\"table\":{\"name\":\""));
        for (size_t j = 0; j < sizes[i]; j++)
            buffer_append_byte(&text, 'n');
        buffer_append_bytes(&text, bytes_of("\",\"deletionProtection\":true}}"));
        assert_ok(json_decode(CREATE_TABLE, buffer_bytes(&text), &f->wire));
        buffer_free(&text);
        const BtAdmin__CreateTableRequest *request = (void *)decoded(f, CREATE_TABLE);
        assert_int_equal(strlen(request->table->name), sizes[i]);
        assert_true(request->table->deletion_protection);
    }
}

static void test_pretty(void **state)
{
    const struct json_style pretty = {.compact = false};
    struct fixture *f = *state;
    assert_ok(json_decode(CREATE_TABLE,
                          bytes_of("{\"tableId\":\"t\",\"table\":{\"columnFamilies\":{\"f\":{}}},"
                                   "\"initialSplits\":[{\"key\":\"YQ\"}]}"),
                          &f->wire));
    assert_string_equal(written(f, decoded(f, CREATE_TABLE), &pretty), "{\n"
                                                                       "  \"tableId\": \"t\",\n"
                                                                       "  \"table\": {\n"
                                                                       "    \"columnFamilies\": {\n"
                                                                       "      \"f\": {}\n"
                                                                       "    }\n"
                                                                       "  },\n"
                                                                       "  \"initialSplits\": [\n"
                                                                       "    {\n"
                                                                       "      \"key\": \"YQ==\"\n"
                                                                       "    }\n"
                                                                       "  ]\n"
                                                                       "}");
}

/* --- parts of a request --- */

/* --- parts of a message --- */

static const char table_text[] =
    "{\"name\":\"t\",\"clusterStates\":{\"c\":{\"replicationState\":\"READY\"}},"
    "\"columnFamilies\":{\"f\":{\"gcRule\":{\"maxNumVersions\":1}},\"g\":{}},"
    "\"granularity\":\"MILLIS\"}";

static void expect_part(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *text,
                        const char *fields_text, const char *expected)
{
    struct json_fields *fields;
    assert_ok(json_fields_parse(type, bytes_of(fields_text), &fields));
    const struct json_style style = {.compact = true, .fields = fields};
    assert_ok(json_decode(type, bytes_of(text), &f->wire));
    assert_string_equal(written(f, decoded(f, type), &style), expected);
    json_fields_destroy(fields);
}

static void test_parts(void **state)
{
    static const struct {
        const char *fields, *expected;
    } rows[] = {
        {"name", "{\"name\":\"t\"}"},
        {"granularity,name", "{\"name\":\"t\",\"granularity\":\"MILLIS\"}"},
        {"*", table_text},
        {"column_families(g),name", "{\"name\":\"t\",\"columnFamilies\":{\"g\":{}}}"},
        {"columnFamilies/f/gcRule/maxNumVersions",
         "{\"columnFamilies\":{\"f\":{\"gcRule\":{\"maxNumVersions\":1}}}}"},
        {"columnFamilies.f.gcRule.maxAge", "{\"columnFamilies\":{\"f\":{\"gcRule\":{}}}}"},
        {"columnFamilies(*(gcRule(maxNumVersions),valueType))",
         "{\"columnFamilies\":{\"f\":{\"gcRule\":{\"maxNumVersions\":1}},\"g\":{}}}"},
        {"columnFamilies/x,clusterStates/c", "{\"clusterStates\":{\"c\":{\"replicationState\":"
                                             "\"READY\"}},\"columnFamilies\":{}}"},
        {"columnFamilies/f/gcRule,columnFamilies/f",
         "{\"columnFamilies\":{\"f\":{\"gcRule\":{\"maxNumVersions\":1}}}}"},
        {"restoreInfo", "{}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_part(*state, TABLE, table_text, rows[i].fields, rows[i].expected);
    expect_part(*state, &bt_admin__list_tables_response__descriptor,
                "{\"tables\":[{\"name\":\"a\",\"granularity\":1},{\"name\":\"b\"}]}", "tables/name",
                "{\"tables\":[{\"name\":\"a\"},{\"name\":\"b\"}]}");
    expect_part(*state, &lro__operation__descriptor,
                "{\"name\":\"o\",\"response\":{\"@type\":\"x/google.bigtable.admin.v2.Table\","
                "\"name\":\"t\",\"granularity\":1}}",
                "response(name)",
                "{\"response\":{\"@type\":\"x/google.bigtable.admin.v2.Table\",\"name\":\"t\"}}");
}

static void test_parts_that_are_none(void **state)
{
    static const char *const malformed[] = {
        "",      ",",    "name,", "name/", "name(", "columnFamilies(f", "columnFamilies()",
        "name)", "a(b)c"};
    static const struct {
        const char *fields, *path;
    } unknown[] = {{"nope", "nope"},
                   {"name/x", "name/x"},
                   {"name,columnFamilies/f/nope", "columnFamilies/f/nope"},
                   {"columnFamilies(f(gcRule/maxAge/seconds))", "gcRule/maxAge/seconds"}};
    struct json_fields *fields;
    struct buffer words = {0}, deep = {0};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        status s = json_fields_parse(TABLE, bytes_of(malformed[i]), &fields);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        assert_null(fields);
        status_free(s);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        buffer_clear(&words);
        buffer_append_format(&words,
                             "Error expanding 'fields' parameter. Cannot find matching fields for "
                             "path '%s'.%c",
                             unknown[i].path, 0);
        expect_failure(*state, json_fields_parse(TABLE, bytes_of(unknown[i].fields), &fields),
                       (const char *)words.data);
    }
    for (int i = 0; i < 100; i++)
        buffer_append_bytes(&deep, bytes_of("columnFamilies(x("));
    status s = json_fields_parse(TABLE, buffer_bytes(&deep), &fields);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    status_free(s);
    buffer_free(&words);
    buffer_free(&deep);
}

static void test_one_field(void **state)
{
    struct fixture *f = *state;
    const ProtobufCMessageDescriptor *type = &bt_admin__create_cluster_request__descriptor;
    assert_ok(json_decode_field(type, "cluster", bytes_of("{\"serveNodes\":3}"), &f->wire));
    assert_ok(json_decode_text(type, bytes_of("clusterId"), bytes_of("c"), &f->wire));
    assert_string_equal(written(f, decoded(f, type), &compact),
                        "{\"clusterId\":\"c\",\"cluster\":{\"serveNodes\":3}}");
    expect_failure(f, json_decode_field(type, "cluster", bytes_of("{\"x\":3}"), &f->wire),
                   "Invalid JSON payload received. Unknown name \"x\" at 'cluster': Cannot find "
                   "field.");
}

/* What comes later counts: as a path's variable over a body. */
static void test_later_parts_override(void **state)
{
    struct fixture *f = *state;
    assert_ok(json_decode(UPDATE_TABLE,
                          bytes_of("{\"table\":{\"name\":\"a\",\"deletionProtection\":true}}"),
                          &f->wire));
    assert_ok(json_decode_text(UPDATE_TABLE, bytes_of("table.name"), bytes_of("b"), &f->wire));
    assert_ok(
        json_decode_text(UPDATE_TABLE, bytes_of("updateMask"), bytes_of("gc_rule,aB"), &f->wire));
    assert_string_equal(written(f, decoded(f, UPDATE_TABLE), &compact),
                        "{\"table\":{\"name\":\"b\",\"deletionProtection\":true},\"updateMask\":"
                        "\"gcRule,aB\"}");
}

static void test_text_of_each_type(void **state)
{
    struct fixture *f = *state;
    const ProtobufCMessageDescriptor *type = &bt_admin__create_app_profile_request__descriptor;
    assert_ok(json_decode_text(type, bytes_of("ignoreWarnings"), bytes_of("True"), &f->wire));
    assert_ok(json_decode_text(type,
                               bytes_of("app_profile.multi_cluster_routing_use_any."
                                        "cluster_ids"),
                               bytes_of("a"), &f->wire));
    assert_ok(json_decode_text(type, bytes_of("appProfile.multiClusterRoutingUseAny.clusterIds"),
                               bytes_of("b"), &f->wire));
    assert_string_equal(written(f, decoded(f, type), &compact),
                        "{\"appProfile\":{\"multiClusterRoutingUseAny\":{\"clusterIds\":[\"a\","
                        "\"b\"]}},\"ignoreWarnings\":true}");
    expect_failure(f, json_decode_text(type, bytes_of("nope"), bytes_of("1"), &f->wire),
                   "Invalid JSON payload received. Unknown name \"nope\": Cannot bind query "
                   "parameter. Field 'nope' could not be found in request message.");
    expect_failure(f, json_decode_text(type, bytes_of("appProfile"), bytes_of("1"), &f->wire),
                   "Invalid JSON payload received. Unknown name \"appProfile\": Cannot bind query "
                   "parameter. Field 'appProfile' could not be found in request message.");
    expect_failure(f, json_decode_text(LIST_TABLES, bytes_of("pageSize"), bytes_of("x"), &f->wire),
                   FIELD_WORDS("page_size", "TYPE_INT32", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_create_table),
        TEST(test_names_in_both_spellings),
        TEST(test_unknown_names_are_placed),
        TEST(test_an_empty_name),
        TEST(test_enums),
        TEST(test_enums_as_numbers),
        TEST(test_large_integers_are_strings),
        TEST(test_small_integers),
        TEST(test_bytes),
        TEST(test_booleans),
        TEST(test_floating_point),
        TEST(test_strings),
        TEST(test_null_is_absent),
        TEST(test_null_is_a_value),
        TEST(test_json_as_messages),
        TEST(test_kinds_must_agree),
        TEST(test_keys_come_once),
        TEST(test_keys_of_maps_come_once),
        TEST(test_times),
        TEST(test_every_day_there_and_back),
        TEST(test_durations),
        TEST(test_field_masks),
        TEST(test_wrappers),
        TEST(test_any),
        TEST(test_broken_json),
        TEST(test_depth),
        TEST(test_lengths),
        TEST(test_pretty),
        TEST(test_parts),
        TEST(test_parts_that_are_none),
        TEST(test_one_field),
        TEST(test_later_parts_override),
        TEST(test_text_of_each_type),
    };
    return cmocka_run_group_tests_name("wire_json", tests, NULL, NULL);
}
