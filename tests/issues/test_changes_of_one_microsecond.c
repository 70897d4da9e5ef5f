/* Two changes of a row that were committed in one microsecond were told with one time and one
 * tiebreaker, and a reader that knows a change by both took the second for the first, sent again.
 *
 * Found when entries of one MutateRows that name a row twice began to enter the commit queue
 * together: in the release build they then meet in a microsecond nearly always, and
 * test_change_streams.py saw it. The tiebreaker had the version's bits that name the cluster, which
 * are the same in all of them, and not the counter above, which tells versions of a microsecond
 * apart. */
#include "base/arena.h"
#include "base/testing/testing.h"
#include "bigtable/stream_answer.h"
#include "tablet/version.h"
#include "wire/proto.h"

static int32_t told_tiebreaker(uint64_t version, uint32_t ordinal)
{
    const struct stream_record record = {.kind = STREAM_USER,
                                         .row_key = bytes_of("r"),
                                         .version = version,
                                         .position = {.sequence = 1, .ordinal = ordinal}};
    const struct change_head head = {.record = &record, .cluster_id = bytes_of("c")};
    struct buffer out = {0};
    struct change_message message = change_message_begin(&out, &head, 0);
    change_message_end(&message, NULL);
    assert_false(out.failed);
    struct arena *arena = arena_create(SIZE_MAX / 2);
    ProtobufCMessage *told;
    assert_non_null(arena);
    assert_ok(proto_decode(&bt__read_change_stream_response__descriptor, buffer_bytes(&out), arena,
                           &told));
    int32_t tiebreaker = ((Bt__ReadChangeStreamResponse *)(void *)told)->data_change->tiebreaker;
    arena_destroy(arena);
    buffer_free(&out);
    return tiebreaker;
}

static void later_changes_have_greater_tiebreakers(void **state)
{
    enum { CLUSTER = 3, TIMES = 100 };
    uint64_t version = version_at(INT64_C(1700000000000000)) + CLUSTER;
    int32_t before = -1;
    (void)state;
    for (int i = 0; i < TIMES; i++, version += VERSION_STEP) {
        assert_int_equal(version_time_us(version), INT64_C(1700000000000000));
        for (uint32_t ordinal = 0; ordinal < 2; ordinal++) {
            int32_t tiebreaker = told_tiebreaker(version, ordinal);
            assert_true(tiebreaker > before);
            before = tiebreaker;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(later_changes_have_greater_tiebreakers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
