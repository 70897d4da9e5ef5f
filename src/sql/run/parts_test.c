/* Tests of groups by several threads: what a query comes to, or fails with, is what one thread
 * makes of it, to the bit and in the same order, however its rows are divided, whoever helps, and
 * wherever it is paused. */
#include "base/testing/testing.h"
#include "os/pool.h"
#include "sql/function.h"
#include "sql/testing/testing.h"

#include <stdio.h>

enum { ROWS = 40, CELLS = 3 * ROWS, TEXT = 32, ROUNDS = 40, THREADS = 3 };

/* Rows of f:x, a number in words or no number, of f:k, one of three, and of n:s, an integer. */
struct world {
    char keys[ROWS][TEXT];
    char values[CELLS][TEXT];
    struct test_cell cells[CELLS];
    uint64_t random;
};

static uint64_t next_random(struct world *w)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return w->random >> 33;
}

static const char *const numbers[] = {"1e308",  "-1e308", "0.1",  "1",    "-1e-300", "3e15",
                                      "-3e15",  "0",      "-0.0", "NaN",  "inf",     "7.25",
                                      "1e-320", "words",  "-7",   "1e16", "0.3",     "2"};
static const char *const integers[] = {
    "9223372036854775807", "-9223372036854775807", "1", "-1", "0", "4611686018427387904"};

/* `tame`: no sum of integers overflows, and all texts are numbers of few digits. */
static void fill(struct world *w, uint64_t seed, bool tame)
{
    w->random = seed;
    for (size_t row = 0; row < ROWS; row++) {
        char(*values)[TEXT] = &w->values[3 * row];
        size_t number = tame ? 14 + next_random(w) % 4 : next_random(w) % 18;
        size_t integer = tame ? 2 + next_random(w) % 3 : next_random(w) % 6;
        snprintf(w->keys[row], TEXT, "key%03zu", row);
        snprintf(values[0], TEXT, "%c", (char)('a' + (int)(next_random(w) % 3)));
        snprintf(values[1], TEXT, "%s", numbers[number]);
        snprintf(values[2], TEXT, "%s", integers[integer]);
        w->cells[3 * row] = (struct test_cell){w->keys[row], "f", "k", 1000, values[0]};
        w->cells[3 * row + 1] = (struct test_cell){w->keys[row], "f", "x", 1000, values[1]};
        w->cells[3 * row + 2] = (struct test_cell){w->keys[row], "n", "s", 1000, values[2]};
    }
}

/* --- who helps --- */

static status go_on(void *context, bool *is_turn_over)
{
    (void)context, (void)is_turn_over;
    return status_ok();
}

static const struct sql_watch watch = {.look = go_on};

static status give_way(void *context, bool *is_turn_over)
{
    (void)context;
    *is_turn_over = true;
    return status_ok();
}

/* The query's thread has a turn for each part. */
static const struct sql_watch restless = {.look = give_way};

static status add_turn(const void *query, struct sql_session *session, struct arena *arena)
{
    (void)query, (void)arena;
    session->watch = &watch;
    return status_ok();
}

static void begin_turn(struct sql_session *session)
{
    (void)session;
}

static bool nobody(void *context, struct task *task)
{
    (void)context, (void)task;
    return false;
}

/* Who helps does it at once, and all of it. */
static bool at_once(void *context, struct task *task)
{
    (void)context;
    task->run(task);
    return true;
}

/* The same, when it has been asked so often. */
static bool late(void *context, struct task *task)
{
    int *calls = context;
    return --*calls < 0 && at_once(NULL, task);
}

static bool on_the_pool(void *context, struct task *task)
{
    return pool_submit(context, task);
}

static struct sql_helpers helpers_of(bool (*submit)(void *context, struct task *task),
                                     void *context)
{
    return (struct sql_helpers){.most = THREADS,
                                .submit = submit,
                                .add_turn = add_turn,
                                .begin_turn = begin_turn,
                                .context = context};
}

/* --- what it comes to --- */

static const char *const queries[] = {
    "SELECT COUNT(*) AS n, COUNT(f['y']) AS none, COUNTIF(f['k'] = b'a') AS a FROM t",
    "SELECT SUM(n['s']) AS s FROM t",
    "SELECT SUM(SAFE_CAST(CAST(f['x'] AS STRING) AS FLOAT64)) AS s FROM t",
    "SELECT AVG(n['s']) AS a, AVG(SAFE_CAST(CAST(f['x'] AS STRING) AS FLOAT64)) AS x FROM t",
    "SELECT MIN(f['x']) AS l, MAX(f['x']) AS m, MIN(n['s']) AS i, ANY_VALUE(f['x']) AS any FROM t",
    "SELECT MAX(SAFE_CAST(CAST(f['x'] AS STRING) AS FLOAT64)) AS m FROM t",
    "SELECT MIN(SAFE_CAST(CAST(f['x'] AS STRING) AS FLOAT64)) AS l FROM t",
    "SELECT LOGICAL_AND(n['s'] > 0) AS l, LOGICAL_OR(n['s'] > 5) AS o FROM t",
    "SELECT BIT_AND(n['s']) AS a, BIT_OR(n['s']) AS o, BIT_XOR(n['s']) AS x FROM t",
    "SELECT f['x'] AS x, COUNT(*) AS n, SUM(n['s']) AS s, ANY_VALUE(_key) AS k FROM t GROUP BY x",
    "SELECT f['k'] AS k, f['x'] AS x, MAX(_key) AS m FROM t GROUP BY k, x",
    "SELECT f['k'] AS k, COUNT(*) AS n FROM t GROUP BY k ORDER BY k LIMIT 2",
    "SELECT COUNT(*) AS n, SUM(n['s']) AS s FROM t WHERE f['k'] = b'z'",
    "SELECT f['k'] AS k, COUNT(*) AS n FROM t WHERE f['k'] = b'z' GROUP BY k",
    "SELECT COUNT(*) AS n, MIN(_key) AS m FROM t WHERE _key >= 'key007' AND _key < 'key031'",
    "SELECT e, COUNT(*) AS n, ANY_VALUE(_key) AS k FROM t, UNNEST([n['s'], 1]) AS e GROUP BY e",
    "SELECT COUNT(*) AS n, MIN(_timestamp) AS l FROM UNPACK((SELECT f FROM t(with_history=>TRUE)))",
    "SELECT SUM(1 / n['s']) AS s FROM t",
    "SELECT COUNT(CAST(CAST(f['x'] AS STRING) AS FLOAT64)) AS n, SUM(n['s']) AS s FROM t",
    "SELECT f['k'] AS k, SUM(n['s']) AS s, MAX(1 / n['s']) AS m FROM t GROUP BY k",
    "SELECT COUNT(*) AS n FROM t GROUP BY 10 / n['s']",
};

static void compare(const struct test_database *alone, const struct test_database *together,
                    const char *query, uint64_t seed)
{
    struct buffer expected = {0}, out = {0};
    enum status_code code = test_query(alone, query, NULL, 0, &expected);
    enum status_code together_code = test_query(together, query, NULL, 0, &out);
    if (code != together_code || strcmp((char *)expected.data, (char *)out.data) != 0)
        fail_msg("seed %llu, %zu parts: %s\n%s instead of\n%s", (unsigned long long)seed,
                 together->parts, query, (char *)out.data, (char *)expected.data);
    buffer_free(&expected);
    buffer_free(&out);
}

static void compare_all(const struct sql_helpers *helpers, bool waits)
{
    struct world w;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        fill(&w, seed, seed % 2 == 0);
        struct test_database alone = {.cells = w.cells, .count = CELLS};
        struct test_database together = alone;
        together.parts = seed % 5 == 0 ? 2 : 1 + seed;
        together.helpers = helpers;
        together.waits = waits;
        for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
            compare(&alone, &together, queries[i], seed);
    }
}

static void one_thread_does_all_parts(void **state)
{
    (void)state;
    const struct sql_helpers helpers = helpers_of(nobody, NULL);
    compare_all(&helpers, false);
    compare_all(&helpers, true);
}

static void a_helper_does_all_parts(void **state)
{
    (void)state;
    const struct sql_helpers helpers = helpers_of(at_once, NULL);
    compare_all(&helpers, false);
}

static void threads_help(void **state)
{
    (void)state;
    struct pool *pool;
    assert_ok(pool_create(THREADS, 1000, "helpers", &pool));
    const struct sql_helpers helpers = helpers_of(on_the_pool, pool);
    compare_all(&helpers, false);
    compare_all(&helpers, true);
    pool_destroy(pool);
}

/* Each part has the one group, whose key is long, and all of them are there before the first is
 * merged; or the first have been. */
static void what_is_too_much_in_parts_is_done_alone(void **state)
{
    (void)state;
    enum { LIMIT = 64 << 10, LONG = 5000 };
    const struct sql_helpers helpers = helpers_of(at_once, NULL);
    struct world w;
    char text[LONG];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fill(&w, 0, true);
    for (size_t i = 0; i < CELLS; i += 3)
        w.cells[i].value = text;
    const struct test_database alone = {.cells = w.cells, .count = CELLS, .memory_limit = LIMIT};
    struct test_database together = alone;
    together.parts = ROWS;
    together.helpers = &helpers;
    compare(&alone, &together, "SELECT LENGTH(f['k']) AS k, COUNT(*) AS n FROM t GROUP BY f['k']",
            0);
    compare(&alone, &together, "SELECT MAX(f['k']) AS k, COUNT(*) AS n FROM t", 0);
    int calls = 4;
    const struct sql_helpers later = helpers_of(late, &calls);
    together.helpers = &later;
    together.watch = &restless;
    compare(&alone, &together, "SELECT MAX(f['k']) AS k, COUNT(*) AS n FROM t", 0);
    assert_true(calls < 0);
}

/* --- which are divided --- */

static void check_explained(const struct sql_helpers *helpers, const char *query, bool has_parts)
{
    struct world w;
    struct buffer out = {0};
    fill(&w, 0, true);
    const struct test_database database = {
        .cells = w.cells, .count = CELLS, .parts = 4, .helpers = helpers};
    test_explain(&database, query, &out);
    bool tells = strstr((char *)out.data, "in 4 parts of the table, by several threads") != NULL;
    if (tells != has_parts)
        fail_msg("%s\n%s", query, (char *)out.data);
    buffer_free(&out);
}

static void explain_tells_of_parts(void **state)
{
    (void)state;
    const struct sql_helpers helpers = helpers_of(nobody, NULL);
    const struct sql_helpers none = {.submit = nobody};
    static const char *const alone[] = {
        "SELECT _key FROM t",
        "SELECT COUNT(DISTINCT f['x']) AS n FROM t",
        "SELECT ARRAY_AGG(_key) AS a FROM t",
        "SELECT STRING_AGG(f['x']) AS a FROM t",
        "SELECT MAX(f['x'] HAVING MIN n['s']) AS m FROM t",
        "SELECT APPROX_COUNT_DISTINCT(f['x']) AS n FROM t",
        "SELECT COUNT(*) AS n FROM (SELECT _key FROM t LIMIT 5)",
        "SELECT COUNT(*) AS n FROM t WHERE _key = 'key001'",
        "SELECT COUNT(*) AS n FROM t WHERE _key IN ('key001', 'key005')",
        "SELECT COUNT(*) AS n FROM t WHERE _key < 'key003' OR _key > 'key007'",
    };
    check_explained(&helpers, queries[0], true);
    check_explained(&helpers, "SELECT COUNT(*) AS n FROM t WHERE STARTS_WITH(_key, b'key')", true);
    check_explained(&none, queries[0], false);
    check_explained(NULL, queries[0], false);
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        check_explained(&helpers, alone[i], false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_does_all_parts),
        cmocka_unit_test(a_helper_does_all_parts),
        cmocka_unit_test(threads_help),
        cmocka_unit_test(what_is_too_much_in_parts_is_done_alone),
        cmocka_unit_test(explain_tells_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
