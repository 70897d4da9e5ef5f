/* From a query's text to its tree. */
#ifndef TRESTLE_SQL_SYNTAX_PARSER_H
#define TRESTLE_SQL_SYNTAX_PARSER_H

#include "sql/syntax/ast.h"

/* Limits of what is parsed, against hostile text. */
enum {
    SQL_QUERY_SIZE_LIMIT = 1 << 20, /* bytes */
    SQL_NESTING_LIMIT = 200,        /* of parentheses, calls and queries in one another */
    SQL_DEPTH_LIMIT = 1000,         /* of the tree of an expression: a + b + c … is one, too */
};

/* One query, with or without a `;` after it. The tree is in the arena and points into `text`.
 * INVALID_ARGUMENT "Syntax error: … [at l:c]" with GoogleSQL's words, also for text that is too
 * long, nested too deeply, or no UTF-8; RESOURCE_EXHAUSTED without memory. */
status sql_parse(bytes text, struct arena *arena, struct ast_query **out);

/* The type in a text like "ARRAY<INT64>". */
status sql_parse_type(bytes text, struct arena *arena, struct ast_type **out);

#endif
