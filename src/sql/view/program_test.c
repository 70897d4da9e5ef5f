/* Programs of views: keys and cells as they are recorded of production, what is left out, and what
 * is refused. */
#include "base/testing/testing.h"
#include "sql/testing/view_double.h"

#include <stdio.h>

/* --- helpers --- */

static void make(struct view_double *view, const char *query)
{
    assert_ok(view_double_init(view, query));
}

static void put(struct view_double *view, const char *key, const char *qualifier, const char *value)
{
    bytes row = bytes_of(key);
    view_double_put(view, row, "f", qualifier, 0, bytes_of(value));
    assert_ok(view_double_follow(view, &row, 1));
}

static void assert_row(struct view_double *view, const char *key, const char *expected)
{
    struct buffer shown = {0};
    view_double_show(view, bytes_of(key), &shown);
    assert_string_equal((const char *)shown.data, expected);
    buffer_free(&shown);
}

static void assert_rows(struct view_double *view, const char *query, const char *expected)
{
    struct buffer shown = {0};
    view_double_query(view, query, &shown);
    assert_string_equal((const char *)shown.data, expected);
    buffer_free(&shown);
}

/* --- recorded rows --- */

static void counts_as_a_client_test_expects_them(void **state)
{
    (void)state;
    struct view_double view;
    make(&view, "SELECT _key, COUNT(f['col1']) AS `result.count` FROM t GROUP BY _key");
    size_t count;
    const char *const *families = view_program_families(view.program, &count);
    assert_int_equal(count, 2);
    assert_string_equal(families[0], "default");
    assert_string_equal(families[1], "result");
    put(&view, "r1", "col1", "x");
    assert_row(&view, "r1", "default:@0= result:count@0=0000000000000001");
    view_double_free(&view);
}

static void a_table_is_counted(void **state)
{
    (void)state;
    struct view_double view;
    make(&view, "SELECT '*' AS _key, COUNT(*) AS count, SUM(CAST(CAST(f['a'] AS STRING) AS INT64)) "
                "AS total FROM t GROUP BY _key");
    put(&view, "r1", "a", "5");
    put(&view, "r2", "a", "7");
    put(&view, "r3", "b", "");
    assert_row(&view, "*",
               "default:@0= default:count@0=0000000000000003 default:total@0=000000000000000c");
    put(&view, "r2", "a", "-7");
    assert_row(&view, "*",
               "default:@0= default:count@0=0000000000000003 default:total@0=fffffffffffffffe");
    assert_rows(&view, "SELECT * FROM v", "\"*\" 3 -2\n");
    view_double_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_as_a_client_test_expects_them),
        cmocka_unit_test(a_table_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
