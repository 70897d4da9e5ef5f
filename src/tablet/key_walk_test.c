/* Walks over keys that lie close together, far apart, and both by turns: whatever the way, each key
 * that is there is visited with its value, and none else. */
#include "tablet/key_walk.h"

#include "base/testing/testing.h"
#include "tablet/testing/testing.h"

enum { KEYS = 4000 };

/* Knuth's generator: the same numbers each time. */
static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

static bytes key_of(struct tablet_fixture *f, size_t i)
{
    char text[8];
    snprintf(text, sizeof text, "k%05zu", i);
    bytes key = arena_copy(f->arena, bytes_of(text));
    assert_non_null(key.data);
    return key;
}

/* Puts those that `is_there` has, with their keys as values, and deletes the others. */
static void write_keys(struct tablet_fixture *f, const bool *is_there, size_t from, size_t to)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    for (size_t i = from; i < to; i++)
        if (is_there[i])
            store_batch_put(batch, f->rows, key_of(f, i), key_of(f, i));
        else
            store_batch_delete(batch, f->rows, key_of(f, i));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

struct seen {
    const bytes *keys;
    size_t count;
    size_t next; /* the lowest place that may come */
};

static status see(void *context, size_t i, bytes value)
{
    struct seen *seen = context;
    assert_true(i >= seen->next);
    assert_true(bytes_equal(value, seen->keys[i]));
    seen->next = i + 1;
    seen->count++;
    return status_ok();
}

/* Gets keys from the first on, with gaps of less than `gap`, in chunks of several sizes. */
static void walk(struct tablet_fixture *f, const bool *is_there, size_t gap, uint64_t *random)
{
    bytes *keys = arena_alloc(f->arena, KEYS * sizeof *keys);
    size_t *places = arena_alloc(f->arena, KEYS * sizeof *places);
    size_t count = 0;
    assert_true(keys != NULL && places != NULL);
    for (size_t i = next_random(random) % gap; i < KEYS; i += 1 + next_random(random) % gap) {
        places[count] = i;
        keys[count++] = key_of(f, i);
    }
    struct key_walk walk = {.keyspace = f->rows, .last = keys[count - 1]};
    for (size_t first = 0, some; first < count; first += some) {
        struct seen seen = {.keys = keys + first};
        size_t expected = 0;
        bool are_all;
        some = 1 + next_random(random) % KEY_WALK_MOST;
        some = some < count - first ? some : count - first;
        for (size_t i = first; i < first + some; i++)
            expected += is_there[places[i]];
        assert_ok(key_walk_get(&walk, keys + first, some, see, &seen, &are_all));
        assert_true(are_all);
        assert_int_equal(seen.count, expected);
        if (next_random(random) % 16 == 0)
            key_walk_rest(&walk);
    }
    key_walk_rest(&walk);
}

static void each_key_is_visited_once(void **state)
{
    static const size_t gaps[] = {1, 2, 5, 9, 40, 500};
    struct tablet_fixture *f = *state;
    static bool is_there[KEYS];
    uint64_t random = 1;
    for (size_t share = 0; share <= 4; share++) {
        for (size_t i = 0; i < KEYS; i++)
            is_there[i] = next_random(&random) % 4 < share;
        write_keys(f, is_there, 0, KEYS);
        for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
            walk(f, is_there, gaps[i], &random);
        assert_ok(keyspace_flush(f->rows));
        for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
            walk(f, is_there, gaps[i], &random);
        arena_reset(f->arena);
    }
}

/* Some other thread's writes come between two calls: a value is that of the first call, or newer.
 */
static void a_walk_that_rests_sees_what_is_new(void **state)
{
    struct tablet_fixture *f = *state;
    static bool is_there[KEYS];
    bytes keys[KEY_WALK_MOST];
    struct seen seen = {.keys = keys};
    bool are_all;
    write_keys(f, is_there, 0, KEYS);
    struct key_walk walk = {.keyspace = f->rows, .last = key_of(f, KEYS)};
    for (size_t i = 0; i < KEY_WALK_MOST; i++)
        keys[i] = key_of(f, i);
    assert_ok(key_walk_get(&walk, keys, KEY_WALK_MOST, see, &seen, &are_all));
    assert_int_equal(seen.count, 0);
    memset(is_there, true, sizeof is_there);
    write_keys(f, is_there, 0, KEYS);
    key_walk_rest(&walk);
    for (size_t i = 0; i < KEY_WALK_MOST; i++)
        keys[i] = key_of(f, KEY_WALK_MOST + i);
    assert_ok(key_walk_get(&walk, keys, KEY_WALK_MOST, see, &seen, &are_all));
    assert_int_equal(seen.count, KEY_WALK_MOST);
    key_walk_rest(&walk);
}

static status refuse(void *context, size_t i, bytes value)
{
    (void)context, (void)i, (void)value;
    return status_make(STATUS_CANCELLED, "no more");
}

static void what_a_visit_says_ends_it(void **state)
{
    struct tablet_fixture *f = *state;
    static bool is_there[KEYS];
    bytes keys[KEY_WALK_MOST];
    bool are_all;
    memset(is_there, true, sizeof is_there);
    write_keys(f, is_there, 0, KEYS);
    for (size_t i = 0; i < KEY_WALK_MOST; i++)
        keys[i] = key_of(f, i);
    for (size_t count = 1; count <= KEY_WALK_MOST; count += KEY_WALK_MOST - 1) {
        struct key_walk walk = {.keyspace = f->rows};
        assert_status(key_walk_get(&walk, keys, count, refuse, NULL, &are_all), STATUS_CANCELLED);
        key_walk_rest(&walk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_key_is_visited_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_walk_that_rests_sees_what_is_new, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_visit_says_ends_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
