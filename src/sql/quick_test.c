/* Tests of queries that run where nobody may wait: which plans these are, and that a query whose
 * row must be waited for goes on later as if nothing had been. */
#include "sql/testing/testing.h"

#include "base/testing/testing.h"

static const struct test_cell cells[] = {
    {"a", "f", "x", 3000, "1"}, {"a", "g", "y", 1000, "why"}, {"b", "f", "x", 2000, "2"},
    {"c", "f", "x", 5000, "3"}, {"c", "f", "x", 1000, "old"},
};
static const struct test_database database = {.cells = cells,
                                              .count = sizeof cells / sizeof *cells};
static const struct test_database waiting = {
    .cells = cells, .count = sizeof cells / sizeof *cells, .waits = true};

static void check_quick(const char *query, const char *expected)
{
    const struct test_parameter key = {"k", &sql_bytes, sql_of_text(bytes_of("b"))};
    struct buffer out = {0};
    test_quick(&database, query, &key, 1, &out);
    if (strcmp((char *)out.data, expected) != 0)
        fail_msg("%s: %s", query, (char *)out.data);
    buffer_free(&out);
}

static void a_row_by_its_key_is_quick(void **state)
{
    (void)state;
    static const char *const quick[] = {
        "SELECT * FROM t WHERE _key = @k",
        "SELECT * FROM t WHERE @k = _key",
        "SELECT * FROM t WHERE _key = b'a'",
        "SELECT _key, f['x'] AS x FROM t WHERE _key = @k LIMIT 1",
        "SELECT CAST(f['x'] AS STRING) AS x FROM t WHERE _key = @k",
        "SELECT TO_INT64(f['x']) AS x FROM t WHERE _key = @k AND f['x'] IS NOT NULL",
        "SELECT * FROM t(with_history => TRUE, latest_n => 2) WHERE _key = @k",
        "SELECT f['x'] AS x FROM (SELECT * FROM t WHERE _key = @k) WHERE f['x'] = b'1'",
    };
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        check_quick(quick[i], "quick\n");
}

static void what_may_take_long_is_not(void **state)
{
    (void)state;
    static const char *const slow[] = {
        "SELECT 1",
        "SELECT * FROM t",
        "SELECT * FROM t WHERE _key >= @k",
        "SELECT * FROM t WHERE _key = @k OR f['x'] = b'1'",
        "SELECT * FROM t WHERE _key IN (@k, b'a')",
        "SELECT * FROM t WHERE f['x'] = @k",
        "SELECT COUNT(*) AS n FROM t WHERE _key = @k",
        "SELECT * FROM t WHERE _key = @k ORDER BY f['x']",
        "SELECT REGEXP_CONTAINS(f['x'], b'(a|b)*c') AS x FROM t WHERE _key = @k",
        "SELECT ARRAY_TRANSFORM([1, 2], e -> e + 1) AS x FROM t WHERE _key = @k",
        "SELECT REPEAT('x', 100000000) AS x FROM t WHERE _key = @k",
        "SELECT CAST(CAST(f['x'] AS STRING) AS TIMESTAMP) AS x FROM t WHERE _key = @k",
        "SELECT * FROM t WHERE _key = @k AND REGEXP_CONTAINS(f['x'], b'a')",
        "SELECT * FROM t WHERE _key = CAST(REPEAT('b', 1) AS BYTES) || @k",
        "SELECT x FROM t, UNNEST([1, 2]) AS x WHERE _key = @k",
    };
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        check_quick(slow[i], "not\n");
}

/* Each row is waited for once: operators keep what they have meanwhile. */
static void a_query_that_must_wait_goes_on_where_it_was(void **state)
{
    (void)state;
    static const char *const queries[] = {
        "SELECT * FROM t WHERE _key = 'b'",
        "SELECT _key, f['x'] AS x FROM t WHERE f['x'] > b'1'",
        "SELECT _key FROM t LIMIT 2",
        "SELECT _key FROM t LIMIT 1 OFFSET 1",
        "SELECT COUNT(*) AS n, MAX(f['x']) AS x FROM t",
        "SELECT g['y'] AS y, COUNT(*) AS n FROM t GROUP BY y",
        "SELECT _key FROM t ORDER BY f['x'] DESC",
        "SELECT DISTINCT g['y'] AS y FROM t",
        "SELECT _key, x FROM t, UNNEST([1, 2]) AS x",
        "SELECT _key, _timestamp FROM UNPACK((SELECT * FROM t(with_history => TRUE)))",
        "SELECT _key, ROW_NUMBER() OVER (ORDER BY _key DESC) AS n FROM t",
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct buffer with = {0}, without = {0};
        enum status_code code = test_query(&database, queries[i], NULL, 0, &without);
        assert_int_equal(test_query(&waiting, queries[i], NULL, 0, &with), code);
        assert_string_equal((char *)with.data, (char *)without.data);
        buffer_free(&with);
        buffer_free(&without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_by_its_key_is_quick),
        cmocka_unit_test(what_may_take_long_is_not),
        cmocka_unit_test(a_query_that_must_wait_goes_on_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
