/* What expressions come to: the cases of tests/data/sql, whose README says how they are written.
 * Each section is a test. */
#include "base/arena.h"
#include "base/testing.h"
#include "sql/testing.h"
#include "sql/vector.h"

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
    rewind(file);
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
    if (rule == NULL || result == NULL)
        fail_msg("no case: %s", line);
    read.rule = cut(rule, "  -- ");
    result = cut(result, "  => ");
    read.result = result;
    if (is_error(result))
        return read;
    char *type = find_last(result, " : ");
    if (type == NULL)
        fail_msg("a result without its type: %s", line);
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
            if (suite->sections.count == before)
                fail_msg("%s: a case before the first section", path);
            struct section *section = suite->sections.items;
            section += suite->sections.count - 1;
            assert_ok(vector_add(&section->cases, suite->arena, &read, sizeof read));
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

static int run(struct suite *suite)
{
    size_t count = suite->sections.count;
    struct CMUnitTest *tests = arena_zalloc(suite->arena, count * sizeof *tests);
    assert_non_null(tests);
    for (size_t i = 0; i < count; i++) {
        struct section *section = (struct section *)suite->sections.items + i;
        tests[i].name = section->name;
        tests[i].test_func = section_holds;
        tests[i].initial_state = section;
    }
    return _cmocka_run_group_tests("cases", tests, count, NULL, NULL);
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
