#include "tablet/gathering.h"

#include "base/testing/testing.h"
#include "os/thread.h"

enum { SYNC_US = 1000, CLIENTS = 64 };

/* After a batch of one group of clients, with another behind it. */
static struct gathering after_a_group(size_t answered, size_t waiting)
{
    struct gathering g = {0};
    gathering_note_batch(&g, SYNC_US, answered, waiting);
    return g;
}

static void it_waits_for_both_groups_half_a_sync_long(void **state)
{
    (void)state;
    struct gathering g = after_a_group(CLIENTS / 2, CLIENTS / 2);
    assert_int_equal(g.expected, CLIENTS);
    assert_int_equal(gathering_patience_us(&g, CLIENTS / 2), SYNC_US / 2);
    gathering_note_wait(&g, CLIENTS);
    gathering_note_batch(&g, SYNC_US, CLIENTS, 0);
    assert_int_equal(gathering_patience_us(&g, 0), SYNC_US / 2);
    assert_int_equal(gathering_patience_us(&g, CLIENTS - 1), SYNC_US / 2);
}

static void it_waits_for_nobody_who_is_not_expected(void **state)
{
    (void)state;
    struct gathering g = {0};
    assert_int_equal(gathering_patience_us(&g, 0), 0);
    g = after_a_group(1, 0); /* one client, who writes again and again */
    assert_int_equal(gathering_patience_us(&g, 0), 0);
    g = after_a_group(4, 3);
    assert_int_equal(gathering_patience_us(&g, 3), 0);
    g = after_a_group(4, 4);
    assert_int_equal(gathering_patience_us(&g, 7), SYNC_US / 2);
    assert_int_equal(gathering_patience_us(&g, 8), 0);
    assert_int_equal(gathering_patience_us(&g, 9), 0);
}

static void those_who_are_enough_are_not_kept_waiting(void **state)
{
    (void)state;
    struct gathering g = after_a_group(3200, 3200);
    assert_int_equal(gathering_patience_us(&g, 255), SYNC_US / 2);
    assert_int_equal(gathering_patience_us(&g, 256), 0);
}

static void a_wait_is_short_beside_the_sync_or_is_none(void **state)
{
    (void)state;
    struct gathering g = {0};
    gathering_note_batch(&g, 100, CLIENTS, 0);
    assert_int_equal(gathering_patience_us(&g, 0), 0); /* 50 us are not worth a sleep */
    g = (struct gathering){0};
    gathering_note_batch(&g, 60 * 1000, CLIENTS, 0);
    assert_int_equal(gathering_patience_us(&g, 0), 2000);
    g = (struct gathering){0};
    gathering_note_batch(&g, 0, CLIENTS, 0); /* nothing is synced */
    assert_int_equal(gathering_patience_us(&g, 0), 0);
}

static void what_is_usual_is_of_synced_batches_and_not_of_a_disk_that_stops(void **state)
{
    (void)state;
    struct gathering g = after_a_group(CLIENTS, 0);
    for (int i = 0; i < 100; i++)
        gathering_note_batch(&g, 0, CLIENTS, 0);
    assert_int_equal(g.sync_us, SYNC_US);
    gathering_note_batch(&g, 1000 * SYNC_US, CLIENTS, 0);
    assert_int_equal(g.sync_us, SYNC_US + SYNC_US / 16);
    for (int i = 0; i < 100; i++)
        gathering_note_batch(&g, 3 * SYNC_US, CLIENTS, 0);
    assert_in_range(g.sync_us, 29 * SYNC_US / 10, 3 * SYNC_US);
    for (int i = 0; i < 10; i++)
        gathering_note_batch(&g, SYNC_US, CLIENTS, 0);
    assert_in_range(g.sync_us, SYNC_US, 12 * SYNC_US / 10);
}

/* How many batches go without a wait before the next. */
static unsigned pause_of(struct gathering *g)
{
    unsigned batches = 0;
    while (gathering_patience_us(g, 0) == 0)
        batches++;
    return batches;
}

static void after_waits_in_vain_it_waits_seldom(void **state)
{
    (void)state;
    static const unsigned pauses[] = {1, 3, 7, 15, 31, 63, 127, 255, 255, 255};
    struct gathering g = after_a_group(CLIENTS, 0);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        gathering_note_wait(&g, CLIENTS * 3 / 4 - 1);
        assert_int_equal(pause_of(&g), pauses[i]);
    }
    gathering_note_wait(&g, CLIENTS * 3 / 4); /* nearly all came */
    assert_int_equal(pause_of(&g), 0);
    gathering_note_wait(&g, 0);
    assert_int_equal(pause_of(&g), 1);
}

static void a_wait_in_vain_ends(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wake;
    thread_init_steady_wake(&wake);
    struct gathering g = after_a_group(CLIENTS, 0);
    const size_t waiting = 1;
    pthread_mutex_lock(&lock);
    gathering_wait(&g, &waiting, &wake, &lock);
    pthread_mutex_unlock(&lock);
    assert_int_equal(g.wanted, 0);
    assert_int_equal(g.pause, 1);
    assert_false(gathering_is_there(&g, 1)); /* nobody is to be woken */
    pthread_cond_destroy(&wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_waits_for_both_groups_half_a_sync_long),
        cmocka_unit_test(it_waits_for_nobody_who_is_not_expected),
        cmocka_unit_test(those_who_are_enough_are_not_kept_waiting),
        cmocka_unit_test(a_wait_is_short_beside_the_sync_or_is_none),
        cmocka_unit_test(what_is_usual_is_of_synced_batches_and_not_of_a_disk_that_stops),
        cmocka_unit_test(after_waits_in_vain_it_waits_seldom),
        cmocka_unit_test(a_wait_in_vain_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
