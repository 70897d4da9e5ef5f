/* Tables of expressions and what they come to: the tests of functions are made of them. */
#ifndef TRESTLE_SQL_EXPRESSION_TESTING_H
#define TRESTLE_SQL_EXPRESSION_TESTING_H

#include "base/testing.h"
#include "sql/testing.h"

#include <stdio.h>

struct expression_case {
    const char *expression;
    const char *expected; /* a literal, as sql_value_append_literal writes it; or `CODE: message` */
    const char *rule;     /* what of the documentation it checks */
};

/* Each is a query of its own. All are tried; those that differ are shown. */
static inline void check_expressions(const struct expression_case *cases, size_t count)
{
    static const struct test_database nothing = {0};
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        char query[4096];
        struct buffer out = {0};
        snprintf(query, sizeof query, "SELECT %s", cases[i].expression);
        test_query(&nothing, query, NULL, 0, &out);
        assert_non_null(out.data);
        char *result = (char *)out.data;
        if (result[0] != '\0')
            result[strlen(result) - 1] = '\0'; /* the end of the line */
        if (strcmp(result, cases[i].expected) != 0) {
            print_error("%s\n    is       %s\n    and not  %s (%s)\n", cases[i].expression, result,
                        cases[i].expected, cases[i].rule);
            wrong++;
        }
        buffer_free(&out);
    }
    assert_int_equal(wrong, 0);
}

#define CHECK_EXPRESSIONS(cases) check_expressions(cases, sizeof(cases) / sizeof *(cases))

#endif
