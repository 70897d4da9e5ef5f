/* Tests of compactions that are asked for and do not come to their end. */
#include "store/testing/testing.h"

#include <pthread.h>

enum { KEYS = 2000 };

/* What the fold has for rules: the first value that a compaction meets waits at it. */
struct gate {
    pthread_barrier_t entered;
    pthread_barrier_t leave;
    atomic_bool is_passed;
    atomic_uint values;
};

static enum store_verdict stand_at_gate(const void *rules, bytes key, bytes value,
                                        struct buffer *out)
{
    (void)key, (void)value, (void)out;
    struct gate *gate = (struct gate *)(uintptr_t)rules;
    if (gate == NULL)
        return STORE_KEEP;
    atomic_fetch_add(&gate->values, 1);
    if (!atomic_exchange(&gate->is_passed, true)) {
        pthread_barrier_wait(&gate->entered);
        pthread_barrier_wait(&gate->leave);
    }
    return STORE_KEEP;
}

static const struct store_fold standing_fold = {
    .whole = fold_full, .part = fold_part, .tidy = stand_at_gate};

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspace;
    struct gate gate;
    pthread_t compactor;
    status compacted;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    struct store_options options = test_options(f->directory);
    options.fold = &standing_fold;
    assert_ok(store_open(&options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    pthread_barrier_init(&f->gate.entered, NULL, 2);
    pthread_barrier_init(&f->gate.leave, NULL, 2);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    pthread_barrier_destroy(&f->gate.entered);
    pthread_barrier_destroy(&f->gate.leave);
    remove_directory(f->directory);
    free(f);
    return 0;
}

static void fill(struct fixture *f)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%05u", i);
        store_batch_put(batch, f->keyspace, bytes_of(key), bytes_of("value"));
    }
    assert_ok(store_write(f->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

static void *compact(void *argument)
{
    struct fixture *f = argument;
    f->compacted = keyspace_compact(f->keyspace, bytes_of(""), bytes_of(""));
    return NULL;
}

/* Returns while a compaction is at its first value. */
static void begin_compaction(struct fixture *f)
{
    fill(f);
    keyspace_set_rules(f->keyspace, &f->gate);
    assert_int_equal(pthread_create(&f->compactor, NULL, compact, f), 0);
    pthread_barrier_wait(&f->gate.entered);
}

static void let_it_end(struct fixture *f)
{
    pthread_barrier_wait(&f->gate.leave);
    assert_int_equal(pthread_join(f->compactor, NULL), 0);
}

static void a_compaction_meets_all_values(void **state)
{
    struct fixture *f = *state;
    begin_compaction(f);
    let_it_end(f);
    assert_ok(f->compacted);
    assert_true(atomic_load(&f->gate.values) >= KEYS);
}

static void a_compaction_ends_soon_when_none_are_wanted(void **state)
{
    struct fixture *f = *state;
    begin_compaction(f);
    store_interrupt_compactions(f->store);
    let_it_end(f);
    assert_status(f->compacted, STATUS_CANCELLED);
    assert_true(atomic_load(&f->gate.values) < KEYS / 2);
    assert_status(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")), STATUS_CANCELLED);
}

static void the_store_takes_writes_without_them(void **state)
{
    struct fixture *f = *state;
    store_interrupt_compactions(f->store);
    fill(f);
    struct keyspace *later = make_keyspace(f->store, 8);
    put(f->store, later, "a", "1");
    assert_status(keyspace_compact(later, bytes_of(""), bytes_of("")), STATUS_CANCELLED);
    assert_ok(keyspace_flush(f->keyspace));
    assert_value(f->keyspace, "k00000", "value");
    assert_value(later, "a", "1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_compaction_meets_all_values),
        TEST(a_compaction_ends_soon_when_none_are_wanted),
        TEST(the_store_takes_writes_without_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
