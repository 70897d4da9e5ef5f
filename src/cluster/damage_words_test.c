/* Which rows a damaged range is said to have: an index has keys that are cut off anywhere, so that
 * they lie between two blocks. */
#include "cluster/cluster.h"
#include "cluster/damage.h"

#include "cluster/testing/testing.h"

static void append(struct buffer *told, bytes row)
{
    for (size_t i = 0; i < row.size; i++)
        buffer_append_format(told, row.data[i] >= 32 && row.data[i] < 127 ? "%c" : "<%02x>",
                             row.data[i]);
}

static status take(void *context, const struct lost_rows *lost)
{
    struct buffer *told = context;
    buffer_append_format(told, lost->is_large_cells ? "S " : "R ");
    append(told, lost->from);
    buffer_append_format(told, "-");
    append(told, lost->to);
    buffer_append_format(told, " ");
    return status_ok();
}

static void assert_told(bytes from, bytes to, const char *expected)
{
    const struct damage_record record = {
        .keyspace_id = 7, .file = 12, .block = 1, .from = from, .to = to, .what = "damaged"};
    struct buffer told = {0};
    assert_ok(damage_tell(&record, "t", take, &told));
    buffer_append_byte(&told, 0);
    assert_string_equal((const char *)told.data, expected);
    buffer_free(&told);
}

#define KEY(text) bytes_make(text, sizeof text - 1)

static void rows_are_named_as_they_are(void **state)
{
    (void)state;
    assert_told(KEY("Rk1"), KEY("Rk2\0"), "R k1-k2<00> ");
    assert_told(KEY("Rk1"), KEY("T"), "R k1- S - ");
}

static void rows_of_large_cells_begin_with_the_first_that_may_have_one(void **state)
{
    (void)state;
    assert_told(KEY("Sk1\0\1abc"), KEY("Sk2\0\1abc\0"), "S k1-k2 ");
    assert_told(KEY("Sk1\0"), KEY("Sk2\0\1a"), "S k1-k2 "); /* k1 has Sk1 00 01 … */
    assert_told(KEY("Sk1"), KEY("Sk3"), "S k1-k3 ");
    assert_told(KEY("Sk\0\xff"), KEY("Sk\0\xff\0\1a"), "S k<00>-k<00> ");
    assert_told(KEY("Rk9"), KEY("Sk1\0"), "R k9- S -k1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_named_as_they_are),
        cmocka_unit_test(rows_of_large_cells_begin_with_the_first_that_may_have_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
