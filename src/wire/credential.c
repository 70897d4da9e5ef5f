#include "wire/credential.h"

#include "os/file.h"
#include "os/signing.h"
#include "wire/grpc_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

enum {
    FILE_MOST = 64 << 10, /* bytes */
    US_PER_S = 1000 * 1000,
    LOOK_AGAIN_S = 60, /* at a file */
    TOKEN_S = 60 * 60, /* that a signed token is good for */
    SIGN_AGAIN_S = 50 * 60,
};

struct credential {
    struct clock *clock;
    char *token_file;        /* NULL: none */
    struct signing_key *key; /* NULL: none */
    struct buffer key_id;    /* of it; with a NUL each */
    struct buffer email;
    struct buffer audience;
    struct buffer header; /* "Bearer …" */
    int64_t renewed_us;
};

/* --- files with tokens --- */

static status set_token(struct credential *credential, bytes token)
{
    buffer_clear(&credential->header);
    buffer_append_bytes(&credential->header, bytes_of("Bearer "));
    buffer_append_bytes(&credential->header, token);
    return credential->header.failed ? status_out_of_memory() : status_ok();
}

static status read_token(struct credential *credential)
{
    struct buffer text = {0};
    TRY(file_read(credential->token_file, FILE_MOST, 0, &text));
    const uint8_t *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    size_t size = end == NULL ? text.size : (size_t)(end - text.data);
    status s = set_token(credential, bytes_make(text.data, size));
    buffer_free(&text);
    return s;
}

/* --- accounts --- */

static void append_string(struct buffer *out, const char *text)
{
    buffer_append_format(out, "%s%c", text, 0);
}

static status take_account(struct credential *credential, const json_t *json, const char *path)
{
    const char *email, *key, *key_id;
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:s, s:s}", "client_email", &email,
                    "private_key", &key, "private_key_id", &key_id) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s is no service account's key: it lacks client_email, private_key or "
                           "private_key_id",
                           path);
    append_string(&credential->email, email);
    append_string(&credential->key_id, key_id);
    if (credential->email.failed || credential->key_id.failed)
        return status_out_of_memory();
    return signing_key_create(bytes_of(key), &credential->key);
}

static status read_account(struct credential *credential, const char *path)
{
    struct buffer text = {0};
    TRY(file_read(path, FILE_MOST, 0, &text));
    json_t *json = json_loadb((const char *)text.data, text.size, 0, NULL);
    buffer_free(&text);
    if (json == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s is no JSON", path);
    status s = take_account(credential, json, path);
    json_decref(json);
    return s;
}

/* base64url (RFC 7515, 2). */
static void append_encoded(struct buffer *out, bytes part)
{
    size_t begin = out->size;
    base64_encode(part, out);
    for (size_t i = begin; i < out->size; i++) {
        if (out->data[i] == '+')
            out->data[i] = '-';
        if (out->data[i] == '/')
            out->data[i] = '_';
    }
}

static status append_json(struct buffer *out, json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return status_out_of_memory();
    append_encoded(out, bytes_of(text));
    free(text);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status append_claims(const struct credential *credential, struct buffer *out)
{
    const char *email = (const char *)credential->email.data;
    json_int_t now_s = clock_wall_us(credential->clock) / US_PER_S;
    TRY(append_json(out, json_pack("{s:s, s:s, s:s}", "alg", "RS256", "typ", "JWT", "kid",
                                   (const char *)credential->key_id.data)));
    buffer_append_byte(out, '.');
    return append_json(out, json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", email, "sub", email,
                                      "aud", (const char *)credential->audience.data, "iat", now_s,
                                      "exp", now_s + TOKEN_S));
}

static status sign_token(struct credential *credential)
{
    struct buffer token = {0}, signature = {0};
    status s = append_claims(credential, &token);
    if (status_is_ok(s))
        s = signing_key_sign(credential->key, buffer_bytes(&token), &signature);
    buffer_append_byte(&token, '.');
    append_encoded(&token, buffer_bytes(&signature));
    if (status_is_ok(s) && token.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = set_token(credential, buffer_bytes(&token));
    buffer_free(&token);
    buffer_free(&signature);
    return s;
}

/* --- all of them --- */

static status prepare(struct credential *credential, const struct credential_options *options)
{
    credential->renewed_us = clock_steady_us(options->clock);
    if (options->token != NULL)
        return set_token(credential, bytes_of(options->token));
    if (options->token_file != NULL) {
        credential->token_file = bytes_to_string(bytes_of(options->token_file));
        return credential->token_file == NULL ? status_out_of_memory() : read_token(credential);
    }
    buffer_append_format(&credential->audience, "https://%s/%c", options->host, 0);
    TRY(read_account(credential, options->account_file));
    return sign_token(credential);
}

status credential_create(const struct credential_options *options, struct credential **out)
{
    *out = NULL;
    if (options->token == NULL && options->token_file == NULL && options->account_file == NULL)
        return status_ok();
    struct credential *credential = *out = calloc(1, sizeof *credential);
    if (credential == NULL)
        return status_out_of_memory();
    credential->clock = options->clock;
    status s = prepare(credential, options);
    if (status_is_ok(s))
        return s;
    credential_destroy(credential);
    *out = NULL;
    return s;
}

void credential_destroy(struct credential *credential)
{
    if (credential == NULL)
        return;
    signing_key_destroy(credential->key);
    buffer_free(&credential->key_id);
    buffer_free(&credential->email);
    buffer_free(&credential->audience);
    buffer_free(&credential->header);
    free(credential->token_file);
    free(credential);
}

static bool is_due(const struct credential *credential, int64_t seconds)
{
    return clock_steady_us(credential->clock) - credential->renewed_us >= seconds * US_PER_S;
}

static status renew(struct credential *credential)
{
    if (credential->key != NULL && is_due(credential, SIGN_AGAIN_S)) {
        credential->renewed_us = clock_steady_us(credential->clock);
        return sign_token(credential);
    }
    if (credential->token_file != NULL && is_due(credential, LOOK_AGAIN_S)) {
        credential->renewed_us = clock_steady_us(credential->clock);
        status_ignore(read_token(credential));
    }
    return credential->header.failed ? status_out_of_memory() : status_ok();
}

status credential_header(struct credential *credential, bytes *out)
{
    TRY(renew(credential));
    *out = buffer_bytes(&credential->header);
    return status_ok();
}
