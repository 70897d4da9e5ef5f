/* Tests of the room of queries: which has it, which waits, and which is refused. */
#include "bigtable/query_room.h"

#include "base/arena.h"
#include "base/bytes.h"
#include "base/testing/testing.h"

#include <stdatomic.h>

enum { KB = 1 << 10, MB = 1 << 20, THREADS = 2, QUERIES = 3 };

struct fixture {
    struct request_room values;
    struct query_room room;
    struct query_memory queries[QUERIES];
    struct budget *budgets[QUERIES];
    atomic_bool is_given_up;
};

static bool is_given_up(const void *context)
{
    return atomic_load((const atomic_bool *)context);
}

/* Each of two threads may keep 1 MB; a message has 4 MB: 13 for the large one. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    request_room_init(&f->values, 2 * MB);
    const struct query_room_options options = {
        .query_memory = MB, .threads = THREADS, .max_message = 4 * MB, .values = &f->values};
    query_room_init(&f->room, &options);
    for (size_t i = 0; i < QUERIES; i++)
        f->budgets[i] = query_memory_init(&f->queries[i], &f->room, is_given_up, &f->is_given_up);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->values.held.long_bytes, 0);
    query_room_destroy(&f->room);
    request_room_destroy(&f->values);
    free(f);
    return 0;
}

static void assert_told(const struct query_memory *memory, const char *words)
{
    status s = query_memory_tell(memory, status_out_of_memory());
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

/* --- one after the other --- */

static void small_ones_have_room_together(void **state)
{
    struct fixture *f = *state;
    assert_true(budget_take(f->budgets[0], MB));
    assert_true(budget_take(f->budgets[1], MB));
    assert_int_equal(f->values.held.long_bytes, 0); /* none is large */
    budget_give_back(f->budgets[0], MB);
    budget_give_back(f->budgets[1], MB);
}

static void one_query_is_large_at_a_time(void **state)
{
    struct fixture *f = *state;
    assert_true(budget_take(f->budgets[0], 5 * MB));
    assert_true(f->values.held.long_bytes > 0);      /* ReadRows waits */
    assert_true(budget_take(f->budgets[1], 2 * MB)); /* it counts among the others no more */
    assert_true(budget_take(f->budgets[0], 8 * MB));
    assert_false(budget_take(f->budgets[0], 1));
    assert_told(&f->queries[0], "more memory than the 13 MB that one may have");
    atomic_store(&f->is_given_up, true);
    assert_false(budget_take(f->budgets[1], MB));
    assert_told(&f->queries[1], "Other queries of large values have all the memory");
    assert_false(budget_take(f->budgets[2], 14 * MB));
    assert_told(&f->queries[2], "more memory than the 13 MB that one may have");
    budget_give_back(f->budgets[1], 2 * MB);
    budget_give_back(f->budgets[0], 13 * MB);
    assert_int_equal(f->values.held.long_bytes, 0);
}

static void a_large_one_is_small_again_when_it_fits(void **state)
{
    struct fixture *f = *state;
    assert_true(budget_take(f->budgets[0], 5 * MB));
    assert_true(budget_take(f->budgets[1], MB + MB / 2));
    budget_give_back(f->budgets[0], 4 * MB); /* but not beside the other */
    assert_true(f->values.held.long_bytes > 0);
    budget_give_back(f->budgets[0], MB / 2);
    assert_int_equal(f->values.held.long_bytes, 0);
    assert_int_equal(f->room.held, 2 * MB);
    assert_true(budget_take(f->budgets[1], 4 * MB)); /* now it is its turn */
    budget_give_back(f->budgets[1], 5 * MB + MB / 2);
    budget_give_back(f->budgets[0], MB / 2);
}

static void arenas_and_buffers_are_counted(void **state)
{
    struct fixture *f = *state;
    struct arena *arena = arena_create_within(64 * MB, f->budgets[0]);
    struct buffer buffer = {.budget = f->budgets[0]};
    assert_non_null(arena_alloc(arena, 3 * MB));
    assert_true(f->queries[0].held >= 3 * MB);
    assert_null(arena_alloc(arena, 11 * MB));
    assert_non_null(arena_alloc(arena, 100)); /* what fits is had still */
    buffer_reserve(&buffer, 2 * MB);
    assert_false(buffer.failed);
    buffer_reserve(&buffer, 11 * MB);
    assert_true(buffer.failed);
    arena_reset(arena);
    buffer_free(&buffer);
    assert_int_equal(f->queries[0].held, 0);
    arena_destroy(arena);
}

/* --- threads --- */

static void *take_large(void *context)
{
    struct budget *budget = context;
    bool has = budget_take(budget, 5 * MB);
    if (has)
        budget_give_back(budget, 5 * MB);
    return has ? budget : NULL;
}

static void await_waiting(struct query_room *room)
{
    unsigned waiting = 0;
    while (waiting == 0) {
        pthread_mutex_lock(&room->lock);
        waiting = room->waiting;
        pthread_mutex_unlock(&room->lock);
    }
}

static void the_next_waits_for_the_large_one(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *has;
    assert_true(budget_take(f->budgets[0], 5 * MB));
    assert_int_equal(pthread_create(&thread, NULL, take_large, f->budgets[1]), 0);
    await_waiting(&f->room);
    assert_false(budget_take(f->budgets[2], 5 * MB)); /* a thread is left for the first */
    budget_give_back(f->budgets[0], 5 * MB);
    assert_int_equal(pthread_join(thread, &has), 0);
    assert_non_null(has);
}

static void await_asking(struct request_room *values)
{
    while (!request_room_is_wanted(values)) {
    }
}

static void a_large_one_waits_for_values_that_are_sent(void **state)
{
    struct fixture *f = *state;
    struct request_waiter reader = {.size = 2 * MB};
    pthread_t thread;
    void *has;
    assert_true(request_room_ask(&f->values, &reader));
    assert_int_equal(pthread_create(&thread, NULL, take_large, f->budgets[0]), 0);
    await_asking(&f->values);
    request_room_give_back(&f->values, (struct request_share){.long_bytes = 2 * MB});
    assert_int_equal(pthread_join(thread, &has), 0);
    assert_non_null(has);
    assert_true(request_room_ask(&f->values, &reader));
    atomic_store(&f->is_given_up, true);
    assert_false(budget_take(f->budgets[0], 5 * MB));
    assert_null(f->room.large);
    request_room_give_back(&f->values, (struct request_share){.long_bytes = 2 * MB});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_ones_have_room_together, setup, teardown),
        cmocka_unit_test_setup_teardown(one_query_is_large_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_one_is_small_again_when_it_fits, setup, teardown),
        cmocka_unit_test_setup_teardown(arenas_and_buffers_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_waits_for_the_large_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_one_waits_for_values_that_are_sent, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
