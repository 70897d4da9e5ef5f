/* Where a table's deletions are recorded, what observers of commits were told is what the table
 * has: random histories of writes, deletes and adds, under rules of versions and age, while the
 * clock goes on and rows overflow, are rewritten, flushed, compacted, collected, and the server is
 * restarted. After each change each row is read twice,
 *  - without its rules, which must give what the observed commits come to, and
 *  - by its rules, which must give what these leave of that.
 * What is observed to be collected must have been condemned. In the end nothing condemned is left.
 *
 *     recorded_deletions_test [HISTORIES] [CHANGES] [SEED]      default 4 histories of 200 changes;
 *                                                             100 with TRESTLE_LONG=all
 *
 * That this can fail: the same histories, of a table whose deletions are not recorded, come out
 * wrong. */
#include "base/testing/testing_clock.h"
#include "cluster/row_jobs.h"
#include "cluster/row_rewrite.h"
#include "cluster/testing/testing.h"
#include "row/testing/testing.h"
#include "tablet/commit_observer.h"

#include <sched.h>
#include <stdatomic.h>

enum {
    ROWS = 3,
    FAMILIES = 3, /* the last adds up */
    QUALIFIERS = 3,
    TIMES = 96,      /* a cell's time is the beginning of one of them */
    FIRST_TIME = 8,  /* that the clock shows */
    OLDEST = 5,      /* times that a cell is behind the clock, at most */
    TEXT_MOST = 300, /* bytes of a value: past the overflow threshold */
    TIME_US = 600000000,
};

static const int64_t BASE_US = INT64_C(1700000000) * 1000000;
static const int64_t GC_INTERVAL_US = INT64_C(3600) * 1000000;

static struct set_clock test_clock = {.clock = SET_CLOCK};

static const struct gc_rule age = {.kind = GC_MAX_AGE, .max_age_us = INT64_C(3) * TIME_US};
static const struct gc_rule two_versions = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
static const struct gc_rule age_and_versions[] = {
    {.kind = GC_MAX_AGE, .max_age_us = INT64_C(3) * TIME_US},
    {.kind = GC_MAX_VERSIONS, .max_versions = 2},
};
static const struct gc_rule either = {
    .kind = GC_UNION, .children = age_and_versions, .child_count = 2};
static const struct gc_rule both = {
    .kind = GC_INTERSECTION, .children = age_and_versions, .child_count = 2};

static int64_t time_us(uint32_t time)
{
    return BASE_US + (int64_t)time * TIME_US;
}

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

/* --- rows: 0 is no cell --- */

struct model_row {
    uint64_t cells[FAMILIES][QUALIFIERS][TIMES];
};

static const char *row_name(uint32_t row)
{
    static const char *const names[ROWS] = {"a", "b", "c"};
    return names[row];
}

static bool is_in(const struct entry *tombstone, uint32_t family, uint32_t qualifier, uint32_t time)
{
    if (tombstone->kind == ENTRY_ROW_TOMBSTONE)
        return true;
    if (tombstone->family != FAMILY_F + family)
        return false;
    return tombstone->kind == ENTRY_FAMILY_TOMBSTONE ||
           (tombstone->qualifier.data[1] == '0' + qualifier &&
            tombstone->timestamp_us <= time_us(time) && time_us(time) < tombstone->end_us);
}

static void delete_cells(struct model_row *row, const struct entry *tombstone)
{
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t q = 0; q < QUALIFIERS; q++)
            for (uint32_t t = 0; t < TIMES; t++)
                if (is_in(tombstone, f, q, t))
                    row->cells[f][q][t] = 0;
}

/* As its text, or number, says. */
static void put_cell(struct model_row *row, const struct entry *cell)
{
    uint64_t *place = &row->cells[cell->family - FAMILY_F][cell->qualifier.data[1] - '0']
                                 [(cell->timestamp_us - BASE_US) / TIME_US];
    if (cell->kind == ENTRY_SUM)
        *place += (uint64_t)number_of(cell->value);
    else
        *place = strtoull((const char *)cell->value.data, NULL, 10);
}

/* What the rules leave of the row. */
static struct model_row condemned_left_out(const struct model_row *row, const struct schema *schema)
{
    struct model_row left = *row;
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t q = 0; q < QUALIFIERS; q++) {
            int32_t newer = 0;
            for (uint32_t t = TIMES; t-- > 0;)
                if (row->cells[f][q][t] != 0 &&
                    gc_condemns(schema_family(schema, FAMILY_F + f)->gc, time_us(t), newer++,
                                atomic_load(&test_clock.wall_us)))
                    left.cells[f][q][t] = 0;
        }
    return left;
}

/* --- the observer: keeps what the commits that it sees come to --- */

struct feed {
    pthread_mutex_t lock;
    const struct schema *schema; /* of the test's table; NULL: there is none yet */
    struct model_row rows[ROWS];
    unsigned seen;
    unsigned written; /* of those */
    unsigned collected;
    unsigned wrong; /* collected, and not condemned, or no mere deletion */
    char last_collected[FRAGMENT_TEXT_SIZE];
};

static void take_big_cells(struct model_row *row, const struct packed_change *change)
{
    for (size_t i = 0; i < change->big_count; i++) {
        const struct big_cell *big = &change->big[i];
        const struct entry cell = {.kind = ENTRY_CELL,
                                   .family = big->family,
                                   .qualifier = big->qualifier,
                                   .timestamp_us = big->timestamp_us,
                                   .value = big->value};
        put_cell(row, &cell);
    }
}

/* Commits come in the order of their versions here: what is there is older. */
static void take_change(struct model_row *row, const struct packed_change *change)
{
    struct fragment_reader reader;
    struct entry entry;
    fragment_reader_start(&reader, buffer_bytes(&change->fragment));
    while (fragment_reader_next(&reader, &entry))
        if (entry_is_cell(entry.kind))
            put_cell(row, &entry);
        else if (entry.kind != ENTRY_OVERFLOW_MARK)
            delete_cells(row, &entry);
    take_big_cells(row, change);
}

static bool has_cells(const struct packed_change *change)
{
    struct fragment_reader reader;
    struct entry entry;
    bool has = change->big_count > 0;
    fragment_reader_start(&reader, buffer_bytes(&change->fragment));
    while (fragment_reader_next(&reader, &entry))
        has = has || entry_is_cell(entry.kind) || entry.kind == ENTRY_OVERFLOW_MARK;
    return has;
}

static void take_collected(struct feed *feed, struct model_row *row, const struct commit *commit)
{
    struct model_row before = condemned_left_out(row, feed->schema);
    take_change(row, commit->change);
    struct model_row after = condemned_left_out(row, feed->schema);
    feed->collected++;
    feed->wrong += memcmp(&before, &after, sizeof before) != 0 || has_cells(commit->change) ||
                   !tablet_contains(commit->tablet, commit->row_key);
    print_fragment(buffer_bytes(&commit->change->fragment), feed->last_collected);
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct feed *feed = context;
    (void)records, (void)batch;
    pthread_mutex_lock(&feed->lock);
    bool changes_rows = commit->kind == COMMIT_ROWS || commit->kind == COMMIT_COLLECT;
    if (changes_rows && feed->schema != NULL && table_schema(commit->table) == feed->schema) {
        struct model_row *row = &feed->rows[commit->row_key.data[0] - 'a'];
        feed->seen++;
        if (commit->kind == COMMIT_COLLECT)
            take_collected(feed, row, commit);
        else
            take_change(row, commit->change);
    }
    pthread_mutex_unlock(&feed->lock);
}

static void written(void *context, bool is_written)
{
    struct feed *feed = context;
    pthread_mutex_lock(&feed->lock);
    feed->wrong += !is_written;
    feed->written = feed->seen;
    pthread_mutex_unlock(&feed->lock);
}

static void await_written(struct feed *feed, struct model_row rows[ROWS], unsigned *count)
{
    bool is_written = false;
    while (!is_written) {
        pthread_mutex_lock(&feed->lock);
        is_written = feed->seen == feed->written;
        *count = feed->seen;
        memcpy(rows, feed->rows, sizeof feed->rows);
        pthread_mutex_unlock(&feed->lock);
        if (!is_written)
            sched_yield();
    }
}

/* --- the table --- */

struct history {
    struct cluster_fixture *f;
    struct feed feed;
    struct commit_observer observer;
    uint64_t random;
    uint32_t time; /* that the clock shows */
    size_t wrong;  /* rows that were read, and not as the feed has them */
    size_t evaluations;
};

static struct table *create_table(struct cluster *cluster, const struct gc_rule *gc, bool records)
{
    const struct family families[] = {
        {.id = FAMILY_F, .name = bytes_of("f"), .gc = gc},
        {.id = FAMILY_G, .name = bytes_of("g"), .gc = &one_version},
        {.id = FAMILY_SUM, .name = bytes_of("s"), .gc = &age, .aggregate = AGGREGATE_SUM},
    };
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, FAMILIES, FAMILIES + 1, &schema));
    struct table_spec spec = {.name = TEST_TABLE, .schema = schema, .records_deletions = records};
    assert_ok(cluster_create_table(cluster, &spec, &table));
    schema_destroy(schema);
    return table;
}

static void set_time(struct history *h, uint32_t time)
{
    assert_true(time < TIMES);
    h->time = time;
    atomic_store(&test_clock.wall_us, time_us(time));
}

static void follow(struct history *h)
{
    pthread_mutex_lock(&h->feed.lock);
    h->feed.schema = table_schema(h->f->table);
    pthread_mutex_unlock(&h->feed.lock);
}

static void close_table(struct history *h)
{
    table_release(h->f->table);
    close_test_cluster(h->f);
    h->feed.schema = NULL;
}

static void reopen(struct history *h)
{
    close_table(h);
    open_test_cluster(h->f);
    assert_ok(cluster_table(h->f->cluster, bytes_of(TEST_TABLE), &h->f->table));
    follow(h);
}

static void begin(struct history *h, const struct gc_rule *gc, bool records, uint64_t seed)
{
    *h = (struct history){.f = cluster_fixture_create(NULL), .random = seed};
    pthread_mutex_init(&h->feed.lock, NULL);
    h->observer = (struct commit_observer){.context = &h->feed, .see = see, .written = written};
    set_time(h, FIRST_TIME);
    close_table(h);
    h->f->options.clock = &test_clock.clock;
    h->f->options.gc_interval_us = GC_INTERVAL_US;
    h->f->options.observers = &h->observer;
    h->f->options.observer_count = 1;
    open_test_cluster(h->f);
    assert_ok(cluster_delete_tables(h->f->cluster, bytes_of(TEST_TABLE), NULL));
    h->f->table = create_table(h->f->cluster, gc, records);
    follow(h);
}

static void end(struct history *h)
{
    cluster_fixture_destroy(h->f); /* with it the commit thread */
    assert_int_equal(h->feed.wrong, 0);
    pthread_mutex_destroy(&h->feed.lock);
}

/* A table's first pass is due an interval after maintenance has seen it. */
static void collect_all(struct history *h)
{
    maintenance_run_once(h->f->cluster->maintenance);
    atomic_fetch_add(&test_clock.ahead_us, GC_INTERVAL_US);
    for (int i = 0; i < 3; i++)
        maintenance_run_once(h->f->cluster->maintenance);
}

/* --- reading --- */

static struct model_row read_row(struct history *h, uint32_t row, bool by_rules)
{
    struct cluster_fixture *f = h->f;
    struct model_row seen = {0};
    struct arena *arena = arena_create(1 << 20);
    struct row_read_options options = {.store = f->cluster->home->store,
                                       .commits = f->cluster->home->commits,
                                       .schema = table_schema(f->table),
                                       .now_us = atomic_load(&test_clock.wall_us),
                                       .apply_gc = by_rules,
                                       .size_limit = UINT64_MAX};
    struct tablet *tablet = table_route(f->table, bytes_of(row_name(row)));
    struct row found = {.cells.arena = arena};
    enum row_outcome outcome;
    assert_ok(row_read(tablet->keyspace, &options, bytes_of(row_name(row)), STORE_READ_ANY, &found,
                       &outcome));
    for (size_t i = 0; i < found.cells.count; i++) {
        const struct cell *cell = &found.cells.items[i];
        const struct entry entry = {.kind = cell->family->id == FAMILY_SUM ? ENTRY_SUM : ENTRY_CELL,
                                    .family = cell->family->id,
                                    .qualifier = cell->qualifier,
                                    .timestamp_us = cell->timestamp_us,
                                    .value = cell->value};
        put_cell(&seen, &entry);
    }
    if (found.wants_rewrite)
        row_rewriter_offer(f->cluster->home->row_rewriter, f->table, tablet->keyspace, &found);
    row_clear(&found);
    tablet_release(tablet);
    arena_destroy(arena);
    return seen;
}

/* Reads again if something was committed meanwhile: maintenance collects when it likes to. */
static void compare(struct history *h)
{
    struct model_row fed[ROWS], fed_after[ROWS], raw[ROWS], visible[ROWS];
    unsigned before, after;
    do {
        await_written(&h->feed, fed, &before);
        for (uint32_t row = 0; row < ROWS; row++) {
            raw[row] = read_row(h, row, false);
            visible[row] = read_row(h, row, true);
        }
        await_written(&h->feed, fed_after, &after);
    } while (before != after);
    for (uint32_t row = 0; row < ROWS; row++) {
        struct model_row left = condemned_left_out(&fed[row], table_schema(h->f->table));
        h->wrong += memcmp(&visible[row], &left, sizeof left) != 0 ||
                    memcmp(&raw[row], &fed[row], sizeof raw[row]) != 0;
        h->evaluations++;
    }
}

/* --- histories --- */

static bytes value_text(uint32_t value, char text[TEXT_MOST])
{
    size_t size = value % 4 == 0 ? TEXT_MOST : 8 + value % 40;
    char digits[16];
    memset(text, '.', size);
    memcpy(text, digits, (size_t)snprintf(digits, sizeof digits, "%u", value));
    return bytes_make(text, size);
}

static int64_t draw_time(struct history *h)
{
    return time_us(h->time + 1 - next_random(&h->random) % (OLDEST + 1));
}

static void add_mutation(struct history *h, struct row_change *change, char text[TEXT_MOST])
{
    static const char *const names[QUALIFIERS] = {"q0", "q1", "q2"};
    uint64_t *random = &h->random;
    const bytes qualifier = bytes_of(names[next_random(random) % QUALIFIERS]);
    const uint32_t family = FAMILY_F + next_random(random) % FAMILIES;
    const uint32_t value = 1 + next_random(random) % 1000000, what = next_random(random) % 16;
    uint8_t *state = arena_zalloc(h->f->arena, 8);
    assert_non_null(state);
    state[6] = (uint8_t)(1 + value % 100);
    if (what == 0)
        row_change_delete_family(change, family);
    else if (what == 1)
        row_change_delete_column(change, family, qualifier, 0, INT64_MAX);
    else if (what == 2)
        row_change_delete_column(change, family, qualifier, draw_time(h), time_us(TIMES));
    else if (what == 3 && value % 3 == 0)
        row_change_delete_row(change);
    else if (family == FAMILY_SUM)
        row_change_add(change, ENTRY_SUM, family, qualifier, draw_time(h), bytes_make(state, 8));
    else
        row_change_set(change, family, qualifier, draw_time(h), value_text(value, text));
}

static void write_some(struct history *h)
{
    char texts[3][TEXT_MOST];
    struct row_change *change = row_change_create(h->f->arena);
    assert_non_null(change);
    for (uint32_t i = 0, count = 1 + next_random(&h->random) % 3; i < count; i++)
        add_mutation(h, change, texts[i]);
    assert_ok(try_write(h->f, row_name(next_random(&h->random) % ROWS), change));
    arena_reset(h->f->arena);
}

static void disturb(struct history *h)
{
    struct tablet *tablet = table_route(h->f->table, bytes_of("a"));
    struct keyspace *keyspace = tablet->keyspace;
    uint32_t what = next_random(&h->random) % 24;
    tablet_release(tablet);
    if (what < 4)
        assert_ok(
            row_jobs_maintain(h->f->table, bytes_of(row_name(next_random(&h->random) % ROWS))));
    else if (what < 6)
        assert_ok(keyspace_flush(keyspace));
    else if (what < 8)
        assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    else if (what < 10 && h->time + 2 < TIMES)
        set_time(h, h->time + 1);
    else if (what == 10)
        collect_all(h);
    else if (what == 11 && next_random(&h->random) % 3 == 0)
        reopen(h);
}

/* Cells in records, whichever. */
static size_t cells_stored(struct history *h)
{
    struct tablet *tablet = table_route(h->f->table, bytes_of(""));
    struct store_cursor_options options = {
        .lower = bytes_of("R"), .upper = bytes_of("T"), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    struct fragment_reader reader;
    struct entry entry;
    size_t count = 0;
    assert_ok(store_cursor_create(tablet->keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        assert_true(fragment_reader_start(&reader, store_cursor_value(cursor)));
        while (fragment_reader_next(&reader, &entry))
            count += entry_is_cell(entry.kind);
    }
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    tablet_release(tablet);
    return count;
}

static size_t cells_fed(struct history *h, bool by_rules)
{
    size_t count = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        struct model_row model = h->feed.rows[row];
        if (by_rules)
            model = condemned_left_out(&model, table_schema(h->f->table));
        for (size_t i = 0; i < FAMILIES * QUALIFIERS * TIMES; i++)
            count += (&model.cells[0][0][0])[i] != 0;
    }
    return count;
}

static void run_history(struct history *h, unsigned changes)
{
    for (unsigned i = 0; i < changes; i++) {
        write_some(h);
        disturb(h);
        compare(h);
    }
}

static void assert_nothing_condemned_is_left(struct history *h)
{
    collect_all(h);
    collect_all(h);
    compare(h);
    assert_int_equal(cells_fed(h, false), cells_fed(h, true));
    assert_int_equal(h->wrong, 0);
}

static const struct gc_rule *const rules[] = {&age, &two_versions, &either, &both};

static struct test_run run = {.rounds = 4, .changes = 200, .seed = 1};
static const struct test_run a_hundred = {.rounds = 100, .changes = 200, .seed = 1};

static void observed_commits_come_to_what_is_read(void **state)
{
    size_t evaluations = 0, collected = 0;
    (void)state;
    for (unsigned i = 0; i < run.rounds; i++) {
        struct history h;
        begin(&h, rules[i % 4], true, run.seed * 1000 + i);
        run_history(&h, run.changes);
        assert_int_equal(h.wrong, 0);
        assert_nothing_condemned_is_left(&h);
        evaluations += h.evaluations;
        collected += h.feed.collected;
        end(&h);
    }
    assert_true(collected > 0);
    print_message("# %u histories, %zu evaluations, %zu commits that collect, seed %llu\n",
                  run.rounds, evaluations, collected, (unsigned long long)run.seed);
}

static void unrecorded_deletions_are_not_observed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct history h;
        begin(&h, rules[i], false, run.seed * 1000 + i);
        run_history(&h, run.changes);
        assert_true(h.wrong > 0);
        assert_int_equal(h.feed.collected, 0);
        end(&h);
    }
}

/* --- what a commit says, and how long the table keeps to it --- */

static void set_at(struct history *h, const char *row, const char *qualifier, uint32_t time,
                   const char *value)
{
    assert_ok(try_write(h->f, row, setting(h->f, FAMILY_F, qualifier, time_us(time), value)));
}

static void a_commit_names_the_oldest_cells_of_a_column(void **state)
{
    static char large[TEXT_MOST] = "1";
    char expected[96];
    struct history h;
    (void)state;
    memset(large + 1, '.', sizeof large - 2);
    begin(&h, &two_versions, true, 1);
    for (uint32_t time = 1; time < 5; time++)
        set_at(&h, "a", "q0", time, time % 2 == 0 ? "1" : large);
    collect_all(&h);
    compare(&h);
    assert_int_equal(h.feed.collected, 1);
    snprintf(expected, sizeof expected, "1:q0[0,%lld)@", (long long)time_us(2) + 1);
    assert_memory_equal(h.feed.last_collected, expected, strlen(expected));
    assert_null(strchr(h.feed.last_collected, ' ')); /* nothing else */
    assert_nothing_condemned_is_left(&h);
    end(&h);
}

static status keep_all_else(void *context, const struct table_info *now, struct arena *arena,
                            struct table_change *next)
{
    (void)context, (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .deletion_protection = true};
    return status_ok();
}

static void deletions_stay_recorded_when_the_table_is_changed(void **state)
{
    struct history h;
    (void)state;
    begin(&h, &one_version, true, 1);
    set_at(&h, "a", "q0", 1, "1");
    set_at(&h, "a", "q0", 2, "2");
    assert_ok(table_change_schema(h.f->table, h.f->arena, keep_all_else, NULL));
    follow(&h);
    reopen(&h);
    struct tablet *tablet = table_route(h.f->table, bytes_of("a"));
    assert_ok(keyspace_compact(tablet->keyspace, bytes_of(""), bytes_of("")));
    tablet_release(tablet);
    assert_int_equal(cells_stored(&h), 2);
    assert_nothing_condemned_is_left(&h);
    assert_int_equal(cells_stored(&h), 1);
    assert_int_equal(h.feed.collected, 1);
    end(&h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(observed_commits_come_to_what_is_read),
        cmocka_unit_test(unrecorded_deletions_are_not_observed),
        cmocka_unit_test(a_commit_names_the_oldest_cells_of_a_column),
        cmocka_unit_test(deletions_stay_recorded_when_the_table_is_changed),
    };
    take_test_run(&run, a_hundred, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
