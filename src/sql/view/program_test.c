/* Programs of views: keys and cells as they are recorded of production, what is left out, and what
 * is refused. */
#include "base/testing/testing.h"
#include "sql/testing/view_double.h"

#include <stdio.h>
#include <stdlib.h>

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

/* --- recorded keys --- */

/* The bytes of a text in hex; blanks are passed over. */
static bytes from_hex(const char *hex, uint8_t *room)
{
    size_t size = 0;
    for (unsigned byte; *hex != '\0'; hex += *hex == ' ' ? 1 : 2)
        if (*hex != ' ' && sscanf(hex, "%2x", &byte) == 1)
            room[size++] = (uint8_t)byte;
    return bytes_make(room, size);
}

/* A source row: key, and columns "b" and "s" (texts, NULL without), "i" (a decimal). */
struct vector_row {
    bytes key;
    bytes b;
    const char *i;
    bytes s;
};

static void put_vector(struct view_double *view, const struct vector_row *row)
{
    if (row->b.data != NULL)
        view_double_put(view, row->key, "f", "b", 0, row->b);
    if (row->s.data != NULL)
        view_double_put(view, row->key, "f", "s", 0, row->s);
    if (row->i != NULL)
        view_double_put(view, row->key, "f", "i", 0, bytes_of(row->i));
    view_double_put(view, row->key, "g", "x", 0, bytes_of("x"));
    assert_ok(view_double_follow(view, &row->key, 1));
}

static void assert_key(const char *query, const struct vector_row *row, const char *hex)
{
    struct view_double view;
    uint8_t room[128];
    make(&view, query);
    put_vector(&view, row);
    bytes expected = from_hex(hex, room);
    assert_true(view.view.count > 0);
    bytes key = view.view.cells[0].key;
    if (!bytes_equal(key, expected)) {
        print_error("%s: not %s but ", query, hex);
        for (size_t i = 0; i < key.size; i++)
            print_error("%02x", key.data[i]);
        fail();
    }
    view_double_free(&view);
}

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (const uint8_t *)(literal), sizeof(literal) - 1                                            \
    }
#define KEY TEXT("t7#p1#n#rowJ")
#define INT "CAST(CAST(f['i'] AS STRING) AS INT64)"

static void keys_of_three_columns(void **state)
{
    (void)state;
    static const struct {
        struct vector_row row;
        const char *key;
    } cases[] = {
        {{KEY, TEXT(""), "-9223372036854775808", TEXT("p1")},
         "00ff 0001 00ff3f8000ff00ff00ff00ff00ff00ff00ff 0001 7031"},
        {{KEY, TEXT("k"), "0", TEXT("p1")}, "6b 0001 80 0001 7031"},
        {{KEY, TEXT("k\0\1"), "1", TEXT("p\0")}, "6b00ff01 0001 81 0001 7000ff"},
        {{KEY, TEXT("k\0a"), "-1", TEXT("p1")}, "6b00ff61 0001 7f 0001 7031"},
        {{KEY, TEXT("k\xff"), "256", TEXT("p1")}, "6bff 0001 c100ff 0001 7031"},
        {{KEY, TEXT("t1"), "50", TEXT("p1")}, "7431 0001 b2 0001 7031"},
        {{KEY, TEXT("t1"), "70", TEXT("p1")}, "7431 0001 c046 0001 7031"},
        {{KEY, TEXT("t1"), "100", TEXT("p1")}, "7431 0001 c064 0001 7031"},
        {{KEY, TEXT("t1"), "7", TEXT("p1")}, "7431 0001 87 0001 7031"},
        {{KEY, TEXT("t1"), "9223372036854775807", TEXT("p1")},
         "7431 0001 ffc07fffffffffffffff 0001 7031"},
        {{KEY, TEXT("t7"), NULL, TEXT("p1")}, "7437 0001 0000 0001 7031"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_key("SELECT f['b'] AS b, " INT " AS i, CAST(f['s'] AS STRING) AS s, COUNT(*) AS n "
                   "FROM t GROUP BY b, i, s",
                   &cases[i].row, cases[i].key);
}

static void keys_of_one_column(void **state)
{
    (void)state;
    static const struct {
        const char *i;
        const char *key;
    } numbers[] = {{NULL, "0000"}, {"-9223372036854775808", "00ff3f8000ff00ff00ff00ff00ff00ff00ff"},
                   {"-1", "7f"},   {"0", "80"},
                   {"1", "81"},    {"256", "c100ff"}};
    static const struct {
        bytes b;
        const char *key;
    } texts[] = {
        {TEXT(""), "00ff"},       {TEXT("\0"), "00ff00ff"},   {TEXT("\0\0"), "00ff00ff00ff"},
        {TEXT("\0\1"), "00ff01"}, {TEXT("k\0a"), "6b00ff61"}, {TEXT("k\xff"), "6bff"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_key("SELECT " INT " AS i, COUNT(*) AS n FROM t GROUP BY i",
                   &(struct vector_row){.key = KEY, .i = numbers[i].i}, numbers[i].key);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_key("SELECT f['b'] AS b FROM t GROUP BY b",
                   &(struct vector_row){.key = KEY, .b = texts[i].b}, texts[i].key);
}

static void keys_of_an_index(void **state)
{
    (void)state;
    static const struct {
        struct vector_row row;
        const char *key;
    } cases[] = {
        {{.key = KEY}, "0000 0001 7437237031236e23726f774a"},
        {{.key = TEXT("k\0a#p1#n#r1"), .i = "-1"}, "7f 0001 6b00ff61237031236e237231"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_key("SELECT " INT " AS i, _key AS rk FROM t ORDER BY i, rk", &cases[i].row,
                   cases[i].key);
    const struct vector_row alone = {.key = TEXT("k\0\1#p\0#n#r3")};
    assert_key("SELECT _key FROM t ORDER BY _key", &alone, "6b0001237000236e237233");
    assert_key("SELECT _key, COUNT(*) AS n FROM t GROUP BY _key", &alone, "6b0001237000236e237233");
}

/* NULLs at the end are left out; with nothing else there is one. */
static void keys_that_end_with_nulls(void **state)
{
    (void)state;
    static const char query[] = "SELECT f['b'] AS b, " INT " AS i FROM t GROUP BY b, i";
    assert_key(query, &(struct vector_row){.key = KEY, .b = TEXT("k")}, "6b");
    assert_key(query, &(struct vector_row){.key = KEY}, "0000");
    assert_key(query, &(struct vector_row){.key = KEY, .i = "0"}, "0000 0001 80");
}

/* --- cells --- */

static void every_type_has_its_cell(void **state)
{
    (void)state;
    struct view_double view;
    make(&view,
         "SELECT _key, f['a'] AS b, CAST(f['a'] AS STRING) AS s, LENGTH(f['a']) AS i, "
         "LENGTH(f['a']) / 4 AS d, f['a'] > b'a' AS t, f['x'] AS none, "
         "TIMESTAMP_FROM_UNIX_MILLIS(5) AS u, IEEE_DIVIDE(1, 0) AS inf FROM t ORDER BY _key");
    put(&view, "r", "a", "ab");
    assert_row(&view, "r",
               "default:@0= default:b@0=6162 default:d@0=3fe0000000000000 "
               "default:i@0=0000000000000002 default:s@0=6162 default:t@0=01 "
               "default:u@0=0000000000001388");
    assert_rows(&view, "SELECT * FROM v",
                "b\"r\" b\"ab\" \"ab\" 2 0.5 true NULL TIMESTAMP \"1970-01-01 "
                "00:00:00.005+00\" NULL\n");
    put(&view, "r", "a", "a");
    assert_row(&view, "r",
               "default:@0= default:b@0=61 default:d@0=3fd0000000000000 "
               "default:i@0=0000000000000001 default:s@0=61 default:t@0=00 "
               "default:u@0=0000000000001388");
    view_double_free(&view);
}

/* Columns of an index's key are cells as well; a family is passed on whole. */
static void an_index_has_its_key_as_cells(void **state)
{
    (void)state;
    struct view_double view;
    make(&view,
         "SELECT f['a'] AS a, _key AS rk, f AS all_of_f, n AS numbers FROM t ORDER BY a, rk");
    view_double_put_number(&view, bytes_of("r"), "q", 258);
    put(&view, "r", "a", "x");
    put(&view, "r", "b", "y");
    assert_int_equal(view.view.count, 6);
    struct buffer shown = {0};
    view_double_show(&view, bytes_make("x\0\1r", 4), &shown);
    assert_string_equal((const char *)shown.data,
                        "all_of_f:a@0=78 all_of_f:b@0=79 default:@0= default:a@0=78 "
                        "default:rk@0=72 numbers:q@0=0000000000000102");
    buffer_free(&shown);
    assert_rows(&view, "SELECT * FROM v",
                "b\"x\" b\"r\" {b\"a\": b\"x\", b\"b\": b\"y\"} {b\"q\": 258}\n");
    cell_table_delete_row(&view.source, bytes_of("r"));
    view_double_put(&view, bytes_of("r"), "f", "b", 0, bytes_of("y"));
    bytes key = bytes_of("r");
    assert_ok(view_double_follow(&view, &key, 1));
    assert_rows(&view, "SELECT a, rk, numbers FROM v", "NULL b\"r\" {}\n");
    view_double_free(&view);
}

static void an_inverted_index(void **state)
{
    (void)state;
    struct view_double view;
    make(&view, "SELECT u.key AS word, _key AS rk, u.value AS v FROM t CROSS JOIN "
                "UNNEST(MAP_ENTRIES(f)) AS u ORDER BY word, rk");
    put(&view, "r1", "cat", "1");
    put(&view, "r1", "dog", "2");
    put(&view, "r2", "cat", "3");
    assert_rows(&view, "SELECT * FROM v",
                "b\"cat\" b\"r1\" b\"1\"\nb\"cat\" b\"r2\" b\"3\"\nb\"dog\" b\"r1\" b\"2\"\n");
    cell_table_delete_row(&view.source, bytes_of("r1"));
    put(&view, "r1", "dog", "4");
    assert_rows(&view, "SELECT * FROM v", "b\"cat\" b\"r2\" b\"3\"\nb\"dog\" b\"r1\" b\"4\"\n");
    view_double_free(&view);
}

/* --- versions --- */

#define DAYS                                                                                       \
    "SELECT _key, TIMESTAMP_TRUNC(_timestamp, DAY) AS _timestamp, COUNT(x) AS n FROM "             \
    "UNPACK((SELECT _key, f['x'] AS x FROM t(with_history => TRUE))) GROUP BY _key, _timestamp"

static void times_are_versions(void **state)
{
    (void)state;
    const int64_t day = INT64_C(86400) * 1000000;
    struct view_double view;
    bytes key = bytes_make("r\0", 2);
    make(&view, DAYS);
    assert_true(view_program_has_timestamp(view.program));
    for (int64_t i = 0; i < 5; i++)
        view_double_put(&view, key, "f", "x", day * (i / 3) + i, bytes_of("v"));
    assert_ok(view_double_follow(&view, &key, 1));
    struct buffer shown = {0};
    view_double_show(&view, key, &shown);
    assert_string_equal((const char *)shown.data,
                        "default:@86400000000= default:@0= default:n@86400000000=0000000000000002 "
                        "default:n@0=0000000000000003");
    buffer_free(&shown);
    assert_rows(&view, "SELECT * FROM v ORDER BY _key, _timestamp",
                "b\"r\\x00\" TIMESTAMP \"1970-01-01 00:00:00+00\" 3\n"
                "b\"r\\x00\" TIMESTAMP \"1970-01-02 00:00:00+00\" 2\n");
    assert_rows(&view, "SELECT COUNT(*) FROM v", "2\n");
    cell_table_delete_version(&view.source, key, day + 3);
    cell_table_delete_version(&view.source, key, day + 4);
    assert_ok(view_double_follow(&view, &key, 1));
    assert_rows(&view, "SELECT n FROM v", "3\n");
    view_double_free(&view);
}

/* --- rows that are left out --- */

static void assert_excluded(struct view_double *view, const char *key, const char *why)
{
    const struct record *found = records_find(&view->excluded, bytes_of(key));
    assert_int_equal(found != NULL, why != NULL);
    if (why != NULL && strncmp((const char *)found->value.data, why, found->value.size) != 0)
        fail_msg("%.*s", (int)found->value.size, (const char *)found->value.data);
}

static void rows_that_fail_are_left_out(void **state)
{
    (void)state;
    struct view_double view;
    const bytes keys[] = {bytes_of("r1"), bytes_of("r2"), bytes_of("r3"), bytes_of("r4")};
    make(&view, "SELECT '*' AS _key, SUM(DIV(100, " INT ")) AS s FROM t GROUP BY _key");
    static const char *const values[] = {"1", "0", "5", "x"};
    for (size_t i = 0; i < 4; i++)
        view_double_put(&view, keys[i], "f", "i", 0, bytes_of(values[i]));
    assert_ok(view_double_follow(&view, keys, 4));
    assert_rows(&view, "SELECT s FROM v", "120\n");
    assert_excluded(&view, "r1", NULL);
    assert_excluded(&view, "r2", "division by zero: DIV");
    assert_int_equal(view.excluded.count, 2);
    put(&view, "r2", "i", "10"); /* it is mended */
    assert_excluded(&view, "r2", NULL);
    assert_rows(&view, "SELECT s FROM v", "130\n");
    put(&view, "r1", "i", "0"); /* another one breaks */
    assert_rows(&view, "SELECT s FROM v", "30\n");
    view_double_free(&view);
}

static void a_group_that_overflows_comes_back(void **state)
{
    (void)state;
    struct view_double view;
    make(&view, "SELECT f['b'] AS b, SUM(" INT ") AS s FROM t GROUP BY b");
    put(&view, "r0", "b", "other");
    put(&view, "r0", "i", "1");
    for (int i = 1; i <= 3; i++) {
        const char key[] = {'r', (char)('0' + i), '\0'};
        put(&view, key, "b", "g");
        put(&view, key, "i", "9223372036854775807");
    }
    assert_rows(&view, "SELECT * FROM v", "b\"other\" 1\n");
    put(&view, "r1", "i", "1");
    assert_rows(&view, "SELECT * FROM v", "b\"other\" 1\n");
    put(&view, "r2", "i", "-1");
    assert_rows(&view, "SELECT * FROM v", "b\"g\" 9223372036854775807\nb\"other\" 1\n");
    view_double_free(&view);
}

static void put_long(struct view_double *view, const char *qualifier, size_t size)
{
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    put(view, "r", qualifier, text);
    free(text);
}

static void sizes_are_limited(void **state)
{
    (void)state;
    enum { MOST = 1 << 20 };
    struct view_double view;
    make(&view, "SELECT _key, LENGTH(f['a']) AS l FROM t ORDER BY _key");
    put_long(&view, "b", 2 * MOST); /* which the query does not name */
    put_long(&view, "a", MOST);
    assert_excluded(&view, "r", NULL);
    put_long(&view, "a", MOST + 1);
    assert_excluded(&view, "r", "more than 1 MiB of it is selected");
    view_double_free(&view);
    make(&view, "SELECT _key, REPEAT(f['a'], 5) AS l, REPEAT(f['a'], 6) AS m FROM t ORDER BY _key");
    put_long(&view, "a", 90);
    assert_excluded(&view, "r", NULL); /* so little does no harm */
    put_long(&view, "a", 1000);
    assert_excluded(&view, "r", "more than ten times of what is selected comes of it");
    put_long(&view, "a", 100000);
    assert_excluded(&view, "r", "more than 1 MiB comes of it");
    view_double_free(&view);
}

static void keys_that_are_none_are_left_out(void **state)
{
    (void)state;
    struct view_double view;
    make(&view, "SELECT f['a'] AS _key, COUNT(*) AS n FROM t GROUP BY _key");
    put(&view, "r", "b", "x");
    assert_excluded(&view, "r", "_key is NULL");
    put(&view, "r", "a", "");
    assert_excluded(&view, "r", "_key is empty");
    put_long(&view, "a", 4096);
    assert_excluded(&view, "r", NULL);
    put_long(&view, "a", 4097);
    assert_excluded(&view, "r", "the row key has more than 4096 bytes");
    view_double_free(&view);
    make(&view, "SELECT _key, TIMESTAMP_MICROS(" INT ") AS _timestamp FROM t ORDER BY _key");
    static const struct {
        const char *time;
        const char *why;
    } times[] = {{"-1000", "_timestamp is before 1970"},
                 {"999", "_timestamp is no multiple of a millisecond"},
                 {"1000", NULL}};
    put(&view, "r", "a", "x");
    assert_excluded(&view, "r", "_timestamp is NULL");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        put(&view, "r", "i", times[i].time);
        assert_excluded(&view, "r", times[i].why);
    }
    view_double_free(&view);
}

/* --- SQL --- */

static void assert_reads(struct view_double *view, const char *query, const char *reads)
{
    struct buffer shown = {0};
    view_double_explain(view, query, &shown);
    if (strstr((const char *)shown.data, reads) == NULL)
        fail_msg("%s: %s", query, (const char *)shown.data);
    buffer_free(&shown);
}

static void key_columns_are_ranges(void **state)
{
    (void)state;
    struct view_double view;
    make(&view,
         "SELECT COUNT(*) AS n, CAST(f['s'] AS STRING) AS s, " INT " AS i FROM t GROUP BY s, "
         "i");
    static const char *const names[] = {"", "a", "b"};
    for (int i = 0; i < 12; i++) {
        const char key[] = {'r', (char)('a' + i), '\0'}, number[] = {(char)('0' + i / 3), '\0'};
        if (i < 9)
            put(&view, key, "s", names[i % 3]);
        if (i != 4)
            put(&view, key, "i", number);
    }
    assert_rows(&view, "SELECT i FROM v WHERE s = 'a'", "0\n2\nNULL\n");
    assert_rows(&view, "SELECT n FROM v WHERE s = 'a' AND i > 0", "1\n");
    assert_rows(&view, "SELECT s, i FROM v WHERE s < 'b' AND i < 1", "\"\" 0\n\"a\" 0\n");
    assert_rows(&view, "SELECT n FROM v WHERE s IS NULL", "3\n");
    assert_reads(&view, "SELECT n FROM v WHERE s = 'a' AND i > 0", "b\"a\\x00\\x01\\x81\"");
    assert_rows(&view, "SELECT * FROM v(with_history => TRUE)",
                "INVALID_ARGUMENT: A view takes no arguments [at 1:15]\n");
    assert_rows(&view, "SELECT _key FROM v",
                "INVALID_ARGUMENT: Unrecognized name: _key [at 1:8]\n");
    view_double_free(&view);
}

/* A row for each of these keys: "s" and "i". */
static void put_pairs(struct view_double *view)
{
    static const char *const pairs[][2] = {{"b", "2"}, {"a", "1"}, {"b", "1"}, {"a", "3"},
                                           {"c", "0"}, {"b", "3"}, {"a", NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char key[] = {'r', (char)('0' + i), '\0'};
        put(view, key, "s", pairs[i][0]);
        if (pairs[i][1] != NULL)
            put(view, key, "i", pairs[i][1]);
    }
}

/* Rows in the order in which they come, and whether a sort was needed for it. */
static void assert_order(struct view_double *view, const char *query, bool is_sorted,
                         const char *expected)
{
    struct buffer shown = {0}, plan = {0};
    view_double_list(view, query, &shown);
    assert_string_equal((const char *)shown.data, expected);
    view_double_explain(view, query, &plan);
    if ((strstr((const char *)plan.data, "SORT by") != NULL) != is_sorted)
        fail_msg("%s: %s", query, (const char *)plan.data);
    buffer_free(&shown);
    buffer_free(&plan);
}

static void the_order_of_key_columns_needs_no_sort(void **state)
{
    (void)state;
    struct view_double view;
    make(&view,
         "SELECT COUNT(*) AS n, CAST(f['s'] AS STRING) AS s, " INT " AS i FROM t GROUP BY s, "
         "i");
    put_pairs(&view);
    assert_order(&view, "SELECT s, i FROM v ORDER BY s DESC, i DESC LIMIT 3", false,
                 "\"c\" 0\n\"b\" 3\n\"b\" 2\n");
    assert_order(&view, "SELECT s, i FROM v ORDER BY s, i LIMIT 3", false,
                 "\"a\" NULL\n\"a\" 1\n\"a\" 3\n");
    assert_order(&view, "SELECT s FROM v ORDER BY s DESC LIMIT 4", false,
                 "\"c\"\n\"b\"\n\"b\"\n\"b\"\n");
    assert_order(&view, "SELECT s, i FROM v ORDER BY s, i, n DESC LIMIT 1", false, "\"a\" NULL\n");
    assert_order(&view, "SELECT s, i FROM v ORDER BY s DESC, i LIMIT 3", true,
                 "\"c\" 0\n\"b\" 1\n\"b\" 2\n");
    assert_order(&view, "SELECT i FROM v ORDER BY i LIMIT 2", true, "NULL\n0\n");
    assert_order(&view, "SELECT s, i FROM v ORDER BY s, i NULLS LAST LIMIT 3", true,
                 "\"a\" 1\n\"a\" 3\n\"a\" NULL\n");
    assert_order(&view, "SELECT s FROM v ORDER BY s, n DESC LIMIT 1", true, "\"a\"\n");
    view_double_free(&view);
}

/* Versions of a row have one key: what comes after that matters. */
static void versions_are_sorted(void **state)
{
    (void)state;
    struct view_double view;
    bytes key = bytes_of("r");
    make(&view, DAYS);
    for (int64_t i = 0; i < 3; i++)
        view_double_put(&view, key, "f", "x", i * INT64_C(86400000000), bytes_of("v"));
    assert_ok(view_double_follow(&view, &key, 1));
    assert_order(&view, "SELECT UNIX_SECONDS(_timestamp) FROM v ORDER BY _key, _timestamp", true,
                 "0\n86400\n172800\n");
    assert_order(&view, "SELECT UNIX_SECONDS(_timestamp) FROM v ORDER BY _key", false,
                 "172800\n86400\n0\n");
    view_double_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_as_a_client_test_expects_them),
        cmocka_unit_test(a_table_is_counted),
        cmocka_unit_test(keys_of_three_columns),
        cmocka_unit_test(keys_of_one_column),
        cmocka_unit_test(keys_of_an_index),
        cmocka_unit_test(keys_that_end_with_nulls),
        cmocka_unit_test(every_type_has_its_cell),
        cmocka_unit_test(an_index_has_its_key_as_cells),
        cmocka_unit_test(an_inverted_index),
        cmocka_unit_test(times_are_versions),
        cmocka_unit_test(rows_that_fail_are_left_out),
        cmocka_unit_test(a_group_that_overflows_comes_back),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(keys_that_are_none_are_left_out),
        cmocka_unit_test(key_columns_are_ranges),
        cmocka_unit_test(the_order_of_key_columns_needs_no_sort),
        cmocka_unit_test(versions_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
