#include "cmd/sql/sql_statements.h"

#include "base/testing/testing.h"

static struct arena *arena;

/* What the statement comes to, in words. */
static void assert_words(const char *text, const char *expected)
{
    static const char *const kinds[] = {"query", "create", "drop"};
    struct sql_words words;
    struct buffer out = {0};
    assert_ok(sql_words_read(bytes_of(text), arena, &words));
    buffer_append_format(&out, "%s%s%s", kinds[words.kind], words.is_lenient ? "?" : "",
                         words.is_protected ? "!" : "");
    if (words.kind != STATEMENT_QUERY)
        buffer_append_format(&out, " %s", words.name);
    if (words.kind == STATEMENT_CREATE_VIEW)
        buffer_append_format(&out, ": %s", words.query);
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void assert_refused(const char *text, const char *expected)
{
    struct sql_words words;
    status s = sql_words_read(bytes_of(text), arena, &words);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    if (strstr(status_message(s), expected) == NULL)
        fail_msg("%s: %s", text, status_message(s));
    status_free(s);
}

static void test_what_is_no_view_is_a_query(void **state)
{
    (void)state;
    assert_words("", "query");
    assert_words("SELECT 1", "query");
    assert_words("CREATE TABLE t", "query");
    assert_words("CREATE MATERIALIZED VIEWS AS", "query");
    assert_words("-- CREATE MATERIALIZED VIEW v AS", "query");
    assert_words("`CREATE` MATERIALIZED VIEW v AS SELECT 1", "query");
}

static void test_a_view_is_made(void **state)
{
    (void)state;
    assert_words("CREATE MATERIALIZED VIEW v AS SELECT 1", "create v: SELECT 1");
    assert_words("create\tmaterialized /* ; */ view\n`my-v.1`\nas -- why\n SELECT '\xc3\xa9'\n",
                 "create my-v.1: SELECT '\xc3\xa9'\n");
    assert_words("CREATE MATERIALIZED VIEW IF NOT EXISTS my-v AS(SELECT 1)",
                 "create? my-v: (SELECT 1)");
    assert_words("# x\nCREATE MATERIALIZED VIEW v OPTIONS ( deletion_protection=true ) AS q",
                 "create! v: q");
    assert_words("CREATE MATERIALIZED VIEW v OPTIONS(deletion_protection = FALSE) AS q",
                 "create v: q");
}

static void test_a_view_is_dropped(void **state)
{
    (void)state;
    assert_words("DROP MATERIALIZED VIEW v", "drop v");
    assert_words("drop materialized view if exists `v` -- gone\n", "drop? v");
}

static void test_half_a_statement_is_refused(void **state)
{
    (void)state;
    assert_refused("CREATE MATERIALIZED VIEW", "the name");
    assert_refused("CREATE MATERIALIZED VIEW `v", "a closing `");
    assert_refused("CREATE MATERIALIZED VIEW ``", "the name");
    assert_refused("CREATE MATERIALIZED VIEW v", "AS and a query");
    assert_refused("CREATE MATERIALIZED VIEW v SELECT 1", "AS and a query");
    assert_refused("CREATE MATERIALIZED VIEW v AS /* nothing */", "a query behind AS");
    assert_refused("CREATE MATERIALIZED VIEW v OPTIONS (labels = 1) AS q", "deletion_protection");
    assert_refused("CREATE MATERIALIZED VIEW v OPTIONS (deletion_protection = 1) AS q", "TRUE");
    assert_refused("DROP MATERIALIZED VIEW v w", "the end");
    assert_refused("DROP MATERIALIZED VIEW IF EXISTS", "the name");
}

/* What is said of the query of that statement. */
static void assert_placed(const char *text, const char *said, const char *expected)
{
    struct sql_words words;
    assert_ok(sql_words_read(bytes_of(text), arena, &words));
    status s = status_make(STATUS_INVALID_ARGUMENT, "%s", said);
    s = sql_words_place_error(bytes_of(text), words.query_at, s);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), expected);
    status_free(s);
}

static void test_places_are_those_of_the_statement(void **state)
{
    (void)state;
    assert_placed("CREATE MATERIALIZED VIEW v AS SELECT y", "none [at 1:8]", "none [at 1:38]");
    assert_placed("CREATE MATERIALIZED VIEW v\nAS SELECT y", "none [at 1:8]", "none [at 2:11]");
    assert_placed("-- \xc3\xa9\nCREATE MATERIALIZED VIEW v AS /* \xc3\xa9 */ SELECT y\nFROM z",
                  "none [at 2:6] [at", "none [at 3:6] [at");
    assert_placed("CREATE MATERIALIZED VIEW v AS /* \xc3\xa9 */ SELECT y", "none [at 1:8]",
                  "none [at 1:46]");
    assert_placed("CREATE MATERIALIZED VIEW v AS SELECT y", "no place", "no place");
    assert_placed("CREATE MATERIALIZED VIEW v AS SELECT y", "none [at x:8]", "none [at x:8]");
}

static int make_arena(void **state)
{
    (void)state;
    arena = arena_create(1 << 20);
    return arena == NULL;
}

static int free_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_view_is_a_query),
        cmocka_unit_test(test_a_view_is_made),
        cmocka_unit_test(test_a_view_is_dropped),
        cmocka_unit_test(test_half_a_statement_is_refused),
        cmocka_unit_test(test_places_are_those_of_the_statement),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
