/* What a query says, before its meaning is looked for: the parser's tree.
 *
 * Nodes live in the arena of the parse, strings in it too; names are NUL-terminated, in the case in
 * which they were written. `at` is where the node begins, as an offset in bytes into the query,
 * which is what errors need (error.h). Lists are linked by `next`, in the order of the text.
 *
 * The grammar is docs/reference/sql-grammar.md. What Bigtable never has (WITH, UNION, DML) the
 * parser refuses by name; joins and subqueries are in the tree, since that needs to know what they
 * join. */
#ifndef TRESTLE_SQL_SYNTAX_AST_H
#define TRESTLE_SQL_SYNTAX_AST_H

#include "base/arena.h"
#include "base/status.h"

struct ast_query;

/* a.b.c */
struct ast_name {
    const char *text;
    uint32_t at;
    struct ast_name *next;
};

/* --- types, as in CAST --- */

enum ast_type_kind { AST_TYPE_NAMED, AST_TYPE_ARRAY, AST_TYPE_STRUCT, AST_TYPE_MAP };

struct ast_type {
    enum ast_type_kind kind;
    uint32_t at;
    struct ast_name *name;  /* of a named type: INT64, bundle.pkg.Message */
    const char *field;      /* in the list of a struct's fields: its name, "" if it has none */
    struct ast_type *parts; /* element; fields; key and value */
    struct ast_type *next;
};

/* --- expressions --- */

enum ast_operator {
    AST_NEGATE,
    AST_PLUS, /* the sign */
    AST_BIT_NOT,
    AST_NOT,
    AST_MULTIPLY,
    AST_DIVIDE,
    AST_CONCAT,
    AST_ADD,
    AST_SUBTRACT,
    AST_SHIFT_LEFT,
    AST_SHIFT_RIGHT,
    AST_BIT_AND,
    AST_BIT_XOR,
    AST_BIT_OR,
    AST_EQUAL,
    AST_NOT_EQUAL,
    AST_LESS,
    AST_LESS_EQUAL,
    AST_GREATER,
    AST_GREATER_EQUAL,
    AST_LIKE,
    AST_AND,
    AST_OR,
};

enum ast_kind {
    AST_NULL,
    AST_TRUE,
    AST_FALSE,
    AST_INTEGER,   /* text: decimal or 0x, no sign */
    AST_FLOAT,     /* text */
    AST_STRING,    /* bytes, escapes undone */
    AST_BYTES,     /* bytes */
    AST_TYPED,     /* name: DATE or TIMESTAMP or another; operands: the string */
    AST_INTERVAL,  /* operands: how many; name: the part */
    AST_PARAMETER, /* text: the name, without @ */
    AST_PATH,      /* name: what is neither a literal nor a call: a column, or a field of one */
    AST_DOT,       /* operands: of what; text: the field's name */
    AST_SUBSCRIPT, /* operands: of what, and which; subscript */
    AST_UNARY,     /* operator; operands: one */
    AST_BINARY,    /* operator_; operands: two, of AND and OR two or more; is_not: of LIKE */
    AST_LIKE_QUANTIFIED, /* operands: what, then patterns; quantifier; is_not */
    AST_BETWEEN,         /* operands: three; is_not */
    AST_IN,              /* operands: what, then the list; is_not */
    AST_IN_UNNEST,       /* operands: what, and the array; is_not */
    AST_IN_QUERY,        /* operands: what; query; is_not */
    AST_IS,              /* operands: one; predicate; is_not */
    AST_IS_DISTINCT,     /* operands: two; is_not */
    AST_CASE,           /* operands: has_operand: what, then WHEN, THEN, …; has_else: then ELSE */
    AST_CAST,           /* operands: what [FORMAT f [AT TIME ZONE z]]; type; is_safe */
    AST_EXTRACT,        /* operands: of what [zone]; part */
    AST_CALL,           /* name; operands; call */
    AST_NAMED_ARGUMENT, /* text: name; operands: the value */
    AST_LAMBDA,         /* name: parameters; operands: the body */
    AST_ARRAY,          /* operands: elements; type: of ARRAY<T>[…], or NULL */
    AST_STRUCT,         /* operands, each with `alias`; type: of STRUCT<…>(…), or NULL */
    AST_SUBQUERY,       /* query; text: "", "EXISTS", "ARRAY" */
};

enum ast_subscript {
    AST_SUBSCRIPT_BARE,
    AST_SUBSCRIPT_OFFSET,
    AST_SUBSCRIPT_ORDINAL,
    AST_SUBSCRIPT_SAFE_OFFSET,
    AST_SUBSCRIPT_SAFE_ORDINAL,
    AST_SUBSCRIPT_KEY,
    AST_SUBSCRIPT_SAFE_KEY,
};

enum ast_quantifier { AST_ANY, AST_ALL }; /* SOME is ANY */

enum ast_predicate { AST_IS_NULL, AST_IS_TRUE, AST_IS_FALSE, AST_IS_UNKNOWN };

/* A part of a date or time, as in EXTRACT and INTERVAL; also an argument like MONTH or
 * WEEK(MONDAY), which the parser cannot tell from a path or a call. */
struct ast_part {
    const char *name;
    const char *weekday; /* of WEEK(…), else NULL */
    uint32_t at;
};

struct ast_expr {
    enum ast_kind kind;
    uint32_t at;
    struct ast_expr *operands;
    struct ast_expr *next;
    const char *alias; /* in a list that has them; NULL: none */
    bool is_not;
    bool is_safe;
    bool is_parenthesized;
    uint16_t depth; /* of what is below it: what recursion may meet */
    union {
        const char *text;
        bytes literal;
        struct ast_name *name;
        enum ast_operator operator_;
        enum ast_subscript subscript;
        enum ast_quantifier quantifier;
        enum ast_predicate predicate;
    };
    union {
        struct ast_type *type;
        struct ast_part part;
        struct ast_call *call;
        struct ast_query *query;
        struct {
            bool has_operand;
            bool has_else;
        };
    };
};

enum ast_nulls { AST_NULLS_DEFAULT, AST_NULLS_IGNORE, AST_NULLS_RESPECT };

/* What a call may have beside its arguments. */
struct ast_call {
    bool is_star; /* COUNT(*) */
    bool is_distinct;
    enum ast_nulls nulls;
    enum { AST_HAVING_NONE, AST_HAVING_MAX, AST_HAVING_MIN } having;
    struct ast_expr *having_operand;
    struct ast_order *order;
    struct ast_expr *limit;
    struct ast_window *over; /* NULL: not a window function */
    bool has_parentheses;    /* CURRENT_DATE may do without */
};

struct ast_order {
    struct ast_expr *expr;
    uint32_t at;
    bool is_descending;
    bool is_said; /* ASC, or whatever else */
    enum { AST_NULLS_UNSAID, AST_NULLS_FIRST, AST_NULLS_LAST } nulls;
    struct ast_order *next;
};

enum ast_bound_kind {
    AST_UNBOUNDED_PRECEDING,
    AST_PRECEDING,
    AST_CURRENT_ROW,
    AST_FOLLOWING,
    AST_UNBOUNDED_FOLLOWING,
};

struct ast_bound {
    enum ast_bound_kind kind;
    struct ast_expr *offset; /* of PRECEDING and FOLLOWING */
};

struct ast_window {
    uint32_t at;
    const char *name; /* of a WINDOW clause: what it defines; or NULL */
    const char *base; /* OVER w, OVER (w ORDER BY …): the window that it begins with; or NULL */
    struct ast_expr *partition;
    struct ast_order *order;
    enum { AST_FRAME_DEFAULT, AST_FRAME_ROWS, AST_FRAME_RANGE } frame;
    struct ast_bound start;
    struct ast_bound end;
    struct ast_window *next;
};

/* --- queries --- */

struct ast_replace {
    struct ast_expr *expr;
    const char *name;
    uint32_t at;
    struct ast_replace *next;
};

struct ast_item {
    uint32_t at;
    struct ast_expr *expr; /* of `expr.*` what is before the dot; NULL: a lone `*` */
    bool is_star;
    const char *alias; /* or NULL */
    struct ast_name *except;
    struct ast_replace *replace;
    struct ast_item *next;
};

enum ast_from_kind {
    AST_FROM_TABLE,  /* name; arguments: t(with_history => TRUE) */
    AST_FROM_QUERY,  /* query */
    AST_FROM_UNPACK, /* name: the function's; query: its argument */
    AST_FROM_UNNEST, /* expr; offset_alias */
    AST_FROM_JOIN,   /* left, right; join; on */
};

enum ast_join { AST_JOIN_CROSS /* or a comma */, AST_JOIN_INNER, AST_JOIN_LEFT };

struct ast_from {
    enum ast_from_kind kind;
    uint32_t at;
    const char *alias; /* or NULL */
    struct ast_name *name;
    bool has_arguments;
    struct ast_expr *arguments;
    struct ast_query *query;
    struct ast_expr *expr;
    bool has_offset;
    const char *offset_alias; /* WITH OFFSET [AS x]: "offset" if it is not said */
    enum ast_join join;
    uint16_t depth; /* of joins on the left side */
    struct ast_from *left;
    struct ast_from *right;
    struct ast_expr *on; /* or NULL */
};

enum ast_grouping { AST_GROUP_NONE, AST_GROUP_BY, AST_GROUP_ALL };

struct ast_select {
    uint32_t at;
    bool is_distinct;
    const char *as; /* SELECT AS STRUCT, AS VALUE: "STRUCT"; NULL */
    struct ast_item *items;
    struct ast_from *from; /* NULL: none */
    struct ast_expr *where;
    enum ast_grouping grouping;
    struct ast_expr *group; /* may have aliases in pipe syntax */
    struct ast_expr *having;
    struct ast_expr *qualify;
    struct ast_window *windows;
};

enum ast_pipe_kind {
    AST_PIPE_SELECT,    /* select: items, DISTINCT */
    AST_PIPE_EXTEND,    /* items */
    AST_PIPE_SET,       /* replace */
    AST_PIPE_DROP,      /* names */
    AST_PIPE_RENAME,    /* replace: expr is a path */
    AST_PIPE_AS,        /* names: one */
    AST_PIPE_WHERE,     /* expr */
    AST_PIPE_LIMIT,     /* limit, offset */
    AST_PIPE_AGGREGATE, /* items; group (with aliases, and orders in `order`); */
    AST_PIPE_ORDER,     /* order */
    AST_PIPE_DISTINCT,
    AST_PIPE_JOIN, /* from: CROSS JOIN UNNEST; others are refused */
};

struct ast_pipe {
    enum ast_pipe_kind kind;
    uint32_t at;
    struct ast_select *select;
    struct ast_item *items;
    struct ast_replace *replace;
    struct ast_name *names;
    struct ast_expr *expr;
    struct ast_expr *group;
    struct ast_order *order;
    bool groups_are_ordered; /* GROUP AND ORDER BY; `order` has those that say how themselves */
    struct ast_expr *limit;
    struct ast_expr *offset;
    struct ast_from *from;
    struct ast_pipe *next;
};

enum ast_body {
    AST_BODY_SELECT,
    AST_BODY_QUERY, /* in parentheses */
    AST_BODY_FROM,  /* FROM t |> … */
};

struct ast_query {
    uint32_t at;
    bool allows_incomplete_views; /* of the statement: @{allow_incomplete_view = true} */
    enum ast_body body;
    struct ast_select *select;
    struct ast_query *query;
    struct ast_from *from;
    struct ast_order *order;
    struct ast_expr *limit;
    struct ast_expr *offset;
    struct ast_pipe *pipes;
};

#endif
