/* What a large cell had replaced was there again when the large cell was given up.
 *
 * A small cell is in its row's record, a large one in a record of its own, also if it is written to
 * the same place: then the record still has the small one, which no reader sees. A repair of a
 * block of large cells deleted those and nothing else. So what had been overwritten was read as
 * what is, without --accept-old-data: `./dev crash damage` found it.
 *
 * Here: rows have a small cell, then a large one in its place, and then some a small one again. A
 * block of large cells is damaged, and repaired. */
#include "cluster/testing/steps_testing.h"

#include <dirent.h>
#include <fcntl.h>

enum { ROWS = 120, LARGE = 1000, FLIPPED = 16 };

static void key_of(char key[8], unsigned i)
{
    snprintf(key, 8, "k%04u", i);
}

/* Nothing that is compressed away. */
static void large_value(char value[LARGE + 1], unsigned i)
{
    uint64_t state = i * 7919 + 1;
    for (size_t at = 0; at < LARGE; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[at] = (char)('a' + (state >> 33) % 26);
    }
    value[LARGE] = '\0';
}

static bool is_small_again(unsigned i)
{
    return i % 3 == 0;
}

static void fill(struct cluster_fixture *f)
{
    char key[8], value[LARGE + 1];
    for (unsigned i = 0; i < ROWS; i++) {
        key_of(key, i);
        large_value(value, i);
        set_cell(f, key, "replaced");
        set_cell(f, key, value);
        if (is_small_again(i))
            set_cell(f, key, "small");
    }
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
}

/* The largest table file, in its middle: the large cells are its most part. */
static void flip(const char *directory)
{
    char path[512], piece[FLIPPED];
    off_t largest = 0;
    DIR *names = opendir(directory);
    assert_non_null(names);
    for (const struct dirent *at; (at = readdir(names)) != NULL;) {
        char each[512];
        struct stat info;
        snprintf(each, sizeof each, "%s/%s", directory, at->d_name);
        if (strstr(at->d_name, ".sst") == NULL || stat(each, &info) != 0 || info.st_size < largest)
            continue;
        largest = info.st_size;
        snprintf(path, sizeof path, "%s", each);
    }
    closedir(names);
    assert_true(largest > ROWS / 2 * LARGE);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, piece, FLIPPED, largest / 2), FLIPPED);
    for (size_t i = 0; i < FLIPPED; i++)
        piece[i] = (char)~piece[i];
    assert_int_equal(pwrite(fd, piece, FLIPPED, largest / 2), FLIPPED);
    assert_int_equal(close(fd), 0);
}

static status count_lost(void *context, const struct lost_rows *lost)
{
    unsigned *count = context;
    assert_true(lost->is_large_cells);
    ++*count;
    return status_ok();
}

/* Whether the row is gone; else it is what was written last. */
static bool is_gone(struct cluster_fixture *f, unsigned i)
{
    char key[8], value[LARGE + 1], right[LARGE + 16];
    struct buffer text = {0};
    key_of(key, i);
    large_value(value, i);
    snprintf(right, sizeof right, "%s=%s", key, is_small_again(i) ? "small" : value);
    struct key_range range = {.from = bytes_of(key), .to = bytes_make(key, strlen(key) + 1)};
    assert_ok(scan_text(f, &range, 1, false, 0, &text));
    bool gone = text.size <= 1;
    if (!gone)
        assert_string_equal((const char *)text.data, right);
    buffer_free(&text);
    return gone;
}

static void what_was_replaced_does_not_come_back(void **state)
{
    struct cluster_fixture f;
    unsigned lost = 0, gone = 0;
    (void)state;
    make_steps_fixture(&f);
    open_test_cluster(&f);
    f.table = create_test_table(f.cluster, NULL);
    fill(&f);
    table_release(f.table);
    close_test_cluster(&f);
    flip(f.directory);
    open_test_cluster(&f);
    assert_ok(cluster_table(f.cluster, bytes_of(TEST_TABLE), &f.table));
    assert_ok(cluster_look_for_damage(f.cluster));
    const struct table_repair_options options = {.lost = count_lost, .context = &lost};
    assert_ok(table_repair(f.table, &options));
    for (unsigned i = 0; i < ROWS; i++) {
        bool is_row_gone = is_gone(&f, i);
        assert_false(is_row_gone && is_small_again(i));
        gone += is_row_gone;
    }
    assert_int_equal(lost, 1);
    assert_in_range(gone, 1, ROWS / 2);
    table_release(f.table);
    close_test_cluster(&f);
    free_steps_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_replaced_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
