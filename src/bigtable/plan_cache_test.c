/* Tests of the cache of plans: by which token one is found, which gives way, who frees it. What an
 * execution asks although its plan was kept is in tests/e2e/test_query_plans.py. */
#include "bigtable/plan_cache.h"

#include "base/testing/testing.h"

enum { LIMIT = 1 << 20, TOKEN_SIZE = 24 };

static int setup(void **state)
{
    *state = plan_cache_create();
    assert_non_null(*state);
    return 0;
}

static int teardown(void **state)
{
    plan_cache_destroy(*state);
    return 0;
}

/* A token whose first bytes, by which its place is chosen, are `place`. */
static bytes token_of(uint8_t out[TOKEN_SIZE], uint64_t place, uint8_t rest)
{
    memset(out, rest, TOKEN_SIZE);
    memcpy(out, &place, sizeof place);
    return bytes_make(out, TOKEN_SIZE);
}

static struct kept_plan *plan_of(uint64_t place, uint8_t rest)
{
    uint8_t token[TOKEN_SIZE];
    struct kept_plan *plan = kept_plan_create(LIMIT);
    assert_non_null(plan);
    plan->token = arena_copy(plan->arena, token_of(token, place, rest));
    plan->is_of_token = true;
    return plan;
}

static void add(struct plan_cache *plans, uint64_t place, uint8_t rest)
{
    struct kept_plan *plan = plan_of(place, rest);
    plan_cache_add(plans, plan);
    kept_plan_release(plan);
}

static bool has(struct plan_cache *plans, uint64_t place, uint8_t rest)
{
    uint8_t token[TOKEN_SIZE];
    struct kept_plan *plan = plan_cache_find(plans, token_of(token, place, rest));
    bool is_there = plan != NULL;
    kept_plan_release(plan);
    return is_there;
}

static void a_plan_is_found_by_the_whole_token(void **state)
{
    struct plan_cache *plans = *state;
    uint8_t token[TOKEN_SIZE];
    assert_false(has(plans, 7, 1));
    add(plans, 7, 1);
    assert_true(has(plans, 7, 1));
    assert_false(has(plans, 7, 2));
    assert_false(has(plans, 8, 1));
    assert_null(plan_cache_find(plans, bytes_make(NULL, 0)));
    bytes whole = token_of(token, 7, 1);
    assert_null(plan_cache_find(plans, bytes_make(whole.data, whole.size - 1)));
}

static void the_one_asked_for_longest_ago_gives_way(void **state)
{
    struct plan_cache *plans = *state;
    for (uint8_t i = 0; i < 4; i++)
        add(plans, 7, i);
    assert_true(has(plans, 7, 0));
    add(plans, 7, 4);
    assert_false(has(plans, 7, 1));
    assert_true(has(plans, 7, 0));
    for (uint8_t i = 2; i < 5; i++)
        assert_true(has(plans, 7, i));
}

static void who_holds_a_plan_that_gave_way_has_it_still(void **state)
{
    struct plan_cache *plans = *state;
    uint8_t token[TOKEN_SIZE];
    add(plans, 7, 0);
    struct kept_plan *held = plan_cache_find(plans, token_of(token, 7, 0));
    for (uint8_t i = 1; i < 5; i++)
        add(plans, 7, i);
    assert_false(has(plans, 7, 0));
    assert_memory_equal(held->token.data, token, sizeof token);
    kept_plan_release(held);
}

static void a_token_has_one_plan(void **state)
{
    struct plan_cache *plans = *state;
    for (int i = 0; i < 5; i++)
        add(plans, 7, 1);
    for (uint8_t i = 2; i < 5; i++)
        add(plans, 7, i);
    assert_true(has(plans, 7, 1));
}

static void a_large_plan_is_not_kept(void **state)
{
    struct plan_cache *plans = *state;
    struct kept_plan *plan = plan_of(7, 1);
    assert_non_null(arena_alloc(plan->arena, PLAN_CACHE_MOST_BYTES));
    plan_cache_add(plans, plan);
    kept_plan_release(plan);
    assert_false(has(plans, 7, 1));
}

static void there_are_no_more_than_so_many(void **state)
{
    struct plan_cache *plans = *state;
    int found = 0;
    for (int i = 0; i < 3 * PLAN_CACHE_MOST; i++)
        add(plans, (uint64_t)i, 1);
    for (int i = 0; i < 3 * PLAN_CACHE_MOST; i++)
        found += has(plans, (uint64_t)i, 1);
    assert_int_equal(found, PLAN_CACHE_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plan_is_found_by_the_whole_token, setup, teardown),
        cmocka_unit_test_setup_teardown(the_one_asked_for_longest_ago_gives_way, setup, teardown),
        cmocka_unit_test_setup_teardown(who_holds_a_plan_that_gave_way_has_it_still, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_token_has_one_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_plan_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_no_more_than_so_many, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
