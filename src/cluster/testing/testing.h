/* What the tests of cluster/ share: a cluster in a directory of its own, a loop on a thread, and
 * requests that a test waits for. */
#ifndef TRESTLE_CLUSTER_TESTING_TESTING_H
#define TRESTLE_CLUSTER_TESTING_TESTING_H

#include "base/testing/testing.h"
#include "cluster/cluster_private.h"
#include "cluster/reshape.h"
#include "cluster/rows.h"
#include "os/thread.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAMILY_F = 1, FAMILY_G = 2, FAMILY_SUM = 3 };

struct cluster_fixture {
    char directory[64];
    struct log log;
    struct cluster_options options;
    struct pool *pool;
    struct cluster *cluster;
    struct table *table; /* f and g plain, sum adds up */
    struct loop *loop;
    pthread_t loop_thread;
    struct arena *arena; /* for changes */
};

static const char TEST_TABLE[] = "projects/p/instances/i/tables/t";

static inline struct cluster_options test_cluster_options(const char *directory)
{
    return (struct cluster_options){.data_directory = directory,
                                    .clock = clock_system(),
                                    .durability = STORE_ASYNC, /* survives a kill */
                                    .cache_bytes = 8 << 20,
                                    .write_buffer_bytes = 8 << 20,
                                    .open_files = 64,
                                    .background_threads = 2,
                                    .overflow_bytes = 256,
                                    .split_bytes = 1 << 30,
                                    .split_rows_per_second = 1000000000,
                                    .merge_after_us = INT64_C(3600) * 1000000,
                                    .gc_on_read = true,
                                    .gc_interval_us = INT64_C(3600) * 1000000,
                                    .heat = true,
                                    .heat_window_us = INT64_C(3600) * 1000000};
}

static inline struct table *create_split_test_table(struct cluster *cluster,
                                                    const struct gc_rule *gc,
                                                    const bytes *split_keys, size_t split_count)
{
    const struct family families[] = {
        {.id = FAMILY_F, .name = bytes_of("f"), .gc = gc},
        {.id = FAMILY_G, .name = bytes_of("g")},
        {.id = FAMILY_SUM, .name = bytes_of("sum"), .aggregate = AGGREGATE_SUM},
    };
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 4, &schema));
    struct table_spec spec = {
        .name = TEST_TABLE, .schema = schema, .split_keys = split_keys, .split_count = split_count};
    assert_ok(cluster_create_table(cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static inline struct table *create_test_table(struct cluster *cluster, const struct gc_rule *gc)
{
    return create_split_test_table(cluster, gc, NULL, 0);
}

static inline void *run_test_loop(void *argument)
{
    loop_run(argument);
    return NULL;
}

static inline void open_test_cluster(struct cluster_fixture *f)
{
    assert_ok(cluster_open(&f->options, &f->cluster));
    assert_ok(loop_create(clock_system(), &f->loop));
    assert_ok(thread_start(&f->loop_thread, "loop", run_test_loop, f->loop));
}

static inline void close_test_cluster(struct cluster_fixture *f)
{
    loop_stop(f->loop);
    assert_int_equal(pthread_join(f->loop_thread, NULL), 0);
    cluster_close(f->cluster);
    loop_destroy(f->loop); /* the commit thread may just be leaving loop_post_list */
}

/* Neither open yet, nor with a table. */
static inline struct cluster_fixture *cluster_fixture_create_at(const char *directory)
{
    struct cluster_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "%s", directory);
    f->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    f->arena = arena_create(SIZE_MAX / 2);
    assert_ok(pool_create(2, 64, "test", &f->pool));
    f->options = test_cluster_options(f->directory);
    f->options.log = &f->log;
    f->options.pool = f->pool;
    return f;
}

/* `shards`: as in the options. */
static inline struct cluster_fixture *cluster_fixture_create_in(const struct gc_rule *gc,
                                                                unsigned shards)
{
    char directory[] = "/tmp/trestle-cluster-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct cluster_fixture *f = cluster_fixture_create_at(directory);
    f->options.shards = shards;
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, gc);
    return f;
}

static inline struct cluster_fixture *cluster_fixture_create(const struct gc_rule *gc)
{
    return cluster_fixture_create_in(gc, 0);
}

static inline void reopen_test_cluster(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
}

static inline int remove_test_entry(const char *path, const struct stat *info, int type,
                                    struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

static inline void remove_test_directory(const char *directory)
{
    assert_int_equal(nftw(directory, remove_test_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void cluster_fixture_destroy(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
    pool_destroy(f->pool);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
    free(f);
}

/* Of tests: `*state` is a fixture, whose metrics are the test's own. */
static inline int cluster_fixture_teardown(void **state)
{
    struct metrics *metrics = ((struct cluster_fixture *)*state)->options.metrics;
    cluster_fixture_destroy(*state);
    metrics_destroy(metrics);
    return 0;
}

/* --- something that a test waits for --- */

struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count;
    status result; /* the last that was not OK */
};

static inline void event_init(struct event *event)
{
    *event = (struct event){.count = 0};
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
}

static inline void event_add(struct event *event, status s)
{
    pthread_mutex_lock(&event->lock);
    event->count++;
    if (status_is_ok(event->result))
        event->result = s;
    else
        status_free(s);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

/* Waits for so many in all; returns what went wrong. */
static inline status event_wait(struct event *event, unsigned count)
{
    pthread_mutex_lock(&event->lock);
    while (event->count < count)
        pthread_cond_wait(&event->changed, &event->lock);
    status result = event->result;
    event->result = status_ok();
    pthread_mutex_unlock(&event->lock);
    return result;
}

/* --- writes: begun on the loop, as the services do --- */

struct test_write {
    struct row_write write;
    struct task start;
    struct event *event;
};

static inline void test_write_done(struct row_write *write, status result)
{
    event_add(((struct test_write *)(void *)write)->event, result);
}

static inline void test_write_start(struct task *task)
{
    rows_write(&LIST_ENTRY(&task->link, struct test_write, start.link)->write);
}

static inline void make_write(struct cluster_fixture *f, struct test_write *write, bytes row_key,
                              struct row_change *change, struct event *event)
{
    *write = (struct test_write){
        .write = {.table = f->table, .row_key = row_key, .loop = f->loop, .done = test_write_done},
        .start = {.run = test_write_start},
        .event = event};
    assert_non_null(change);
    assert_ok(row_change_pack(change, rows_big_value(f->table), &write->write.change));
}

static inline void post_write(struct cluster_fixture *f, struct test_write *write, bytes row_key,
                              struct row_change *change, struct event *event)
{
    make_write(f, write, row_key, change, event);
    loop_post(f->loop, &write->start);
}

static inline status try_write(struct cluster_fixture *f, const char *row_key,
                               struct row_change *change)
{
    struct test_write write;
    struct event event;
    event_init(&event);
    post_write(f, &write, bytes_of(row_key), change, &event);
    return event_wait(&event, 1);
}

static inline struct row_change *setting(struct cluster_fixture *f, uint32_t family,
                                         const char *qualifier, int64_t timestamp_us,
                                         const char *value)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_set(change, family, bytes_of(qualifier), timestamp_us, bytes_of(value));
    return change;
}

static inline void set_cell(struct cluster_fixture *f, const char *row_key, const char *value)
{
    assert_ok(try_write(f, row_key, setting(f, FAMILY_F, "q", 1, value)));
}

/* --- scans --- */

/* Key and first value of each row, "a=1 b=2"; a '!' for a row that is too large. The caller frees
 * `out`. */
static inline status scan_text(struct cluster_fixture *f, const struct key_range *ranges,
                               size_t range_count, bool reversed, unsigned pause_every,
                               struct buffer *out)
{
    struct arena *arena = arena_create(1 << 20);
    struct scan_spec spec = {.table = f->table,
                             .ranges = ranges,
                             .range_count = range_count,
                             .reversed = reversed,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    enum row_outcome outcome = ROW_ABSENT;
    assert_non_null(arena);
    assert_ok(scan_create(&spec, &scan));
    status s = status_ok();
    enum store_read_tier read_tier = STORE_READ_CACHED;
    for (unsigned calls = 1; status_is_ok(s) && outcome != ROW_END; calls++) {
        struct scan_row row;
        s = scan_next(scan, read_tier, &row, &outcome);
        read_tier = STORE_READ_CACHED;
        if (status_is_ok(s) && outcome == ROW_NOT_CACHED)
            read_tier = STORE_READ_ANY;
        if (status_is_ok(s) && (outcome == ROW_FOUND || outcome == ROW_TOO_LARGE)) {
            buffer_append_bytes(out, bytes_of(out->size == 0 ? "" : " "));
            buffer_append_bytes(out, row.key);
            buffer_append_byte(out, outcome == ROW_FOUND ? '=' : '!');
        }
        if (status_is_ok(s) && outcome == ROW_FOUND)
            buffer_append_bytes(out, row.cells->items[0].value);
        if (pause_every > 0 && calls % pause_every == 0)
            scan_pause(scan);
    }
    buffer_append_byte(out, 0);
    scan_destroy(scan);
    arena_destroy(arena);
    return s;
}

static inline void assert_scan(struct cluster_fixture *f, const char *from, const char *to,
                               bool reversed, const char *expected)
{
    struct key_range range = {.from = bytes_of(from), .to = bytes_of(to)};
    for (unsigned pause_every = 0; pause_every < 3; pause_every++) {
        struct buffer text = {0};
        assert_ok(scan_text(f, &range, 1, reversed, pause_every, &text));
        assert_string_equal((const char *)text.data, expected);
        buffer_free(&text);
    }
}

/* --- tablets --- */

/* Splits the tablet that holds the key there; nothing if it begins there. */
static inline void split_at(struct cluster_fixture *f, const char *key)
{
    struct tablet *tablet = table_route(f->table, bytes_of(key));
    if (!bytes_equal(tablet->start, bytes_of(key)))
        assert_ok(reshape_split(f->table, tablet, bytes_of(key)));
    tablet_release(tablet);
}

/* Merges the tablet that begins with the key with the one before it. */
static inline void merge_at(struct cluster_fixture *f, const char *key)
{
    struct tablet *right = table_route(f->table, bytes_of(key));
    struct tablet *left = table_route_before(f->table, right->start);
    assert_ok(reshape_merge(f->table, left, right));
    tablet_release(left);
    tablet_release(right);
}

/* How much a test of random histories does. */
struct test_run {
    unsigned rounds;  /* histories, or lives of a server */
    unsigned changes; /* of each, about */
    uint64_t seed;
};

/* `*run` is a share of it, for every run of the tests. It becomes `full` with TRESTLE_LONG=all
 * (./dev test --long), and what the command line says, in the order of the members. */
static inline void take_test_run(struct test_run *run, struct test_run full, int argc, char **argv)
{
    const char *asked = getenv("TRESTLE_LONG");
    if (asked != NULL && strcmp(asked, "all") == 0)
        *run = full;
    if (argc > 1)
        run->rounds = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        run->changes = (unsigned)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        run->seed = strtoull(argv[3], NULL, 10);
}

#endif
