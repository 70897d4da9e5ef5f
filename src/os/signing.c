#include "os/signing.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <limits.h>
#include <stdlib.h>

struct signing_key {
    EVP_PKEY *key;
};

/* Gives no password: else OpenSSL asks for one at the terminal. */
static int no_password(char *to, int size, int is_write, void *context)
{
    (void)to, (void)size, (void)is_write, (void)context;
    return -1;
}

static EVP_PKEY *read_key(bytes pem)
{
    BIO *text = pem.size > INT_MAX ? NULL : BIO_new_mem_buf(pem.data, (int)pem.size);
    EVP_PKEY *key = text == NULL ? NULL : PEM_read_bio_PrivateKey(text, NULL, no_password, NULL);
    BIO_free(text);
    ERR_clear_error();
    if (key == NULL || EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

status signing_key_create(bytes pem, struct signing_key **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->key = read_key(pem);
    if ((*out)->key != NULL)
        return status_ok();
    signing_key_destroy(*out);
    *out = NULL;
    return status_make(STATUS_INVALID_ARGUMENT, "no private RSA key in PEM");
}

void signing_key_destroy(struct signing_key *key)
{
    if (key == NULL)
        return;
    EVP_PKEY_free(key->key);
    free(key);
}

static bool sign(EVP_MD_CTX *context, EVP_PKEY *key, bytes message, struct buffer *out)
{
    size_t size = (size_t)EVP_PKEY_get_size(key);
    uint8_t *to = buffer_reserve(out, size);
    if (to == NULL || EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(context, to, &size, message.data, message.size) != 1)
        return false;
    out->size += size;
    return true;
}

status signing_key_sign(const struct signing_key *key, bytes message, struct buffer *out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_signed = context != NULL && sign(context, key->key, message, out);
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return is_signed ? status_ok() : status_out_of_memory();
}
