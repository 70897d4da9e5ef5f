/* Writes wait for flushes where memory is bounded, and no longer than they must: full_buffers.h. */
#include "store/testing/testing.h"

#include <poll.h>
#include <pthread.h>

enum {
    MB = 1 << 20,
    SIZE = 10 * MB, /* of a value: three fit into what all buffers may have, with the next */
    MOST = 2 * 16 * MB,
    LOOKS = 6000,
    LOOK_MS = 10,
    FEW_LOOKS = 20,
    HOUR_US = 0x7fffffff,
};

struct fixture {
    char *directory;
    struct store *store;
    struct keyspace *keyspaces[2];
    struct store_options options;
    uint8_t *value;      /* MOST + SIZE bytes */
    atomic_bool is_held; /* no flush goes on */
};

static void hold(void *context, enum store_large_work what)
{
    struct fixture *f = context;
    while (what == STORE_LARGE_FLUSH_BEGINS && atomic_load(&f->is_held))
        poll(NULL, 0, 1);
}

static void open_store(struct fixture *f)
{
    assert_ok(store_open(&f->options, &f->store));
    for (uint64_t i = 0; i < 2; i++) {
        f->keyspaces[i] = make_keyspace(f->store, i + 2);
        keyspace_expect_large(f->keyspaces[i]);
    }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->value = calloc(1, MOST + SIZE);
    assert_non_null(f->value);
    f->options = test_options(f->directory);
    f->options.no_compactions = true;
    f->options.on_large_work = hold;
    f->options.large_work_context = f;
    f->options.write_patience_us = HOUR_US;
    open_store(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->is_held = false;
    store_close(f->store);
    remove_directory(f->directory);
    free(f->value);
    free(f);
    return 0;
}

static void reopen(struct fixture *f, int64_t patience_us)
{
    store_close(f->store);
    remove_directory(f->directory);
    f->directory = make_directory();
    f->options.directory = f->directory;
    f->options.write_patience_us = patience_us;
    open_store(f);
}

static status write_value(struct fixture *f, int keyspace, size_t size)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_put(batch, f->keyspaces[keyspace], bytes_of("key"), bytes_make(f->value, size));
    status s = store_write(f->store, batch, STORE_ASYNC);
    store_batch_destroy(batch);
    return s;
}

static struct store_statistics statistics_of(struct fixture *f)
{
    struct store_statistics statistics;
    store_statistics(f->store, &statistics);
    return statistics;
}

static bool comes_to_wait(struct fixture *f)
{
    for (int looks = 0; looks < LOOKS && !statistics_of(f).is_stalled; looks++)
        poll(NULL, 0, LOOK_MS);
    return statistics_of(f).is_stalled;
}

/* No flush goes on, and the next write of SIZE has no room. */
static void fill(struct fixture *f)
{
    f->is_held = true;
    assert_ok(write_value(f, 0, SIZE));
    assert_ok(write_value(f, 1, SIZE));
    assert_ok(write_value(f, 0, SIZE));
}

struct writer {
    struct fixture *f;
    pthread_t thread;
    atomic_bool is_done;
    status result;
};

static void *write_one_more(void *argument)
{
    struct writer *writer = argument;
    writer->result = write_value(writer->f, 1, SIZE);
    writer->is_done = true;
    return NULL;
}

/* The writer waits when this returns. */
static void begin_to_wait(struct fixture *f, struct writer *writer)
{
    *writer = (struct writer){.f = f};
    fill(f);
    assert_int_equal(pthread_create(&writer->thread, NULL, write_one_more, writer), 0);
    assert_true(comes_to_wait(f));
}

static status finish(struct writer *writer)
{
    assert_int_equal(pthread_join(writer->thread, NULL), 0);
    assert_false(statistics_of(writer->f).is_stalled);
    return writer->result;
}

/* Meanwhile reads, and drops of a keyspace, are not held up. */
static void a_write_waits_until_what_was_before_it_is_flushed(void **state)
{
    struct fixture *f = *state;
    struct writer writer;
    struct keyspace *other = make_keyspace(f->store, 9);
    begin_to_wait(f, &writer);
    for (int looks = 0; looks < FEW_LOOKS; looks++) {
        assert_false(writer.is_done);
        assert_in_range(statistics_of(f).write_buffer_used_bytes, SIZE, MOST);
        poll(NULL, 0, LOOK_MS);
    }
    struct store_value value;
    enum store_presence presence;
    assert_ok(
        store_get(f->keyspaces[0], NULL, bytes_of("key"), STORE_READ_CACHED, &value, &presence));
    assert_int_equal(presence, STORE_FOUND);
    store_value_release(&value);
    assert_ok(store_keyspace_drop(f->store, other));
    f->is_held = false;
    assert_ok(finish(&writer));
    assert_true(statistics_of(f).stalls_us > 0);
}

/* Nothing has been written of it, and the store is as it was. */
static void a_write_that_has_waited_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    reopen(f, 1000);
    fill(f);
    assert_status(write_value(f, 1, SIZE), STATUS_UNAVAILABLE);
    assert_ok(store_health(f->store));
    f->is_held = false;
    assert_ok(keyspace_flush(f->keyspaces[0]));
    assert_ok(keyspace_flush(f->keyspaces[1]));
    assert_ok(write_value(f, 1, SIZE));
}

static void no_write_waits_once_the_store_is_about_to_be_closed(void **state)
{
    struct fixture *f = *state;
    struct writer writer;
    begin_to_wait(f, &writer);
    store_stop_waiting(f->store);
    assert_status(finish(&writer), STATUS_UNAVAILABLE);
    assert_status(write_value(f, 1, SIZE), STATUS_UNAVAILABLE);
    f->is_held = false;
    assert_ok(write_value(f, 1, 1)); /* what has room is written */
}

static void no_write_waits_for_a_fenced_store(void **state)
{
    struct fixture *f = *state;
    struct writer writer;
    begin_to_wait(f, &writer);
    store_fence(f->store, "a reason");
    assert_status(finish(&writer), STATUS_UNAVAILABLE);
}

/* What is larger than all that there may be goes alone; RocksDB would flush what was written before
 * it within the write, and have both. */
static void the_largest_go_one_after_the_other(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        assert_ok(write_value(f, 0, MOST + SIZE));
        assert_in_range(statistics_of(f).write_buffer_used_bytes, MOST + SIZE, MOST + SIZE + MB);
    }
}

/* Whose flush frees nothing, and may never: a client that does not read on. */
static void buffers_that_readers_hold_are_not_waited_for(void **state)
{
    enum { CURSORS = 4 };
    struct fixture *f = *state;
    struct store_cursor *cursors[CURSORS];
    struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    for (int i = 0; i < CURSORS; i++) {
        assert_ok(write_value(f, 0, SIZE));
        assert_ok(store_cursor_create(f->keyspaces[0], &options, &cursors[i]));
        store_cursor_first(cursors[i]);
        assert_ok(keyspace_flush(f->keyspaces[0]));
    }
    assert_true(statistics_of(f).write_buffer_used_bytes > MOST);
    assert_ok(write_value(f, 0, SIZE));
    for (int i = 0; i < CURSORS; i++)
        store_cursor_destroy(cursors[i]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_waits_until_what_was_before_it_is_flushed),
        TEST(a_write_that_has_waited_too_long_is_refused),
        TEST(no_write_waits_once_the_store_is_about_to_be_closed),
        TEST(no_write_waits_for_a_fenced_store),
        TEST(the_largest_go_one_after_the_other),
        TEST(buffers_that_readers_hold_are_not_waited_for),
    };
    return cmocka_run_group_tests_name("store_full_buffers", tests, NULL, NULL);
}
