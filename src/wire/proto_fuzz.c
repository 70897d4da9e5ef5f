/* Fuzzer: what our decoder accepts is a message that, encoded, both it and protobuf-c read back as
 * the same. (Not the input itself: protobuf-c reads a bool of any wire type, and keeps unknown
 * fields.)
 *
 * Input: one byte that picks the message type, then the wire bytes. */
#include "wire/proto.h"

#include "base/check.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_LIMIT = 16 << 20 };

static const ProtobufCMessageDescriptor *const types[] = {
    &bt__read_rows_request__descriptor,
    &bt__read_rows_response__descriptor,
    &bt__mutate_rows_request__descriptor,
    &bt__check_and_mutate_row_request__descriptor,
    &bt__execute_query_request__descriptor,
    &bt_admin__create_table_request__descriptor,
    &bt_admin__modify_column_families_request__descriptor,
    &reflection__server_reflection_response__descriptor,
};

static void encode(const ProtobufCMessage *message, struct buffer *out)
{
    struct buffer small = {0};
    proto_encode(message, out);
    proto_encode_small(message, &small);
    CHECK(!out->failed && !small.failed);
    CHECK(bytes_equal(buffer_bytes(out), buffer_bytes(&small)));
    buffer_free(&small);
}

/* Whether protobuf-c reads `wire`, which is our encoding of a message, as the same message. */
static void check_theirs(const ProtobufCMessageDescriptor *type, bytes wire)
{
    ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, wire.size, wire.data);
    CHECK(theirs != NULL);
    struct buffer again = {0};
    encode(theirs, &again);
    CHECK(bytes_equal(buffer_bytes(&again), wire));
    buffer_free(&again);
    protobuf_c_message_free_unpacked(theirs, NULL);
}

/* Whether our decoder reads it so. */
static void check_ours(const ProtobufCMessageDescriptor *type, bytes wire, struct arena *arena)
{
    ProtobufCMessage *ours;
    status s = proto_decode(type, wire, arena, &ours);
    CHECK(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    if (status_is_ok(s)) {
        struct buffer again = {0};
        encode(ours, &again);
        CHECK(bytes_equal(buffer_bytes(&again), wire));
        buffer_free(&again);
    }
    status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const ProtobufCMessageDescriptor *type = types[data[0] % (sizeof types / sizeof *types)];
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    ProtobufCMessage *ours;
    status s = proto_decode(type, bytes_make(data + 1, size - 1), arena, &ours);
    if (status_is_ok(s)) {
        struct buffer wire = {0};
        encode(ours, &wire);
        check_theirs(type, buffer_bytes(&wire));
        check_ours(type, buffer_bytes(&wire), arena);
        buffer_free(&wire);
    }
    status_free(s);
    arena_destroy(arena);
    return 0;
}
