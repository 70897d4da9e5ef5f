/* Fuzzer: queries, from their text to their rows, over a small table.
 *
 * Whatever the text, there are rows, or an error that a client may be told; and a query in
 * parentheses comes to the same.
 *
 * Input: the text. */
#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "sql/testing/testing.h"

#include <stdio.h>

enum { MOST_TEXT = 1000 };

static const struct test_cell cells[] = {
    {"a", "f", "x", 2000, "300"}, {"a", "f", "x", 1000, "old"}, {"a", "g", "y", 2000, "p"},
    {"b", "f", "x", 1000, "100"}, {"b", "n", "c", 0, "7"},      {"c", "f", "z", 1000, "zz"},
};

static const struct test_database database = {
    .cells = cells,
    .count = sizeof cells / sizeof *cells,
    .view = "SELECT _key, f['x'] AS x FROM t WHERE _key < 'c'",
};

/* Errors are those that a client may be told. */
static bool runs(const char *query, struct buffer *out)
{
    enum status_code code = test_query(&database, query, NULL, 0, out);
    CHECK(out->data != NULL);
    CHECK(code == STATUS_OK || code == STATUS_INVALID_ARGUMENT || code == STATUS_OUT_OF_RANGE ||
          code == STATUS_RESOURCE_EXHAUSTED);
    return code == STATUS_OK;
}

/* A query in parentheses is the same query, unless it is nested too deeply then. */
static void check_parentheses(const char *query, const char *result)
{
    char nested[MOST_TEXT + 8];
    struct buffer out = {0};
    snprintf(nested, sizeof nested, "(%s\n)", query);
    if (runs(nested, &out))
        CHECK(strcmp((char *)out.data, result) == 0);
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char query[MOST_TEXT + 1];
    struct buffer rows = {0}, plan = {0};
    snprintf(query, sizeof query, "%.*s", (int)(size < MOST_TEXT ? size : MOST_TEXT),
             size == 0 ? "" : (const char *)data);
    bool is_query = runs(query, &rows);
    test_explain(&database, query, &plan);
    bool is_volatile = strcasestr(query, "RAND") != NULL || strcasestr(query, "UUID") != NULL;
    if (is_query && !is_volatile && strchr(query, ';') == NULL)
        check_parentheses(query, (char *)rows.data);
    buffer_free(&rows);
    buffer_free(&plan);
    return 0;
}
