/* At rest each view is what its query gives: random histories of a source, with views that come and
 * go, drops, collections of garbage, changes of rules, splits, merges, restarts of the engine, and
 * kills amid all of it.
 *
 *     history_test [HISTORIES] [STEPS] [SEED]   default 4 histories of 120 steps, 60 of 400 with
 *                                               TRESTLE_LONG=all
 *
 * Views are of a fixed list of queries, as many as there are kinds of aggregates and of forms. */
#include "cluster/testing/lives_testing.h"
#include "views/testing/views_testing.h"

enum { ROWS = 40, MOST_VIEWS = 5, TABLETS = 4, KEY_SIZE = 3 };

static const char *const queries[] = {
    "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q",
    "SELECT _key, COUNT(f['q']) AS n FROM t GROUP BY _key",
    "SELECT '*' AS _key, COUNT(*) AS n, SUM(sum['n']) AS s FROM t GROUP BY _key",
    "SELECT f['q'] AS q, g['p'] AS p, SUM(sum['n']) AS s, COUNT(sum['n']) AS n, "
    "AVG(sum['n']) AS a FROM t GROUP BY q, p",
    "SELECT g['p'] AS p, BIT_XOR(sum['n']) AS x, BIT_AND(sum['n']) AS a, BIT_OR(sum['n']) AS o "
    "FROM t WHERE f['q'] IS NOT NULL GROUP BY p",
    "SELECT f['q'] AS q, SUM(SAFE_CAST(SAFE_CAST(g['p'] AS STRING) AS FLOAT64) / 7) AS s "
    "FROM t GROUP BY q",
    "SELECT f['q'] AS q, MIN(g['p']) AS least, MAX(sum['n']) AS most FROM t GROUP BY q",
    "SELECT '*' AS _key, MAX(_key) AS k, MIN(sum['n']) AS n, "
    "HLL_COUNT.INIT(g['p']) AS h FROM t GROUP BY _key",
    "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k",
    "SELECT e.key AS q, _key AS k, e.value AS v FROM t CROSS JOIN UNNEST(MAP_ENTRIES(g)) AS e "
    "ORDER BY q, k",
    "SELECT _key, _timestamp, COUNT(x) AS n, MAX(x) AS m FROM "
    "UNPACK((SELECT _key, f['q'] AS x FROM t(with_history => TRUE))) GROUP BY _key, _timestamp",
    "SELECT _key, _timestamp, f AS f FROM UNPACK((SELECT _key, f FROM t(with_history => TRUE))) "
    "ORDER BY _key",
    "SELECT e.value AS v, COUNT(*) AS n FROM t CROSS JOIN UNNEST(MAP_ENTRIES(g)) AS e GROUP BY v",
    "SELECT g['p'] AS p, _key AS k, sum['n'] AS n, f['q'] AS q FROM t WHERE sum['n'] > 2 "
    "ORDER BY p, k",
};
enum { QUERIES = sizeof queries / sizeof queries[0] };

struct history {
    struct lives lives;
    struct {
        bool is_there;
        unsigned query;
    } views[MOST_VIEWS];
    struct views_fixture *v; /* of the present life */
    size_t kinds[9];         /* how often a step of each kind was taken */
    size_t compared;
};

static struct test_run run = {.rounds = 4, .changes = 120, .seed = 1};
static const struct test_run many = {.rounds = 60, .changes = 400, .seed = 1};

static unsigned at_random(struct history *h, unsigned end)
{
    return lives_random(&h->lives, end);
}

static void view_name(unsigned view, char name[64])
{
    snprintf(name, 64, TEST_VIEW_OF("v%u"), view);
}

/* --- changes of the source --- */

static void add_number(struct history *h, struct row_change *change)
{
    uint8_t *number = arena_zalloc(h->v->f->arena, 8);
    assert_non_null(number);
    number[7] = (uint8_t)at_random(h, 9);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0, bytes_make(number, 8));
}

static void set_one(struct history *h, struct row_change *change)
{
    static const char *const qualifiers[] = {"q", "p", "other"};
    char value[8];
    snprintf(value, sizeof value, "%u", at_random(h, 5));
    row_change_set(change, 1 + at_random(h, 2), bytes_of(qualifiers[at_random(h, 3)]),
                   1000 * (1 + (int64_t)at_random(h, 4)),
                   bytes_of(arena_string(h->v->f->arena, bytes_of(value))));
}

static struct row_change *random_change(struct history *h)
{
    struct row_change *change = row_change_create(h->v->f->arena);
    assert_non_null(change);
    switch (at_random(h, 8)) {
    case 0:
        row_change_delete_row(change);
        return change;
    case 1:
        row_change_delete_column(change, FAMILY_F, bytes_of("q"), 0, INT64_MAX);
        return change;
    case 2:
        row_change_delete_family(change, FAMILY_SUM);
        break;
    default:
        break;
    }
    set_one(h, change);
    if (at_random(h, 2) == 0)
        set_one(h, change);
    if (at_random(h, 2) == 0)
        add_number(h, change);
    return change;
}

static void begin_burst(struct history *h, struct burst *burst)
{
    char key[KEY_SIZE + 1];
    burst_begin(burst);
    for (unsigned left = 1 + at_random(h, MOST_OF_BURST); left > 0; left--) {
        snprintf(key, sizeof key, "r%02u", at_random(h, ROWS));
        burst_post(burst, h->v->f, key, random_change(h));
    }
}

static void write_some(struct history *h)
{
    struct burst burst;
    begin_burst(h, &burst);
    burst_await(&burst);
}

static void drop_some(struct history *h)
{
    char prefix[KEY_SIZE + 1];
    snprintf(prefix, sizeof prefix, "r%u", at_random(h, ROWS / 10));
    assert_ok(table_drop_rows(h->v->f->table, bytes_of(at_random(h, 4) == 0 ? "" : prefix)));
}

static void reshape(struct history *h)
{
    char name[KEY_SIZE + 1];
    snprintf(name, sizeof name, "r%02u", 1 + at_random(h, ROWS - 1));
    struct tablet *tablet = table_route(h->v->f->table, bytes_of(name));
    bool is_first = tablet->start.size == 0;
    tablet_release(tablet);
    if (is_first || table_tablet_count(h->v->f->table) < TABLETS)
        split_at(h->v->f, name);
    else
        merge_at(h->v->f, name);
}

static status change_rule(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    struct gc_rule *rule = arena_zalloc(arena, sizeof *rule);
    struct family *families = arena_alloc(arena, now->schema->family_count * sizeof *families);
    assert_true(rule != NULL && families != NULL);
    (void)context;
    for (size_t i = 0; i < now->schema->family_count; i++)
        families[i] = now->schema->families[i];
    *rule = (struct gc_rule){.kind = GC_MAX_VERSIONS, .max_versions = 1};
    if (families[0].gc != NULL && families[0].gc->max_versions == 1)
        rule->max_versions = 2;
    families[0].gc = rule;
    *next = (struct table_change){
        .families = families, .family_count = now->schema->family_count, .extra = now->extra};
    return status_ok();
}

static void change_rules(struct history *h)
{
    assert_ok(table_change_schema(h->v->f->table, h->v->f->arena, change_rule, NULL));
}

static void collect(struct history *h)
{
    h->v->f->table->gc.due_us = 1;
    maintenance_run_once(h->v->f->cluster->maintenance);
}

/* --- views --- */

static void change_views(struct history *h)
{
    char name[64];
    unsigned view = at_random(h, MOST_VIEWS);
    view_name(view, name);
    if (h->views[view].is_there) {
        delete_view(h->v, name);
        h->views[view].is_there = false;
        return;
    }
    h->views[view].query = at_random(h, QUERIES);
    create_view(h->v, name, queries[h->views[view].query]);
    h->views[view].is_there = true;
}

static void restart_engine(struct history *h)
{
    stop_views(h->v);
    start_views(h->v);
}

static void compare_all(struct history *h)
{
    char id[16];
    collect(h); /* readers do not see what a rule condemns; a view does until it is collected */
    assert_ok(views_settle(h->v->views));
    for (unsigned i = 0; i < MOST_VIEWS; i++) {
        snprintf(id, sizeof id, "v%u", i);
        if (!h->views[i].is_there)
            continue;
        assert_equal_to_query(h->v, id, queries[h->views[i].query]);
        h->compared++;
    }
}

static void take_step(struct history *h)
{
    static void (*const steps[])(struct history *) = {write_some,     drop_some,  reshape,
                                                      change_rules,   collect,    change_views,
                                                      restart_engine, compare_all};
    static const unsigned weights[] = {14, 2, 3, 1, 1, 4, 1, 3};
    unsigned kind = 0, at = at_random(h, 29);
    while (at >= weights[kind])
        at -= weights[kind++];
    h->kinds[kind]++;
    steps[kind](h);
}

/* --- lives --- */

/* Before a kill that came amid a change of views nothing is known of that one. */
static void find_views(struct history *h)
{
    char name[64];
    for (unsigned i = 0; i < MOST_VIEWS; i++) {
        view_name(i, name);
        h->views[i].is_there = control_has(h->v->control, RESOURCE_MATERIALIZED_VIEW, name);
    }
}

static void open_life(struct history *h)
{
    h->v = calloc(1, sizeof *h->v);
    assert_non_null(h->v);
    h->v->has_threads = true;
    h->v->piece_rows = at_random(h, 2) == 0 ? 0 : 1 + at_random(h, 8);
    h->v->f = cluster_fixture_create_at(h->lives.directory);
    h->v->f->options.maintenance_by_hand = true;
    if (at_random(h, 2) == 0) /* rows of most views are put, not changed */
        h->v->f->options.overflow_bytes = 64 << 10;
    open_test_cluster(h->v->f);
    if (h->lives.count++ == 0)
        h->v->f->table = create_test_table(h->v->f->cluster, NULL);
    else
        assert_ok(cluster_table(h->v->f->cluster, bytes_of(TEST_TABLE), &h->v->f->table));
    start_views(h->v);
    assert_ok(control_edit(h->v->control, put_instance, NULL));
    find_views(h);
}

static void live(struct lives *lives)
{
    struct history *h = (struct history *)(void *)lives;
    open_life(h);
    while (h->lives.step < h->lives.run.changes) {
        h->lives.step++;
        take_step(h);
        if (at_random(h, 25) == 0) {
            struct burst burst;
            begin_burst(h, &burst);
            kill(getpid(), SIGKILL);
        }
    }
    compare_all(h);
    if (h->lives.run.changes >= 100)
        assert_true(h->compared > 0);
    views_fixture_destroy(h->v);
}

static void views_are_their_queries(void **state)
{
    (void)state;
    lives_tell("history_test", &run, sizeof(struct history), live);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_are_their_queries)};
    take_test_run(&run, many, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
