/* Whole queries over a small table: names, clauses, their order, what the planner makes of them,
 * and the errors of each. */
#include "base/testing/testing.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "sql/function.h"
#include "sql/testing/testing.h"
#include "wire/proto.h"

/* Three rows; `c` has no cell in g nor n; `a` has two versions of f:x. */
static const struct test_cell cells[] = {
    {"a", "f", "x", 2000, "300"}, {"a", "f", "x", 1000, "old"}, {"a", "g", "y", 2000, "p"},
    {"b", "f", "x", 1000, "100"}, {"b", "n", "c", 0, "7"},      {"c", "f", "x", 5000, "200"},
    {"c", "f", "z", 1000, "zz"},
};

static const struct test_database database = {
    .cells = cells,
    .count = sizeof cells / sizeof *cells,
    .view = "SELECT _key, f['x'] AS x FROM t WHERE _key < 'c'",
};

struct query_case {
    const char *query;
    const char *expected;
};

typedef void run_query(const struct test_database *database, const char *query, struct buffer *out);

static void rows_of(const struct test_database *of, const char *query, struct buffer *out)
{
    (void)test_query(of, query, NULL, 0, out);
}

static void check(const struct test_database *of, const struct query_case *cases, size_t count,
                  run_query *run)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct buffer out = {0};
        run(of, cases[i].query, &out);
        assert_non_null(out.data);
        if (strcmp((char *)out.data, cases[i].expected) != 0) {
            print_error("%s\n--- is\n%s--- and not\n%s", cases[i].query, (char *)out.data,
                        cases[i].expected);
            wrong++;
        }
        buffer_free(&out);
    }
    assert_int_equal(wrong, 0);
}

#define CHECK_QUERIES(cases, run) check(&database, cases, sizeof(cases) / sizeof *(cases), run)

static void columns_have_names_and_types(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT * FROM t",
         "_key BYTES\nf MAP<BYTES, BYTES>\ng MAP<BYTES, BYTES>\nn MAP<BYTES, INT64>\n"},
        {"SELECT t.*, 1 AS one, f['x'] FROM t",
         "_key BYTES\nf MAP<BYTES, BYTES>\ng MAP<BYTES, BYTES>\nn MAP<BYTES, INT64>\none INT64\n"
         " BYTES\n"},
        {"SELECT * EXCEPT (f, g) REPLACE (1 AS n) FROM t", "_key BYTES\nn INT64\n"},
        {"SELECT * FROM t(with_history => TRUE)",
         "_key BYTES\n"
         "f MAP<BYTES, ARRAY<STRUCT<timestamp TIMESTAMP, value BYTES>>>\n"
         "g MAP<BYTES, ARRAY<STRUCT<timestamp TIMESTAMP, value BYTES>>>\n"
         "n MAP<BYTES, ARRAY<STRUCT<timestamp TIMESTAMP, value INT64>>>\n"},
        {"SELECT COALESCE(1, 2.5) AS a, [1, 2.5] AS b, (1, 'x') AS c, STRUCT(1 AS y, 'x') AS d",
         "a FLOAT64\nb ARRAY<FLOAT64>\nc STRUCT<INT64, STRING>\nd STRUCT<y INT64, STRING>\n"},
        {"SELECT x FROM UNNEST([(1, 'a')]) AS x", "x STRUCT<INT64, STRING>\n"},
        {"SELECT (_key, 1) AS a, STRUCT(_key, 1) AS b FROM t", /* (…) takes no names of columns */
         "a STRUCT<BYTES, INT64>\nb STRUCT<_key BYTES, INT64>\n"},
        {"SELECT a, b FROM UNNEST([STRUCT(1 AS a, 'a' AS b)])", "a INT64\nb STRING\n"},
        {"FROM t |> EXTEND f['x'] AS x |> DROP f, g |> RENAME n AS m",
         "_key BYTES\nm MAP<BYTES, INT64>\nx BYTES\n"},
    };
    CHECK_QUERIES(cases, test_columns);
}

static void clauses_come_in_their_order(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT 1 AS a, 'foo'", "1 \"foo\"\n"},
        {"SELECT * FROM t", "b\"a\" {b\"x\": b\"300\"} {b\"y\": b\"p\"} {}\n"
                            "b\"b\" {b\"x\": b\"100\"} {} {b\"c\": 7}\n"
                            "b\"c\" {b\"x\": b\"200\", b\"z\": b\"zz\"} {} {}\n"},
        {"SELECT _key FROM t WHERE n['c'] IS NULL", "b\"a\"\nb\"c\"\n"},
        {"SELECT _key FROM t ORDER BY f['x'] DESC LIMIT 1 OFFSET 1", "b\"c\"\n"},
        {"SELECT f['x'] AS x FROM t ORDER BY _key DESC", "b\"200\"\nb\"100\"\nb\"300\"\n"},
        {"SELECT COUNT(*), SUM(n['c']), MAX(f['x']), COUNT(n['c']) FROM t", "3 7 b\"300\" 1\n"},
        {"SELECT COUNT(*), SUM(n['c']) FROM t WHERE _key = 'z'", "0 NULL\n"},
        {"SELECT COUNT(*) FROM t WHERE _key = 'z' GROUP BY _key", ""},
        {"SELECT '*' AS _key, COUNT(*) FROM t GROUP BY _key",
         "\"*\" 3\n"}, /* alias before column */
        {"SELECT _key < 'b' AS _key, COUNT(*) FROM t GROUP BY _key ORDER BY 2",
         "true 1\nfalse 2\n"},
        {"SELECT n['c'] IS NULL AS missing, COUNT(*) AS n FROM t GROUP BY missing HAVING n > 1",
         "true 2\n"},
        {"SELECT DISTINCT n['c'] FROM t", "NULL\n7\n"},
        {"SELECT _key FROM (SELECT _key FROM t ORDER BY _key LIMIT 2) ORDER BY _key DESC",
         "b\"b\"\nb\"a\"\n"},
        {"SELECT * FROM v ORDER BY x", "b\"b\" b\"100\"\nb\"a\" b\"300\"\n"},
        {"SELECT e, o FROM t, UNNEST(['p', 'q']) AS e WITH OFFSET o WHERE _key = 'a'",
         "\"p\" 0\n\"q\" 1\n"},
        {"SELECT _key, e FROM t LEFT JOIN UNNEST(IF(_key = 'a', [1], [])) AS e",
         "b\"a\" 1\nb\"b\" NULL\nb\"c\" NULL\n"},
        {"SELECT COUNT(DISTINCT x), SUM(DISTINCT x) FROM UNNEST([1, 2, 2, NULL]) AS x", "2 3\n"},
        /* An ascending order by the key once left the scan as an inner query had turned it. */
        {"SELECT k FROM (SELECT _key AS k FROM t ORDER BY k DESC) ORDER BY k",
         "b\"a\"\nb\"b\"\nb\"c\"\n"},
        {"SELECT k FROM (SELECT _key AS k FROM t ORDER BY k) ORDER BY k DESC LIMIT 1", "b\"c\"\n"},
        /* Structs are compared by the places of their fields, whatever these are called. */
        {"SELECT (_key, n['c']) = ('c', 7), (_key, 1) IN ((b'a', 1), (f['x'], n['c'])) FROM t",
         "false true\nfalse false\nNULL false\n"},
        {"SELECT STRUCT(x AS a, y) = STRUCT(y AS b, x * 1.5) FROM UNNEST([STRUCT(1 AS x, 1 AS y)])",
         "false\n"},
        {"SELECT ANY_VALUE(x HAVING MAX y) FROM UNNEST([STRUCT(1 AS x, 5 AS y), (2, 9)])", "2\n"},
        {"FROM t |> WHERE _key != 'b' |> AGGREGATE COUNT(*) AS n, MIN(f['x']) AS m",
         "2 b\"200\"\n"},
        {"FROM t |> EXTEND n['c'] IS NULL AS x |> AGGREGATE COUNT(*) GROUP BY x DESC",
         "true 2\nfalse 1\n"},
        {"SELECT _key, ROW_NUMBER() OVER (ORDER BY f['x']) AS r FROM t QUALIFY r < 3",
         "b\"b\" 1\nb\"c\" 2\n"},
        {"SELECT SUM(x) OVER w FROM UNNEST([1, 2, 3]) AS x "
         "WINDOW w AS (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
         "1\n3\n5\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

static void histories_and_moments(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT f['x'][0].value, f['x'][1].value FROM t(with_history => TRUE) WHERE _key = 'a'",
         "b\"300\" b\"old\"\n"},
        {"SELECT _key, f['x'] FROM t(as_of => TIMESTAMP '1970-01-01 00:00:00.001Z')",
         "b\"a\" b\"old\"\nb\"b\" b\"100\"\nb\"c\" NULL\n"},
        {"SELECT _key FROM t(with_history => TRUE, after => TIMESTAMP '1970-01-01 00:00:00.001Z')",
         "b\"a\"\nb\"c\"\n"},
        {"SELECT _key, ARRAY_LENGTH(f['x']) FROM t(with_history => TRUE, latest_n => 1)",
         "b\"a\" 1\nb\"b\" 1\nb\"c\" 1\n"},
        {"SELECT * FROM UNPACK((SELECT _key, f['x'] AS x FROM t(with_history => TRUE))) "
         "WHERE _key = 'a'",
         "b\"a\" b\"300\" TIMESTAMP \"1970-01-01 00:00:00.002+00\"\n"
         "b\"a\" b\"old\" TIMESTAMP \"1970-01-01 00:00:00.001+00\"\n"},
        {"SELECT _timestamp FROM t", "INVALID_ARGUMENT: Unrecognized name: _timestamp [at 1:8]\n"},
        {"SELECT 1 FROM t(latest_n => 1)",
         "INVALID_ARGUMENT: after, after_or_equal, before, before_or_equal and latest_n require "
         "with_history => TRUE [at 1:15]\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

static void errors_say_what_and_where(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELEC 1", "INVALID_ARGUMENT: Syntax error: Unexpected identifier \"SELEC\" [at 1:1]\n"},
        {"", "INVALID_ARGUMENT: Syntax error: Unexpected end of statement [at 1:1]\n"},
        {"SELECT 1\nFROM",
         "INVALID_ARGUMENT: Syntax error: Unexpected end of statement [at 2:5]\n"},
        {"SELECT 1 1", "INVALID_ARGUMENT: Syntax error: Expected end of input but got integer "
                       "literal \"1\" [at 1:10]\n"},
        {"SELECT (1", "INVALID_ARGUMENT: Syntax error: Expected \")\" but got end of statement "
                      "[at 1:10]\n"},
        {"SELECT 1 < 2 < 3", "INVALID_ARGUMENT: Syntax error: Unexpected \"<\" [at 1:14]\n"},
        {"SELECT 'a", "INVALID_ARGUMENT: Syntax error: Unclosed string literal [at 1:8]\n"},
        {"SELECT '\\d'", "INVALID_ARGUMENT: Syntax error: Illegal escape sequence: \\d [at 1:9]\n"},
        {"SELECT nosuch FROM t", "INVALID_ARGUMENT: Unrecognized name: nosuch [at 1:8]\n"},
        {"SELECT NOSUCHFN(1)", "INVALID_ARGUMENT: Function not found: NOSUCHFN [at 1:8]\n"},
        {"SELECT 1 FROM nosuch", "INVALID_ARGUMENT: Table not found: nosuch [at 1:15]\n"},
        {"SELECT 1 FROM PACK((SELECT _key FROM t))",
         "INVALID_ARGUMENT: Table-valued function not found: PACK [at 1:15]\n"},
        {"SELECT 1 FROM PACK(t)", "INVALID_ARGUMENT: Table not found: PACK [at 1:15]\n"},
        {"SELECT PACK(1)", "INVALID_ARGUMENT: Function not found: PACK [at 1:8]\n"},
        {"SELECT 1 FROM nope-such", "INVALID_ARGUMENT: Table not found: `nope-such` [at 1:15]\n"},
        {"SELECT 1 FROM t WHERE 1",
         "INVALID_ARGUMENT: WHERE clause should return type BOOL, but returns INT64 [at 1:23]\n"},
        {"SELECT @k", "INVALID_ARGUMENT: Query parameter 'k' not found [at 1:8]\n"},
        {"SELECT _key FROM t GROUP BY f['x']",
         "INVALID_ARGUMENT: SELECT list expression references column _key which is neither grouped "
         "nor aggregated [at 1:8]\n"},
        {"SELECT SUM(SUM(n['c'])) FROM t",
         "INVALID_ARGUMENT: Aggregations of aggregations are not allowed [at 1:12]\n"},
        {"SELECT SUM(1)", "INVALID_ARGUMENT: Aggregate function SUM not allowed in SELECT without "
                          "FROM clause [at 1:8]\n"},
        {"SELECT 1 FROM t GROUP BY 2",
         "INVALID_ARGUMENT: GROUP BY is out of SELECT column number range: 2 [at 1:26]\n"},
        {"SELECT f FROM t GROUP BY f",
         "INVALID_ARGUMENT: Grouping by expressions of type MAP<BYTES, BYTES> is not allowed "
         "[at 1:26]\n"},
        {"SELECT (SELECT 1)", "INVALID_ARGUMENT: Subqueries are not supported [at 1:8]\n"},
        {"SELECT 1 UNION ALL SELECT 2", "INVALID_ARGUMENT: UNION is not supported [at 1:10]\n"},
        {"SELECT 1 FROM t, t AS u", "INVALID_ARGUMENT: Joins are not supported [at 1:18]\n"},
        {"DELETE FROM t", "INVALID_ARGUMENT: Statement not supported: DeleteStatement [at 1:1]\n"},
        {"CREATE TABLE t",
         "INVALID_ARGUMENT: Statement not supported: CreateTableStatement [at 1:1]\n"},
        {"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1",
         "INVALID_ARGUMENT: Statement not supported: CreateMaterializedViewStatement [at 1:1]\n"},
        {"\nCREATE VIEW v AS SELECT 1",
         "INVALID_ARGUMENT: Statement not supported: CreateViewStatement [at 2:1]\n"},
        {"CREATE", "INVALID_ARGUMENT: Statement not supported: CreateTableStatement [at 1:1]\n"},
        {"SELECT _key LIKE 'a\\\\' FROM t", "OUT_OF_RANGE: LIKE pattern ends with a backslash\n"},
        {"SELECT 1 / 0", "OUT_OF_RANGE: division by zero: 1 / 0\n"},
        {"SELECT CAST(_key AS INT64) FROM t",
         "INVALID_ARGUMENT: Invalid cast from BYTES to INT64 [at 1:8]\n"},
        {"SELECT DATE '2020-13-01'", "INVALID_ARGUMENT: Invalid DATE literal [at 1:8]\n"},
        {"SELECT 99999999999999999999",
         "INVALID_ARGUMENT: Invalid integer literal: 99999999999999999999 [at 1:8]\n"},
        {"SELECT _key = 5 FROM t", "INVALID_ARGUMENT: No matching signature for operator = for "
                                   "argument types: BYTES, INT64 [at 1:8]\n"},
        {"SELECT 1 LIMIT -1", "OUT_OF_RANGE: Limit requires non-negative count and offset\n"},
        {"SELECT 1 LIMIT NULL", "OUT_OF_RANGE: Limit requires non-null count and offset\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

static void keys_become_ranges(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT _key FROM t WHERE _key IN ('c', 'a')", "b\"a\"\nb\"c\"\n"},
        {"SELECT _key FROM t WHERE _key BETWEEN 'b' AND 'z' AND _key < 'c'", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE _key = 'a' OR n['c'] = 7", "b\"a\"\nb\"b\"\n"},
        {"SELECT _key FROM t WHERE _key = 'a' OR _key > 'b'", "b\"a\"\nb\"c\"\n"},
        {"SELECT _key FROM t WHERE 'b' <= _key", "b\"b\"\nb\"c\"\n"},
        {"SELECT _key FROM t WHERE _key LIKE 'b%'", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE _key LIKE '_'", "b\"a\"\nb\"b\"\nb\"c\"\n"},
        {"SELECT _key FROM t WHERE CAST(_key AS STRING) = 'b'", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE _key = NULL", ""},
        {"SELECT _key FROM t WHERE NOT (_key BETWEEN NULL AND 'b')", "b\"c\"\n"},
        {"SELECT _key FROM t WHERE NOT (_key BETWEEN 'b' AND NULL)", "b\"a\"\n"},
        {"SELECT _key FROM t WHERE _key IN UNNEST(['b', 'x'])", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE _key > 'a' ORDER BY _key DESC LIMIT 1", "b\"c\"\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

/* --- structured row keys: a sale's are user_id (BYTES), purchase_date and order_number (STRING)
 * --- */

static const struct test_cell sales_cells[] = {
    {"user1#2025-05-20#abcd1233", "f", "product", 1000, "phone"},
    {"user1#2025-05-20#abcd1235", "f", "product", 1000, "shoes"},
    {"user10#2025-05-21#x", "f", "product", 1000, "cup"},
    {"user2#2025-05-24#defg456", "f", "product", 1000, "headphones"},
};

/* With one more row than those, whose key is none of the schema. */
static const struct test_cell spoilt_cells[] = {
    {"user1#2025-05-20#abcd1233", "f", "product", 1000, "phone"},
    {"user3", "f", "product", 1000, "none"},
};

static void append_sales_schema(struct buffer *out)
{
    static const char *const names[] = {"user_id", "purchase_date", "order_number"};
    BtAdmin__Type__Bytes bytes_type = BT_ADMIN__TYPE__BYTES__INIT;
    BtAdmin__Type__String string = BT_ADMIN__TYPE__STRING__INIT;
    BtAdmin__Type types[3];
    BtAdmin__Type__Struct__Field fields[3];
    BtAdmin__Type__Struct__Field *list[3];
    BtAdmin__Type__Struct__Encoding encoding = BT_ADMIN__TYPE__STRUCT__ENCODING__INIT;
    BtAdmin__Type__Struct__Encoding__DelimitedBytes delimited =
        BT_ADMIN__TYPE__STRUCT__ENCODING__DELIMITED_BYTES__INIT;
    BtAdmin__Type__Struct structure = BT_ADMIN__TYPE__STRUCT__INIT;
    for (size_t i = 0; i < 3; i++) {
        types[i] = (BtAdmin__Type)BT_ADMIN__TYPE__INIT;
        types[i].kind_case =
            i == 0 ? BT_ADMIN__TYPE__KIND_BYTES_TYPE : BT_ADMIN__TYPE__KIND_STRING_TYPE;
        types[i].string_type = &string;
        if (i == 0)
            types[i].bytes_type = &bytes_type;
        fields[i] = (BtAdmin__Type__Struct__Field)BT_ADMIN__TYPE__STRUCT__FIELD__INIT;
        fields[i].field_name = names[i];
        fields[i].type = &types[i];
        list[i] = &fields[i];
    }
    delimited.delimiter = proto_data(bytes_of("#"));
    encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_DELIMITED_BYTES;
    encoding.delimited_bytes = &delimited;
    structure.fields = list;
    structure.n_fields = 3;
    structure.encoding = &encoding;
    proto_encode(&structure.base, out);
}

/* Runs them over these cells, which have keys of sales. */
static void check_sales(const struct test_cell *sales, size_t count, const struct query_case *cases,
                        size_t case_count, run_query *run)
{
    struct buffer schema = {0};
    append_sales_schema(&schema);
    const struct test_database of = {
        .cells = sales, .count = count, .key_schema = buffer_bytes(&schema)};
    check(&of, cases, case_count, run);
    buffer_free(&schema);
}

#define CHECK_SALES(sales, cases, run)                                                             \
    check_sales(sales, sizeof(sales) / sizeof *(sales), cases, sizeof(cases) / sizeof *(cases), run)

static void parts_of_keys_are_columns(void **state)
{
    (void)state;
    static const struct query_case columns[] = {
        {"SELECT * FROM t", "user_id BYTES\npurchase_date STRING\norder_number STRING\n"
                            "f MAP<BYTES, BYTES>\ng MAP<BYTES, BYTES>\nn MAP<BYTES, INT64>\n"},
        {"SELECT _key, USER_ID FROM t", "_key BYTES\nUSER_ID BYTES\n"},
        {"SELECT user_id, * EXCEPT (user_id, f, g, n) FROM t",
         "user_id BYTES\npurchase_date STRING\norder_number STRING\n"},
    };
    static const struct query_case rows[] = {
        {"SELECT user_id, order_number, f['product'] FROM t WHERE user_id = b'user1'",
         "b\"user1\" \"abcd1233\" b\"phone\"\nb\"user1\" \"abcd1235\" b\"shoes\"\n"},
        {"SELECT _key FROM t WHERE purchase_date > '2025-05-20' AND order_number LIKE 'd%'",
         "b\"user2#2025-05-24#defg456\"\n"},
        {"SELECT user_id, COUNT(*) FROM t GROUP BY user_id ORDER BY user_id DESC LIMIT 1",
         "b\"user2\" 1\n"},
        {"SELECT _key FROM t WHERE _key = 'user1#2025-05-20#abcd1235' AND user_id = b'user1'",
         "b\"user1#2025-05-20#abcd1235\"\n"},
    };
    static const struct query_case spoilt[] = {
        {"SELECT _key FROM t", "b\"user1#2025-05-20#abcd1233\"\nb\"user3\"\n"},
        {"SELECT user_id FROM t",
         "b\"user1\"\nINVALID_ARGUMENT: A row key of the table does not have the form of its "
         "row_key_schema: it has not as many delimiters\n"},
        {"SELECT user_id FROM t WHERE user_id < b'user3'", "b\"user1\"\n"},
    };
    CHECK_SALES(sales_cells, columns, test_columns);
    CHECK_SALES(sales_cells, rows, rows_of);
    CHECK_SALES(spoilt_cells, spoilt, rows_of);
}

static void ranges_of_query(const struct test_database *of, const char *query, struct buffer *out)
{
    struct buffer rows = {0};
    struct test_database noting = *of;
    noting.ranges = out;
    assert_int_equal(test_query(&noting, query, NULL, 0, &rows), STATUS_OK);
    buffer_free(&rows);
    buffer_append_byte(out, '\0');
}

static void parts_become_ranges(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT 1 FROM t WHERE user_id = b'user1'", "[b\"user1#\", b\"user1$\")\n"},
        {"SELECT 1 FROM t WHERE CAST(user_id AS STRING) = 'user1'", "[b\"user1#\", b\"user1$\")\n"},
        {"SELECT 1 FROM t WHERE user_id IN (b'user1', b'u2') AND purchase_date = '2025'",
         "[b\"u2#2025#\", b\"u2#2025$\")\n[b\"user1#2025#\", b\"user1#2025$\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' OR user_id = b'b'",
         "[b\"a#\", b\"a$\")\n[b\"b#\", b\"b$\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND purchase_date BETWEEN '2024' AND '2025'",
         "[b\"a#2024\", b\"a#2025$\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND purchase_date >= '2024' AND "
         "purchase_date < '2025' AND purchase_date >= '2020'",
         "[b\"a#2024\", b\"a#2025\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND STARTS_WITH(purchase_date, '2024-')",
         "[b\"a#2024-\", b\"a#2024.\")\n"},
        {"SELECT 1 FROM t WHERE user_id LIKE b'us%1'", "[b\"us\", b\"ut\")\n"},
        {"SELECT 1 FROM t WHERE b'b' <= user_id", "[b\"b\", b\"\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND purchase_date = 'b' AND order_number = 'c'",
         "[b\"a#b#c\", b\"a#b#c\\x00\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND purchase_date = 'b' AND order_number > 'c'",
         "[b\"a#b#c\\x00\", b\"a#b$\")\n"},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND purchase_date > NULL", ""},
        {"SELECT 1 FROM t WHERE user_id = b'a' AND _key > 'a#c'", "[b\"a#c\\x00\", b\"a$\")\n"},
        {"SELECT 1 FROM t WHERE user_id < b'c d'", "[b\"\", b\"d\")\n"}, /* ' ' is before '#' */
        {"SELECT 1 FROM t WHERE purchase_date = '2024'", "[b\"\", b\"\")\n"},
        {"SELECT 1 FROM t WHERE NOT (user_id = b'a')", "[b\"\", b\"\")\n"},
    };
    CHECK_SALES(sales_cells, cases, ranges_of_query);
}

/* The second sort was left out, since keys come in order, and so the scan stayed turned. */
static void the_last_order_wins(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"FROM (SELECT _key FROM t) |> ORDER BY _key DESC |> ORDER BY _key",
         "b\"a\"\nb\"b\"\nb\"c\"\n"},
        {"FROM (SELECT _key FROM t) |> ORDER BY _key |> ORDER BY _key DESC",
         "b\"c\"\nb\"b\"\nb\"a\"\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

static void plans_read_what_they_need(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT f['x'] AS x FROM t WHERE _key = 'b'", "PROJECT f[b\"x\"] AS x\n"
                                                       "  FILTER (_key = b\"b\")\n"
                                                       "    SCAN t\n"
                                                       "      reads: _key, f[b\"x\"]\n"
                                                       "      keys: b\"b\"\n"},
        {"SELECT COUNT(*) FROM t", "PROJECT $1\n"
                                   "  AGGREGATE COUNT(*) AS $1\n"
                                   "    SCAN t\n"
                                   "      reads: that rows are there\n"
                                   "      keys: all\n"},
        {"SELECT x FROM v WHERE _key >= 'b'", "PROJECT f[b\"x\"] AS x\n"
                                              "  FILTER (_key >= b\"b\")\n"
                                              "    FILTER (_key < b\"c\")\n"
                                              "      SCAN t\n"
                                              "        reads: _key, f[b\"x\"]\n"
                                              "        keys: [b\"b\", b\"c\")\n"},
        {"SELECT _key FROM t ORDER BY _key DESC LIMIT 5", "PROJECT _key\n"
                                                          "  LIMIT 5\n"
                                                          "    PROJECT _key\n"
                                                          "      SCAN t, from the last row\n"
                                                          "        reads: _key\n"
                                                          "        keys: all\n"
                                                          "        rows: at most 5\n"},
        {"SELECT _key FROM t ORDER BY f['x'] LIMIT 5", "PROJECT _key\n"
                                                       "  LIMIT 5\n"
                                                       "    SORT by $2, first 5\n"
                                                       "      PROJECT _key, f[b\"x\"] AS $2\n"
                                                       "        SCAN t\n"
                                                       "          reads: _key, f[b\"x\"]\n"
                                                       "          keys: all\n"},
        {"SELECT g['y'] AS why, COUNT(DISTINCT n['c']) AS c FROM t "
         "WHERE _key IN ('a', 'c') OR STARTS_WITH(_key, 'x') GROUP BY why",
         "PROJECT $1 AS why, $2 AS c\n"
         "  AGGREGATE COUNT(DISTINCT n[b\"c\"]) AS $2 by g[b\"y\"] AS $1\n"
         "    FILTER ((_key IN (b\"a\", b\"c\")) OR STARTS_WITH(_key, b\"x\"))\n"
         "      SCAN t\n"
         "        reads: _key, g[b\"y\"], n[b\"c\"]\n"
         "        keys: b\"a\", b\"c\", [b\"x\", b\"y\")\n"},
        {"SELECT e FROM t, UNNEST(MAP_KEYS(f)) AS e WHERE _key = 'a' AND e > 'b' AND _key < 'x'",
         "PROJECT e\n"
         "  FILTER (e > b\"b\")\n"
         "    UNNEST MAP_KEYS(f)\n"
         "      FILTER ((_key = b\"a\") AND (_key < b\"x\"))\n"
         "        SCAN t\n"
         "          reads: _key, f\n"
         "          keys: b\"a\"\n"},
        {"SELECT _key FROM t WHERE _key > 'b' AND NOT _key IS NULL AND _key < 'a'",
         "PROJECT _key\n"
         "  FILTER ((_key > b\"b\") AND (NOT (_key IS NULL)) AND (_key < b\"a\"))\n"
         "    SCAN t\n"
         "      reads: _key\n"
         "      keys: none\n"},
        {"SELECT f['x'] FROM t(with_history => TRUE, latest_n => 2)", "PROJECT f[b\"x\"] AS $1\n"
                                                                      "  SCAN t\n"
                                                                      "    reads: f[b\"x\"]\n"
                                                                      "    with history\n"
                                                                      "    newest 2\n"
                                                                      "    keys: all\n"},
    };
    CHECK_QUERIES(cases, test_explain);
}

static void parameters_have_their_values(void **state)
{
    (void)state;
    const struct test_parameter parameters[] = {
        {"k", &sql_bytes, sql_of_text(bytes_of("b"))},
        {"N", &sql_int64, sql_of_int64(2)},
        {"none", &sql_string, sql_null()},
    };
    struct buffer out = {0};
    test_query(&database, "SELECT _key, @n + 1, @none FROM t WHERE _key >= @k LIMIT @n", parameters,
               3, &out);
    assert_string_equal((char *)out.data, "b\"b\" 3 NULL\nb\"c\" 3 NULL\n");
    buffer_free(&out);
    test_query(&database, "SELECT _key FROM t WHERE _key = @none", parameters, 3, &out);
    assert_non_null(strstr((char *)out.data, "No matching signature for operator = for argument "
                                             "types: BYTES, STRING"));
    buffer_free(&out);
}

static void views_are_asked_with_parameters(void **state)
{
    (void)state;
    static const struct sql_view_parameter parameters[] = {
        {"user", {.text = {(const uint8_t *)"b", 1}}},
        {"none", {.is_null = true}},
    };
    static const struct query_case views[] = {
        {"SELECT _key FROM t WHERE _key = CAST(VIEW_PARAMETERS('user') AS BYTES)", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE STARTS_WITH(_key, CAST(VIEW_PARAMETERS('none') AS BYTES))", ""},
        {"SELECT _key FROM t WHERE _key = CAST(VIEW_PARAMETERS('User') AS BYTES)",
         "INVALID_ARGUMENT: view_parameters does not contain key 'User'\n"},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct test_database with = database;
        with.view = views[i].query;
        with.view_parameters = parameters;
        with.view_parameter_count = sizeof parameters / sizeof *parameters;
        struct buffer out = {0};
        test_query(&with, "SELECT * FROM v", NULL, 0, &out);
        assert_string_equal((char *)out.data, views[i].expected);
        buffer_free(&out);
    }
}

/* The session's, which is the same all through a query. */
static void current_date_and_timestamp(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT CURRENT_DATE(), CURRENT_DATE", "DATE \"2020-01-02\" DATE \"2020-01-02\"\n"},
        {"SELECT current_date('America/Los_Angeles')", "DATE \"2020-01-01\"\n"},
        {"SELECT CURRENT_DATE('+14')", "DATE \"2020-01-02\"\n"},
        {"SELECT CURRENT_TIMESTAMP()", "TIMESTAMP \"2020-01-02 03:04:05.678901+00\"\n"},
        {"SELECT CURRENT_TIMESTAMP", "TIMESTAMP \"2020-01-02 03:04:05.678901+00\"\n"},
        {"SELECT TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 1 DAY)",
         "TIMESTAMP \"2020-01-01 03:04:05.678901+00\"\n"},
    };
    CHECK_QUERIES(cases, rows_of);
}

/* --- materialized views --- */

#define ASCENDING "Only ascending order in ORDER BY by is supported in materialized views."
#define LIMITS    "Limit and offset are not supported in materialized views."
#define BOTH      "ORDER BY is not supported with GROUP BY in materialized views."
#define UNSTABLE(name)                                                                             \
    "Only stable functions are supported in materialized views (GoogleSQL:" name " is not stable)"
#define MUTABLE(name)                                                                              \
    "Only immutable functions are supported in materialized views (GoogleSQL:" name                \
    " is not immutable)"
#define REFUSED(why) "INVALID_ARGUMENT: " why "\n"

static void what_materialized_views_are(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT _key, COUNT(f['x']) AS `result.count` FROM t GROUP BY _key", "OK\n"},
        {"SELECT '*' AS _key, COUNT(*) AS count FROM t GROUP BY _key", "OK\n"},
        {"SELECT f['x'] AS x, g['y'] AS y, SUM(n['c']) AS s FROM t GROUP BY x, y", "OK\n"},
        {"SELECT f['x'], COUNT(*) AS c FROM t WHERE _key > 'a' GROUP BY 1", "OK\n"},
        {"SELECT x, COUNT(*) AS c FROM (SELECT f['x'] AS x FROM t) GROUP BY x", "OK\n"},
        {"SELECT u.key AS k, COUNT(*) AS c FROM t, UNNEST(MAP_ENTRIES(f)) u GROUP BY k", "OK\n"},
        {"FROM t |> AGGREGATE COUNT(*) AS c GROUP BY _key", "OK\n"},
        {"SELECT f['x'] AS x, _key FROM t ORDER BY x, _key", "OK\n"},
        {"SELECT f['x'] AS x, _key AS k FROM t ORDER BY f['x'], k", "OK\n"},
        {"SELECT _timestamp, _key, COUNT(*) AS c FROM UNPACK((SELECT _key, f['x'] AS x FROM "
         "t(with_history => TRUE))) GROUP BY _key, _timestamp",
         "OK\n"},
        {"SELECT nosuch FROM t", REFUSED("Unrecognized name: nosuch [at 1:8]")},
        {"SELECT _key FROM t", REFUSED("queries must contain a GROUP BY or ORDER BY clause")},
        {"SELECT COUNT(*) AS c FROM t",
         REFUSED("queries must contain a GROUP BY or ORDER BY clause")},
        {"SELECT f['x'] AS x, _key FROM t ORDER BY x DESC, _key", REFUSED(ASCENDING)},
        {"SELECT _key FROM t ORDER BY _key LIMIT 5", REFUSED(LIMITS)},
        {"SELECT _key, COUNT(*) AS c FROM (SELECT * FROM t LIMIT 5) GROUP BY _key",
         REFUSED(LIMITS)},
        {"SELECT _key, COUNT(*) AS c FROM t GROUP BY _key ORDER BY _key", REFUSED(BOTH)},
        {"SELECT x, COUNT(*) AS c FROM (SELECT f['x'] AS x FROM t ORDER BY _key) GROUP BY x",
         REFUSED(BOTH)},
        {"SELECT c, COUNT(*) AS d FROM (SELECT _key, COUNT(*) AS c FROM t GROUP BY _key) GROUP BY "
         "c",
         REFUSED("This query is not valid. Please ensure that all parts of the query are valid, as "
                 "per the requirements listed at https://cloud.google.com/bigtable/docs/reference/"
                 "sql/googlesql-reference-overview. In particular, the query must not use multiple "
                 "GROUP BY or ORDER BY clauses.")},
        {"SELECT f['x'] AS x FROM t ORDER BY x",
         REFUSED("queries must select and order by the unmodified _key column from the source "
                 "table")},
        {"SELECT CONCAT(_key, b'x') AS _key FROM t ORDER BY _key",
         REFUSED("queries must select and order by the unmodified _key column from the source "
                 "table")},
        {"SELECT f['x'] AS x FROM t ORDER BY x, _key",
         REFUSED("every ORDER BY column must be selected in the final query")},
        {"SELECT COUNT(*) AS c FROM t GROUP BY f['x']",
         REFUSED("every GROUP BY column must be selected in the final query")},
        {"SELECT _key, f['x'] AS x, COUNT(*) AS c FROM t GROUP BY _key, x",
         REFUSED("queries that provide a _key hint must only group by _key (and optionally "
                 "_timestamp). Use a different column name if you want to create a composite "
                 "key.")},
        {"SELECT _key, ANY_VALUE(f['x']) AS x FROM t GROUP BY _key",
         REFUSED(UNSTABLE("any_value"))},
        {"SELECT _key, STRING_AGG('a') AS x FROM t GROUP BY _key", REFUSED(UNSTABLE("string_agg"))},
        {"SELECT _key, COUNT(*) AS c FROM t WHERE RAND() < 0.5 GROUP BY _key",
         REFUSED(MUTABLE("rand"))},
        {"SELECT _key, MAX(UNIX_DATE(CURRENT_DATE())) AS c FROM t GROUP BY _key",
         REFUSED(MUTABLE("current_date"))},
    };
    CHECK_QUERIES(cases, test_materialized);
}

static void what_materialized_views_can_keep(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT f['x'] AS x, f AS g, _key FROM t ORDER BY x, _key", "OK\n"},
        {"SELECT _key, COUNT(*) AS c FROM t(with_history => TRUE, after => TIMESTAMP_SUB("
         "CURRENT_TIMESTAMP(), INTERVAL 1 DAY)) GROUP BY _key",
         REFUSED(MUTABLE("current_timestamp"))},
        {"SELECT * FROM t ORDER BY _key",
         REFUSED("SELECT * is not supported in materialized views.")},
        {"SELECT f['x'] AS x, COUNT(*) > 1 AS c FROM t GROUP BY x", "OK\n"},
        {"SELECT _key, COUNTIF(f['x'] > b'a') AS c FROM t GROUP BY _key",
         REFUSED("COUNTIF is not supported in materialized views.")},
        {"SELECT _key, LOGICAL_OR(f['x'] > b'a') AS c FROM t GROUP BY _key",
         REFUSED("LOGICAL_OR is not supported in materialized views.")},
        {"SELECT _key, APPROX_COUNT_DISTINCT(f['x']) AS c FROM t GROUP BY _key",
         REFUSED("APPROX_COUNT_DISTINCT is not supported in materialized views.")},
        {"SELECT _key, COUNT(DISTINCT f['x']) AS c FROM t GROUP BY _key",
         REFUSED("DISTINCT is not supported in materialized views.")},
        {"SELECT DISTINCT _key FROM t GROUP BY _key",
         REFUSED("DISTINCT is not supported in materialized views.")},
        {"SELECT _key, COUNT(*) AS c FROM t GROUP BY _key HAVING c > 1",
         REFUSED("HAVING is not supported in materialized views.")},
        {"SELECT c, k FROM (SELECT _key AS k, COUNT(*) AS c FROM t GROUP BY k) WHERE c > 1",
         REFUSED("HAVING is not supported in materialized views.")},
        {"SELECT _key, RANK() OVER (ORDER BY f['x']) AS r FROM t ORDER BY _key",
         REFUSED("OVER is not supported in materialized views.")},
        {"SELECT LENGTH(_key) > 3 AS l, COUNT(*) AS c FROM t GROUP BY l",
         REFUSED("GROUP BY and ORDER BY columns of type BOOL are not supported in materialized "
                 "views.")},
        {"SELECT LENGTH(_key) / 3 AS l, _key FROM t ORDER BY l, _key",
         REFUSED("GROUP BY and ORDER BY columns of type FLOAT64 are not supported in materialized "
                 "views.")},
        {"SELECT _key, SPLIT(_key, b',') AS s FROM t ORDER BY _key",
         REFUSED("Columns of type ARRAY<BYTES> are not supported in materialized views.")},
        {"SELECT _key, DATE '2020-01-01' AS d FROM t ORDER BY _key",
         REFUSED("Columns of type DATE are not supported in materialized views.")},
        {"SELECT _key, MAP_FROM_ARRAY([('a', b'1')]) AS m FROM t ORDER BY _key",
         REFUSED("Columns of type MAP<STRING, BYTES> are not supported in materialized views.")},
    };
    CHECK_QUERIES(cases, test_materialized);
}

static void incomplete_views_are_allowed_by_a_hint(void **state)
{
    (void)state;
    static const struct query_case cases[] = {
        {"SELECT 1", "not\n"},
        {"@{allow_incomplete_view=true} SELECT _key FROM t", "allowed\n"},
        {"@{ Allow_Incomplete_View = TRUE, other = 5 } SELECT _key FROM t", "allowed\n"},
        {"@{allow_incomplete_view=true} FROM t", "allowed\n"},
        {"SELECT _key FROM t@{allow_incomplete_view=true} AS x", "allowed\n"},
        {"SELECT * FROM (SELECT _key FROM t @{allow_incomplete_view=true})", "allowed\n"},
        {"SELECT @{allow_incomplete_view=true} _key FROM t", "allowed\n"},
        {"@{allow_incomplete_view=false} SELECT _key FROM t", "not\n"},
        {"@{allow_incomplete_views=true} SELECT _key FROM t", "not\n"},
        {"@5 SELECT _key FROM t", "not\n"},
        {"@{allow_incomplete_view=true}",
         "INVALID_ARGUMENT: Syntax error: Unexpected end of statement [at 1:30]\n"},
    };
    CHECK_QUERIES(cases, test_incomplete);
}

/* What a recursion may meet is bounded, whatever comes. */
static void deep_queries_are_refused(void **state)
{
    (void)state;
    enum { DEPTH = 5000 };
    static const char *const openings[] = {"(", "-(", "NOT ", "[", "f(", "1+", "CASE WHEN "};
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        struct buffer query = {0}, out = {0};
        buffer_append_format(&query, "SELECT ");
        for (int depth = 0; depth < DEPTH; depth++)
            buffer_append_format(&query, "%s", openings[i]);
        buffer_append_format(&query, "1");
        buffer_append_byte(&query, '\0');
        test_query(&database, (char *)query.data, NULL, 0, &out);
        if (strstr((char *)out.data, "nested too deeply") == NULL)
            fail_msg("%s: %s", openings[i], (char *)out.data);
        buffer_free(&query);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_names_and_types),
        cmocka_unit_test(clauses_come_in_their_order),
        cmocka_unit_test(histories_and_moments),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(keys_become_ranges),
        cmocka_unit_test(parts_of_keys_are_columns),
        cmocka_unit_test(parts_become_ranges),
        cmocka_unit_test(the_last_order_wins),
        cmocka_unit_test(plans_read_what_they_need),
        cmocka_unit_test(parameters_have_their_values),
        cmocka_unit_test(views_are_asked_with_parameters),
        cmocka_unit_test(current_date_and_timestamp),
        cmocka_unit_test(what_materialized_views_are),
        cmocka_unit_test(what_materialized_views_can_keep),
        cmocka_unit_test(incomplete_views_are_allowed_by_a_hint),
        cmocka_unit_test(deep_queries_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
