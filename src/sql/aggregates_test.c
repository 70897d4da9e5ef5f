/* Aggregates that keep what they are given, or count about: aggregates_list.c, aggregates_approx.c,
 * aggregates_hll.c. */
#include "sql/expression_testing.h"

#define ERROR(words) "OUT_OF_RANGE: " words
#define NUMBERS      " FROM UNNEST([2, 1, -2, 3, -2, 1, 2]) AS x"
#define FRUITS       " FROM UNNEST(['apple', NULL, 'pear', 'banana', 'pear']) AS x"
#define NO_FRUITS    " FROM UNNEST(CAST([] AS ARRAY<STRING>)) AS x"
#define NULL_FRUITS  " FROM UNNEST(CAST([NULL, NULL] AS ARRAY<STRING>)) AS x"

static void lists_are_kept(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"ARRAY_AGG(x)" NUMBERS, "[2, 1, -2, 3, -2, 1, 2]", "in the order of rows"},
        {"ARRAY_AGG(DISTINCT x)" NUMBERS, "[2, 1, -2, 3]", "each once, as they come"},
        {"ARRAY_AGG(x ORDER BY x)" NUMBERS, "[-2, -2, 1, 1, 2, 2, 3]", "sorted"},
        {"ARRAY_AGG(x ORDER BY ABS(x))" NUMBERS, "[1, 1, 2, -2, -2, 2, 3]", "by another value"},
        {"ARRAY_AGG(x ORDER BY x DESC LIMIT 3)" NUMBERS, "[3, 2, 2]", "the greatest"},
        {"ARRAY_AGG(x LIMIT 5)" NUMBERS, "[2, 1, -2, 3, -2]", "so many"},
        {"ARRAY_AGG(x LIMIT 0)" NUMBERS, "NULL", "none"},
        {"ARRAY_AGG(DISTINCT x ORDER BY x DESC LIMIT 2)" NUMBERS, "[3, 2]", "all of that"},
        {"ARRAY_AGG(x HAVING MAX ABS(x))" NUMBERS, "[3]", "of the greatest"},
        {"ARRAY_AGG(x)" FRUITS, "[\"apple\", NULL, \"pear\", \"banana\", \"pear\"]", "NULLs stay"},
        {"ARRAY_AGG(x IGNORE NULLS)" FRUITS, "[\"apple\", \"pear\", \"banana\", \"pear\"]",
         "unless it is said"},
        {"ARRAY_AGG(x RESPECT NULLS ORDER BY x LIMIT 2)" FRUITS, "[NULL, \"apple\"]",
         "NULLs first"},
        {"ARRAY_AGG(x)" NO_FRUITS, "NULL", "no rows"},
        {"ARRAY_AGG(x)" NULL_FRUITS, "[NULL, NULL]", "NULLs alone"},
        {"ARRAY_AGG(x IGNORE NULLS)" NULL_FRUITS, "NULL", "none is left"},
        {"ARRAY_AGG((x, 1) LIMIT 1)" FRUITS, "[(\"apple\", 1)]", "structs"},
        {"ARRAY_AGG([x])" NUMBERS,
         "INVALID_ARGUMENT: No matching signature for function ARRAY_AGG for argument type: "
         "ARRAY<INT64> [at 1:8]",
         "no arrays of arrays"},
        {"ARRAY_AGG(UPPER(x) IGNORE NULLS)" FRUITS, "[\"APPLE\", \"PEAR\", \"BANANA\", \"PEAR\"]",
         "what the row's memory held is copied"},
        {"ARRAY_LENGTH(ARRAY_AGG(x)) FROM UNNEST(GENERATE_ARRAY(1, 10000)) AS x", "10000", "many"},
        {"ARRAY_CONCAT_AGG([x, x + 1])" NUMBERS, "[2, 3, 1, 2, -2, -1, 3, 4, -2, -1, 1, 2, 2, 3]",
         "joined"},
        {"ARRAY_CONCAT_AGG([x] ORDER BY x LIMIT 2)" NUMBERS, "[-2, -2]", "sorted, limited"},
        {"ARRAY_CONCAT_AGG(IF(x = 3, [x, NULL], NULL))" NUMBERS, "[3, NULL]",
         "NULL arrays are nothing"},
        {"ARRAY_CONCAT_AGG(IF(x = 3, CAST([] AS ARRAY<INT64>), NULL))" NUMBERS, "[]",
         "an empty one is something"},
        {"ARRAY_CONCAT_AGG(CAST(NULL AS ARRAY<INT64>))" NUMBERS, "NULL", "NULLs alone"},
        {"ARRAY_CONCAT_AGG([x])" NO_FRUITS, "NULL", "no rows"},
        {"ARRAY_CONCAT_AGG(x)" NUMBERS,
         "INVALID_ARGUMENT: No matching signature for function ARRAY_CONCAT_AGG for argument "
         "type: INT64 [at 1:8]",
         "no arrays"},
        {"STRING_AGG(x)" FRUITS, "\"apple,pear,banana,pear\"", "commas, no NULLs"},
        {"STRING_AGG(x, ' & ')" FRUITS, "\"apple & pear & banana & pear\"", "another delimiter"},
        {"STRING_AGG(DISTINCT x, ' & ' ORDER BY x)" FRUITS, "\"apple & banana & pear\"",
         "each once"},
        {"STRING_AGG(x, ' & ' ORDER BY LENGTH(x))" FRUITS, "\"pear & pear & apple & banana\"",
         "sorted"},
        {"STRING_AGG(x, ' & ' ORDER BY x LIMIT 2)" FRUITS, "\"apple & banana\"", "limited"},
        {"STRING_AGG(x, '')" FRUITS, "\"applepearbananapear\"", "nothing between"},
        {"STRING_AGG(x, NULL)" FRUITS, "NULL", "a NULL delimiter"},
        {"STRING_AGG(x)" NO_FRUITS, "NULL", "no rows"},
        {"STRING_AGG(x)" NULL_FRUITS, "NULL", "NULLs alone"},
        {"STRING_AGG('')" NUMBERS, "\",,,,,,\"", "empty texts"},
        {"STRING_AGG(CAST(x AS BYTES))" FRUITS, "b\"apple,pear,banana,pear\"", "bytes"},
        {"STRING_AGG(CAST(x AS BYTES), b'\\xff')" FRUITS, "b\"apple\\xffpear\\xffbanana\\xffpear\"",
         "bytes between"},
        {"STRING_AGG(x)" NUMBERS,
         "INVALID_ARGUMENT: No matching signature for function STRING_AGG for argument type: "
         "INT64 [at 1:8]",
         "numbers"},
    };
    CHECK_EXPRESSIONS(cases);
}

#define TENS        " FROM UNNEST([1, 1, 1, 4, 5, 6, 7, 8, 9, 10]) AS x"
#define PAIRS(list) " FROM UNNEST(CAST([" list "] AS ARRAY<STRUCT<f STRING, w INT64>>)) AS x"
#define SALES       PAIRS("('apple', 3), ('pear', 2), ('apple', 0), ('banana', 5), ('pear', 4)")
#define NO_TOP      ERROR("The number of results of APPROX_TOP_COUNT must be positive")

static void the_many_are_told_from_the_few(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"APPROX_QUANTILES(x, 2)" TENS, "[1, 5, 10]", "the middle"},
        {"APPROX_QUANTILES(DISTINCT x, 2)" TENS, "[1, 6, 10]", "each once"},
        {"APPROX_QUANTILES(x, 1)" TENS, "[1, 10]", "the ends"},
        {"APPROX_QUANTILES(x, 100)[OFFSET(90)] FROM UNNEST(GENERATE_ARRAY(1, 10)) AS x", "9",
         "of a hundred"},
        {"APPROX_QUANTILES(x, 4) FROM UNNEST([3.5]) AS x", "[3.5, 3.5, 3.5, 3.5, 3.5]", "of one"},
        {"APPROX_QUANTILES(x, 2)" FRUITS, "[\"apple\", \"banana\", \"pear\"]", "texts, no NULLs"},
        {"APPROX_QUANTILES(x, 2 RESPECT NULLS)" FRUITS, "[NULL, \"banana\", \"pear\"]",
         "with NULLs"},
        {"APPROX_QUANTILES(x, 2)" NO_FRUITS, "NULL", "no rows"},
        {"APPROX_QUANTILES(x, 2)" NULL_FRUITS, "NULL", "NULLs alone"},
        {"APPROX_QUANTILES(x, 0)" TENS,
         ERROR("The number of results of APPROX_QUANTILES must be positive"), "none"},
        {"APPROX_QUANTILES(x, 9223372036854775807)" TENS,
         "RESOURCE_EXHAUSTED: The query needs more memory than it is given (--query-memory)",
         "too many"},
        {"APPROX_TOP_COUNT(x, 2)" FRUITS, "[(\"pear\", 2), (NULL, 1)]", "NULLs count"},
        {"APPROX_TOP_COUNT(x, 10)" TENS,
         "[(1, 3), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (9, 1), (10, 1)]", "all there are"},
        {"APPROX_TOP_COUNT(x, 1)[0].value" TENS, "1", "field value"},
        {"APPROX_TOP_COUNT(x, 1)[0].count" TENS, "3", "field count"},
        {"APPROX_TOP_COUNT(x, 1)" NO_FRUITS, "NULL", "no rows"},
        {"APPROX_TOP_COUNT(x, 1)" NULL_FRUITS, "[(NULL, 2)]", "NULLs alone"},
        {"APPROX_TOP_COUNT(x, 0)" TENS, NO_TOP, "none"},
        {"APPROX_TOP_COUNT(x, NULL)" TENS, NO_TOP, "NULL"},
        {"APPROX_TOP_COUNT(MOD(x, 7), 2) FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x",
         "[(1, 143), (2, 143)]", "many rows of few values"},
        {"APPROX_TOP_COUNT(DIV(x, 2), 1) FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x", "[(1, 2)]",
         "many values"},
        {"APPROX_TOP_SUM(x.f, x.w, 2)" SALES, "[(\"pear\", 6), (\"banana\", 5)]", "the heaviest"},
        {"APPROX_TOP_SUM(x.f, x.w * 0.5, 1)" SALES, "[(\"pear\", 3.0)]", "floats"},
        {"APPROX_TOP_SUM(x.f, x.w, 9)" PAIRS("('apple', NULL), ('pear', 0), ('pear', NULL)"),
         "[(\"pear\", 0), (\"apple\", NULL)]", "NULL weights"},
        {"APPROX_TOP_SUM(x.f, x.w, 9)" PAIRS("(NULL, 3), ('a', 2)"), "[(NULL, 3), (\"a\", 2)]",
         "a NULL value"},
        {"APPROX_TOP_SUM(x.f, x.w, 9)" PAIRS("('a', -1)"),
         ERROR("Weights of APPROX_TOP_SUM must not be negative or NaN"), "negative"},
        {"APPROX_TOP_SUM(x.f, CAST('nan' AS FLOAT64), 9)" SALES,
         ERROR("Weights of APPROX_TOP_SUM must not be negative or NaN"), "NaN"},
        {"APPROX_TOP_SUM(x.f, x.w, 9)" PAIRS("('a', 9223372036854775807), ('a', 1)"),
         ERROR("APPROX_TOP_SUM() aggregation overflow"), "overflow"},
        {"APPROX_TOP_SUM(x.f, x.w, 0)" SALES,
         ERROR("The number of results of APPROX_TOP_SUM must be positive"), "none"},
        {"APPROX_TOP_SUM(x, 1, 9)" NO_FRUITS, "NULL", "no rows"},
    };
    CHECK_EXPRESSIONS(cases);
}

#define SKETCHES             " FROM UNNEST(GENERATE_ARRAY(1, 100)) AS x GROUP BY MOD(x, 7))"
#define BAD_SKETCH(function) ERROR("Invalid or incompatible sketch in HLL_COUNT." function)

static void different_values_are_counted(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"APPROX_COUNT_DISTINCT(x)" NUMBERS, "4", "each once"},
        {"APPROX_COUNT_DISTINCT(x)" FRUITS, "3", "no NULLs"},
        {"APPROX_COUNT_DISTINCT(x)" NO_FRUITS, "0", "no rows"},
        {"APPROX_COUNT_DISTINCT(x)" NULL_FRUITS, "0", "NULLs alone"},
        {"APPROX_COUNT_DISTINCT(x) FROM UNNEST([0.0, -0.0, 1.5]) AS x", "2", "-0 is 0"},
        {"APPROX_COUNT_DISTINCT([MOD(x, 2), 1])" NUMBERS, "2", "arrays"},
        {"ABS(APPROX_COUNT_DISTINCT(x) - 20000) < 600 "
         "FROM UNNEST(GENERATE_ARRAY(1, 20000)) AS x",
         "true", "about: 3 of 100 off at most"},
        {"HLL_COUNT.EXTRACT(HLL_COUNT.INIT(x))" NUMBERS, "4", "a sketch of integers"},
        {"HLL_COUNT.EXTRACT(HLL_COUNT.INIT(x))" FRUITS, "3", "a sketch of texts"},
        {"HLL_COUNT.EXTRACT(HLL_COUNT.INIT(CAST(x AS BYTES), 10))" FRUITS, "3", "of bytes"},
        {"HLL_COUNT.INIT(x)" NULL_FRUITS, "NULL", "NULLs alone"},
        {"HLL_COUNT.INIT(x)" NO_FRUITS, "NULL", "no rows"},
        {"HLL_COUNT.INIT(x) FROM UNNEST([1, 2, 3, 2]) AS x",
         "b\"\\x08p\\x10\\x04\\x18\\x02 \\x08\\x82\\x07\\x12\\x10\\x03\\x18\\x0f \\x142\\n\\xac"
         "\\xfc \\xea\\xa6\\r\\xeb\\xfe\\xa1\\x01\"",
         "Zetasketch's bytes: 4 values, 3 of them different, of precision 15 and 20"},
        {"HLL_COUNT.INIT(x, 9)" NUMBERS,
         ERROR("HLL_COUNT.INIT precision must be between 10 and 24"), "too coarse"},
        {"HLL_COUNT.INIT(x, 25)" NUMBERS,
         ERROR("HLL_COUNT.INIT precision must be between 10 and 24"), "too fine"},
        {"LENGTH(HLL_COUNT.INIT(x, 10)) BETWEEN 1024 AND 1060 "
         "FROM UNNEST(GENERATE_ARRAY(1, 5000)) AS x",
         "true", "as many registers as there may be"},
        {"HLL_COUNT.EXTRACT(NULL)", "0", "NULL"},
        {"HLL_COUNT.EXTRACT(b'xyz')", ERROR("Invalid sketch in HLL_COUNT.EXTRACT"), "no sketch"},
        {"HLL_COUNT.EXTRACT(b'')", ERROR("Invalid sketch in HLL_COUNT.EXTRACT"), "empty"},
        {"SAFE.HLL_COUNT.EXTRACT(b'xyz')", "NULL", "SAFE"},
        {"HLL_COUNT.MERGE(s) FROM (SELECT HLL_COUNT.INIT(x) AS s" SKETCHES, "100", "merged"},
        {"HLL_COUNT.MERGE(s) FROM (SELECT HLL_COUNT.INIT(x) AS s FROM UNNEST([1, 2]) AS x) AS a, "
         "UNNEST([1, 2, 3]) AS again",
         "2", "the same again"},
        {"HLL_COUNT.EXTRACT(HLL_COUNT.MERGE_PARTIAL(s)) "
         "FROM (SELECT HLL_COUNT.INIT(x, 12) AS s" SKETCHES,
         "100", "a sketch of sketches"},
        {"HLL_COUNT.MERGE(s) FROM (SELECT HLL_COUNT.INIT(x, 10 + MOD(x, 7)) AS s FROM "
         "UNNEST([1, 2, 3]) AS x GROUP BY x)",
         "3", "precisions may differ"},
        {"HLL_COUNT.MERGE(CAST(x AS BYTES))" NULL_FRUITS, "0", "NULLs alone"},
        {"HLL_COUNT.MERGE_PARTIAL(CAST(x AS BYTES))" NULL_FRUITS, "NULL", "no sketches"},
        {"HLL_COUNT.MERGE(CAST(x AS BYTES))" FRUITS, BAD_SKETCH("MERGE"), "no sketch"},
        {"HLL_COUNT.MERGE_PARTIAL(CAST(x AS BYTES))" FRUITS, BAD_SKETCH("MERGE_PARTIAL"),
         "no sketch to merge"},
        {"HLL_COUNT.MERGE(IF(y = 1, s, t)) FROM (SELECT HLL_COUNT.INIT(x) AS s, "
         "HLL_COUNT.INIT('a') AS t FROM UNNEST([1, 2]) AS x) AS a, UNNEST([1, 2]) AS y",
         BAD_SKETCH("MERGE"), "numbers and texts"},
    };
    CHECK_EXPRESSIONS(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_kept),
        cmocka_unit_test(the_many_are_told_from_the_few),
        cmocka_unit_test(different_values_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
