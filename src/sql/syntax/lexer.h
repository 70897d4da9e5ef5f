/* From a query's text to its tokens. Private to the parser.
 *
 * Tokens are read on demand. A copy of a lexer is a place to come back to. */
#ifndef TRESTLE_SQL_SYNTAX_LEXER_H
#define TRESTLE_SQL_SYNTAX_LEXER_H

#include "base/arena.h"
#include "base/status.h"

enum token_kind {
    TOKEN_END,
    TOKEN_IDENTIFIER,
    TOKEN_QUOTED,  /* an identifier in backticks: never a keyword */
    TOKEN_KEYWORD, /* a reserved one */
    TOKEN_INTEGER,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_BYTES,
    TOKEN_SYMBOL,
};

struct token {
    enum token_kind kind;
    uint32_t at;  /* where it begins */
    uint32_t end; /* and what is after it */
    bytes text;   /* of literals and quoted identifiers what they stand for; else as written */
};

struct lexer {
    bytes text;
    uint32_t at;
    struct arena *arena; /* for what literals stand for */
};

/* The next token, after white space and comments. INVALID_ARGUMENT for what is none. */
status lexer_next(struct lexer *lexer, struct token *out);

/* Whether the token is this word, reserved or not, in any case; this symbol. */
bool token_is_word(const struct token *token, const char *word);
bool token_is_symbol(const struct token *token, const char *symbol);

/* As errors name it: `identifier "x"`, `keyword FROM`, `end of statement`. `text` is the query. */
void token_describe(const struct token *token, bytes text, struct buffer *out);

#endif
