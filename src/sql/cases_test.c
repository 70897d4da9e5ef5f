/* What expressions come to: the cases of tests/data/sql, whose README says how they are written.
 * Each section is a test; the last tests look whether every function has a case with a value. */
#include "base/arena.h"
#include "base/testing/testing.h"
#include "base/vector.h"
#include "sql/function.h"
#include "sql/plan/window.h"
#include "sql/testing/testing.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_LIMIT = 64 << 20 };

struct expression_case {
    const char *expression;
    const char *result; /* rows parted by " ; "; or `CODE: message` */
    const char *type;   /* NULL: it is an error */
    const char *rule;
};

struct section {
    char *name; /* "numbers.txt: Signs are known" */
    struct vector cases;
};

/* All that was read; set before the tests run. */
struct suite {
    struct arena *arena;
    struct vector sections;
};

/* --- reading --- */

static char *file_text(const char *path, struct arena *arena)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    char *text = arena_zalloc(arena, size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* A line with those that go on with it; ends it, and moves `rest` behind it. */
static char *next_line(char **rest)
{
    char *line = *rest;
    char *end = line + strcspn(line, "\n");
    while (end[0] == '\n' && end[1] == ' ') {
        *end = ' ';
        end += strcspn(end, "\n");
    }
    *rest = end + (*end != '\0');
    *end = '\0';
    return line;
}

static char *find_last(char *text, const char *sign)
{
    char *found = NULL;
    for (char *at = strstr(text, sign); at != NULL; at = strstr(at + 1, sign))
        found = at;
    return found;
}

/* Ends the text before the sign and the blanks before it; gives what is behind. */
static char *cut(char *at, const char *sign)
{
    char *behind = at + strlen(sign);
    do
        *at-- = '\0';
    while (*at == ' ');
    return behind;
}

static bool is_error(const char *result)
{
    size_t word = strspn(result, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return word > 0 && result[word] == ':';
}

static struct expression_case read_case(char *line)
{
    struct expression_case read = {.expression = line};
    char *rule = find_last(line, "  -- ");
    char *result = strstr(line, "  => ");
    if (rule == NULL || result == NULL) {
        fail_msg("no case: %s", line);
        return read;
    }
    read.rule = cut(rule, "  -- ");
    result = cut(result, "  => ");
    read.result = result;
    if (is_error(result))
        return read;
    char *type = find_last(result, " : ");
    if (type == NULL)
        fail_msg("a result without its type: %s", line);
    else
        read.type = cut(type, " : ");
    return read;
}

static void begin_section(struct suite *suite, const char *path, const char *title)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    size_t size = strlen(file) + strlen(title) + 3;
    struct section section = {.name = arena_alloc(suite->arena, size)};
    assert_non_null(section.name);
    snprintf(section.name, size, "%s: %s", file, title);
    assert_ok(vector_add(&suite->sections, suite->arena, &section, sizeof section));
}

static void read_file(struct suite *suite, const char *path)
{
    char *rest = file_text(path, suite->arena);
    size_t before = suite->sections.count;
    while (*rest != '\0') {
        char *line = next_line(&rest);
        if (line[0] == '#') {
            begin_section(suite, path, line + strspn(line, "# "));
        } else if (line[0] != '\0') {
            struct expression_case read = read_case(line);
            struct section *sections = suite->sections.items;
            size_t last = suite->sections.count;
            if (sections == NULL || last == before) {
                fail_msg("%s: a case before the first section", path);
                return;
            }
            assert_ok(vector_add(&sections[last - 1].cases, suite->arena, &read, sizeof read));
        }
    }
}

/* --- running --- */

static const struct test_database nothing;

/* Of what has a line for each row; without blanks at its end, which an error may have. */
static char *joined_rows(const struct buffer *rows, struct buffer *out)
{
    char *rest = NULL;
    for (char *row = strtok_r((char *)rows->data, "\n", &rest); row != NULL;
         row = strtok_r(NULL, "\n", &rest))
        buffer_append_format(out, "%s%s", out->size == 0 ? "" : " ; ", row);
    while (out->size > 0 && out->data[out->size - 1] == ' ')
        out->size--;
    buffer_append_byte(out, '\0');
    return (char *)out->data;
}

/* Of a query's first column; what comes is "NAME TYPE\n", or an error. */
static char *type_of(const char *query, struct buffer *out)
{
    test_columns(&nothing, query, out);
    char *blank = strchr((char *)out->data, ' ');
    assert_non_null(blank);
    blank[1 + strcspn(blank + 1, "\n")] = '\0';
    return blank + 1;
}

static bool is_same(const struct expression_case *each, const char *result, const char *type)
{
    if (strcmp(result, each->result) == 0 && (type == NULL || strcmp(type, each->type) == 0))
        return true;
    print_error("%s\n    is       %s%s%s\n    and not  %s%s%s (%s)\n", each->expression, result,
                type == NULL ? "" : " : ", type == NULL ? "" : type, each->result,
                type == NULL ? "" : " : ", type == NULL ? "" : each->type, each->rule);
    return false;
}

static bool holds(const struct expression_case *each)
{
    struct buffer query = {0}, rows = {0}, result = {0}, type = {0};
    buffer_append_format(&query, "SELECT %s", each->expression);
    buffer_append_byte(&query, '\0');
    const char *text = (const char *)query.data;
    enum status_code code = test_query(&nothing, text, NULL, 0, &rows);
    bool is_typed = code == STATUS_OK && each->type != NULL;
    bool held = is_same(each, joined_rows(&rows, &result), is_typed ? type_of(text, &type) : NULL);
    buffer_free(&query);
    buffer_free(&rows);
    buffer_free(&result);
    buffer_free(&type);
    return held;
}

/* All are tried; those that differ are shown. */
static void section_holds(void **state)
{
    const struct section *section = *state;
    const struct expression_case *cases = section->cases.items;
    size_t wrong = 0;
    for (size_t i = 0; i < section->cases.count; i++)
        wrong += !holds(&cases[i]);
    assert_int_equal(wrong, 0);
}

/* --- is everything tried? --- */

/* What operators look like; functions are looked for by their names. */
static const char *const operators[][2] = {
    {"$add", " + "},
    {"$array_offset", "[OFFSET("},
    {"$array_ordinal", "[ORDINAL("},
    {"$between", " BETWEEN "},
    {"$bit_and", " & "},
    {"$bit_not", "~"},
    {"$bit_or", " | "},
    {"$bit_xor", " ^ "},
    {"$concat", " || "},
    {"$count_star", "COUNT(*"},
    {"$divide", " / "},
    {"$equal", " = "},
    {"$extract", "EXTRACT("},
    {"$greater", " > "},
    {"$greater_equal", " >= "},
    {"$in", " IN ("},
    {"$in_array", " IN UNNEST("},
    {"$is_distinct", " IS DISTINCT FROM "},
    {"$is_false", " IS FALSE"},
    {"$is_null", " IS NULL"},
    {"$is_true", " IS TRUE"},
    {"$is_unknown", " IS UNKNOWN"},
    {"$less", " < "},
    {"$less_equal", " <= "},
    {"$like", " LIKE "},
    {"$like_all", " LIKE ALL "},
    {"$like_any", " LIKE ANY "},
    {"$map_at", "])['a']"},
    {"$map_key", "[KEY("},
    {"$multiply", " * "},
    {"$negate", "-("},
    {"$not", "NOT "},
    {"$not_equal", " != "},
    {"$safe_offset", "[SAFE_OFFSET("},
    {"$safe_ordinal", "[SAFE_ORDINAL("},
    {"$shift_left", " << "},
    {"$shift_right", " >> "},
    {"$subtract", " - "},
};

/* What is in no table, since it is bound in a way of its own. */
static const char *const special_forms[] = {
    "CASE WHEN ", "CASE ",         "CAST(", "SAFE_CAST(",     "IF(",    "IFNULL(",
    "NULLIF(",    "COALESCE(",     "SAFE.", "STRUCT(",        "ARRAY<", " NOT IN (",
    " NOT LIKE ", " IS NOT NULL",  " AND ", " OR ",           "DATE '", "TIMESTAMP '",
    " <> ",       " NOT BETWEEN ", "r'",    " AT TIME ZONE ", "b'",
};

/* Whether an expression that has a value has `text` in it, at the beginning of a word. */
static bool is_tried(const struct suite *suite, const char *text)
{
    const struct section *sections = suite->sections.items;
    for (size_t i = 0; i < suite->sections.count; i++) {
        const struct expression_case *cases = sections[i].cases.items;
        for (size_t c = 0; c < sections[i].cases.count; c++) {
            const char *whole = cases[c].expression;
            const char *at = cases[c].type == NULL ? NULL : strcasestr(whole, text);
            while (at != NULL && at > whole && isalpha(text[0]) &&
                   (isalnum(at[-1]) || at[-1] == '_'))
                at = strcasestr(at + 1, text);
            if (at != NULL)
                return true;
        }
    }
    return false;
}

static size_t miss(const struct suite *suite, const char *text)
{
    if (is_tried(suite, text))
        return 0;
    print_error("no case has %s\n", text);
    return 1;
}

/* `name`: of a function, or of an operator. */
static size_t miss_named(const struct suite *suite, const char *name)
{
    char call[64];
    snprintf(call, sizeof call, "%s(", name);
    if (name[0] != '$')
        return miss(suite, call);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i][0], name) == 0)
            return miss(suite, operators[i][1]);
    print_error("what does the operator %s look like?\n", name);
    return 1;
}

static void every_scalar_function_is_tried(void **state)
{
    size_t count, missed = 0;
    const struct sql_function *const *tables = sql_function_tables(&count);
    for (size_t i = 0; i < count; i++)
        for (const struct sql_function *each = tables[i]; each->name != NULL; each++)
            if (strcmp(each->name, "VIEW_PARAMETERS") != 0) /* see query_test.c */
                missed += miss_named(*state, each->name);
    for (size_t i = 0; i < sizeof special_forms / sizeof *special_forms; i++)
        missed += miss(*state, special_forms[i]);
    assert_int_equal(missed, 0);
}

static void every_aggregate_is_tried(void **state)
{
    size_t count, missed = 0;
    const struct sql_aggregate *const *tables = sql_aggregate_tables(&count);
    for (size_t i = 0; i < count; i++)
        for (const struct sql_aggregate *each = tables[i]; each->name != NULL; each++)
            missed += miss_named(*state, each->name);
    assert_int_equal(missed, 0);
}

static void every_window_function_is_tried(void **state)
{
    size_t missed = 0;
    for (size_t i = 0; sql_window_function_name(i) != NULL; i++)
        missed += miss_named(*state, sql_window_function_name(i));
    assert_int_equal(missed, 0);
}

static int run(struct suite *suite)
{
    static const struct CMUnitTest last[] = {
        cmocka_unit_test(every_scalar_function_is_tried),
        cmocka_unit_test(every_aggregate_is_tried),
        cmocka_unit_test(every_window_function_is_tried),
    };
    size_t sections = suite->sections.count, more = sizeof last / sizeof *last;
    struct CMUnitTest *tests = arena_zalloc(suite->arena, (sections + more) * sizeof *tests);
    assert_non_null(tests);
    for (size_t i = 0; i < sections; i++) {
        struct section *section = (struct section *)suite->sections.items + i;
        tests[i].name = section->name;
        tests[i].test_func = section_holds;
        tests[i].initial_state = section;
    }
    for (size_t i = 0; i < more; i++) {
        tests[sections + i] = last[i];
        tests[sections + i].initial_state = suite;
    }
    return _cmocka_run_group_tests("cases", tests, sections + more, NULL, NULL);
}

/* Arguments: the files. */
int main(int argc, char **argv)
{
    struct suite suite = {.arena = arena_create(ARENA_LIMIT)};
    assert_non_null(suite.arena);
    for (int i = 1; i < argc; i++)
        read_file(&suite, argv[i]);
    int failed = run(&suite);
    arena_destroy(suite.arena);
    return failed;
}
