/* Sealed places: what comes back, what cannot be read, and what is noticed. */
#include "place/sealed.h"

#include "base/testing/failmalloc.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
    HEAD = 57, /* of a sealed object */
    CHUNK = 64 << 10,
    SEALED = CHUNK + CIPHER_TAG_BYTES,
    MOST_STEPS = 100,
};

struct fixture {
    char *directory;
    struct fault_fs *faults;
    struct store *store;
    struct place *plain; /* of the same directory as the next two */
    struct place *sealed;
    struct place *other; /* with another key */
    uint8_t *content;    /* of three chunks and a bit */
};

enum { CONTENT = 3 * CHUNK + 100 };

static struct place *open_place(struct fixture *f)
{
    char path[192];
    struct place *place;
    snprintf(path, sizeof path, "%s/place", f->directory);
    assert_ok(place_of_directory(files_of_store(f->store), path, &place));
    return place;
}

static struct place *open_sealed(struct fixture *f, uint8_t fill)
{
    struct place_key key;
    struct place *place;
    uint8_t master[CIPHER_KEY_BYTES];
    memset(master, fill, sizeof master);
    assert_ok(place_key_make(master, &key));
    assert_ok(place_seal(open_place(f), &key, &place));
    return place;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->faults = fault_fs_create();
    struct store_options options = test_options(f->directory);
    assert_ok(fault_fs_open(f->faults, &options, &f->store));
    f->plain = open_place(f);
    assert_ok(place_make(f->plain));
    f->sealed = open_sealed(f, 1);
    f->other = open_sealed(f, 2);
    f->content = malloc(CONTENT);
    assert_non_null(f->content);
    for (size_t i = 0; i < CONTENT; i++)
        f->content[i] = (uint8_t)(i * 7 + i / CHUNK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    place_close(f->plain);
    place_close(f->sealed);
    place_close(f->other);
    store_close(f->store);
    fault_fs_destroy(f->faults);
    remove_directory(f->directory);
    free(f->content);
    free(f);
    return 0;
}

static status get(struct place *place, const char *name, struct buffer *out)
{
    buffer_clear(out);
    return place_get(place, name, 1 << 20, out);
}

static void assert_content(struct fixture *f, const char *name, size_t size)
{
    struct buffer out = {0};
    assert_ok(get(f->sealed, name, &out));
    assert_int_equal(out.size, size);
    if (size > 0)
        assert_memory_equal(out.data, f->content, size);
    buffer_free(&out);
}

static void assert_unreadable(struct place *place, const char *name, enum status_code code,
                              const char *words)
{
    struct buffer out = {0};
    status s = get(place, name, &out);
    assert_int_equal(s.code, code);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
    buffer_free(&out);
}

/* The object as it lies there, to be changed and put back. */
static void take_raw(struct fixture *f, const char *name, struct buffer *out)
{
    assert_ok(get(f->plain, name, out));
}

static void assert_not_taken(struct fixture *f, bytes raw)
{
    assert_ok(place_put(f->plain, "object", raw));
    assert_unreadable(f->sealed, "object", STATUS_DATA_LOSS, "");
}

/* --- what comes back --- */

static status check_size(void *context, const struct place_entry *entry)
{
    assert_int_equal(entry->size, *(const size_t *)context);
    return status_ok();
}

static void every_size_comes_back(void **state)
{
    static const size_t sizes[] = {0,         1,         CHUNK - 1,     CHUNK,
                                   CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1, CONTENT};
    struct fixture *f = *state;
    struct buffer raw = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i], chunks = size == 0 ? 1 : (size + CHUNK - 1) / CHUNK;
        assert_ok(place_put(f->sealed, "object", bytes_make(f->content, size)));
        assert_content(f, "object", size);
        assert_ok(place_list(f->sealed, "", check_size, &size));
        take_raw(f, "object", &raw);
        assert_int_equal(raw.size, HEAD + size + chunks * CIPHER_TAG_BYTES);
    }
    buffer_free(&raw);
}

static void pieces_of_any_size_may_be_put(void **state)
{
    struct fixture *f = *state;
    struct place_writer *writer;
    assert_ok(place_create(f->sealed, "object", &writer));
    for (size_t at = 0, size = 1; at < CONTENT; at += size, size = size * 3 + 1) {
        size = size < CONTENT - at ? size : CONTENT - at;
        assert_ok(place_writer_append(writer, bytes_make(f->content + at, size)));
    }
    assert_ok(place_writer_finish(writer));
    place_writer_close(writer);
    assert_content(f, "object", CONTENT);
}

static void nothing_of_it_is_to_be_seen(void **state)
{
    struct fixture *f = *state;
    struct buffer first = {0}, second = {0};
    memset(f->content, 'x', CHUNK);
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, CHUNK)));
    take_raw(f, "object", &first);
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, CHUNK)));
    take_raw(f, "object", &second);
    for (size_t i = HEAD; i + 8 < first.size; i++) {
        assert_memory_not_equal(first.data + i, "xxxxxxxx", 8);
        assert_memory_not_equal(first.data + i, second.data + i, 8); /* nor what is the same */
    }
    buffer_free(&first);
    buffer_free(&second);
}

static void a_digest_is_hidden_by_the_key(void **state)
{
    struct fixture *f = *state;
    uint8_t digest[32] = {1, 2, 3}, one[32], again[32], other[32], plain[32];
    assert_ok(place_hide(f->sealed, digest, one));
    assert_ok(place_hide(f->sealed, digest, again));
    assert_ok(place_hide(f->other, digest, other));
    assert_ok(place_hide(f->plain, digest, plain));
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    assert_memory_not_equal(one, digest, sizeof one);
    assert_memory_equal(plain, digest, sizeof plain);
}

/* --- what is noticed --- */

static void each_flipped_byte_is_noticed(void **state)
{
    enum { SIZE = 40 };
    struct fixture *f = *state;
    struct buffer raw = {0}, out = {0};
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, SIZE)));
    take_raw(f, "object", &raw);
    for (size_t i = 0; i < raw.size; i++) {
        raw.data[i] ^= 1;
        assert_ok(place_put(f->plain, "object", buffer_bytes(&raw)));
        status s = get(f->sealed, "object", &out);
        assert_false(status_is_ok(s));
        status_free(s);
        raw.data[i] ^= 1;
    }
    buffer_free(&raw);
    buffer_free(&out);
}

static void each_cut_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct buffer raw = {0};
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, CONTENT)));
    take_raw(f, "object", &raw);
    const size_t cuts[] = {HEAD - 1,          HEAD,          HEAD + 1,
                           HEAD + SEALED - 1, HEAD + SEALED, HEAD + SEALED + 1,
                           HEAD + 3 * SEALED, raw.size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        assert_not_taken(f, bytes_make(raw.data, cuts[i]));
    buffer_append(&raw, "x", 1);
    assert_not_taken(f, buffer_bytes(&raw));
    buffer_free(&raw);
}

static void a_chunk_that_moved_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct buffer raw = {0}, mixed = {0};
    memset(f->content, 'x', CONTENT); /* chunks have the same in them */
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, 3 * CHUNK)));
    take_raw(f, "object", &raw);
    static const unsigned orders[][3] = {{1, 0, 2}, {0, 0, 2}, {0, 2, 2}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        buffer_clear(&mixed);
        buffer_append(&mixed, raw.data, HEAD);
        for (unsigned j = 0; j < 3; j++)
            buffer_append(&mixed, raw.data + HEAD + orders[i][j] * (size_t)SEALED, SEALED);
        assert_not_taken(f, buffer_bytes(&mixed));
    }
    buffer_clear(&mixed); /* one that is left out */
    buffer_append(&mixed, raw.data, HEAD + SEALED);
    buffer_append(&mixed, raw.data + HEAD + 2 * (size_t)SEALED, SEALED);
    assert_not_taken(f, buffer_bytes(&mixed));
    buffer_free(&raw);
    buffer_free(&mixed);
}

static void another_objects_content_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct buffer raw = {0};
    assert_ok(place_put(f->sealed, "other", bytes_make(f->content, 10)));
    take_raw(f, "other", &raw);
    assert_not_taken(f, buffer_bytes(&raw));
    buffer_free(&raw);
}

static void the_wrong_key_is_told(void **state)
{
    struct fixture *f = *state;
    struct buffer raw = {0};
    assert_ok(place_put(f->sealed, "object", bytes_make(f->content, 10)));
    assert_unreadable(f->other, "object", STATUS_PERMISSION_DENIED, "another key");
    take_raw(f, "object", &raw);
    assert_status(place_check_plain(f->plain, "object", buffer_bytes(&raw)),
                  STATUS_PERMISSION_DENIED);
    assert_ok(place_check_plain(f->plain, "object", bytes_of("trestle whole backup 1")));
    raw.data[15] = '2';
    assert_ok(place_put(f->plain, "object", buffer_bytes(&raw)));
    assert_unreadable(f->sealed, "object", STATUS_FAILED_PRECONDITION, "later release");
    assert_ok(place_put(f->plain, "object", bytes_of("not sealed, but long enough for a head")));
    assert_unreadable(f->sealed, "object", STATUS_PERMISSION_DENIED, "not encrypted");
    assert_unreadable(f->sealed, "missing", STATUS_NOT_FOUND, "");
    buffer_free(&raw);
}

/* --- what fails --- */

static void every_failure_of_the_disk_leaves_no_object(void **state)
{
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned step = 0; has_failed; step++) {
            unsigned before = fault_fs_failures(f->faults);
            assert_true(step < MOST_STEPS);
            fault_fs_fail_here(f->faults, operations[i], "/place/", FAULT_NO_SPACE, step);
            status s = place_put(f->sealed, "object", bytes_make(f->content, CONTENT));
            fault_fs_heal(f->faults);
            has_failed = fault_fs_failures(f->faults) > before;
            assert_true(has_failed != status_is_ok(s));
            status_free(s);
            if (has_failed)
                assert_unreadable(f->sealed, "object", STATUS_NOT_FOUND, "");
        }
        assert_content(f, "object", CONTENT);
        assert_ok(place_remove(f->sealed, "object"));
    }
}

static void put_and_get(void *context)
{
    struct fixture *f = context;
    struct buffer out = {0};
    status s = place_put(f->sealed, "object", bytes_make(f->content, 10));
    if (status_is_ok(s))
        s = get(f->sealed, "object", &out);
    bool has_failed = failmalloc_stop();
    assert_true(has_failed || status_is_ok(s));
    status_free(s);
    buffer_free(&out);
}

static void every_allocation_may_fail(void **state)
{
    failmalloc_each(put_and_get, *state);
}

/* --- the key's file --- */

static enum status_code read_key(const char *directory, const char *text, mode_t mode)
{
    char path[192];
    struct place_key key;
    snprintf(path, sizeof path, "%s/key", directory);
    unlink(path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    status s = place_key_read(path, &key);
    enum status_code code = s.code;
    status_free(s);
    return code;
}

#define DIGITS_16 "0123456789abcDEF"
#define DIGITS_63 DIGITS_16 DIGITS_16 DIGITS_16 "0123456789abcDE"

static void a_key_is_64_digits_that_others_cannot_read(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(read_key(f->directory, DIGITS_63 "0\n", 0600), STATUS_OK);
    assert_int_equal(read_key(f->directory, DIGITS_63 "0", 0440), STATUS_OK);
    assert_int_equal(read_key(f->directory, DIGITS_63 "0", 0644), STATUS_FAILED_PRECONDITION);
    assert_int_equal(read_key(f->directory, DIGITS_63 "0", 0660), STATUS_FAILED_PRECONDITION);
    assert_int_equal(read_key(f->directory, DIGITS_63, 0600), STATUS_INVALID_ARGUMENT);
    assert_int_equal(read_key(f->directory, DIGITS_63 "g", 0600), STATUS_INVALID_ARGUMENT);
    assert_int_equal(read_key(f->directory, DIGITS_63 "00", 0600), STATUS_INVALID_ARGUMENT);
    assert_int_equal(read_key(f->directory, "", 0600), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_size_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_of_any_size_may_be_put, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_of_it_is_to_be_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_digest_is_hidden_by_the_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_flipped_byte_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_cut_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_chunk_that_moved_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_objects_content_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_wrong_key_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_failure_of_the_disk_leaves_no_object, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_is_64_digits_that_others_cannot_read, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
