/* What upkeep of a view costs in its program: nanoseconds of one thread for a source row of ten
 * cells of 100 bytes and a sum.
 *
 *     ninja -C build src/sql/view_bench && build/src/sql/view_bench
 *
 * `run`: the row evaluated to its contribution. `fold`: its group read from a record, what the row
 * gave before taken back and what it gives now added, settled, made a view row, and written; the
 * entries go nowhere. For an index: the view row made. Each figure is the best of several rounds;
 * nothing is asserted. */
#include "base/check.h"
#include "row/hll.h"
#include "sql/testing/view_double.h"

#include <stdio.h>
#include <time.h>

enum { ROWS = 2000, CELLS = 10, VALUE_SIZE = 100, ROUNDS = 15, ARENA = 16 << 20 };

struct bench {
    struct view_double view;
    struct arena *arena;
    struct buffer record;
    bool folds;
    bool finishes; /* else the group is read and folded only once for all: a hot group */
    struct view_group *hot;
    uint64_t made; /* so that it is made */
};

static void need(status s)
{
    if (!status_is_ok(s))
        fprintf(stderr, "%s\n", status_message(s));
    CHECK(status_is_ok(s));
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void fill(struct bench *bench)
{
    char key[32], qualifier[8], value[VALUE_SIZE + 1];
    memset(value, 'v', sizeof value);
    value[VALUE_SIZE] = '\0';
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "user%06d#%04d", i, i * 7 % 1000);
        for (int k = 0; k < CELLS; k++) {
            snprintf(qualifier, sizeof qualifier, "c%d", k);
            snprintf(value, 16, "%014d", i * 31 + k);
            value[14] = 'v';
            view_double_put(&bench->view, bytes_of(key), "f", qualifier, 1000, bytes_of(value));
        }
        view_double_put_number(&bench->view, bytes_of(key), "n", i);
    }
}

/* --- entries that go nowhere --- */

static status put(void *context, bytes entry, bytes value)
{
    *(uint64_t *)context += entry.size + value.size;
    return status_ok();
}

static status take(void *context, bytes entry)
{
    *(uint64_t *)context += entry.size;
    return status_ok();
}

static status find(void *context, bytes prefix, bytes from, bool is_last, bytes *entry,
                   bytes *value, bool *found)
{
    (void)context, (void)prefix, (void)from, (void)is_last, (void)entry, (void)value;
    *found = false;
    return status_ok();
}

static void fold_part(struct bench *bench, const struct view_part *part, bytes source_key)
{
    const struct view_entries entries = {&bench->made, put, take, find};
    struct view_group *group = bench->hot;
    struct view_row row;
    const char *why;
    if (bench->finishes)
        need(view_group_read(bench->view.program, buffer_bytes(&bench->record), bench->arena,
                             &group));
    need(view_group_fold(group, part->body, source_key, true, &entries));
    need(view_group_fold(group, part->body, source_key, false, &entries));
    if (!bench->finishes)
        return;
    need(view_group_settle(group, &entries));
    need(view_group_row(bench->view.runner, group, part->id, bench->arena, &row, &why));
    bench->made += row.cell_count;
    struct buffer record = {0};
    need(view_group_write(group, &record));
    bench->made += record.size;
    buffer_free(&record);
}

static status visit(void *context, bytes source_key, enum view_outcome outcome, bytes contribution,
                    const char *why)
{
    struct bench *bench = context;
    struct view_part part;
    struct view_row row;
    bool found;
    CHECK(outcome == VIEW_ROW_IN && why == NULL);
    bench->made += contribution.size;
    for (found = bench->folds; found;) {
        need(view_contribution_next(&contribution, &part, &found));
        if (found && view_program_form(bench->view.program) == VIEW_GROUPS)
            fold_part(bench, &part, source_key);
        else if (found)
            need(view_index_row(bench->view.program, &part, bench->arena, &row));
    }
    arena_reset(bench->arena);
    return status_ok();
}

static status open_all(void *context, const struct sql_scan_spec *spec, struct arena *arena,
                       struct sql_scan **out)
{
    static const struct sql_key_range all[1];
    struct bench *bench = context;
    struct sql_scan_spec *own = arena_alloc(arena, sizeof *own);
    CHECK(own != NULL);
    *own = *spec;
    own->ranges = all;
    own->range_count = 1;
    *out = cell_table_scan(&bench->view.source, own, arena);
    return status_ok();
}

static double measure(struct bench *bench, bool folds, bool finishes)
{
    const struct view_source source = {bench, open_all};
    double best = 0;
    bench->folds = folds;
    bench->finishes = finishes;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        need(view_runner_run(bench->view.runner, &source, visit, bench));
        double taken = (now_ns() - begin) / ROWS;
        best = round == 0 || taken < best ? taken : best;
    }
    return best;
}

/* The scan of the table in memory: to be taken off. */
static double measure_scan(struct bench *bench)
{
    struct sql_scan_spec spec = {.to_us = INT64_MAX, .cells_per_column = 1};
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct arena *arena = arena_create(ARENA);
        struct sql_scan *scan;
        struct sql_scan_row row;
        bool found = true;
        double begin = now_ns();
        need(open_all(bench, &spec, arena, &scan));
        while (found)
            need(scan->next(scan, &row, &found));
        double taken = (now_ns() - begin) / ROWS;
        best = round == 0 || taken < best ? taken : best;
        arena_destroy(arena);
    }
    return best;
}

static void bench_query(const char *name, const char *query)
{
    struct bench bench = {.arena = arena_create(ARENA)};
    struct arena *arena = arena_create(ARENA);
    CHECK(bench.arena != NULL && arena != NULL);
    need(view_double_init(&bench.view, query));
    fill(&bench);
    double scan = measure_scan(&bench);
    double run = measure(&bench, false, false);
    double fold = measure(&bench, true, true);
    fprintf(stdout, "%-10s scan in memory %5.0f   run %5.0f   fold %5.0f", name, scan, run - scan,
            fold - run);
    if (view_program_form(bench.view.program) == VIEW_GROUPS) {
        need(view_group_read(bench.view.program, bytes_make(NULL, 0), arena, &bench.hot));
        fprintf(stdout, "   hot fold %5.0f", measure(&bench, true, false) - run);
    }
    fprintf(stdout, "   ns a row\n");
    view_double_free(&bench.view);
    arena_destroy(arena);
    arena_destroy(bench.arena);
}

/* A group of many sketches of ten numbers each: one row is taken back, and comes again. */
static void bench_union(void)
{
    enum { SKETCHES = 20000, NUMBERS = 10, TIMES = 20 };
    struct view_double view;
    char name[16];
    need(view_double_init(&view, "SELECT '*' AS _key, HLL_COUNT.MERGE(f['h']) AS n FROM t GROUP BY "
                                 "_key"));
    for (int i = 0; i < SKETCHES; i++) {
        struct hll_sketch sketch = {0};
        struct buffer written = {0};
        hll_sketch_begin(&sketch, HLL_INT64, HLL_PRECISION, HLL_SPARSE_PRECISION);
        for (int k = 0; k < NUMBERS; k++)
            CHECK(hll_sketch_add(&sketch, hll_hash_int64(i * 7 + k)));
        CHECK(hll_sketch_write(&sketch, &written));
        bytes key = bytes_make(name, (size_t)snprintf(name, sizeof name, "r%07d", i));
        view_double_put(&view, key, "f", "h", 0, buffer_bytes(&written));
        hll_sketch_free(&sketch);
        buffer_free(&written);
    }
    const bytes first = bytes_of("r0000000");
    for (size_t i = 0; i < view.source.count; i++) /* in the order of keys */
        need(view_double_follow(&view, &view.source.cells[i].key, 1));
    double begin = now_ns();
    need(view_double_follow(&view, &first, 1));
    double anew = now_ns() - begin;
    for (int i = 0; i < TIMES; i++)
        need(view_double_follow(&view, &first, 1));
    double taken = (now_ns() - begin - anew) / TIMES;
    fprintf(stdout, "a union of %d sketches: made anew %.1f ms, by buckets %.1f ms\n", SKETCHES,
            anew / 1e6, taken / 1e6);
    view_double_free(&view);
}

int main(void)
{
    bench_query("count", "SELECT SPLIT(_key, b'#')[SAFE_OFFSET(1)] AS k, COUNT(*) AS c FROM t "
                         "GROUP BY k");
    bench_query("sum", "SELECT SPLIT(_key, b'#')[SAFE_OFFSET(1)] AS k, COUNT(*) AS c, SUM(n['n']) "
                       "AS s, AVG(n['n']) AS a FROM t GROUP BY k");
    bench_query("extremes", "SELECT SPLIT(_key, b'#')[SAFE_OFFSET(1)] AS k, MIN(n['n']) AS least, "
                            "MAX(f['c3']) AS most FROM t GROUP BY k");
    bench_query("sketch",
                "SELECT '*' AS _key, HLL_COUNT.INIT(f['c1']) AS visitors FROM t GROUP BY _key");
    bench_query("index", "SELECT f['c1'] AS c1, _key AS k, f['c2'] AS c2 FROM t ORDER BY c1, k");
    bench_query("pass on", "SELECT f['c1'] AS c1, _key AS k, f AS all_of_it FROM t ORDER BY c1, k");
    bench_union();
    return 0;
}
