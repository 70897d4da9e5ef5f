/* Fuzzer: any bytes as JSON. What is accepted is a message on the wire (save that strings may hold
 * a NUL, which JSON has and our messages refuse), its JSON is accepted again, and that gives the
 * same JSON once more. A value of one field, as text, likewise. Any part of a message is JSON of
 * its type.
 *
 * Input: a byte that picks the type, then the JSON. */
#include "base/testing/fuzzing.h"
#include "wire/json.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/iam/v1/iam_policy.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "google/rpc/error_details.pb-c.h"

enum { MOST_MEMORY = 64 << 20 };

/* The JSON of what is on the wire; false if that is refused. */
static bool write_json(const ProtobufCMessageDescriptor *type, bytes wire,
                       const struct json_fields *fields, struct buffer *json)
{
    const struct json_style style = {.compact = true, .fields = fields};
    struct arena *arena = arena_create(MOST_MEMORY);
    ProtobufCMessage *message;
    CHECK(arena != NULL);
    status s = proto_decode(type, wire, arena, &message);
    bool is_fine = status_is_ok(s);
    CHECK(is_fine || s.code == STATUS_INVALID_ARGUMENT);
    status_free(s);
    if (is_fine)
        json_encode(message, &style, json);
    arena_destroy(arena);
    return is_fine;
}

static bool read_json(const ProtobufCMessageDescriptor *type, bytes json, struct buffer *wire)
{
    status s = json_decode(type, json, wire);
    bool is_fine = status_is_ok(s);
    CHECK(is_fine || s.code == STATUS_INVALID_ARGUMENT);
    status_free(s);
    return is_fine;
}

static void check_object(const ProtobufCMessageDescriptor *type, bytes input)
{
    struct buffer wire = {0}, json = {0}, wire_again = {0}, json_again = {0};
    if (read_json(type, input, &wire) && write_json(type, buffer_bytes(&wire), NULL, &json)) {
        CHECK(read_json(type, buffer_bytes(&json), &wire_again));
        CHECK(write_json(type, buffer_bytes(&wire_again), NULL, &json_again));
        CHECK(bytes_equal(buffer_bytes(&json), buffer_bytes(&json_again)));
    }
    buffer_free(&wire);
    buffer_free(&json);
    buffer_free(&wire_again);
    buffer_free(&json_again);
}

/* "path=text". */
static void check_text(const ProtobufCMessageDescriptor *type, bytes input)
{
    struct buffer wire = {0}, json = {0};
    const uint8_t *equals = input.size == 0 ? NULL : memchr(input.data, '=', input.size);
    if (equals == NULL)
        return;
    size_t size = (size_t)(equals - input.data);
    status s =
        json_decode_text(type, bytes_make(input.data, size), bytes_from(input, size + 1), &wire);
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
    if (status_is_ok(s))
        (void)write_json(type, buffer_bytes(&wire), NULL, &json);
    status_free(s);
    buffer_free(&wire);
    buffer_free(&json);
}

/* "fields=JSON". */
static void check_fields(const ProtobufCMessageDescriptor *type, bytes input)
{
    struct buffer wire = {0}, json = {0}, again = {0};
    struct json_fields *fields;
    const uint8_t *equals = input.size == 0 ? NULL : memchr(input.data, '=', input.size);
    if (equals == NULL)
        return;
    size_t size = (size_t)(equals - input.data);
    status s = json_fields_parse(type, bytes_make(input.data, size), &fields);
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
    if (status_is_ok(s) && read_json(type, bytes_from(input, size + 1), &wire) &&
        write_json(type, buffer_bytes(&wire), fields, &json))
        CHECK(read_json(type, buffer_bytes(&json), &again));
    status_free(s);
    json_fields_destroy(fields);
    buffer_free(&wire);
    buffer_free(&json);
    buffer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &bt_admin__create_table_request__descriptor,
        &bt__mutate_row_request__descriptor,
        &bt__read_rows_request__descriptor,
        &bt__read_rows_response__descriptor,
        &bt_admin__update_backup_request__descriptor,
        &bt_admin__create_instance_request__descriptor,
        &iam__set_iam_policy_request__descriptor,
        &lro__operation__descriptor,
        &rpc__error_info__descriptor,
        &bt_admin__list_hot_tablets_request__descriptor,
        &ds__commit_request__descriptor,
    };
    struct choices choices = choices_of(data, size);
    const ProtobufCMessageDescriptor *type = types[choose(&choices, sizeof types / sizeof *types)];
    check_object(type, choices.left);
    check_text(type, choices.left);
    check_fields(type, choices.left);
    return 0;
}
