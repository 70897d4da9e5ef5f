/* Positions in a file: what is written is read, and what is not ours is refused. */
#include "transfer/follow_position.h"

#include "base/testing/testing.h"
#include "transfer/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    char directory[64];
    char path[96];
};

static int setup(void **state)
{
    static struct fixture fixture;
    snprintf(fixture.directory, sizeof fixture.directory, "/tmp/follow_position_XXXXXX");
    if (mkdtemp(fixture.directory) == NULL)
        return 1;
    snprintf(fixture.path, sizeof fixture.path, "%s/where", fixture.directory);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    unlink(fixture->path);
    return rmdir(fixture->directory); /* there is nothing else in it */
}

static struct position_store *open_store(const struct fixture *fixture, const char *identity)
{
    const struct position_store_options options = {
        .file = fixture->path, .table_id = "t", .identity = identity};
    struct position_store *store;
    assert_ok(position_store_create(&options, &store));
    return store;
}

static void write_position(struct position_store *store, const char *feed, bool is_copying)
{
    struct follow_position position = {.is_copying = is_copying, .changes = 7};
    buffer_append_bytes(&position.feed, bytes_of(feed));
    assert_ok(position_store_write(store, &position));
    follow_position_free(&position);
}

static void expect_position(struct position_store *store, const char *feed, bool is_copying)
{
    struct follow_position position;
    bool found;
    assert_ok(position_store_read(store, &position, &found));
    assert_true(found);
    assert_true(bytes_equal(buffer_bytes(&position.feed), bytes_of(feed)));
    assert_int_equal(position.is_copying, is_copying);
    assert_int_equal(position.changes, 7);
    follow_position_free(&position);
}

static void what_was_written_last_is_read(void **state)
{
    struct follow_position position;
    bool found;
    struct position_store *store = open_store(*state, "a to b");
    assert_ok(position_store_read(store, &position, &found));
    assert_false(found);
    write_position(store, "{\"place\":[1,2]}", true);
    expect_position(store, "{\"place\":[1,2]}", true);
    write_position(store, "{\"place\":[3]}", false);
    position_store_destroy(store);
    store = open_store(*state, "a to b");
    expect_position(store, "{\"place\":[3]}", false);
    position_store_destroy(store);
}

static void what_is_of_something_else_is_refused(void **state)
{
    struct follow_position position;
    bool found;
    struct position_store *store = open_store(*state, "a to b");
    write_position(store, "{}", false);
    position_store_destroy(store);
    store = open_store(*state, "a to c");
    assert_status(position_store_read(store, &position, &found), STATUS_FAILED_PRECONDITION);
    position_store_destroy(store);
}

static void what_is_damaged_is_refused(void **state)
{
    static const char *const texts[] = {"{", "{}", "[]", "{\"follow\":\"a to b\",\"copying\":1}"};
    struct fixture *fixture = *state;
    struct position_store *store = open_store(fixture, "a to b");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct follow_position position;
        bool found;
        assert_ok(text_file_replace(fixture->path, texts[i]));
        assert_status(position_store_read(store, &position, &found), STATUS_DATA_LOSS);
    }
    position_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_last_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_of_something_else_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_damaged_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
