#include "base/testing/testing.h"
#include "cmd/sql/sql_split.h"

/* All statements of the text, each followed by a bar and its line. */
static void split(const char *text, struct buffer *out)
{
    struct sql_splitter splitter = {0};
    struct sql_statement statement;
    buffer_clear(out);
    for (const char *end; *text != '\0'; text = *end == '\0' ? end : end + 1) {
        end = strchrnul(text, '\n');
        sql_splitter_add(&splitter, bytes_make(text, (size_t)(end - text)));
        while (sql_splitter_next(&splitter, &statement)) {
            buffer_append_bytes(out, statement.text);
            buffer_append_format(out, "|%u ", statement.line);
        }
    }
    if (sql_splitter_rest(&splitter, &statement)) {
        buffer_append_bytes(out, statement.text);
        buffer_append_format(out, "|rest %u", statement.line);
    }
    buffer_append_byte(out, '\0');
    sql_splitter_free(&splitter);
}

static void assert_split(const char *text, const char *expected)
{
    struct buffer out = {0};
    split(text, &out);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void statements_end_at_semicolons(void **state)
{
    (void)state;
    assert_split("a;b; c ;", "a|1 b|1 c |1 ");
    assert_split("a\n\n;\nb\nc;d", "a\n\n|1 b\nc|4 d|rest 5");
    assert_split("  ;; ;", "");
    assert_split("", "");
}

static void quotes_hide_semicolons(void **state)
{
    (void)state;
    assert_split("';';\";\";`;`;", "';'|1 \";\"|1 `;`|1 ");
    assert_split("'\\';';b;", "'\\';'|1 b|1 ");
    assert_split("r'\\';';b;", "r'\\';'|1 b|1 ");
    assert_split("'\\\\';b;", "'\\\\'|1 b|1 ");
    assert_split("\"'\";b", "\"'\"|1 b|rest 1");
    assert_split("'''a;'b\n;\\''';''';c;", "'''a;'b\n;\\''';'''|1 c|2 ");
    assert_split("\"\"\";\"\";\"\"\";c;", "\"\"\";\"\";\"\"\"|1 c|1 ");
    assert_split("'';b;", "''|1 b|1 ");
}

/* The server says what is wrong with such a string; it may not swallow what follows. */
static void a_string_ends_with_its_line(void **state)
{
    (void)state;
    assert_split("it's;\nb;", "it's;\nb|1 ");
    assert_split("it's \\\n;b;", "it's \\\n|1 b|2 ");
}

static void comments_hide_semicolons(void **state)
{
    (void)state;
    assert_split("-- a;\nb;", "b|2 ");
    assert_split("# a';\nb--;\n;", "b--;\n|2 ");
    assert_split("/* a;\n'*/b/*;*/;", "b/*;*/|2 ");
    assert_split("1 - 2; 4 / 2;", "1 - 2|1 4 / 2|1 ");
    assert_split("-- only", "");
}

static void a_begun_statement_is_known_and_dropped(void **state)
{
    (void)state;
    struct sql_splitter splitter = {0};
    struct sql_statement statement;
    sql_splitter_add(&splitter, bytes_of("-- nothing yet"));
    assert_false(sql_splitter_next(&splitter, &statement));
    assert_true(sql_splitter_is_idle(&splitter));
    sql_splitter_add(&splitter, bytes_of("a; /*"));
    assert_true(sql_splitter_next(&splitter, &statement));
    assert_false(sql_splitter_next(&splitter, &statement));
    assert_false(sql_splitter_is_idle(&splitter));
    sql_splitter_drop(&splitter);
    assert_true(sql_splitter_is_idle(&splitter));
    sql_splitter_add(&splitter, bytes_of("b;"));
    assert_true(sql_splitter_next(&splitter, &statement));
    assert_true(bytes_equal(statement.text, bytes_of("b")));
    assert_int_equal(statement.line, 3);
    sql_splitter_free(&splitter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_end_at_semicolons),
        cmocka_unit_test(quotes_hide_semicolons),
        cmocka_unit_test(a_string_ends_with_its_line),
        cmocka_unit_test(comments_hide_semicolons),
        cmocka_unit_test(a_begun_statement_is_known_and_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
