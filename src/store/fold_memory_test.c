/* Tests of folds that lack memory: that is no damage, and passes. */
#include "store/testing/testing.h"

static atomic_bool has_no_memory;
static atomic_bool is_wrong; /* then RocksDB takes it for damage, and is right */
static atomic_uint folds_failed;

static bool fold_if_there_is_memory(const void *rules, const struct store_history *history,
                                    struct buffer *out, bytes *same)
{
    if (atomic_load(&is_wrong))
        return false;
    if (!atomic_load(&has_no_memory))
        return fold_full(rules, history, out, same);
    out->failed = true;
    atomic_fetch_add(&folds_failed, 1);
    return false;
}

static const struct store_fold hungry_fold = {
    .whole = fold_if_there_is_memory, .part = fold_part, .tidy = fold_filter};

struct fixture {
    char *directory;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace; /* "k" is "old-new", in two tables */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->options = test_options(f->directory);
    f->options.fold = &hungry_fold;
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = make_keyspace(f->store, 7);
    put(f->store, f->keyspace, "j", "other");
    put(f->store, f->keyspace, "k", "old");
    assert_ok(keyspace_flush(f->keyspace));
    merge(f->store, f->keyspace, "k", "-new");
    assert_ok(keyspace_flush(f->keyspace));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    atomic_store(&has_no_memory, false);
    store_close(f->store);
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* Nothing is out of service, and with memory all is as it was. */
static void assert_passes(struct fixture *f)
{
    atomic_store(&has_no_memory, false);
    assert_false(keyspace_has_damage(f->keyspace));
    assert_ok(store_health(f->store));
    assert_value(f->keyspace, "k", "old-new");
    put(f->store, f->keyspace, "l", "1");
}

static void a_get_lacks_memory(void **state)
{
    struct fixture *f = *state;
    struct store_value values[2];
    enum store_presence presences[2];
    const bytes keys[] = {bytes_of("j"), bytes_of("k")};
    atomic_store(&has_no_memory, true);
    for (int read_tier = STORE_READ_CACHED; read_tier <= STORE_READ_ANY; read_tier++) {
        assert_status(store_get(f->keyspace, NULL, keys[1], (enum store_read_tier)read_tier, values,
                                presences),
                      STATUS_RESOURCE_EXHAUSTED);
        store_value_release(values);
        assert_status(store_get_many(f->keyspace, NULL, keys, 2, (enum store_read_tier)read_tier,
                                     values, presences),
                      STATUS_RESOURCE_EXHAUSTED);
        store_value_release(&values[0]);
        store_value_release(&values[1]);
    }
    assert_passes(f);
}

static void a_cursor_lacks_memory(void **state)
{
    struct fixture *f = *state;
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    for (int is_forward = 0; is_forward < 2; is_forward++) {
        struct store_cursor *cursor;
        assert_ok(store_cursor_create(f->keyspace, &options, &cursor));
        atomic_store(&has_no_memory, true);
        if (is_forward)
            store_cursor_seek(cursor, bytes_of("k"));
        else
            store_cursor_last(cursor);
        assert_false(store_cursor_valid(cursor));
        assert_status(store_cursor_status(cursor), STATUS_RESOURCE_EXHAUSTED);
        store_cursor_destroy(cursor);
        atomic_store(&has_no_memory, false);
    }
    assert_passes(f);
}

/* The compaction ends, the store is not fenced for it, and nothing is closed. */
static void a_compaction_lacks_memory(void **state)
{
    struct fixture *f = *state;
    unsigned before = atomic_load(&folds_failed);
    atomic_store(&has_no_memory, true);
    assert_status(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")),
                  STATUS_RESOURCE_EXHAUSTED);
    assert_true(atomic_load(&folds_failed) > before);
    assert_passes(f);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    assert_passes(f);
}

/* Writes wait until a flush finds memory, and nothing is lost. */
static void a_flush_lacks_memory(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "m", "old");
    merge(f->store, f->keyspace, "m", "-new");
    atomic_store(&has_no_memory, true);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    for (int i = 0; i < 2; i++) {
        assert_status(store_health(f->store), STATUS_RESOURCE_EXHAUSTED);
        assert_true(store_lacks_memory(f->store));
        assert_status(write_one(f->store, f->keyspace, PUT, "n", "1", STORE_SYNCED),
                      STATUS_RESOURCE_EXHAUSTED);
        assert_status(store_keyspaces_create(f->store, 8, 1), STATUS_RESOURCE_EXHAUSTED);
        assert_value(f->keyspace, "j", "other");
        store_look_for_room(f->store);
    }
    atomic_store(&has_no_memory, false);
    store_look_for_room(f->store);
    assert_false(store_lacks_memory(f->store));
    assert_passes(f);
    assert_value(f->keyspace, "m", "old-new");
    assert_ok(keyspace_flush(f->keyspace));
    assert_value(f->keyspace, "m", "old-new");
}

static bool is_well(struct fixture *f)
{
    status s = store_health(f->store);
    bool is_so = status_is_ok(s);
    status_free(s);
    return is_so;
}

/* On the same thread, later: what lacked memory is forgotten. */
static void a_flush_that_meets_damage_fences(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "m", "old");
    merge(f->store, f->keyspace, "m", "-new");
    atomic_store(&has_no_memory, true);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    atomic_store(&has_no_memory, false);
    store_look_for_room(f->store);
    assert_passes(f);
    for (int i = 0; i < 3 && is_well(f); i++) { /* RocksDB may have flushed by itself before */
        atomic_store(&is_wrong, true);
        status_ignore(write_one(f->store, f->keyspace, PUT, "n", "old", STORE_ASYNC));
        status_ignore(write_one(f->store, f->keyspace, MERGE, "n", "-new", STORE_ASYNC));
        status_ignore(keyspace_flush(f->keyspace));
        atomic_store(&is_wrong, false);
    }
    assert_status(store_health(f->store), STATUS_UNAVAILABLE);
    assert_false(store_lacks_memory(f->store));
}

/* As of a kill then: the log has it all. */
static void a_store_that_lacks_memory_is_closed(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "m", "old");
    merge(f->store, f->keyspace, "m", "-new");
    atomic_store(&has_no_memory, true);
    assert_status(keyspace_flush(f->keyspace), STATUS_RESOURCE_EXHAUSTED);
    store_close(f->store);
    atomic_store(&has_no_memory, false);
    assert_ok(store_open(&f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
    assert_value(f->keyspace, "m", "old-new");
    assert_passes(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_get_lacks_memory),
        TEST(a_cursor_lacks_memory),
        TEST(a_compaction_lacks_memory),
        TEST(a_flush_lacks_memory),
        TEST(a_flush_that_meets_damage_fences),
        TEST(a_store_that_lacks_memory_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
