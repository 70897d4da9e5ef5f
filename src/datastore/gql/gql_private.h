/* The parts of GQL's parser:
 *
 *     gql_lexer.c      from the text to tokens
 *     gql_error.c      what is said of a text that is none
 *     gql_parser.c     names, aggregations, and the way in
 *     gql_clause.c     what follows SELECT
 *     gql_condition.c  WHERE
 *     gql_literal.c    values
 *     gql_binding.c    the values that a request binds
 *
 * The parser looks one token ahead, and notes every kind of token that it would have taken instead
 * of the one it sees: errors list them. */
#ifndef TRESTLE_DATASTORE_GQL_GQL_PRIVATE_H
#define TRESTLE_DATASTORE_GQL_GQL_PRIVATE_H

#include "base/vector.h"
#include "datastore/gql/gql.h"
#include "wire/proto.h"

/* In the order in which errors list them. */
enum gql_kind {
    GQL_END,
    GQL_AGGREGATE, /* keywords */
    GQL_ANCESTOR,
    GQL_AND,
    GQL_AS,
    GQL_ASC,
    GQL_AVG,
    GQL_BY,
    GQL_CONTAINS,
    GQL_COUNT,
    GQL_COUNT_UP_TO,
    GQL_DESC,
    GQL_DESCENDANT,
    GQL_DISTINCT,
    GQL_FALSE,
    GQL_FROM,
    GQL_HAS,
    GQL_IN,
    GQL_IS,
    GQL_LIMIT,
    GQL_NOT,
    GQL_NULL,
    GQL_OFFSET,
    GQL_ON,
    GQL_OR,
    GQL_ORDER,
    GQL_SELECT,
    GQL_SUM,
    GQL_TRUE,
    GQL_WHERE,
    GQL_FIRST, /* words that are names elsewhere */
    GQL_OVER,
    GQL_EQUAL, /* symbols */
    GQL_NOT_EQUAL,
    GQL_LESS,
    GQL_LESS_OR_EQUAL,
    GQL_GREATER,
    GQL_GREATER_OR_EQUAL,
    GQL_OPEN,
    GQL_CLOSE,
    GQL_COMMA,
    GQL_DOT,
    GQL_STAR,
    GQL_PLUS,
    GQL_INTEGER, /* what has a value */
    GQL_DOUBLE,
    GQL_SINGLE_QUOTED,
    GQL_DOUBLE_QUOTED,
    GQL_NAME,
    GQL_QUOTED_NAME,
    GQL_NAMED_BINDING,
    GQL_POSITIONAL_BINDING,
    GQL_KINDS,
    GQL_RESERVED = GQL_KINDS, /* keywords for which nothing asks */
};

/* The names of the first kinds, keywords in lower case; NULL for those after GQL_PLUS. */
extern const char *const gql_images[GQL_KINDS];

struct gql_token {
    enum gql_kind kind;
    bytes image;      /* as it stands in the text; empty at the end */
    size_t at;        /* where that is */
    const char *text; /* of names, strings and numbers what they stand for; of bindings without @ */
};

struct gql_lexer {
    bytes text; /* UTF-8 without zero bytes */
    size_t at;
    struct arena *arena;
};

/* The next token, after blanks. INVALID_ARGUMENT for what is none. */
status gql_next(struct gql_lexer *lexer, struct gql_token *out);

/* Whether the token is a name, unquoted, that is this word in any case. */
bool gql_is_word(const struct gql_token *token, const char *word);

/* --- errors --- */

/* A text in which a token begins at `from` that the byte at `at` does not continue. */
status gql_lexical_error(bytes text, size_t from, size_t at);

/* `words: "token" at line 1, column 2.` */
status gql_refuse(bytes text, const struct gql_token *token, const char *words);

/* --- the parser --- */

struct gql_name_index; /* a named binding: gql_binding.c */

struct gql_parser {
    struct gql_lexer lexer;
    struct gql_token token; /* not yet taken */
    uint64_t expected;      /* instead of it, so far */
    const Ds__GqlQuery *gql;
    const struct ds_database *database;
    const char *name_space;
    struct arena *arena;
    struct gql_name_index *names; /* gql's named bindings, sorted */
    bool *positions_used;         /* of gql's positional bindings */
    struct vector qualified;      /* struct gql_qualified: names that may begin with the kind */
    unsigned depth;
};

/* Takes the token and reads the next. */
status gql_advance(struct gql_parser *parser);

/* Whether the next token is of this kind; it is expected from now on. */
bool gql_sees(struct gql_parser *parser, enum gql_kind kind);

/* Takes it if it is. */
status gql_take(struct gql_parser *parser, enum gql_kind kind, bool *taken);

/* The same, or fails. */
status gql_need(struct gql_parser *parser, enum gql_kind kind);

/* The failure for a token that is none of those expected. */
status gql_unexpected(const struct gql_parser *parser);

/* Whether an opening parenthesis follows the next token. */
status gql_is_call(struct gql_parser *parser, bool *is);

/* For what encloses others of its kind: fails if that goes too deep. The caller leaves it by
 * parser->depth--. */
status gql_enter(struct gql_parser *parser);

/* A name, quoted or not; a property, of one name or several. */
status gql_name(struct gql_parser *parser, const char **out);
status gql_property(struct gql_parser *parser, Ds__PropertyReference **out);

/* Parses a value: a literal, or a binding. */
status gql_value(struct gql_parser *parser, Ds__Value **out);

/* `(value, …)` as an array. */
status gql_value_list(struct gql_parser *parser, Ds__Value **out);

/* The integer that comes next; fails if it is none, or not within 64 bits. */
status gql_integer(struct gql_parser *parser, int64_t *out);

/* Fails if the query may not have this literal in it. */
status gql_allow_literal(struct gql_parser *parser, const struct gql_token *token);

/* All behind SELECT of a query; its FROM, its WHERE, if they come next. */
status gql_select(struct gql_parser *parser, Ds__Query *query);
status gql_from(struct gql_parser *parser, Ds__Query *query);
status gql_where(struct gql_parser *parser, Ds__Query *query);

/* Conditions with AND and OR between them. */
status gql_compound(struct gql_parser *parser, Ds__Filter **out);

/* --- bindings --- */

/* To be called first. Fails if one has a name that it must not have, or nothing is bound. */
status gql_bindings_prepare(struct gql_parser *parser);

/* Takes a binding site, which comes next. */
status gql_binding(struct gql_parser *parser, const Ds__GqlQueryParameter **out);

/* To be called last: fails if a positional binding has no site. */
status gql_bindings_check(const struct gql_parser *parser);

#endif
