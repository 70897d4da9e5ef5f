/* Random changes, flushes, compactions and restarts against a model in memory: whatever is read, by
 * key or by cursor, forwards and backwards, from the cache or anywhere, now or at a snapshot, must
 * be what the model says, or a miss of the cache. STORE_MODEL_SEED runs another seed. */
#include "store/testing/testing.h"

enum { KEYS = 60, VIEWS = 4, STEPS = 700, VALUE_LIMIT = 40 };

/* What each key holds; an empty string: it is absent. */
struct contents {
    char values[KEYS][VALUE_LIMIT + 1];
};

struct world {
    uint32_t random;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace;
    struct store_batch *batch;
    struct contents now;
    struct contents then[VIEWS]; /* when the snapshot was made */
    struct store_snapshot *snapshots[VIEWS];
};

static uint32_t dice(struct world *w, uint32_t sides)
{
    w->random = w->random * 1664525 + 1013904223;
    return (w->random >> 8) % sides;
}

static bytes key_of(char text[8], int key)
{
    snprintf(text, 8, "k%02d", key); /* KEYS itself sorts behind all keys */
    return bytes_of(text);
}

/* --- changes --- */

static void merge_letter(struct world *w, int key)
{
    char text[8], letter = (char)('a' + dice(w, 26));
    char *value = w->now.values[key];
    size_t size = strlen(value);
    if (size == VALUE_LIMIT) {
        size = 0;
        store_batch_put(w->batch, w->keyspace, key_of(text, key), bytes_make(&letter, 1));
    } else {
        store_batch_merge(w->batch, w->keyspace, key_of(text, key), bytes_make(&letter, 1));
    }
    value[size] = letter;
    value[size + 1] = '\0';
}

static void delete_range(struct world *w, int key)
{
    char from[8], to[8];
    int end = key + 1 + (int)dice(w, 20);
    end = end < KEYS ? end : KEYS;
    store_batch_delete_range(w->batch, w->keyspace, key_of(from, key), key_of(to, end));
    for (int i = key; i < end; i++)
        w->now.values[i][0] = '\0';
}

static void change(struct world *w)
{
    char text[8];
    store_batch_clear(w->batch);
    for (uint32_t count = 1 + dice(w, 6); count > 0; count--) {
        int key = (int)dice(w, KEYS);
        uint32_t kind = dice(w, 10);
        if (kind < 6) {
            merge_letter(w, key);
        } else if (kind < 8) {
            store_batch_delete(w->batch, w->keyspace, key_of(text, key));
            w->now.values[key][0] = '\0';
        } else {
            delete_range(w, key);
        }
    }
    assert_ok(store_write(w->store, w->batch, STORE_ASYNC));
}

static void make_view(struct world *w)
{
    uint32_t i = dice(w, VIEWS);
    store_snapshot_release(w->snapshots[i]);
    w->snapshots[i] = store_snapshot_create(w->store);
    assert_non_null(w->snapshots[i]);
    w->then[i] = w->now;
}

static void release_views(struct world *w)
{
    for (uint32_t i = 0; i < VIEWS; i++) {
        store_snapshot_release(w->snapshots[i]);
        w->snapshots[i] = NULL;
    }
}

static void reopen(struct world *w)
{
    release_views(w);
    store_close(w->store);
    assert_ok(store_open(&w->options, &w->store));
    w->keyspace = store_keyspace_find(w->store, 7);
}

static void step(struct world *w)
{
    uint32_t what = dice(w, 100);
    if (what < 80)
        change(w);
    else if (what < 86)
        assert_ok(keyspace_flush(w->keyspace));
    else if (what < 88)
        assert_ok(keyspace_compact(w->keyspace, bytes_of(""), bytes_of("")));
    else if (what < 98)
        make_view(w);
    else
        reopen(w);
}

/* --- reads --- */

static void check_get(struct world *w, const struct contents *contents,
                      struct store_snapshot *snapshot, enum store_read_tier read_tier)
{
    char text[8];
    int key = (int)dice(w, KEYS);
    const char *expected = contents->values[key];
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(w->keyspace, snapshot, key_of(text, key), read_tier, &value, &presence));
    if (presence != STORE_NOT_CACHED) {
        assert_int_equal(presence, expected[0] != '\0' ? STORE_FOUND : STORE_ABSENT);
        assert_true(bytes_equal(value.bytes, bytes_of(expected)));
    }
    store_value_release(&value);
}

/* The next key that is there, from `key` on; `lower` - 1 or `upper` if there is none. */
static int present(const struct contents *contents, int key, int lower, int upper, int direction)
{
    while (key >= lower && key < upper && contents->values[key][0] == '\0')
        key += direction;
    return key;
}

static int place(struct world *w, struct store_cursor *cursor, int lower, int upper, int direction)
{
    char text[8];
    int key = lower + (int)dice(w, (uint32_t)(upper - lower));
    bool at_end = dice(w, 2) == 0;
    if (direction > 0 && at_end)
        store_cursor_first(cursor);
    else if (direction > 0)
        store_cursor_seek(cursor, key_of(text, key));
    else if (at_end)
        store_cursor_last(cursor);
    else
        store_cursor_seek_before(cursor, key_of(text, key));
    if (direction > 0)
        return at_end ? lower : key;
    return at_end ? upper - 1 : key - 1;
}

static void walk(struct world *w, const struct contents *contents, struct store_cursor *cursor,
                 int lower, int upper)
{
    int direction = dice(w, 2) == 0 ? 1 : -1;
    int key = place(w, cursor, lower, upper, direction);
    for (;;) {
        char text[8];
        key = present(contents, key, lower, upper, direction);
        assert_ok(store_cursor_status(cursor));
        if (store_cursor_missed_cache(cursor))
            return;
        assert_int_equal(store_cursor_valid(cursor), key >= lower && key < upper);
        if (!store_cursor_valid(cursor))
            return;
        assert_true(bytes_equal(store_cursor_key(cursor), key_of(text, key)));
        assert_true(bytes_equal(store_cursor_value(cursor), bytes_of(contents->values[key])));
        if (direction > 0)
            store_cursor_next(cursor);
        else
            store_cursor_previous(cursor);
        key += direction;
    }
}

static void check(struct world *w, const struct contents *contents, struct store_snapshot *snapshot)
{
    char from[8], to[8];
    enum store_read_tier read_tier = dice(w, 2) == 0 ? STORE_READ_CACHED : STORE_READ_ANY;
    for (int i = 0; i < 10; i++)
        check_get(w, contents, snapshot, read_tier);
    int lower = (int)dice(w, KEYS);
    int upper = lower + 1 + (int)dice(w, (uint32_t)(KEYS - lower));
    struct store_cursor *cursor;
    const struct store_cursor_options options = {.snapshot = snapshot,
                                                 .lower = key_of(from, lower),
                                                 .upper = key_of(to, upper),
                                                 .read_tier = read_tier};
    assert_ok(store_cursor_create(w->keyspace, &options, &cursor));
    for (int i = 0; i < 3; i++)
        walk(w, contents, cursor, lower, upper);
    store_cursor_destroy(cursor);
}

static void run_seed(uint32_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    char *directory = make_directory();
    w->random = seed;
    w->options = test_options(directory);
    w->batch = store_batch_create();
    assert_ok(store_open(&w->options, &w->store));
    w->keyspace = make_keyspace(w->store, 7);
    for (int i = 0; i < STEPS; i++) {
        step(w);
        check(w, &w->now, NULL);
        uint32_t snapshot = dice(w, VIEWS);
        if (w->snapshots[snapshot] != NULL)
            check(w, &w->then[snapshot], w->snapshots[snapshot]);
    }
    release_views(w);
    store_batch_destroy(w->batch);
    store_close(w->store);
    remove_directory(directory);
    free(w);
}

static void the_store_does_what_the_model_does(void **state)
{
    (void)state;
    const char *seed = getenv("STORE_MODEL_SEED");
    for (uint32_t i = 1; seed == NULL && i <= 4; i++)
        run_seed(i);
    if (seed != NULL)
        run_seed((uint32_t)strtoul(seed, NULL, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_store_does_what_the_model_does)};
    return cmocka_run_group_tests_name("store_model", tests, NULL, NULL);
}
