/* Fuzzer: tokens of a query's text.
 *
 * Tokens come in the order of the text and do not overlap; between them is nothing but white space
 * and comments; an error is one that a client may be told. A literal's value, written as a literal
 * of its own, is read as the same value.
 *
 * Input: the text. */
#include "sql/syntax/lexer.h"

#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "sql/value.h"

#include <ctype.h>

enum { ARENA_LIMIT = 8 << 20 };

/* Whether the text between two tokens has no token: it is white space, or begins with a comment. */
static bool is_gap(bytes gap)
{
    for (size_t i = 0; i < gap.size; i++) {
        uint8_t c = gap.data[i];
        if (c == '#' || c == '-' || c == '/')
            return true;
        if (!isspace(c) && c != '\b' && c < 0x80)
            return false;
    }
    return true;
}

static void check_literal(const struct token *token)
{
    struct buffer written = {0};
    struct token again;
    struct sql_value value = sql_of_text(token->text);
    bool is_string = token->kind == TOKEN_STRING;
    sql_value_append_literal(&written, is_string ? &sql_string : &sql_bytes, &value);
    CHECK(!written.failed);
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    struct lexer lexer = {.text = buffer_bytes(&written), .arena = arena};
    status s = lexer_next(&lexer, &again);
    CHECK(status_is_ok(s));
    CHECK(again.kind == token->kind && bytes_equal(again.text, token->text));
    CHECK(lexer.at == written.size);
    arena_destroy(arena);
    buffer_free(&written);
}

static void check_token(bytes text, const struct token *token, size_t last)
{
    CHECK(token->at >= last && token->end >= token->at && token->end <= text.size);
    CHECK(is_gap(bytes_make(text.data + last, token->at - last)));
    CHECK((token->end == token->at) == (token->kind == TOKEN_END));
    if (token->kind == TOKEN_STRING || token->kind == TOKEN_BYTES)
        check_literal(token);
    struct buffer words = {0};
    token_describe(token, text, &words);
    CHECK(!words.failed && words.size > 0);
    buffer_free(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    struct lexer lexer = {.text = bytes_make(data, size), .arena = arena};
    struct token token = {.kind = TOKEN_SYMBOL};
    status s = status_ok();
    size_t last = 0;
    while (status_is_ok(s) && token.kind != TOKEN_END) {
        s = lexer_next(&lexer, &token);
        if (!status_is_ok(s))
            break;
        check_token(lexer.text, &token, last);
        CHECK(token.kind == TOKEN_END || token.end > last);
        last = token.end;
    }
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(arena);
    return 0;
}
