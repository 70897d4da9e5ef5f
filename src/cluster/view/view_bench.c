/* What a view costs below its program: a write to its source beside one to a table without a view
 * and one with a change stream, what reading the feed costs, and a commit of rows and records. CPU
 * time of the process for each. Not a test: build/src/cluster/view_bench. */
#include "cluster/testing/stream_testing.h"
#include "cluster/testing/view_testing.h"

#include <sys/resource.h>

enum {
    WRITES = 200000,
    AT_ONCE = 64, /* that are under way together, as of so many clients */
    COMMITS = 400,
    ROWS = 300, /* of a commit of a view, as the next */
    RECORDS = 1000,
    TURNS = 5,
};

static double cpu_us(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* --- writes to a source --- */

static void write_lot(struct cluster_fixture *f, unsigned first)
{
    struct test_write writes[AT_ONCE];
    char names[AT_ONCE][24];
    struct event event;
    event_init(&event);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        snprintf(names[i], sizeof names[i], "user%012llu",
                 (unsigned long long)(first + i) * 7919 % WRITES);
        post_write(f, &writes[i], bytes_of(names[i]),
                   setting(f, FAMILY_F, "field0", 1, "a value of a hundred bytes or somewhat less"),
                   &event);
    }
    assert_ok(event_wait(&event, AT_ONCE));
    arena_reset(f->arena);
}

static double write_all(struct cluster_fixture *f)
{
    double before_us = cpu_us();
    for (unsigned i = 0; i < WRITES; i += AT_ONCE)
        write_lot(f, i);
    return (cpu_us() - before_us) / WRITES;
}

static status count_change(void *context, const struct view_change *change, bool *enough)
{
    (void)change, (void)enough;
    ++*(uint64_t *)context;
    return status_ok();
}

static void read_feed(struct cluster_fixture *f, struct stream_position at)
{
    uint64_t count = 0;
    bool is_end = false;
    double before_us = cpu_us();
    while (!is_end)
        assert_ok(view_feed_read(f->table, at, 1 << 20, count_change, &count, &at, &is_end));
    print_message("# feed: %.3f us for each of %llu changes\n",
                  (cpu_us() - before_us) / (double)count, (unsigned long long)count);
}

enum variant { PLAIN, VIEWED, STREAMED, VARIANTS };

/* Each with a table of its own. */
static double bench_variant(enum variant variant, bool reads)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    struct stream_position at;
    struct table *view = variant == VIEWED ? create_view(f, TEST_VIEW) : NULL;
    if (variant == STREAMED)
        switch_stream(f, RETENTION_US);
    assert_ok(view_feed_end(f->table, &at));
    double us = write_all(f);
    if (reads)
        read_feed(f, at);
    if (view != NULL)
        table_release(view);
    cluster_fixture_destroy(f);
    return us;
}

static void bench_writes(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        double us[VARIANTS];
        for (enum variant i = PLAIN; i < VARIANTS; i++)
            us[i] = bench_variant(i, i == VIEWED && turn == 0);
        print_message("# a write: %.2f us, viewed %.2f, with a change stream %.2f\n", us[PLAIN],
                      us[VIEWED], us[STREAMED]);
    }
}

/* --- commits of a view --- */

static void commit_lot(struct cluster_fixture *f, struct table *view, unsigned number)
{
    struct view_commit *commit;
    char key[24], value[100];
    memset(value, 'v', sizeof value);
    assert_ok(view_commit_begin(view, NULL, &commit));
    for (unsigned i = 0; i < ROWS; i++) {
        struct row_change *change = row_change_create(f->arena);
        snprintf(key, sizeof key, "row%09llu",
                 (unsigned long long)(number * ROWS + i) * 7919 % (COMMITS * ROWS / 4));
        row_change_delete_row(change);
        row_change_set(change, FAMILY_DEFAULT, bytes_of(""), 0, bytes_of(""));
        row_change_set(change, FAMILY_DEFAULT, bytes_of("count"), 0, bytes_make(value, 8));
        view_commit_row(commit, bytes_of(key), change);
    }
    for (unsigned i = 0; i < RECORDS; i++) {
        snprintf(key, sizeof key, "C%012llu",
                 (unsigned long long)(number * RECORDS + i) * 7919 % (COMMITS * RECORDS / 4));
        view_commit_put(commit, bytes_of(key), bytes_make(value, 60));
    }
    assert_ok(view_commit_write(commit, NULL));
    arena_reset(f->arena);
}

static void bench_commits(void)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    struct table *view = create_view(f, TEST_VIEW);
    for (int turn = 0; turn < TURNS; turn++) {
        double before_us = cpu_us();
        for (unsigned i = 0; i < COMMITS; i++)
            commit_lot(f, view, i);
        print_message("# a commit of %d rows and %d records: %.0f us\n", ROWS, RECORDS,
                      (cpu_us() - before_us) / COMMITS);
    }
    table_release(view);
    cluster_fixture_destroy(f);
}

int main(void)
{
    bench_writes();
    bench_commits();
    return 0;
}
