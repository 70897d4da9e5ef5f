/* Compactions run beside each other: while one holds on, another keyspace's, or level's, begins. */
#include "store/testing/testing.h"

#include <poll.h>
#include <pthread.h>

enum { KEYSPACES = 2, LOOKS = 6000, LOOK_MS = 10 };

/* Those that are where a compaction asks what is to become of a value, and whether all met there.
 */
static atomic_int inside;
static atomic_bool have_met;

static enum store_verdict wait_for_the_other(const void *rules, bytes key, bytes value,
                                             struct buffer *out)
{
    (void)rules, (void)key, (void)value, (void)out;
    if (atomic_fetch_add(&inside, 1) == KEYSPACES - 1)
        have_met = true;
    for (int looks = 0; looks < LOOKS && !have_met; looks++)
        poll(NULL, 0, LOOK_MS);
    atomic_fetch_sub(&inside, 1);
    return STORE_KEEP;
}

static const struct store_fold waiting_fold = {
    .whole = fold_full,
    .part = fold_part,
    .tidy = wait_for_the_other,
};

static void *compact(void *keyspace)
{
    assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    return NULL;
}

/* With one thread for them the second waits until the first is done, which waits for it. */
static void two_compactions_run_at_a_time(void **state)
{
    (void)state;
    char *directory = make_directory();
    struct store_options options = test_options(directory);
    struct store *store;
    pthread_t threads[KEYSPACES];
    options.fold = &waiting_fold;
    assert_ok(store_open(&options, &store));
    for (uint64_t i = 0; i < KEYSPACES; i++) {
        struct keyspace *keyspace = make_keyspace(store, i + 2);
        assert_ok(write_one(store, keyspace, PUT, "a", "1", STORE_ASYNC));
        assert_ok(keyspace_flush(keyspace));
    }
    assert_false(have_met);
    for (uint64_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, compact, store_keyspace_find(store, i + 2)), 0);
    for (int i = 0; i < KEYSPACES; i++)
        pthread_join(threads[i], NULL);
    assert_true(have_met);
    store_close(store);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_compactions_run_at_a_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
