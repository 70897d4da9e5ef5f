/* What tests of repairs share: a table with a damaged file. Included by one file of a test program.
 */
#ifndef TRESTLE_CLUSTER_TESTING_DAMAGED_TESTING_H
#define TRESTLE_CLUSTER_TESTING_DAMAGED_TESTING_H

#include "cluster/testing/steps_testing.h"

#include <dirent.h>
#include <fcntl.h>

enum { ROWS = 240, VALUE = 150, FLIPPED_AT = 20000, FLIPPED = 16 };

/* --- a directory with damage --- */

static inline void key_of(char key[8], unsigned i)
{
    snprintf(key, 8, "k%04u", i);
}

/* Nothing that is compressed away. */
static inline void value_of(char value[VALUE + 1], unsigned i)
{
    uint64_t state = i * 7919 + 1;
    for (size_t at = 0; at < VALUE; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[at] = (char)('a' + (state >> 33) % 26);
    }
    value[VALUE] = '\0';
}

static inline void begin_life(struct cluster_fixture *f)
{
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
}

static inline void end_life(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
}

/* The largest: the catalog's are small. */
static inline off_t find_table_file(const char *directory, char path[512])
{
    off_t largest = 0;
    DIR *names = opendir(directory);
    assert_non_null(names);
    for (const struct dirent *at; (at = readdir(names)) != NULL;) {
        char each[512];
        struct stat info;
        snprintf(each, sizeof each, "%s/%s", directory, at->d_name);
        bool is_table =
            strlen(at->d_name) > 4 && strcmp(at->d_name + strlen(at->d_name) - 4, ".sst") == 0;
        if (!is_table || stat(each, &info) != 0 || info.st_size <= largest)
            continue;
        largest = info.st_size;
        snprintf(path, 512, "%s", each);
    }
    closedir(names);
    assert_true(largest > FLIPPED_AT + FLIPPED);
    return largest;
}

static inline void flip_at(const char *path, off_t at)
{
    char piece[FLIPPED];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, piece, FLIPPED, at), FLIPPED);
    for (size_t i = 0; i < FLIPPED; i++)
        piece[i] = (char)~piece[i];
    assert_int_equal(pwrite(fd, piece, FLIPPED, at), FLIPPED);
    assert_int_equal(close(fd), 0);
}

static inline void flip(const char *directory)
{
    char path[512];
    find_table_file(directory, path);
    flip_at(path, FLIPPED_AT);
}

/* --- what is so --- */

/* The rows that were hit: [from, to). */
struct hit {
    char from[32];
    size_t from_size;
    char to[32];
    size_t to_size;
    unsigned count;
};

static inline status take_hit(void *context, const struct lost_rows *lost)
{
    struct hit *hit = context;
    assert_true(lost->from.size < 32 && lost->to.size < 32 && lost->to.size > 0);
    memcpy(hit->from, lost->from.data, lost->from.size);
    memcpy(hit->to, lost->to.data, lost->to.size);
    hit->from_size = lost->from.size;
    hit->to_size = lost->to.size;
    hit->count++;
    return status_ok();
}

static inline bool was_hit(const struct hit *hit, const char *key)
{
    return bytes_compare(bytes_of(key), bytes_make(hit->from, hit->from_size)) >= 0 &&
           bytes_compare(bytes_of(key), bytes_make(hit->to, hit->to_size)) < 0;
}

/* "k0001=…", or "" if it is not there; false if it is out of service. */
static inline bool read_one(struct cluster_fixture *f, const char *key, struct buffer *text)
{
    struct key_range range = {.from = bytes_of(key), .to = bytes_make(key, strlen(key) + 1)};
    status s = scan_text(f, &range, 1, false, 0, text);
    bool is_in_service = status_is_ok(s);
    if (!is_in_service)
        assert_int_equal(s.code, STATUS_DATA_LOSS);
    status_free(s);
    return is_in_service;
}

static inline void find_hit(struct cluster_fixture *f, struct hit *hit)
{
    *hit = (struct hit){.count = 0};
    assert_ok(cluster_look_for_damage(f->cluster));
    assert_ok(cluster_list_damage(f->cluster, take_hit, hit));
    assert_int_equal(hit->count, 1);
}

static inline void begin_without_damage(struct cluster_fixture *f)
{
    struct hit left = {.count = 0};
    begin_life(f);
    assert_ok(cluster_look_for_damage(f->cluster));
    assert_ok(cluster_list_damage(f->cluster, take_hit, &left));
    assert_int_equal(left.count, 0);
}

static inline status ignore_lost(void *context, const struct lost_rows *lost)
{
    (void)context, (void)lost;
    return status_ok();
}

#endif
