/* Claims of tokens that are well signed: the input is a header and claims, with a line end between
 * them, and the fuzzer has the key. An accepted token says whose it is and is in time, and is
 * refused once a byte of it has changed. */
#include "access/jwt.h"

#include "access/tokens.h"
#include "base/testing/fuzzing.h"
#include "wire/grpc_text.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { KEY_SIZE = 32, SIGNATURE_SIZE = 64, NOW_S = 1000 };

static const uint8_t secret[KEY_SIZE] = "a key that everybody may know";

static EVP_PKEY *private_key(void)
{
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof secret);
    CHECK(key != NULL);
    return key;
}

static struct jwks *public_keys(EVP_PKEY *key)
{
    uint8_t x[KEY_SIZE];
    size_t size = sizeof x;
    struct buffer text = {0};
    struct jwks *keys;
    CHECK(EVP_PKEY_get_raw_public_key(key, x, &size) == 1);
    buffer_append_format(&text, "{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"");
    base64_encode(bytes_make(x, size), &text);
    buffer_append_format(&text, "\"}]}");
    status s = jwks_parse(buffer_bytes(&text), &keys);
    CHECK(status_is_ok(s));
    buffer_free(&text);
    return keys;
}

/* Appends what the signature covers, and the signature. */
static void write_token(EVP_PKEY *key, bytes header, bytes claims, struct buffer *token)
{
    uint8_t signature[SIGNATURE_SIZE];
    size_t size = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    base64_encode(header, token);
    buffer_append_byte(token, '.');
    base64_encode(claims, token);
    CHECK(context != NULL &&
          EVP_DigestSignInit_ex(context, NULL, NULL, NULL, NULL, key, NULL) == 1);
    CHECK(EVP_DigestSign(context, signature, &size, token->data, token->size) == 1);
    EVP_MD_CTX_free(context);
    buffer_append_byte(token, '.');
    base64_encode(bytes_make(signature, size), token);
    CHECK(!token->failed);
}

static bool is_accepted(const struct jwks *keys, bytes token)
{
    const struct jwt_expectation expected = {.issuer = "i", .audience = "a"};
    int64_t now_us = (int64_t)NOW_S * 1000000, expires_us;
    char *principal;
    status s = jwt_verify(keys, &expected, token, now_us, &principal, &expires_us);
    bool accepted = status_is_ok(s);
    CHECK(accepted == (principal != NULL));
    CHECK(accepted || s.code == STATUS_UNAUTHENTICATED);
    CHECK(!accepted || (principal_is_valid(bytes_of(principal)) && expires_us > now_us));
    status_free(s);
    free(principal);
    return accepted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
    bytes input = bytes_make(data, size);
    bytes header = bytes_make(data, end == NULL ? size : (size_t)(end - data));
    bytes claims = bytes_from(input, end == NULL ? size : header.size + 1);
    struct buffer token = {0};
    EVP_PKEY *key = private_key();
    struct jwks *keys = public_keys(key);
    write_token(key, header, claims, &token);
    if (is_accepted(keys, buffer_bytes(&token))) {
        uint8_t *changed = &token.data[header.size % token.size];
        *changed = *changed == 'A' ? 'B' : 'A';
        CHECK(!is_accepted(keys, buffer_bytes(&token)));
    }
    buffer_free(&token);
    jwks_destroy(keys);
    EVP_PKEY_free(key);
    return 0;
}
