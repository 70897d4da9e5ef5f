/* Answers to entries, read back by protobuf. */
#include "bigtable/entry_answer.h"

#include "base/budget.h"
#include "base/testing/testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

enum { ARENA_LIMIT = 1 << 20 };

static void expect(const Bt__MutateRowsResponse__Entry *entry, size_t index, int code,
                   const char *message)
{
    assert_int_equal(entry->index, index);
    assert_non_null(entry->status);
    assert_int_equal(entry->status->code, code);
    assert_string_equal(entry->status->message, message);
    assert_int_equal(entry->status->n_details, 0);
}

static void answers_add_up(void **state)
{
    (void)state;
    static const size_t indexes[] = {0, 1, 127, 128, 99999, INT64_MAX};
    enum { COUNT = sizeof indexes / sizeof *indexes };
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct buffer message = {0};
    status written = status_ok();
    status refused = status_make(STATUS_NOT_FOUND, "no family");
    for (size_t i = 0; i < COUNT; i++) {
        entry_answer_append(&message, indexes[i], &written);
        entry_answer_append(&message, indexes[i], &refused);
    }
    status_free(refused);
    ProtobufCMessage *decoded;
    assert_ok(proto_decode(&bt__mutate_rows_response__descriptor, buffer_bytes(&message), arena,
                           &decoded));
    const Bt__MutateRowsResponse *response = (const void *)decoded;
    assert_int_equal(response->n_entries, 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        expect(response->entries[2 * i], indexes[i], STATUS_OK, "");
        expect(response->entries[2 * i + 1], indexes[i], STATUS_NOT_FOUND, "no family");
    }
    buffer_free(&message);
    arena_destroy(arena);
}

/* Clients that compare bytes see no difference. */
static void a_success_is_as_protobuf_writes_it(void **state)
{
    (void)state;
    struct buffer own = {0}, generated = {0};
    status written = status_ok();
    for (size_t index = 0; index < 100000; index += 37) {
        Rpc__Status code = RPC__STATUS__INIT;
        Bt__MutateRowsResponse__Entry entry = BT__MUTATE_ROWS_RESPONSE__ENTRY__INIT;
        entry.index = (int64_t)index;
        entry.status = &code;
        Bt__MutateRowsResponse__Entry *entries[] = {&entry};
        Bt__MutateRowsResponse response = BT__MUTATE_ROWS_RESPONSE__INIT;
        response.n_entries = 1;
        response.entries = entries;
        proto_encode(&response.base, &generated);
        entry_answer_append(&own, index, &written);
    }
    assert_true(bytes_equal(buffer_bytes(&own), buffer_bytes(&generated)));
    buffer_free(&own);
    buffer_free(&generated);
}

static bool take_nothing(struct budget *budget, size_t size)
{
    (void)budget;
    return size == 0;
}

static void get_nothing_back(struct budget *budget, size_t size)
{
    (void)budget;
    assert_int_equal(size, 0);
}

static void a_message_that_cannot_grow_has_failed(void **state)
{
    (void)state;
    struct budget budget = {.take = take_nothing, .give_back = get_nothing_back};
    struct buffer message = {.budget = &budget};
    status written = status_ok();
    entry_answer_append(&message, 1, &written);
    assert_true(message.failed);
    assert_int_equal(message.size, 0);
    buffer_free(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_add_up),
        cmocka_unit_test(a_success_is_as_protobuf_writes_it),
        cmocka_unit_test(a_message_that_cannot_grow_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
