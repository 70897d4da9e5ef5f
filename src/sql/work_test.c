/* What bounds a query: the steps it may take, the memory it may keep, and what may stop it. */
#include "sql/work.h"

#include "base/testing/testing.h"
#include "sql/testing/testing.h"

#include <stdlib.h>

#define NUMBERS(count) "UNNEST(GENERATE_ARRAY(1, " #count "))"

static void gives(const struct test_database *database, const char *query, const char *expected)
{
    struct buffer out = {0};
    test_query(database, query, NULL, 0, &out);
    assert_non_null(out.data);
    assert_string_equal((char *)out.data, expected);
    buffer_free(&out);
}

static void fails(const struct test_database *database, const char *query, enum status_code code,
                  const char *words)
{
    struct buffer out = {0};
    assert_int_equal(test_query(database, query, NULL, 0, &out), code);
    assert_non_null(strstr((char *)out.data, words));
    buffer_free(&out);
}

static const struct test_database plain = {0};

/* --- memory (tests give a query 64 MB) --- */

/* Each row is before all that came: a bounded sort replaced one after the other, and kept them all.
 */
static void a_bounded_sort_forgets_what_it_drops(void **state)
{
    (void)state;
    gives(&plain,
          "SELECT a, LENGTH(x) FROM (SELECT a, REPEAT('x', 10000 + a) AS x FROM " NUMBERS(
              10000) " a) ORDER BY a DESC, x LIMIT 2",
          "10000 20000\n9999 19999\n");
    gives(&plain,
          "SELECT COUNT(*), MAX(a), MIN(LENGTH(x)) FROM (SELECT a, REPEAT('x', 20000) AS x "
          "FROM " NUMBERS(6000) " a ORDER BY a DESC LIMIT 100 OFFSET 3)",
          "100 5997 20000\n");
}

static void a_sort_that_is_too_large_says_so(void **state)
{
    (void)state;
    const char *words = "The query needs more memory than it is given (--query-memory)";
    fails(&plain,
          "SELECT REPEAT('x', 100000) AS x, a FROM " NUMBERS(10000) " a ORDER BY a DESC LIMIT 1000",
          STATUS_RESOURCE_EXHAUSTED, words);
    fails(&plain, "SELECT REPEAT('x', 100000) AS x, a FROM " NUMBERS(10000) " a ORDER BY a",
          STATUS_RESOURCE_EXHAUSTED, words);
    /* Two of them share the query's memory. */
    fails(&plain,
          "FROM (SELECT REPEAT('x', 100000) AS x, a FROM " NUMBERS(
              1000) " a) |> ORDER BY a |> "
                    "LIMIT 400 |> ORDER BY -a |> LIMIT 400",
          STATUS_RESOURCE_EXHAUSTED, words);
}

/* Each text is greater than all that came: MAX kept a copy of each. */
static void a_maximum_forgets_what_it_was(void **state)
{
    (void)state;
    gives(&plain,
          "SELECT LENGTH(MAX(CONCAT(CAST(a + 100000 AS STRING), REPEAT('x', a)))) FROM " NUMBERS(
              20000) " a",
          "20006\n");
}

static void values_that_share_parts_have_a_limit(void **state)
{
    (void)state;
    const char *words = "A value of the query is larger than 256 MB";
    const char *laughs = "FROM (SELECT GENERATE_ARRAY(1, 1000) AS x) "
                         "|> SELECT ARRAY_TRANSFORM(GENERATE_ARRAY(1, 1000), i -> STRUCT(x)) AS x "
                         "|> SELECT ARRAY_TRANSFORM(GENERATE_ARRAY(1, 1000), i -> STRUCT(x)) AS x "
                         "|> SELECT ARRAY_LENGTH(x)";
    fails(&plain, laughs, STATUS_RESOURCE_EXHAUSTED, words);
}

/* --- steps --- */

static void each_row_has_its_steps(void **state)
{
    (void)state;
    const char *words = "The query takes more than 20000000 steps of work for one row";
    static const char *const queries[] = {
        "SELECT ARRAY_LENGTH(ARRAY_TRANSFORM(GENERATE_ARRAY(1, 9000), x -> "
        "ARRAY_LENGTH(ARRAY_TRANSFORM(GENERATE_ARRAY(1, 9000), y -> x * y))))",
        "SELECT REPEAT('a', 1000000) LIKE CONCAT('%', REPEAT('a', 500000), 'b')",
        "SELECT TRIM(REPEAT('a', 1000000), CONCAT(REPEAT('b', 999990), 'a'))",
        "SELECT INSTR(REPEAT('a', 1000000), CONCAT(REPEAT('a', 500000), 'b'), -1)",
        "SELECT ARRAY_INCLUDES_ALL(GENERATE_ARRAY(1, 900000), GENERATE_ARRAY(1, 900000))",
        "SELECT NORMALIZE(CONCAT('a', REPEAT('\\u0300\\u0316', 240000)))",
        "SELECT FORMAT_TIMESTAMP(REPEAT('%c', 500000), TIMESTAMP '2020-01-01')",
        "SELECT TRANSLATE(REPEAT('a', 1000000), ARRAY_TO_STRING(ARRAY_TRANSFORM("
        "GENERATE_ARRAY(200, 20000), x -> CODE_POINTS_TO_STRING([x])), ''), '')",
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        fails(&plain, queries[i], STATUS_RESOURCE_EXHAUSTED, words);
    gives(&plain, "SELECT COUNT(*) FROM " NUMBERS(200) " a WHERE LENGTH(REPEAT('a', 900000)) > 9",
          "200\n");
}

static void regular_expressions_fit_their_texts(void **state)
{
    (void)state;
    fails(&plain, "SELECT REGEXP_CONTAINS(REPEAT('a', 1000000), '[ab]{0,300}[ac]{0,300}b')",
          STATUS_RESOURCE_EXHAUSTED, "The regular expression is too large for a text of 1000000");
    gives(&plain, "SELECT REGEXP_CONTAINS(REPEAT('a', 1000000), '(x+x+)+y')", "false\n");
}

/* An aggregate over a growing frame was once computed again for each row. */
static void running_windows_are_linear(void **state)
{
    (void)state;
    gives(&plain,
          "SELECT MAX(s), MAX(n) FROM (SELECT SUM(a) OVER (ORDER BY a) AS s, NTH_VALUE(a, 29999) "
          "OVER (ORDER BY a) AS n FROM " NUMBERS(30000) " a)",
          "450015000 29999\n");
    gives(&plain,
          "SELECT a, COUNT(*) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS w, "
          "NTH_VALUE(a, 2) OVER (ORDER BY a), COUNT(DISTINCT MOD(a, 2)) OVER (ORDER BY a) "
          "FROM " NUMBERS(4) " a",
          "1 2 NULL 1\n2 3 2 2\n3 3 2 2\n4 2 2 2\n");
}

/* --- the watch --- */

struct watcher {
    uint64_t looks;
    uint64_t most; /* looks until it is cancelled; 0: never */
};

static status look(void *context, bool *is_turn_over)
{
    struct watcher *watcher = context;
    *is_turn_over = true;
    watcher->looks++;
    return watcher->most > 0 && watcher->looks > watcher->most
               ? status_make(STATUS_CANCELLED, "enough")
               : status_ok();
}

/* Each of these has a place where it pauses, many times, and comes to what it does without. */
static void pauses_change_nothing(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT COUNT(*), SUM(a) FROM " NUMBERS(300000) " a WHERE MOD(a, 3) = 0",
        "SELECT MOD(a, 5) AS k, COUNT(*) FROM " NUMBERS(200000) " a GROUP BY k",
        "SELECT DISTINCT MOD(a, 5) FROM " NUMBERS(200000) " a",
        "SELECT a FROM " NUMBERS(200000) " a ORDER BY MOD(a, 1000), a LIMIT 3 OFFSET 2",
        "SELECT MOD(a, 7) FROM " NUMBERS(100000) " a ORDER BY MOD(a, 1000), a DESC",
        "SELECT a, ROW_NUMBER() OVER (ORDER BY -a) AS r FROM " NUMBERS(90000) " a QUALIFY r < 3",
        "SELECT a, b FROM " NUMBERS(1000) " a, " NUMBERS(400) " b LIMIT 2 OFFSET 399990",
        "SELECT a, b FROM " NUMBERS(200000) " a LEFT JOIN UNNEST(IF(a = 5, [], [a])) b LIMIT 6",
    };
    struct watcher watcher = {0};
    const struct sql_watch watch = {look, &watcher};
    const struct test_database watched = {.watch = &watch};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct buffer without = {0}, with = {0};
        watcher.looks = 0;
        assert_int_equal(test_query(&plain, queries[i], NULL, 0, &without), STATUS_OK);
        assert_int_equal(test_query(&watched, queries[i], NULL, 0, &with), STATUS_OK);
        assert_string_equal((char *)without.data, (char *)with.data);
        assert_true(watcher.looks > 2 || i == 7);
        buffer_free(&without);
        buffer_free(&with);
    }
}

/* Wherever a query spends its time, it can be ended. */
static void a_query_can_be_stopped_anywhere(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT COUNT(*) FROM " NUMBERS(1000000) " a, " NUMBERS(1000000) " b",
        "SELECT a FROM " NUMBERS(700000) " a ORDER BY -a",
        "SELECT ARRAY_AGG(DISTINCT MOD(a, 9) ORDER BY MOD(a, 9)) FROM " NUMBERS(500000) " a",
        "SELECT APPROX_QUANTILES(a, 2) FROM " NUMBERS(800000) " a",
        "SELECT COUNT(*) OVER (ORDER BY a ROWS BETWEEN 9000 PRECEDING AND 9000 FOLLOWING) "
        "FROM " NUMBERS(100000) " a",
        "SELECT ARRAY_IS_DISTINCT(GENERATE_ARRAY(1, 1000000))",
        "SELECT ARRAY_LENGTH(REGEXP_EXTRACT_ALL(REPEAT('a', 1000000), '(?:a.*b)|a'))",
        "SELECT LENGTH(REGEXP_REPLACE(REPEAT('a', 1000000), '(a.*b)|a', 'a'))",
        "SELECT REGEXP_EXTRACT(REPEAT('a', 1000000), '(?:a.*b)|a', 1, 1000000)",
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct watcher watcher = {.most = 25};
        const struct sql_watch watch = {look, &watcher};
        const struct test_database watched = {.watch = &watch};
        fails(&watched, queries[i], STATUS_CANCELLED, "enough");
    }
}

/* --- sorting --- */

struct numbered {
    uint32_t key;
    uint32_t at;
};

static int compare_keys(const void *a, const void *b, void *context)
{
    (void)context;
    const struct numbered *left = a, *right = b;
    int order = (left->key > right->key) - (left->key < right->key);
    return order != 0 ? order : (left->at > right->at) - (left->at < right->at);
}

static void sorting_sorts(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 255, 256, 257, 511, 512, 513, 1000, 4096, 5001};
    struct sql_session session = {0};
    uint32_t random = 1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct numbered *items = calloc(counts[c] + 1, sizeof *items);
        assert_non_null(items);
        for (size_t i = 0; i < counts[c]; i++) {
            random = random * 1664525 + 1013904223;
            items[i] = (struct numbered){random >> 24, (uint32_t)i};
        }
        assert_true(
            status_is_ok(sql_sort(items, counts[c], sizeof *items, compare_keys, NULL, &session)));
        for (size_t i = 1; i < counts[c]; i++)
            assert_true(compare_keys(&items[i - 1], &items[i], NULL) < 0);
        free(items);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bounded_sort_forgets_what_it_drops),
        cmocka_unit_test(a_sort_that_is_too_large_says_so),
        cmocka_unit_test(a_maximum_forgets_what_it_was),
        cmocka_unit_test(values_that_share_parts_have_a_limit),
        cmocka_unit_test(each_row_has_its_steps),
        cmocka_unit_test(regular_expressions_fit_their_texts),
        cmocka_unit_test(running_windows_are_linear),
        cmocka_unit_test(pauses_change_nothing),
        cmocka_unit_test(a_query_can_be_stopped_anywhere),
        cmocka_unit_test(sorting_sorts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
