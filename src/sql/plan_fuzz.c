/* Fuzzer: queries that mean something, made from choices, over a small table.
 *
 * Whatever is asked, the planner's improvements change nothing: the plan as it was analysed gives
 * the same rows. Pausing whenever it can be changes nothing either, nor does asking again.
 *
 * Input: choices; each is a production of a grammar. */
#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "sql/function.h"
#include "sql/testing/testing.h"

#include <string.h>

enum { MOST_DEPTH = 4, MOST_TEXT = 3000 };

static const struct test_cell cells[] = {
    {"a", "f", "x", 2000, "300"}, {"a", "f", "x", 1000, "old"}, {"a", "g", "y", 2000, "p"},
    {"b", "f", "x", 1000, "100"}, {"b", "n", "c", 0, "7"},      {"c", "f", "z", 1000, "zz"},
    {"ca", "f", "x", 1000, ""},   {"ca", "n", "c", 0, "-7"},    {"d", "g", "x", 500, "300"},
};

struct writer {
    struct choices *choices;
    struct buffer *out;
    unsigned depth;
};

static void say(struct writer *writer, const char *words)
{
    buffer_append_bytes(writer->out, bytes_of(words));
}

/* One of the words; their `%`s become what `part` writes. */
static void say_one(struct writer *writer, const char *const *words, unsigned count,
                    void (*part)(struct writer *writer), unsigned leaves)
{
    bool is_leaf = writer->depth >= MOST_DEPTH || writer->choices->left.size == 0;
    const char *chosen = words[choose(writer->choices, is_leaf ? leaves : count)];
    writer->depth++;
    for (; *chosen != '\0'; chosen++)
        if (*chosen == '%')
            part(writer);
        else
            buffer_append_byte(writer->out, (uint8_t)*chosen);
    writer->depth--;
}

#define SAY(writer, words, part, leaves)                                                           \
    say_one(writer, words, sizeof(words) / sizeof *(words), part, leaves)

/* --- expressions over _key, x, y (BYTES) and c (INT64) --- */

static void number(struct writer *writer)
{
    static const char *const words[] = {
        "c",
        "1",
        "0",
        "-3",
        "NULL",
        "7", /* leaves */
        "(% + %)",
        "(% - %)",
        "(% * %)",
        "SAFE_DIVIDE(%, %)",
        "SAFE.DIV(%, %)",
        "ABS(%)",
        "COALESCE(%, %)",
        "IF(% > %, %, %)",
        "LENGTH(CAST(% AS STRING))",
        "GREATEST(%, %)",
        "NULLIF(%, %)",
        "CASE % WHEN % THEN % ELSE % END",
        "MOD(%, 5)",
        "ARRAY_LENGTH(ARRAY_FILTER([%, %, 3], e -> e > 1))",
        "LENGTH(_key)",
        "SAFE_CAST(CAST(x AS STRING) AS INT64)",
        "[%, %][SAFE_OFFSET(1)]",
        "STRUCT(% AS q).q",
    };
    SAY(writer, words, number, 6);
}

static void text(struct writer *writer)
{
    static const char *const words[] = {
        "_key",
        "x",
        "y",
        "b'a'",
        "b'c'",
        "b''",
        "NULL",
        "b'300'", /* leaves */
        "CONCAT(%, %)",
        "SUBSTR(%, 2)",
        "COALESCE(%, %)",
        "REVERSE(%)",
        "IF(% < %, %, %)",
        "LEFT(%, 1)",
        "REPLACE(%, b'a', %)",
        "GREATEST(%, %)",
    };
    SAY(writer, words, text, 8);
}

static void text_condition(struct writer *writer)
{
    static const char *const words[] = {
        "% = %",
        "% < %",
        "% >= %",
        "% IS NULL",
        "_key = b'b'",
        "_key >= b'b'",
        "_key IN (b'a', %)",
        "% BETWEEN b'a' AND %",
        "STARTS_WITH(%, b'c')",
        "_key LIKE b'c%'",
        "% != %",
        "STARTS_WITH(_key, %)",
        "% IS DISTINCT FROM %",
        "_key > %",
        "% LIKE b'_'",
        "% IN (%, NULL)",
    };
    SAY(writer, words, text, sizeof words / sizeof *words);
}

static void number_condition(struct writer *writer)
{
    static const char *const words[] = {
        "% = %",
        "% < %",
        "% <= %",
        "% IS NOT NULL",
        "% BETWEEN % AND %",
        "% IN (1, %, %)",
        "(% > %) IS NOT TRUE",
    };
    SAY(writer, words, number, sizeof words / sizeof *words);
}

static void condition(struct writer *writer)
{
    static const char *const words[] = {"TRUE",      "FALSE",    "NULL",           "NOT %",
                                        "(% AND %)", "(% OR %)", "(% AND % AND %)"};
    if (writer->depth < MOST_DEPTH && choose(writer->choices, 3) == 0)
        SAY(writer, words, condition, 3);
    else if (choose_bool(writer->choices))
        text_condition(writer);
    else
        number_condition(writer);
}

/* --- queries: each step keeps the columns _key, x, y, c --- */

static void step(struct writer *writer)
{
    unsigned kind = choose(writer->choices, 9);
    static const char *const steps[] = {" |> WHERE ", " |> SET c = ", " |> SET x = ",
                                        " |> SET y = ", " |> SELECT _key, y AS x, x AS y, c + "};
    if (kind < 5)
        say(writer, steps[kind]);
    if (kind == 0)
        condition(writer);
    else if (kind == 1 || kind == 4)
        number(writer);
    else if (kind < 4)
        text(writer);
    if (kind == 4)
        say(writer, " AS c");
    if (kind == 5)
        say(writer, choose_bool(writer->choices) ? " |> ORDER BY _key DESC, c, x, y"
                                                 : " |> ORDER BY x, y DESC NULLS FIRST, c, _key");
    else if (kind == 6)
        say(writer, " |> ORDER BY _key, x, y, c |> LIMIT 3 OFFSET 1");
    else if (kind == 7)
        say(writer, " |> DISTINCT");
    else if (kind == 8)
        say(writer, " |> AGGREGATE COUNT(*) AS c, MAX(x) AS x, MIN(y) AS y GROUP BY _key "
                    "|> SELECT _key, x, y, c");
}

static void query(struct writer *writer)
{
    say(writer, "FROM (SELECT _key, f['x'] AS x, g['y'] AS y, n['c'] AS c FROM t");
    if (choose_bool(writer->choices)) {
        say(writer, " WHERE ");
        buffer_append_bytes(writer->out, bytes_of("_key >= "));
        text(&(struct writer){writer->choices, writer->out, MOST_DEPTH});
    }
    say(writer, ")");
    for (unsigned steps = 1 + choose(writer->choices, 4); steps > 0; steps--)
        step(writer);
    if (choose(writer->choices, 4) == 0)
        say(writer, " |> EXTEND SUM(c) OVER (PARTITION BY x ORDER BY _key) AS w");
    say(writer, " |> ORDER BY _key, x, y, c");
}

/* --- the laws --- */

static status look(void *context, bool *is_turn_over)
{
    (void)context;
    *is_turn_over = true;
    return status_ok();
}

static void ask(const struct test_database *database, const char *words, struct buffer *out)
{
    enum status_code code = test_query(database, words, NULL, 0, out);
    CHECK(out->data != NULL);
    CHECK(code == STATUS_OK || code == STATUS_INVALID_ARGUMENT || code == STATUS_OUT_OF_RANGE ||
          code == STATUS_RESOURCE_EXHAUSTED);
}

/* An improved plan may find an error in a row that the other leaves out before, or not look for it.
 */
static bool is_error(const struct buffer *result)
{
    return strstr((const char *)result->data, "OUT_OF_RANGE: ") != NULL ||
           strstr((const char *)result->data, "RESOURCE_EXHAUSTED: ") != NULL;
}

static void check_same(const struct test_database *database, const char *words,
                       const struct buffer *result)
{
    struct buffer other = {0};
    ask(database, words, &other);
    CHECK(is_error(result) || is_error(&other) ||
          strcmp((const char *)result->data, (const char *)other.data) == 0);
    buffer_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sql_watch watch = {look, NULL};
    struct test_database database = {.cells = cells, .count = sizeof cells / sizeof *cells};
    struct choices choices = choices_of(data, size);
    struct buffer words = {0}, result = {0};
    query(&(struct writer){&choices, &words, 0});
    buffer_append_byte(&words, '\0');
    CHECK(!words.failed);
    if (words.size <= MOST_TEXT) {
        const char *asked = (const char *)words.data;
        ask(&database, asked, &result);
        check_same(&database, asked, &result);
        database.watch = &watch;
        check_same(&database, asked, &result);
        database.is_not_optimized = true;
        check_same(&database, asked, &result);
    }
    buffer_free(&words);
    buffer_free(&result);
    return 0;
}
