/* Bytes read ahead: in their order, to their end or failure, and no more of them than the ring
 * takes. */
#include "formats/read_ahead.h"

#include "base/testing/testing.h"

#include <pthread.h>

/* Says `size` bytes, each of which follows from its place. The other thread's. */
struct fake {
    uint64_t size;
    size_t piece; /* the most that it says at once */
    bool fails;   /* behind them, in place of the end */
    uint64_t said;
    unsigned reads_behind_end;
    bool has_ended;
};

static uint8_t byte_at(uint64_t place)
{
    return (uint8_t)(place * 31 >> 3 ^ place >> 17);
}

static status say(void *context, uint8_t *to, size_t room, size_t *made)
{
    struct fake *fake = context;
    uint64_t left = fake->size - fake->said;
    size_t most = room < fake->piece ? room : fake->piece;
    *made = left < most ? (size_t)left : most;
    for (size_t i = 0; i < *made; i++)
        to[i] = byte_at(fake->said + i);
    fake->said += *made;
    fake->reads_behind_end += fake->has_ended;
    fake->has_ended = *made == 0;
    return fake->has_ended && fake->fails ? status_make(STATUS_DATA_LOSS, "it fails") : status_ok();
}

static uint64_t said(void *context)
{
    const struct fake *fake = context;
    return fake->said;
}

static struct read_ahead *begin(struct fake *fake)
{
    struct read_ahead *ahead;
    const struct read_ahead_source source = {.context = fake, .read = say, .position = said};
    assert_ok(read_ahead_create(&source, &ahead));
    return ahead;
}

/* Takes up to `most` bytes, so many at a time, and holds each against what it must be. */
static status take(struct read_ahead *ahead, size_t at_a_time, uint64_t most, uint64_t *taken)
{
    uint8_t piece[5000];
    size_t made = 1;
    assert_true(at_a_time <= sizeof piece);
    for (*taken = 0; made > 0 && *taken < most; *taken += made) {
        uint64_t left = most - *taken;
        TRY(read_ahead_take(ahead, piece, left < at_a_time ? (size_t)left : at_a_time, &made));
        for (size_t i = 0; i < made; i++)
            if (piece[i] != byte_at(*taken + i))
                fail_msg("byte %llu is wrong", (unsigned long long)(*taken + i));
        assert_true(read_ahead_position(ahead) >= *taken + made);
    }
    return status_ok();
}

static const size_t pieces[] = {1777, READ_AHEAD_BYTES / 8, SIZE_MAX};

static void bytes_come_in_their_order(void **state)
{
    static const uint64_t sizes[] = {0, 1, READ_AHEAD_BYTES / 8, READ_AHEAD_BYTES, 5000001};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct fake fake = {.size = sizes[i], .piece = pieces[k]};
            struct read_ahead *ahead = begin(&fake);
            uint64_t taken;
            assert_ok(take(ahead, 4999, UINT64_MAX, &taken));
            assert_int_equal(taken, sizes[i]);
            assert_int_equal(read_ahead_position(ahead), sizes[i]);
            assert_ok(take(ahead, 1, UINT64_MAX, &taken)); /* and it stays at its end */
            assert_int_equal(taken, 0);
            read_ahead_destroy(ahead);
            assert_int_equal(fake.reads_behind_end, 0);
        }
}

static void a_failure_comes_behind_what_was_before_it(void **state)
{
    static const uint64_t sizes[] = {0, 77, READ_AHEAD_BYTES / 8, 3000001};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct fake fake = {.size = sizes[i], .piece = 70001, .fails = true};
        struct read_ahead *ahead = begin(&fake);
        uint64_t taken;
        for (unsigned again = 0; again < 2; again++) {
            status s = take(ahead, 5000, UINT64_MAX, &taken);
            assert_int_equal(taken, again == 0 ? sizes[i] : 0);
            assert_string_equal(status_message(s), "it fails");
            assert_status(s, STATUS_DATA_LOSS);
        }
        read_ahead_destroy(ahead);
        assert_int_equal(fake.reads_behind_end, 0);
    }
}

/* Whatever has been taken, also nothing at all. */
static void a_reader_may_end_early(void **state)
{
    static const uint64_t mosts[] = {0, 1, READ_AHEAD_BYTES / 8, READ_AHEAD_BYTES / 8 + 1,
                                     3 * READ_AHEAD_BYTES};
    (void)state;
    for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++) {
        struct fake fake = {.size = UINT64_MAX, .piece = 100000};
        struct read_ahead *ahead = begin(&fake);
        uint64_t taken;
        assert_ok(take(ahead, 5000, mosts[i], &taken));
        assert_int_equal(taken, mosts[i]);
        read_ahead_destroy(ahead);
        assert_true(fake.said >= taken && fake.said <= taken + READ_AHEAD_BYTES);
    }
    read_ahead_destroy(NULL);
}

/* A source that waits in the middle of a block, until it is let on. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_open;
    bool has_said;
};

static status say_behind_gate(void *context, uint8_t *to, size_t room, size_t *made)
{
    struct gate *gate = context;
    pthread_mutex_lock(&gate->mutex);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
    *made = gate->has_said ? 0 : 1;
    gate->has_said = true;
    if (*made > 0)
        *to = 'x';
    (void)room;
    return status_ok();
}

static uint64_t nowhere(void *context)
{
    (void)context;
    return 0;
}

static void *open_gate(void *argument)
{
    struct gate *gate = argument;
    pthread_mutex_lock(&gate->mutex);
    gate->is_open = true;
    pthread_mutex_unlock(&gate->mutex);
    pthread_cond_signal(&gate->opened);
    return NULL;
}

static void a_taker_waits_for_the_source(void **state)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    const struct read_ahead_source source = {
        .context = &gate, .read = say_behind_gate, .position = nowhere};
    struct read_ahead *ahead;
    pthread_t opener;
    uint8_t byte;
    size_t made;
    (void)state;
    assert_ok(read_ahead_create(&source, &ahead));
    assert_int_equal(pthread_create(&opener, NULL, open_gate, &gate), 0);
    assert_ok(read_ahead_take(ahead, &byte, 1, &made));
    assert_int_equal(made, 1);
    assert_int_equal(byte, 'x');
    assert_ok(read_ahead_take(ahead, &byte, 1, &made));
    assert_int_equal(made, 0);
    assert_int_equal(pthread_join(opener, NULL), 0);
    read_ahead_destroy(ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_in_their_order),
        cmocka_unit_test(a_failure_comes_behind_what_was_before_it),
        cmocka_unit_test(a_reader_may_end_early),
        cmocka_unit_test(a_taker_waits_for_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
