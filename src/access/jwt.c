/* See jwt.h. The cryptography is OpenSSL's, the JSON jansson's. */
#include "access/jwt.h"

#include "access/tokens.h"
#include "wire/grpc_text.h"

#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    P256_SIZE = 32,
    LEAST_RSA_BITS = 2048,
    MEMBER_MOST = 2048, /* bytes of a key's member: OpenSSL's RSA has 16,384 bits at most */
    SECOND_US = 1000000
};

struct key {
    char *id;              /* NULL: it has none */
    const char *algorithm; /* the one it signs with */
    EVP_PKEY *public_key;
};

struct jwks {
    struct key *list;
    size_t count;
};

/* --- keys --- */

/* A member that is base64; of size 0 if it is not there, or no member of a key. */
struct member {
    size_t size;
    uint8_t data[MEMBER_MOST + 4];
};

static void read_member(const json_t *object, const char *name, struct member *out)
{
    const char *text = json_string_value(json_object_get(object, name));
    out->size = 0;
    bool fits = text != NULL && base64_decoded_most(strlen(text)) <= sizeof out->data;
    if (!fits || !base64_decode(bytes_of(text), out->data, &out->size))
        out->size = 0;
}

static EVP_PKEY *key_of_parameters(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (parameters != NULL && context != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

static EVP_PKEY *rsa_key(const json_t *jwk)
{
    struct member n, e;
    read_member(jwk, "n", &n);
    read_member(jwk, "e", &e);
    EVP_PKEY *key = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *modulus = BN_bin2bn(n.data, (int)n.size, NULL);
    BIGNUM *exponent = BN_bin2bn(e.data, (int)e.size, NULL);
    if (builder != NULL && modulus != NULL && exponent != NULL &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        key = key_of_parameters("RSA", builder);
    if (key != NULL && EVP_PKEY_get_bits(key) < LEAST_RSA_BITS) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    BN_free(modulus);
    BN_free(exponent);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

/* OpenSSL refuses points that are not on the curve. */
static EVP_PKEY *p256_key(const json_t *jwk)
{
    struct member x, y;
    read_member(jwk, "x", &x);
    read_member(jwk, "y", &y);
    EVP_PKEY *key = NULL;
    uint8_t point[1 + 2 * P256_SIZE] = {4 /* not compressed */};
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder != NULL && x.size == P256_SIZE && y.size == P256_SIZE) {
        memcpy(point + 1, x.data, P256_SIZE);
        memcpy(point + 1 + P256_SIZE, y.data, P256_SIZE);
        if (OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) ==
                1 &&
            OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                             sizeof point) == 1)
            key = key_of_parameters("EC", builder);
    }
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static EVP_PKEY *ed25519_key(const json_t *jwk)
{
    struct member x;
    read_member(jwk, "x", &x);
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.data, x.size);
}

static bool member_is(const json_t *object, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL && strcmp(text, value) == 0;
}

/* False if it is no key that we use. */
static bool read_key(const json_t *jwk, struct key *key)
{
    *key = (struct key){0};
    if (json_object_get(jwk, "use") != NULL && !member_is(jwk, "use", "sig"))
        return false;
    if (member_is(jwk, "kty", "RSA"))
        *key = (struct key){.algorithm = "RS256", .public_key = rsa_key(jwk)};
    else if (member_is(jwk, "kty", "EC") && member_is(jwk, "crv", "P-256"))
        *key = (struct key){.algorithm = "ES256", .public_key = p256_key(jwk)};
    else if (member_is(jwk, "kty", "OKP") && member_is(jwk, "crv", "Ed25519"))
        *key = (struct key){.algorithm = "EdDSA", .public_key = ed25519_key(jwk)};
    bool is_other = json_object_get(jwk, "alg") != NULL &&
                    (key->algorithm == NULL || !member_is(jwk, "alg", key->algorithm));
    if (key->public_key != NULL && !is_other)
        return true;
    EVP_PKEY_free(key->public_key);
    return false;
}

static status read_keys(const json_t *list, struct jwks *keys)
{
    size_t index;
    const json_t *jwk;
    keys->list = calloc(json_array_size(list) + 1, sizeof *keys->list);
    if (keys->list == NULL)
        return status_out_of_memory();
    json_array_foreach(list, index, jwk)
    {
        const char *id = json_string_value(json_object_get(jwk, "kid"));
        struct key *key = &keys->list[keys->count];
        if (!read_key(jwk, key))
            continue;
        keys->count++;
        key->id = id == NULL ? NULL : strdup(id);
        if (id != NULL && key->id == NULL)
            return status_out_of_memory();
    }
    ERR_clear_error();
    if (keys->count == 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "there is no RSA, P-256 or Ed25519 key for signatures in it");
    return status_ok();
}

status jwks_parse(bytes text, struct jwks **out)
{
    json_error_t error;
    *out = NULL;
    json_t *json = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "line %d: %s", error.line, error.text);
    struct jwks *keys = calloc(1, sizeof *keys);
    status s =
        keys == NULL ? status_out_of_memory() : read_keys(json_object_get(json, "keys"), keys);
    json_decref(json);
    if (!status_is_ok(s)) {
        jwks_destroy(keys);
        return s;
    }
    *out = keys;
    return s;
}

void jwks_destroy(struct jwks *keys)
{
    if (keys == NULL)
        return;
    for (size_t i = 0; i < keys->count; i++) {
        EVP_PKEY_free(keys->list[i].public_key);
        free(keys->list[i].id);
    }
    free(keys->list);
    free(keys);
}

size_t jwks_count(const struct jwks *keys)
{
    return keys->count;
}

/* The key that the header names; a set of one key needs no name. */
static const struct key *find_key(const struct jwks *keys, const json_t *header)
{
    const char *id = json_string_value(json_object_get(header, "kid"));
    if (id == NULL)
        return keys->count == 1 ? &keys->list[0] : NULL;
    for (size_t i = 0; i < keys->count; i++)
        if (keys->list[i].id != NULL && strcmp(keys->list[i].id, id) == 0)
            return &keys->list[i];
    return NULL;
}

/* --- tokens --- */

struct parts {
    bytes header;
    bytes claims;
    bytes signature;
    bytes is_signed; /* header and claims, with the dot between them */
};

static bool split(bytes token, struct parts *parts)
{
    const uint8_t *end = token.data + token.size;
    const uint8_t *first = token.size == 0 ? NULL : memchr(token.data, '.', token.size);
    const uint8_t *second =
        first == NULL ? NULL : memchr(first + 1, '.', (size_t)(end - first - 1));
    if (second == NULL || memchr(second + 1, '.', (size_t)(end - second - 1)) != NULL)
        return false;
    parts->header = bytes_make(token.data, (size_t)(first - token.data));
    parts->claims = bytes_make(first + 1, (size_t)(second - first - 1));
    parts->signature = bytes_make(second + 1, (size_t)(end - second - 1));
    parts->is_signed = bytes_make(token.data, (size_t)(second - token.data));
    return true;
}

static status refuse(const char *why)
{
    return status_make(STATUS_UNAUTHENTICATED, "%s", why);
}

/* `out`, to be freed in any case, is empty before. */
static status decode(bytes text, struct buffer *out)
{
    uint8_t *to = buffer_reserve(out, base64_decoded_most(text.size));
    if (to == NULL)
        return status_out_of_memory();
    return base64_decode(text, to, &out->size) ? status_ok() : refuse("the token is malformed");
}

static status parse_object(bytes text, json_t **out)
{
    *out = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(*out))
        return status_ok();
    json_decref(*out);
    *out = NULL;
    return refuse("the token is malformed");
}

static status decode_object(bytes text, json_t **out)
{
    struct buffer plain = {0};
    *out = NULL;
    status s = decode(text, &plain);
    if (status_is_ok(s))
        s = parse_object(buffer_bytes(&plain), out);
    buffer_free(&plain);
    return s;
}

/* ES256 signatures are two numbers side by side, OpenSSL wants them as ASN.1. */
static bool to_asn1(struct buffer *signature)
{
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = NULL, *s = NULL;
    unsigned char *asn1 = NULL;
    int size = 0;
    if (signature->size == 2 * P256_SIZE && pair != NULL) {
        r = BN_bin2bn(signature->data, P256_SIZE, NULL);
        s = BN_bin2bn(signature->data + P256_SIZE, P256_SIZE, NULL);
    }
    if (r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair's now */
        size = i2d_ECDSA_SIG(pair, &asn1);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    if (size <= 0)
        return false;
    buffer_clear(signature);
    buffer_append(signature, asn1, (size_t)size);
    OPENSSL_free(asn1);
    return !signature->failed;
}

static bool is_good(const struct key *key, bytes signature, bytes is_signed)
{
    const char *digest = strcmp(key->algorithm, "EdDSA") == 0 ? NULL : "SHA256";
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good =
        context != NULL &&
        EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, key->public_key, NULL) == 1 &&
        EVP_DigestVerify(context, signature.data, signature.size, is_signed.data, is_signed.size) ==
            1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

static status check_signature(const struct key *key, const struct parts *parts)
{
    struct buffer signature = {0};
    bool is_ecdsa = strcmp(key->algorithm, "ES256") == 0;
    status s = decode(parts->signature, &signature);
    if (status_is_ok(s) && ((is_ecdsa && !to_asn1(&signature)) ||
                            !is_good(key, buffer_bytes(&signature), parts->is_signed)))
        s = signature.failed ? status_out_of_memory() : refuse("the token's signature is wrong");
    buffer_free(&signature);
    return s;
}

static status check_header(const struct jwks *keys, const struct parts *parts)
{
    json_t *header;
    TRY(decode_object(parts->header, &header));
    const struct key *key = find_key(keys, header);
    status s;
    if (json_object_get(header, "crit") != NULL)
        s = refuse("the token demands an extension that is not known");
    else if (key == NULL)
        s = refuse("the token is signed with an unknown key");
    else if (!member_is(header, "alg", key->algorithm))
        s = refuse("the token's signature is wrong");
    else
        s = check_signature(key, parts);
    json_decref(header);
    return s;
}

/* A time in seconds as microseconds; false if it is none, or not of this era. */
static bool time_claim(const json_t *claims, const char *name, int64_t *out)
{
    const double most = 1e11; /* the year 5138 */
    const json_t *claim = json_object_get(claims, name);
    double seconds = json_number_value(claim);
    if (!json_is_number(claim) || !(seconds >= 0 && seconds <= most))
        return false;
    *out = (int64_t)(seconds * SECOND_US);
    return true;
}

static status check_times(const json_t *claims, int64_t now_us, int64_t *expires_us)
{
    const int64_t leeway_us = (int64_t)JWT_LEEWAY_SECONDS * SECOND_US;
    int64_t not_before_us = 0;
    if (!time_claim(claims, "exp", expires_us))
        return refuse("the token has no expiry");
    if (json_object_get(claims, "nbf") != NULL && !time_claim(claims, "nbf", &not_before_us))
        return refuse("the token is malformed");
    *expires_us += leeway_us;
    if (now_us >= *expires_us)
        return refuse("the token has expired");
    if (now_us < not_before_us - leeway_us)
        return refuse("the token is not valid yet");
    return status_ok();
}

/* Whether the claim `aud`, a text or a list of them, has the audience. */
static bool has_audience(const json_t *claims, const char *audience)
{
    const json_t *claim = json_object_get(claims, "aud");
    size_t index;
    const json_t *entry;
    if (json_is_string(claim))
        return strcmp(json_string_value(claim), audience) == 0;
    json_array_foreach(claim, index,
                       entry) if (json_is_string(entry) &&
                                  strcmp(json_string_value(entry), audience) == 0) return true;
    return false;
}

static status principal_of(const json_t *claims, char **principal)
{
    static const char service_accounts[] = "gserviceaccount.com";
    const char *name = json_string_value(json_object_get(claims, "email"));
    if (name != NULL && json_is_false(json_object_get(claims, "email_verified")))
        return refuse("the token's email address is not verified");
    if (name == NULL)
        name = json_string_value(json_object_get(claims, "sub"));
    if (name == NULL)
        return refuse("the token does not say whose it is");
    size_t size = strlen(name), suffix = sizeof service_accounts - 1;
    bool is_service = size > suffix && strcmp(name + size - suffix, service_accounts) == 0;
    if (asprintf(principal, "%s:%s", is_service ? "serviceAccount" : "user", name) < 0) {
        *principal = NULL;
        return status_out_of_memory();
    }
    if (principal_is_valid(bytes_of(*principal)))
        return status_ok();
    free(*principal);
    *principal = NULL;
    return refuse("the token does not say whose it is");
}

static status check_claims(const struct parts *parts, const struct jwt_expectation *expected,
                           int64_t now_us, char **principal, int64_t *expires_us)
{
    json_t *claims;
    TRY(decode_object(parts->claims, &claims));
    status s = check_times(claims, now_us, expires_us);
    if (status_is_ok(s) && !member_is(claims, "iss", expected->issuer))
        s = refuse("the token is of another issuer");
    if (status_is_ok(s) && !has_audience(claims, expected->audience))
        s = refuse("the token is for another audience");
    if (status_is_ok(s))
        s = principal_of(claims, principal);
    json_decref(claims);
    return s;
}

status jwt_verify(const struct jwks *keys, const struct jwt_expectation *expected, bytes token,
                  int64_t now_us, char **principal, int64_t *expires_us)
{
    struct parts parts;
    *principal = NULL;
    if (!split(token, &parts))
        return refuse("the token is not known");
    TRY(check_header(keys, &parts));
    return check_claims(&parts, expected, now_us, principal, expires_us);
}
