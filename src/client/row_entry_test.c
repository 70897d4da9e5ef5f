/* Entries as protobuf reads them: the same as are made of messages. */
#include "client/row_entry.h"

#include "base/testing/testing.h"
#include "client/row_mutations.h"
#include "wire/proto.h"

enum { ARENA_LIMIT = 16 << 20 };

static int setup(void **state)
{
    *state = arena_create(ARENA_LIMIT);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* Encodes the change as protobuf-c does. */
static void encode_messages(struct arena *arena, const struct move_change *change,
                            struct buffer *out)
{
    struct row_mutations mutations;
    Bt__MutateRowsRequest__Entry entry = BT__MUTATE_ROWS_REQUEST__ENTRY__INIT;
    assert_ok(row_mutations_make(change, NULL, arena, &mutations));
    entry.row_key = mutations.row_key;
    entry.mutations = mutations.all;
    entry.n_mutations = mutations.count;
    proto_encode(&entry.base, out);
    assert_false(out->failed);
}

/* Read, and written by protobuf-c, since zeroes may be there or not. */
static void encode_again(struct arena *arena, bytes entry, struct buffer *out)
{
    ProtobufCMessage *decoded;
    assert_ok(proto_decode(&bt__mutate_rows_request__entry__descriptor, entry, arena, &decoded));
    proto_encode(decoded, out);
    assert_false(out->failed);
}

static void check(struct arena *arena, const struct move_change *change)
{
    struct buffer expected = {0}, actual = {0};
    bytes entry;
    encode_messages(arena, change, &expected);
    assert_ok(row_entry_encode(change, arena, &entry));
    encode_again(arena, entry, &actual);
    assert_true(bytes_equal(buffer_bytes(&actual), buffer_bytes(&expected)));
    buffer_free(&expected);
    buffer_free(&actual);
}

static void entries_are_as_of_messages(void **state)
{
    static uint8_t large[100000];
    struct move_cell cells[] = {
        {.family = "f", .qualifier = bytes_of("q"), .timestamp_us = 1, .value = bytes_of("v")},
        {.family = "f", .qualifier = bytes_of(""), .timestamp_us = 0, .value = bytes_of("")},
        {.family = "a-family.of_a-longer-name",
         .qualifier = bytes_make(large, 300),
         .timestamp_us = INT64_MAX / 1000 * 1000,
         .value = bytes_make(large, sizeof large)},
        {.family = "g",
         .qualifier = bytes_make("\0", 1),
         .timestamp_us = 1700000000000000,
         .value = bytes_make(large, 127)},
        {.family = "g",
         .qualifier = bytes_make(large, 128),
         .timestamp_us = -1,
         .value = bytes_make(large, 16384)},
    };
    struct move_change change = {.row_key = bytes_of("key"), .cells = cells};
    for (change.count = 0; change.count <= sizeof cells / sizeof *cells; change.count++) {
        change.replaces = false;
        check(*state, &change);
        change.replaces = true;
        check(*state, &change);
    }
}

static void no_memory_is_said(void **state)
{
    struct move_change change = {.row_key = bytes_of("key"), .replaces = true};
    bytes entry;
    arena_set_limit(*state, 0);
    assert_status(row_entry_encode(&change, *state, &entry), STATUS_RESOURCE_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_are_as_of_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
