/* Queries: SELECT and its clauses. */
#include "sql/syntax/parser_private.h"

#include <strings.h>

bool at_query(const struct parser *parser)
{
    return at_word(parser, "SELECT") || at_word(parser, "FROM") || at_word(parser, "WITH") ||
           at_symbol(parser, "(");
}

/* allow_incomplete_view = true */
static bool allows_incomplete_view(const struct ast_expr *hint)
{
    bool is_setting = hint->kind == AST_BINARY && hint->operator_ == AST_EQUAL &&
                      hint->operands->kind == AST_PATH && hint->operands->name->next == NULL;
    return is_setting && hint->operands->next->kind == AST_TRUE &&
           strcasecmp(hint->operands->name->text, "allow_incomplete_view") == 0;
}

/* @{name = value, …}, @5: of the statement, a SELECT or a table. One is known; others say nothing
 * that a result depends on. */
status parse_hint(struct parser *parser)
{
    struct token next;
    struct ast_expr *value;
    TRY(parser_peek(parser, &next));
    if (at_symbol(parser, "@") && next.kind == TOKEN_INTEGER) {
        TRY(parser_advance(parser));
        return parser_advance(parser);
    }
    if (!at_symbol(parser, "@{"))
        return status_ok();
    do {
        TRY(parser_advance(parser));
        TRY(parse_expr(parser, &value)); /* name = value */
        parser->allows_incomplete_views |= allows_incomplete_view(value);
    } while (at_symbol(parser, ","));
    return parser_expect_symbol(parser, "}");
}

/* --- what is selected --- */

static status parse_except(struct parser *parser, struct ast_item *item)
{
    bool is_there;
    TRY(parser_take_word(parser, "EXCEPT", &is_there));
    if (!is_there)
        return status_ok();
    TRY(parser_expect_symbol(parser, "("));
    TRY(parser_names(parser, &item->except));
    return parser_expect_symbol(parser, ")");
}

/* x AS a */
static status parse_replacement(struct parser *parser, struct ast_replace **out)
{
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    TRY(parse_expr(parser, &(*out)->expr));
    TRY(parser_expect_word(parser, "AS"));
    return parser_identifier(parser, &(*out)->name);
}

status parse_replacements(struct parser *parser, struct ast_replace **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        TRY(parse_replacement(parser, out));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

/* What may follow a `*`. */
static status parse_star(struct parser *parser, struct ast_item *item)
{
    bool replaces;
    item->is_star = true;
    TRY(parser_expect_symbol(parser, "*"));
    TRY(parse_except(parser, item));
    TRY(parser_take_word(parser, "REPLACE", &replaces));
    if (!replaces)
        return status_ok();
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_replacements(parser, &item->replace));
    return parser_expect_symbol(parser, ")");
}

static status parse_item(struct parser *parser, struct ast_item **out)
{
    bool has_dot;
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    if (at_symbol(parser, "*"))
        return parse_star(parser, *out);
    TRY(parse_expr(parser, &(*out)->expr));
    TRY(parser_take_symbol(parser, ".", &has_dot)); /* only a star is left after a dot */
    return has_dot ? parse_star(parser, *out) : parser_alias(parser, &(*out)->alias);
}

static bool ends_items(const struct parser *parser)
{
    return parser->token.kind == TOKEN_END || at_word(parser, "FROM") || at_symbol(parser, ")") ||
           at_symbol(parser, ";") || at_symbol(parser, "|>");
}

/* A comma may follow the last. */
status parse_items(struct parser *parser, struct ast_item **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        TRY(parse_item(parser, out));
        TRY(parser_take_symbol(parser, ",", &more));
        more = more && !ends_items(parser);
    }
    return status_ok();
}

/* --- what it is selected from --- */

/* A table's name may have dashes: `a-b-1`, in which no blank stands around them. */
static status parse_dashes(struct parser *parser, struct ast_name *name)
{
    struct token next;
    struct token last = parser->token;
    TRY(parser_advance(parser));
    for (;;) {
        TRY(parser_peek(parser, &next));
        bool is_part = next.kind == TOKEN_IDENTIFIER || next.kind == TOKEN_KEYWORD ||
                       next.kind == TOKEN_INTEGER;
        bool is_close = parser->token.at == last.end && next.at == parser->token.end;
        if (!at_symbol(parser, "-") || !is_part || !is_close)
            break;
        last = next;
        TRY(parser_advance(parser));
        TRY(parser_advance(parser));
    }
    name->text = arena_string(parser->arena,
                              bytes_make(parser->lexer.text.data + name->at, last.end - name->at));
    return name->text == NULL ? status_out_of_memory() : status_ok();
}

static status parse_table_name(struct parser *parser, struct ast_name **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        if (!at_identifier(parser))
            return parser_unexpected(parser);
        if (parser->token.kind == TOKEN_QUOTED) {
            TRY(parser_word(parser, out));
        } else {
            TRY(parser_node(parser, sizeof **out, (void **)out));
            (*out)->at = parser->token.at;
            TRY(parse_dashes(parser, *out));
        }
        TRY(parser_take_symbol(parser, ".", &more));
    }
    return status_ok();
}

/* UNPACK((SELECT …)), t(with_history => TRUE) */
static status parse_table_arguments(struct parser *parser, struct ast_from *from)
{
    struct token next;
    TRY(parser_peek(parser, &next));
    from->has_arguments = true;
    TRY(parser_advance(parser));
    if (at_symbol(parser, "(") && (token_is_word(&next, "SELECT") || token_is_word(&next, "FROM") ||
                                   token_is_symbol(&next, "("))) {
        from->kind = AST_FROM_UNPACK;
        TRY(parse_parenthesized_query(parser, &from->query));
    } else if (!at_symbol(parser, ")")) {
        TRY(parse_arguments(parser, &from->arguments));
    }
    return parser_expect_symbol(parser, ")");
}

static status parse_table(struct parser *parser, struct ast_from *from)
{
    from->kind = AST_FROM_TABLE;
    TRY(parse_table_name(parser, &from->name));
    if (at_symbol(parser, "("))
        TRY(parse_table_arguments(parser, from));
    TRY(parse_hint(parser));
    return parser_alias(parser, &from->alias);
}

static status parse_offset_alias(struct parser *parser, struct ast_from *from)
{
    TRY(parser_take_word(parser, "WITH", &from->has_offset));
    if (!from->has_offset)
        return status_ok();
    TRY(parser_expect_word(parser, "OFFSET"));
    TRY(parser_alias(parser, &from->offset_alias));
    if (from->offset_alias == NULL)
        from->offset_alias = "offset";
    return status_ok();
}

static status parse_unnest(struct parser *parser, struct ast_from **out)
{
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->kind = AST_FROM_UNNEST;
    (*out)->at = parser->token.at;
    TRY(parser_expect_word(parser, "UNNEST"));
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_expr(parser, &(*out)->expr));
    TRY(parser_expect_symbol(parser, ")"));
    TRY(parser_alias(parser, &(*out)->alias));
    return parse_offset_alias(parser, *out);
}

/* (SELECT …), or a join in parentheses. */
static status parse_from_parentheses(struct parser *parser, struct ast_from **out)
{
    struct token next;
    TRY(parser_peek(parser, &next));
    if (token_is_symbol(&next, "(") || token_is_word(&next, "SELECT") ||
        token_is_word(&next, "FROM") || token_is_word(&next, "WITH")) {
        (*out)->kind = AST_FROM_QUERY;
        TRY(parse_parenthesized_query(parser, &(*out)->query));
        return parser_alias(parser, &(*out)->alias);
    }
    TRY(parser_advance(parser));
    TRY(parse_from(parser, out));
    return parser_expect_symbol(parser, ")");
}

static status parse_from_item(struct parser *parser, struct ast_from **out)
{
    if (at_word(parser, "UNNEST"))
        return parse_unnest(parser, out);
    TRY(parser_enter(parser));
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    TRY(at_symbol(parser, "(") ? parse_from_parentheses(parser, out) : parse_table(parser, *out));
    parser->nesting--;
    return status_ok();
}

/* The words of a join, up to JOIN or the comma; `*is_join` false if there is none. */
static status parse_join_words(struct parser *parser, enum ast_join *join, bool *is_join)
{
    bool taken;
    *join = AST_JOIN_INNER;
    *is_join = true;
    TRY(parser_take_symbol(parser, ",", &taken));
    if (taken) {
        *join = AST_JOIN_CROSS;
        return status_ok();
    }
    if (at_word(parser, "RIGHT") || at_word(parser, "FULL") || at_word(parser, "NATURAL"))
        return parser_refuse(parser, "A RIGHT, FULL or NATURAL JOIN");
    bool is_cross, is_left, is_inner;
    TRY(parser_take_word(parser, "CROSS", &is_cross));
    TRY(parser_take_word(parser, "LEFT", &is_left));
    TRY(parser_take_word(parser, is_left ? "OUTER" : "INNER", &is_inner));
    if (is_cross || is_left)
        *join = is_cross ? AST_JOIN_CROSS : AST_JOIN_LEFT;
    *is_join = is_cross || is_left || is_inner || at_word(parser, "JOIN");
    return *is_join ? parser_expect_word(parser, "JOIN") : status_ok();
}

status parse_joins(struct parser *parser, struct ast_from **from)
{
    for (;;) {
        enum ast_join kind;
        bool is_join, has_on;
        struct ast_from *join;
        TRY(parse_join_words(parser, &kind, &is_join));
        if (!is_join)
            return status_ok();
        TRY(parser_node(parser, sizeof *join, (void **)&join));
        *join = (struct ast_from){.kind = AST_FROM_JOIN, .at = (*from)->at, .join = kind};
        join->left = *from;
        join->depth = (*from)->depth + 1;
        if (join->depth > SQL_NESTING_LIMIT)
            return parser_refuse(parser, "A join of so many");
        TRY(parse_from_item(parser, &join->right));
        TRY(parser_take_word(parser, "ON", &has_on));
        if (has_on)
            TRY(parse_expr(parser, &join->on));
        if (at_word(parser, "USING"))
            return parser_refuse(parser, "JOIN … USING");
        *from = join;
    }
}

status parse_from(struct parser *parser, struct ast_from **out)
{
    TRY(parse_from_item(parser, out));
    return parse_joins(parser, out);
}

/* --- clauses --- */

/* What a clause begins with, which may be missing. */
static status take_clause(struct parser *parser, const char *word, const char *second, bool *taken)
{
    TRY(parser_take_word(parser, word, taken));
    return *taken && second != NULL ? parser_expect_word(parser, second) : status_ok();
}

static status parse_group(struct parser *parser, struct ast_select *select)
{
    bool is_all;
    if (at_word(parser, "ROLLUP") || at_word(parser, "CUBE") || at_word(parser, "GROUPING"))
        return parser_refuse(parser, "GROUP BY ROLLUP, CUBE or GROUPING SETS");
    TRY(parser_take_word(parser, "ALL", &is_all));
    select->grouping = is_all ? AST_GROUP_ALL : AST_GROUP_BY;
    return is_all ? status_ok() : parse_exprs(parser, &select->group);
}

/* WINDOW a AS (…), b AS (…) */
static status parse_windows(struct parser *parser, struct ast_window **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        const char *name;
        TRY(parser_identifier(parser, &name));
        TRY(parser_expect_word(parser, "AS"));
        TRY(parse_window(parser, out));
        (*out)->name = name;
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

static status parse_clauses(struct parser *parser, struct ast_select *select)
{
    bool taken;
    TRY(take_clause(parser, "FROM", NULL, &taken));
    if (taken)
        TRY(parse_from(parser, &select->from));
    TRY(take_clause(parser, "WHERE", NULL, &taken));
    if (taken)
        TRY(parse_expr(parser, &select->where));
    TRY(take_clause(parser, "GROUP", "BY", &taken));
    if (taken)
        TRY(parse_group(parser, select));
    TRY(take_clause(parser, "HAVING", NULL, &taken));
    if (taken)
        TRY(parse_expr(parser, &select->having));
    TRY(take_clause(parser, "QUALIFY", NULL, &taken));
    if (taken)
        TRY(parse_expr(parser, &select->qualify));
    TRY(take_clause(parser, "WINDOW", NULL, &taken));
    return taken ? parse_windows(parser, &select->windows) : status_ok();
}

static status parse_select_kind(struct parser *parser, struct ast_select *select)
{
    bool is_all, has_as;
    TRY(parse_hint(parser));
    TRY(parser_take_word(parser, "ALL", &is_all));
    if (!is_all)
        TRY(parser_take_word(parser, "DISTINCT", &select->is_distinct));
    TRY(parser_take_word(parser, "AS", &has_as));
    if (!has_as)
        return status_ok();
    if (!at_word(parser, "STRUCT") && !at_word(parser, "VALUE"))
        return parser_unexpected(parser);
    select->as = at_word(parser, "STRUCT") ? "STRUCT" : "VALUE";
    return parser_advance(parser);
}

status parse_select(struct parser *parser, struct ast_select **out)
{
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    TRY(parser_expect_word(parser, "SELECT"));
    TRY(parse_select_kind(parser, *out));
    TRY(parse_items(parser, &(*out)->items));
    return parse_clauses(parser, *out);
}

status parse_limit(struct parser *parser, struct ast_expr **limit, struct ast_expr **offset)
{
    bool has_offset;
    TRY(parse_expr(parser, limit));
    TRY(parser_take_word(parser, "OFFSET", &has_offset));
    return has_offset ? parse_expr(parser, offset) : status_ok();
}

/* --- whole queries --- */

static status parse_body(struct parser *parser, struct ast_query *query)
{
    bool is_from;
    if (at_word(parser, "WITH"))
        return parser_refuse(parser, "WITH");
    if (at_symbol(parser, "(")) {
        query->body = AST_BODY_QUERY;
        return parse_parenthesized_query(parser, &query->query);
    }
    TRY(parser_take_word(parser, "FROM", &is_from));
    query->body = is_from ? AST_BODY_FROM : AST_BODY_SELECT;
    return is_from ? parse_from(parser, &query->from) : parse_select(parser, &query->select);
}

static status refuse_set_operation(const struct parser *parser)
{
    static const char *const words[] = {"UNION", "INTERSECT", "EXCEPT"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (at_word(parser, words[i]))
            return parser_refuse(parser, words[i]);
    return status_ok();
}

status parse_query(struct parser *parser, struct ast_query **out)
{
    bool taken;
    TRY(parser_enter(parser));
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    TRY(parse_body(parser, *out));
    TRY(refuse_set_operation(parser));
    TRY(take_clause(parser, "ORDER", "BY", &taken));
    if (taken)
        TRY(parse_orders(parser, &(*out)->order));
    TRY(take_clause(parser, "LIMIT", NULL, &taken));
    if (taken)
        TRY(parse_limit(parser, &(*out)->limit, &(*out)->offset));
    TRY(parse_pipes(parser, &(*out)->pipes));
    parser->nesting--;
    return status_ok();
}

status parse_parenthesized_query(struct parser *parser, struct ast_query **out)
{
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_query(parser, out));
    return parser_expect_symbol(parser, ")");
}
