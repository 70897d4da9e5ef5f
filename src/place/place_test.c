/* Places, and the directory as one. */
#include "base/limits.h"
#include "place/place.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <fcntl.h>

struct fixture {
    char *directory; /* of the store, in which the place is */
    struct fault_fs *faults;
    struct store *store;
    struct place *place;
};

static char *path_in(const char *directory, const char *name)
{
    char *path;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    return path;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->faults = fault_fs_create();
    struct store_options options = test_options(f->directory);
    assert_ok(fault_fs_open(f->faults, &options, &f->store));
    char *path = path_in(f->directory, "place");
    assert_ok(files_make_directory(files_of_store(f->store), path));
    assert_ok(place_of_directory(files_of_store(f->store), path, &f->place));
    free(path);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    place_close(f->place);
    store_close(f->store);
    fault_fs_destroy(f->faults);
    remove_directory(f->directory);
    free(f);
    return 0;
}

static void assert_object(struct place *place, const char *name, const char *content)
{
    struct buffer out = {0};
    assert_ok(place_get(place, name, 1000, &out));
    assert_int_equal(out.size, strlen(content));
    assert_memory_equal(out.data, content, out.size);
    buffer_free(&out);
}

static void assert_no_object(struct place *place, const char *name)
{
    struct buffer out = {0};
    assert_status(place_get(place, name, 1000, &out), STATUS_NOT_FOUND);
    buffer_free(&out);
}

static status write_entry(void *context, const struct place_entry *entry)
{
    buffer_append_format(context, "%s%s %llu\n", entry->name, entry->is_folder ? "/" : "",
                         (unsigned long long)entry->size);
    return status_ok();
}

static void assert_listed(struct place *place, const char *folder, const char *expected)
{
    struct buffer out = {0};
    assert_ok(place_list(place, folder, write_entry, &out));
    buffer_append_byte(&out, 0);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* --- names --- */

static void names_are_checked(void **state)
{
    (void)state;
    char longest[LIMIT_PLACE_PART + 2] = "";
    memset(longest, 'a', LIMIT_PLACE_PART);
    assert_true(place_name_is_sound("a"));
    assert_true(place_name_is_sound("archive/0123/P,I,C,B%2F/1_a-b:c.sst"));
    assert_true(place_name_is_sound("news/new"));
    assert_true(place_name_is_sound(longest));
    longest[LIMIT_PLACE_PART] = 'a';
    assert_false(place_name_is_sound(longest));
    const char *bad[] = {"",     "/",      "a/",      "/a",  "a//b", ".",     "..",
                         "../a", "a/../b", ".hidden", "a b", "a\n",  "a.new", "a/b.new"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(place_name_is_sound(bad[i]));
    char whole[LIMIT_PLACE_NAME + 2] = "";
    for (size_t i = 0; i <= LIMIT_PLACE_NAME; i++)
        whole[i] = i % 10 == 9 ? '/' : 'a';
    assert_false(place_name_is_sound(whole));
    whole[LIMIT_PLACE_NAME - 1] = 'a';
    whole[LIMIT_PLACE_NAME] = 0;
    assert_true(place_name_is_sound(whole));
}

static void bad_names_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buffer out = {0};
    assert_status(place_put(f->place, "../out", bytes_of("x")), STATUS_INVALID_ARGUMENT);
    assert_status(place_put_file(f->place, ".x", "/dev/null", NULL), STATUS_INVALID_ARGUMENT);
    assert_status(place_get(f->place, "a/..", 10, &out), STATUS_INVALID_ARGUMENT);
    assert_status(place_get_file(f->place, "", "/dev/null", NULL), STATUS_INVALID_ARGUMENT);
    assert_status(place_list(f->place, "..", write_entry, &out), STATUS_INVALID_ARGUMENT);
    assert_status(place_remove(f->place, "../FORMAT"), STATUS_INVALID_ARGUMENT);
    assert_status(place_remove_folder(f->place, ""), STATUS_INVALID_ARGUMENT);
    assert_status(place_make_folder(f->place, "a b"), STATUS_INVALID_ARGUMENT);
    buffer_free(&out);
}

/* --- objects --- */

/* A missing place is not made: something may be to be mounted there. */
static void a_place_that_is_not_there_is_named(void **state)
{
    struct fixture *f = *state;
    struct place *place;
    char *path = path_in(f->directory, "unmounted"), words[600];
    assert_ok(place_of_directory(files_of_store(f->store), path, &place));
    status s = place_make_folder(place, "files");
    snprintf(words, sizeof words, "the place %s is not there", path);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_NOT_FOUND);
    s = place_put(place, "archive/7/probe", bytes_of("x"));
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_NOT_FOUND);
    place_close(place);
    free(path);
}

/* The place itself is there. */
static void a_folder_that_is_not_there_is_not_called_the_place(void **state)
{
    struct fixture *f = *state;
    status s = place_put(f->place, "archive/7/probe", bytes_of("x"));
    assert_non_null(strstr(status_message(s), "/place/archive/7 is not there: was it removed"));
    assert_null(strstr(status_message(s), ".new"));
    assert_status(s, STATUS_NOT_FOUND);
}

static void objects_are_put_listed_got_and_removed(void **state)
{
    struct fixture *f = *state;
    assert_listed(f->place, "", "");
    assert_ok(place_make_folder(f->place, "archive/7/files"));
    assert_ok(place_make_folder(f->place, "archive/7"));
    assert_ok(place_put(f->place, "archive/7/b", bytes_of("first")));
    assert_ok(place_put(f->place, "archive/7/b", bytes_of("2nd")));
    assert_ok(place_put(f->place, "archive/7/a", bytes_of("")));
    assert_object(f->place, "archive/7/b", "2nd");
    assert_object(f->place, "archive/7/a", "");
    assert_no_object(f->place, "archive/7/c");
    assert_listed(f->place, "", "archive/ 0\n");
    assert_listed(f->place, "archive/7", "a 0\nb 3\nfiles/ 0\n");
    assert_ok(place_remove(f->place, "archive/7/b"));
    assert_ok(place_remove(f->place, "archive/7/b"));
    assert_listed(f->place, "archive/7", "a 0\nfiles/ 0\n");
    assert_ok(place_remove_folder(f->place, "archive/7/files"));
    assert_ok(place_remove_folder(f->place, "archive/7/files"));
    assert_listed(f->place, "archive/7", "a 0\n");
}

static void a_file_goes_in_and_comes_out(void **state)
{
    struct fixture *f = *state;
    char *from = path_in(f->directory, "from");
    char *to = path_in(f->directory, "to");
    write_file(from, "content");
    write_file(to, "something else, and longer");
    assert_ok(place_put_file(f->place, "object", from, NULL));
    assert_object(f->place, "object", "content");
    assert_ok(place_get_file(f->place, "object", to, NULL));
    struct buffer got = {0};
    assert_ok(files_read(files_of_system(), to, 100, &got));
    assert_true(bytes_equal(buffer_bytes(&got), bytes_of("content")));
    assert_status(place_get_file(f->place, "none", to, NULL), STATUS_NOT_FOUND);
    assert_status(place_put_file(f->place, "object", "/nonexistent/file", NULL), STATUS_NOT_FOUND);
    assert_object(f->place, "object", "content");
    buffer_free(&got);
    free(from);
    free(to);
}

static bool stop(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return false;
}

static void a_put_that_is_cancelled_leaves_what_was_there(void **state)
{
    struct fixture *f = *state;
    const struct store_pacer stopping = {.go_on = stop};
    char *from = path_in(f->directory, "from");
    write_file(from, "new");
    assert_ok(place_put(f->place, "object", bytes_of("old")));
    assert_status(place_put_file(f->place, "object", from, &stopping), STATUS_CANCELLED);
    assert_object(f->place, "object", "old");
    assert_listed(f->place, "", "object 3\n");
    free(from);
}

static void an_object_larger_than_expected_is_damage(void **state)
{
    struct fixture *f = *state;
    struct buffer out = {0};
    assert_ok(place_put(f->place, "object", bytes_of("12345")));
    assert_status(place_get(f->place, "object", 4, &out), STATUS_DATA_LOSS);
    buffer_free(&out);
}

static void what_others_left_in_the_directory_is_not_listed(void **state)
{
    struct fixture *f = *state;
    const char *strange[] = {"place/.hidden", "place/half.new", "place/with space"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        char *path = path_in(f->directory, strange[i]);
        write_file(path, "x");
        free(path);
    }
    assert_listed(f->place, "", "");
}

/* --- piece by piece --- */

static void an_object_is_written_and_read_in_pieces(void **state)
{
    struct fixture *f = *state;
    struct place_writer *writer;
    struct place_reader *reader;
    uint8_t piece[4];
    size_t got;
    assert_ok(place_create(f->place, "object", &writer));
    assert_ok(place_writer_append(writer, bytes_of("123")));
    assert_ok(place_writer_append(writer, bytes_of("456")));
    assert_no_object(f->place, "object");
    assert_listed(f->place, "", "");
    assert_ok(place_writer_finish(writer));
    place_writer_close(writer);
    assert_object(f->place, "object", "123456");
    assert_ok(place_open(f->place, "object", &reader));
    assert_ok(place_reader_next(reader, piece, sizeof piece, &got));
    assert_int_equal(got, 4);
    assert_ok(place_reader_next(reader, piece, sizeof piece, &got));
    assert_int_equal(got, 2);
    assert_ok(place_reader_next(reader, piece, sizeof piece, &got));
    assert_int_equal(got, 0);
    place_reader_close(reader);
    assert_status(place_open(f->place, "none", &reader), STATUS_NOT_FOUND);
    assert_null(reader);
}

static void an_unfinished_object_is_not_there(void **state)
{
    struct fixture *f = *state;
    struct place_writer *writer;
    assert_ok(place_put(f->place, "object", bytes_of("old")));
    assert_ok(place_create(f->place, "object", &writer));
    assert_ok(place_writer_append(writer, bytes_of("new")));
    place_writer_close(writer);
    assert_object(f->place, "object", "old");
    char *path = path_in(f->directory, "place/object.new");
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

/* --- locks --- */

static void one_at_a_time_has_the_lock(void **state)
{
    struct fixture *f = *state;
    struct place *other;
    struct place_lock *lock, *second;
    assert_ok(place_of_directory(files_of_store(f->store), place_title(f->place), &other));
    assert_ok(place_lock(f->place, &lock));
    assert_status(place_lock(other, &second), STATUS_FAILED_PRECONDITION);
    place_unlock(f->place, lock);
    assert_ok(place_lock(other, &second));
    place_unlock(other, second);
    place_unlock(other, NULL);
    place_close(other);
}

static void a_sweep_removes_what_a_crash_left(void **state)
{
    struct fixture *f = *state;
    char *half = path_in(f->directory, "place/files/half.new");
    char *other = path_in(f->directory, "place/files/.hidden");
    assert_ok(place_make_folder(f->place, "files"));
    assert_ok(place_put(f->place, "files/object", bytes_of("x")));
    write_file(half, "x");
    write_file(other, "x");
    assert_ok(place_sweep(f->place, "files"));
    assert_int_equal(access(half, F_OK), -1);
    assert_int_equal(access(other, F_OK), 0);
    assert_object(f->place, "files/object", "x");
    assert_status(place_sweep(f->place, "none"), STATUS_NOT_FOUND);
    free(half);
    free(other);
}

/* --- a place that is gone --- */

/* The mount point of a disk that is away is an empty directory: nothing may be put beside it. */
static void nothing_is_put_where_the_folder_is_gone(void **state)
{
    struct fixture *f = *state;
    struct buffer out = {0};
    assert_status(place_put(f->place, "archive/1", bytes_of("x")), STATUS_NOT_FOUND);
    assert_status(place_list(f->place, "archive", write_entry, &out), STATUS_NOT_FOUND);
    assert_listed(f->place, "", "");
    buffer_free(&out);
}

static void a_missing_directory_is_never_made(void **state)
{
    struct fixture *f = *state;
    struct place *place;
    char *path = path_in(f->directory, "away");
    assert_ok(place_of_directory(files_of_system(), path, &place));
    assert_string_equal(place_title(place), path);
    assert_status(place_make_folder(place, "archive/7"), STATUS_NOT_FOUND);
    assert_status(place_put(place, "a", bytes_of("x")), STATUS_NOT_FOUND);
    assert_no_object(place, "a");
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(place_make(place)); /* unless a person says so */
    assert_ok(place_make(place));
    assert_ok(place_put(place, "a", bytes_of("x")));
    place_close(place);
    free(path);
}

/* --- faults --- */

static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                  FAULT_SYNC_DIRECTORY};

/* Whatever fails, the object is the old one or the new one, and none has a strange name. */
static void a_put_that_fails_leaves_a_whole_object(void **state)
{
    struct fixture *f = *state;
    char *from = path_in(f->directory, "from");
    write_file(from, "new");
    for (size_t i = 0; i < 2 * sizeof operations / sizeof *operations; i++) {
        struct buffer out = {0};
        assert_ok(place_put(f->place, "object", bytes_of("old")));
        bool is_new = operations[i / 2] == FAULT_SYNC_DIRECTORY;
        fault_fs_fail(f->faults, operations[i / 2], is_new ? "" : "object", FAULT_NO_SPACE, 0);
        status s = i % 2 == 0 ? place_put(f->place, "object", bytes_of("new"))
                              : place_put_file(f->place, "object", from, NULL);
        assert_status(s, STATUS_RESOURCE_EXHAUSTED);
        fault_fs_heal(f->faults);
        assert_ok(place_get(f->place, "object", 10, &out));
        assert_true(bytes_equal(buffer_bytes(&out), bytes_of(is_new ? "new" : "old")));
        assert_listed(f->place, "", "object 3\n");
        buffer_free(&out);
    }
    free(from);
}

static void a_read_that_fails_says_so(void **state)
{
    struct fixture *f = *state;
    struct buffer out = {0};
    char *to = path_in(f->directory, "to");
    assert_ok(place_put(f->place, "object", bytes_of("content")));
    fault_fs_fail(f->faults, FAULT_READ, "object", FAULT_IO, 0);
    assert_status(place_get(f->place, "object", 10, &out), STATUS_UNAVAILABLE);
    assert_status(place_get_file(f->place, "object", to, NULL), STATUS_UNAVAILABLE);
    fault_fs_heal(f->faults);
    assert_object(f->place, "object", "content");
    buffer_free(&out);
    free(to);
}

static void a_put_object_survives_a_power_cut(void **state)
{
    struct fixture *f = *state;
    char *from = path_in(f->directory, "from");
    char *copy = make_directory();
    struct place *after;
    write_file(from, "second");
    assert_ok(place_make_folder(f->place, "archive"));
    assert_ok(place_put(f->place, "archive/1", bytes_of("first")));
    assert_ok(place_put_file(f->place, "archive/2", from, NULL));
    fault_fs_cut_power(f->faults, f->directory, copy, 0);
    char *path = path_in(copy, "place");
    assert_ok(place_of_directory(files_of_system(), path, &after));
    assert_listed(after, "archive", "1 5\n2 6\n");
    assert_object(after, "archive/1", "first");
    assert_object(after, "archive/2", "second");
    place_close(after);
    remove_directory(copy);
    free(path);
    free(from);
}

static void what_was_removed_and_synced_survives_a_power_cut(void **state)
{
    struct fixture *f = *state;
    char *copy = make_directory();
    struct place *after;
    assert_ok(place_make_folder(f->place, "files"));
    assert_ok(place_put(f->place, "files/1", bytes_of("first")));
    assert_ok(place_put(f->place, "files/2", bytes_of("second")));
    assert_ok(place_remove(f->place, "files/1"));
    assert_ok(place_sync_folder(f->place, "files"));
    fault_fs_cut_power(f->faults, f->directory, copy, 0);
    char *path = path_in(copy, "place");
    assert_ok(place_of_directory(files_of_system(), path, &after));
    assert_listed(after, "files", "2 6\n");
    place_close(after);
    remove_directory(copy);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test_setup_teardown(bad_names_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_place_that_is_not_there_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_there_is_not_called_the_place, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(objects_are_put_listed_got_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_goes_in_and_comes_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_put_that_is_cancelled_leaves_what_was_there, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_object_larger_than_expected_is_damage, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_others_left_in_the_directory_is_not_listed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_object_is_written_and_read_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unfinished_object_is_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_at_a_time_has_the_lock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sweep_removes_what_a_crash_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_removed_and_synced_survives_a_power_cut, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_put_where_the_folder_is_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_directory_is_never_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_put_that_fails_leaves_a_whole_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_that_fails_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_put_object_survives_a_power_cut, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
