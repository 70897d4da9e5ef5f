/* See tokens.h. */
#include "access/tokens.h"

#include "base/clock.h"
#include "wire/grpc_text.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char token_prefix[] = "trestle_";
enum { RANDOM_BYTES = 32, PRINCIPAL_MOST = 512, EXPIRY_SIZE = 20 };

void token_hash(bytes token, uint8_t hash[TOKEN_HASH_SIZE])
{
    if (EVP_Q_digest(NULL, "SHA256", NULL, token.data, token.size, hash, NULL) != 1)
        memset(hash, 0, TOKEN_HASH_SIZE); /* without memory: the hash of no token */
    ERR_clear_error();
}

status token_make(char text[TOKEN_TEXT_SIZE])
{
    uint8_t secret[RANDOM_BYTES];
    struct buffer digits = {0};
    if (RAND_bytes(secret, sizeof secret) != 1)
        return status_make(STATUS_UNAVAILABLE, "there are no random numbers");
    base64url_encode(bytes_make(secret, sizeof secret), &digits);
    snprintf(text, TOKEN_TEXT_SIZE, "%s%.*s", token_prefix, (int)digits.size,
             (const char *)digits.data);
    bool failed = digits.failed;
    buffer_free(&digits);
    return failed ? status_out_of_memory() : status_ok();
}

void token_write_line(const char *token, const char *principal, int64_t expires_us,
                      struct buffer *out)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    token_hash(bytes_of(token), hash);
    for (size_t i = 0; i < sizeof hash; i++)
        buffer_append_format(out, "%02x", hash[i]);
    buffer_append_format(out, " %s", principal);
    char text[CLOCK_DATE_SIZE];
    if (expires_us != INT64_MAX && clock_date(expires_us, text)[0] != '\0')
        buffer_append_format(out, " %s", text);
    buffer_append_byte(out, '\n');
}

/* --- reading --- */

/* Takes a word off the front of a line; empty at its end. */
static bytes take_word(bytes *line)
{
    size_t start = 0;
    while (start < line->size && (line->data[start] == ' ' || line->data[start] == '\t'))
        start++;
    size_t end = start;
    while (end < line->size && line->data[end] != ' ' && line->data[end] != '\t')
        end++;
    bytes word = bytes_make(line->data + start, end - start);
    *line = bytes_from(*line, end);
    return word;
}

static int digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hash(bytes text, uint8_t hash[TOKEN_HASH_SIZE])
{
    if (text.size != 2 * TOKEN_HASH_SIZE)
        return false;
    for (size_t i = 0; i < TOKEN_HASH_SIZE; i++) {
        int high = digit_value(text.data[2 * i]), low = digit_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        hash[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool read_expiry(bytes text, int64_t *expires_us)
{
    char word[EXPIRY_SIZE + 1] = {0};
    struct tm parts = {0};
    *expires_us = INT64_MAX;
    if (text.size == 0)
        return true;
    if (text.size != EXPIRY_SIZE)
        return false;
    memcpy(word, text.data, text.size);
    const char *end = strptime(word, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (end == NULL || *end != '\0')
        return false;
    *expires_us = (int64_t)timegm(&parts) * 1000000;
    return true;
}

bool principal_is_valid(bytes principal)
{
    static const char *const kinds[] = {"user:", "serviceAccount:", "cert:"};
    bool has_kind = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        has_kind |=
            bytes_start_with(principal, bytes_of(kinds[i])) && principal.size > strlen(kinds[i]);
    for (size_t i = 0; i < principal.size; i++)
        if (principal.data[i] <= ' ' || principal.data[i] == 0x7f)
            return false;
    return has_kind && principal.size <= PRINCIPAL_MOST;
}

/* Reads a line; returns what is wrong with it, NULL if nothing is. */
static const char *read_line(bytes line, struct token *token, bytes *principal)
{
    bytes hash = take_word(&line);
    *principal = take_word(&line);
    if (!read_hash(hash, token->hash))
        return "the first word should be a SHA-256 in 64 hexadecimal digits";
    if (!principal_is_valid(*principal))
        return "the second word should be user:…, serviceAccount:… or cert:…";
    if (!read_expiry(take_word(&line), &token->expires_us))
        return "the third word should be an expiry like 2027-01-31T00:00:00Z";
    if (take_word(&line).size > 0)
        return "there are more than three words";
    return NULL;
}

static bool grow(struct tokens *tokens)
{
    bool is_full = (tokens->count & (tokens->count - 1)) == 0; /* at 0, 1, 2, 4, … */
    if (!is_full)
        return true;
    size_t capacity = tokens->count == 0 ? 1 : 2 * tokens->count;
    struct token *list = realloc(tokens->list, capacity * sizeof *list);
    if (list == NULL)
        return false;
    tokens->list = list;
    return true;
}

static status add(struct tokens *tokens, const struct token *token, bytes principal)
{
    if (!grow(tokens))
        return status_out_of_memory();
    struct token *place = &tokens->list[tokens->count];
    *place = *token;
    place->principal = bytes_to_string(principal);
    if (place->principal == NULL)
        return status_out_of_memory();
    tokens->count++;
    return status_ok();
}

static status parse_line(const char *name, unsigned number, bytes line, struct tokens *out)
{
    struct token token;
    bytes principal;
    const char *wrong = read_line(line, &token, &principal);
    if (wrong != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s:%u: %s", name, number, wrong);
    return add(out, &token, principal);
}

static int compare_tokens(const void *a, const void *b)
{
    const struct token *left = a;
    const struct token *right = b;
    return memcmp(left->hash, right->hash, TOKEN_HASH_SIZE);
}

/* Takes a line off the front of the text, without its end and its comment. */
static bytes take_line(bytes *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->size);
    bytes line = bytes_make(text->data, end == NULL ? text->size : (size_t)(end - text->data));
    *text = bytes_from(*text, end == NULL ? text->size : line.size + 1);
    const uint8_t *comment = line.size == 0 ? NULL : memchr(line.data, '#', line.size);
    if (comment != NULL)
        line.size = (size_t)(comment - line.data);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

status tokens_parse(const char *name, bytes text, struct tokens *out)
{
    *out = (struct tokens){0};
    for (unsigned number = 1; text.size > 0; number++) {
        bytes line = take_line(&text);
        bytes rest = line;
        if (take_word(&rest).size == 0)
            continue;
        status s = parse_line(name, number, line, out);
        if (!status_is_ok(s)) {
            tokens_free(out);
            return s;
        }
    }
    if (out->count > 0)
        qsort(out->list, out->count, sizeof *out->list, compare_tokens);
    return status_ok();
}

void tokens_free(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        free(tokens->list[i].principal);
    free(tokens->list);
    *tokens = (struct tokens){0};
}

const struct token *tokens_find(const struct tokens *tokens, const uint8_t hash[TOKEN_HASH_SIZE])
{
    struct token key;
    memcpy(key.hash, hash, TOKEN_HASH_SIZE);
    if (tokens->count == 0)
        return NULL;
    return bsearch(&key, tokens->list, tokens->count, sizeof key, compare_tokens);
}
