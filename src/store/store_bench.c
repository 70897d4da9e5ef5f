/* What the store costs: times, memory, descriptors. docs/internals/store.md has figures.
 *
 *     store_bench DIRECTORY STEP...
 *
 * opens the store, does the steps in their order, closes it, and prints a line for each. */
#include "store/testing/testing.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

enum { KEYSPACES = 1000, TOUCH_ROWS = 20, ROWS = 100000, LARGE = 100 << 20 };
enum { ROW_SIZE = 1000, SMALL_ROW_SIZE = 100 };
enum {
    ROWS_A_BATCH = 64,
    MANY_ROWS_A_BATCH = 6400,
    GETS = 200000,
    SCANS = 2000,
    SCAN_ROWS = 100,
    DESCRIPTORS = 1024
};

struct bench {
    struct store *store;
    struct store_batch *batch;
    uint32_t random;
    size_t row_size;       /* of write_rows */
    uint32_t rows_a_batch; /* the same */
};

/* --- what is printed --- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A line of /proc/self/status that is in kB, as MiB. */
static double memory(const char *name)
{
    char line[128];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            kilobytes = strtod(line + strlen(name), NULL);
    }
    fclose(file);
    return kilobytes / 1024;
}

static int descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 3; /* ".", "..", and the directory itself */
}

static void report(const char *step, double began, double cpu_began)
{
    fprintf(stdout,
            "%-10s %8.3f s, CPU %8.3f s, resident %6.1f MiB, peak %6.1f MiB, %4d descriptors\n",
            step, seconds(CLOCK_MONOTONIC) - began, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began,
            memory("VmRSS:"), memory("VmHWM:"), descriptors());
    fflush(stdout);
}

/* --- steps --- */

static uint32_t next_random(struct bench *b)
{
    b->random = b->random * 1664525 + 1013904223;
    return b->random >> 8;
}

/* Letters that compress to about half. */
static void fill(struct bench *b, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)('a' + next_random(b) % 16);
}

static struct keyspace *keyspace(struct bench *b, uint64_t id)
{
    struct keyspace *found = store_keyspace_find(b->store, id);
    assert_non_null(found);
    return found;
}

static void commit(struct bench *b)
{
    assert_ok(store_write(b->store, b->batch, STORE_SYNCED));
    store_batch_clear(b->batch);
}

/* Keys come in no order, but always the same for a number. */
static bytes row_key(char text[32], uint32_t row)
{
    snprintf(text, 32, "Ruser%010u", row * 2654435761u);
    return bytes_of(text);
}

static void make_keyspaces(struct bench *b)
{
    assert_ok(store_keyspaces_create(b->store, 1, KEYSPACES));
}

static void make_and_drop_one(struct bench *b)
{
    assert_ok(store_keyspaces_create(b->store, KEYSPACES + 1, 1));
    assert_ok(store_keyspace_drop(b->store, keyspace(b, KEYSPACES + 1)));
}

static void touch(struct bench *b)
{
    uint8_t row[ROW_SIZE];
    char key[32];
    for (uint32_t i = 0; i < TOUCH_ROWS * KEYSPACES; i++) {
        fill(b, row, sizeof row);
        store_batch_merge(b->batch, keyspace(b, 1 + i % KEYSPACES), row_key(key, i / KEYSPACES),
                          bytes_make(row, sizeof row));
        if (i % ROWS_A_BATCH == ROWS_A_BATCH - 1)
            commit(b);
    }
    commit(b);
}

static void make_rows_small(struct bench *b)
{
    b->row_size = SMALL_ROW_SIZE;
}

static void make_batches_large(struct bench *b)
{
    b->rows_a_batch = MANY_ROWS_A_BATCH;
}

static void write_rows(struct bench *b)
{
    uint8_t row[ROW_SIZE];
    char key[32];
    fill(b, row, b->row_size);
    for (uint32_t i = 0; i < ROWS; i++) {
        memcpy(row, &i, sizeof i);
        store_batch_merge(b->batch, keyspace(b, 1), row_key(key, i), bytes_make(row, b->row_size));
        if (i % b->rows_a_batch == b->rows_a_batch - 1)
            commit(b);
    }
    commit(b);
}

static void get_rows(struct bench *b)
{
    char key[32];
    for (uint32_t i = 0; i < GETS; i++) {
        struct store_value value;
        enum store_presence presence;
        assert_ok(store_get(keyspace(b, 1), NULL, row_key(key, next_random(b) % ROWS),
                            STORE_READ_ANY, &value, &presence));
        assert_int_equal(presence, STORE_FOUND);
        store_value_release(&value);
    }
}

static void scan_rows(struct bench *b)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    char key[32];
    for (uint32_t i = 0; i < SCANS; i++) {
        struct store_cursor *cursor;
        assert_ok(store_cursor_create(keyspace(b, 1), &options, &cursor));
        store_cursor_seek(cursor, row_key(key, next_random(b) % ROWS));
        for (int rows = 0; rows < SCAN_ROWS && store_cursor_valid(cursor); rows++)
            store_cursor_next(cursor);
        store_cursor_destroy(cursor);
    }
}

static void write_large(struct bench *b)
{
    uint8_t *value = malloc(LARGE);
    assert_non_null(value);
    fill(b, value, LARGE);
    store_batch_put(b->batch, keyspace(b, 1), bytes_of("Slarge"), bytes_make(value, LARGE));
    free(value);
    commit(b);
}

static void get_large(struct bench *b)
{
    struct store_value value;
    enum store_presence presence;
    assert_ok(
        store_get(keyspace(b, 1), NULL, bytes_of("Slarge"), STORE_READ_ANY, &value, &presence));
    assert_int_equal(value.bytes.size, LARGE);
    store_value_release(&value);
}

static void flush_all(struct bench *b)
{
    for (uint64_t id = 1; id <= KEYSPACES; id++)
        assert_ok(keyspace_flush(keyspace(b, id)));
}

static void compact_one(struct bench *b)
{
    assert_ok(keyspace_compact(keyspace(b, 1), bytes_of(""), bytes_of("")));
}

static void kill_self(struct bench *b)
{
    (void)b;
    kill(getpid(), SIGKILL);
}

static const struct {
    const char *name;
    const char *what;
    void (*run)(struct bench *b);
} steps[] = {
    {"keyspaces", "make 1,000 keyspaces", make_keyspaces},
    {"one", "make one more, and drop it", make_and_drop_one},
    {"touch", "20 rows of 1,000 bytes into each keyspace", touch},
    {"small", "rows of 100 bytes from here on", make_rows_small},
    {"many", "6,400 rows a sync from here on", make_batches_large},
    {"rows", "100,000 rows of 1,000 bytes into one, 64 a sync", write_rows},
    {"get", "200,000 rows by key", get_rows},
    {"scan", "2,000 times 100 rows", scan_rows},
    {"large", "write a value of 100 MiB", write_large},
    {"getlarge", "read it", get_large},
    {"flush", "write all buffers to tables", flush_all},
    {"compact", "compact the one with the rows", compact_one},
    {"kill", "kill this process", kill_self},
};

static int usage(void)
{
    fprintf(stderr, "usage: store_bench DIRECTORY STEP...\n");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        fprintf(stderr, "  %-10s %s\n", steps[i].name, steps[i].what);
    return 2;
}

static bool run_step(struct bench *b, const char *name)
{
    double began = seconds(CLOCK_MONOTONIC), cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strcmp(name, steps[i].name) == 0) {
            steps[i].run(b);
            report(name, began, cpu_began);
            return true;
        }
    }
    return false;
}

int main(int count, char **arguments)
{
    if (count < 2)
        return usage();
    const struct rlimit limit = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct store_options options = test_options(arguments[1]);
    options.cache_bytes = 256 << 20;
    options.write_buffer_bytes = 128 << 20;
    options.open_files = 500;

    struct bench b = {
        .batch = store_batch_create(), .row_size = ROW_SIZE, .rows_a_batch = ROWS_A_BATCH};
    assert_non_null(b.batch);
    double began = seconds(CLOCK_MONOTONIC), cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    assert_ok(store_open(&options, &b.store));
    report("open", began, cpu_began);
    for (int i = 2; i < count; i++) {
        if (!run_step(&b, arguments[i]))
            return usage();
    }
    store_batch_destroy(b.batch);
    began = seconds(CLOCK_MONOTONIC);
    cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    store_close(b.store);
    report("close", began, cpu_began);
    return 0;
}
