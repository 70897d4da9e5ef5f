/* What the tests of log_ends.h share: a store on a file system that fails, and copies of its
 * directory. A kill, or a power cut, is a copy of the directory as it leaves it. */
#ifndef TRESTLE_STORE_TESTING_LOG_ENDS_TESTING_H
#define TRESTLE_STORE_TESTING_LOG_ENDS_TESTING_H

#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <glob.h>
#include <limits.h>
#include <poll.h>

enum { ALL = INT_MAX, WAITS = 3000 /* of 10 ms: half a minute means never */ };

struct fixture {
    char *directory;
    char *copy;
    struct store_options options;
    struct store_options of_copy;
    struct fault_fs *fs;
    struct store *store;
    struct keyspace *keyspace; /* id 7 */
    struct store *other;       /* opened on the copy */
};

static inline void open_store(struct fixture *f)
{
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    f->keyspace = store_keyspace_find(f->store, 7);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    f->copy = make_directory();
    f->fs = fault_fs_create();
    f->options = test_options(f->directory);
    f->of_copy = test_options(f->copy);
    open_store(f);
    f->keyspace = make_keyspace(f->store, 7);
    keyspace_set_name(f->keyspace, "the table");
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->other != NULL)
        store_close(f->other);
    if (f->store != NULL)
        store_close(f->store);
    fault_fs_destroy(f->fs);
    remove_directory(f->directory);
    remove_directory(f->copy);
    free(f);
    return 0;
}

/* --- what happens to a store --- */

static inline void stop(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

static inline void clear_copy(struct fixture *f)
{
    remove_directory(f->copy);
    f->copy = make_directory();
    f->of_copy.directory = f->copy;
}

/* The copy is what a power cut leaves now, with so many bytes of each file that were not synced;
 * all of them: what a kill leaves. */
static inline void cut_power(struct fixture *f, size_t torn)
{
    clear_copy(f);
    fault_fs_cut_power(f->fs, f->directory, f->copy, torn);
}

/* Nothing more of it is recorded from now on. */
static inline void stop_recording(struct fixture *f)
{
    fault_fs_fail(f->fs, FAULT_SYNC, "SYNCED", FAULT_IO, 0);
}

static inline status open_copy(struct fixture *f)
{
    return store_open(&f->of_copy, &f->other);
}

static inline void close_copy(struct fixture *f)
{
    store_close(f->other);
    f->other = NULL;
}

/* Opens it with that verdict, and leaves it open. */
static inline void expect(struct fixture *f, enum store_log_verdict verdict)
{
    status s = open_copy(f);
    assert_string_equal(status_message(s), "");
    assert_ok(s);
    assert_int_equal(store_log_end(f->other).verdict, verdict);
}

static inline void expect_loss(struct fixture *f, const char *words)
{
    for (int read_only = 0; read_only < 2; read_only++) {
        f->of_copy.read_only = read_only != 0;
        status s = open_copy(f);
        assert_non_null(strstr(status_message(s), words));
        assert_status(s, STATUS_DATA_LOSS);
    }
    f->of_copy.read_only = false;
}

static inline struct keyspace *of_copy(struct fixture *f)
{
    return store_keyspace_find(f->other, 7);
}

/* --- what happens to files of the copy --- */

/* The only log, or the newest; the caller frees it. */
static inline char *newest_log(struct fixture *f)
{
    char pattern[PATH_MAX];
    glob_t logs;
    snprintf(pattern, sizeof pattern, "%s/*.log", f->copy);
    assert_int_equal(glob(pattern, 0, NULL, &logs), 0);
    char *name = strdup(logs.gl_pathv[logs.gl_pathc - 1]);
    assert_non_null(name);
    globfree(&logs);
    return name;
}

static inline char *path_in_copy(struct fixture *f, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", f->copy, name) > 0);
    return path;
}

static inline off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Flips `size` bytes; an offset below 0 is from the end. Frees the path, as the next two do. */
static inline void flip(char *path, long offset, size_t size)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        long at = (offset < 0 ? (long)size_of(path) : 0) + offset + (long)i;
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte ^ 0x55, file), byte ^ 0x55);
    }
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void cut(char *path, off_t bytes)
{
    assert_int_equal(truncate(path, size_of(path) - bytes), 0);
    free(path);
}

static inline void take_away(char *path)
{
    assert_int_equal(unlink(path), 0);
    free(path);
}

static inline void write_text(char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void assert_format(struct fixture *f, const char *expected)
{
    char text[64] = "";
    char *path = path_in_copy(f, "FORMAT");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_int_equal(fclose(file), 0);
    free(path);
    assert_string_equal(text, expected);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
