/* See cipher.h. */
#include "os/cipher.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

static status has_failed(void)
{
    return status_make(STATUS_UNAVAILABLE, "OpenSSL does not do AES-256-GCM");
}

static status check_sizes(const struct cipher_place *place, bytes text)
{
    return place->associated.size > INT_MAX || text.size > INT_MAX
               ? status_make(STATUS_INVALID_ARGUMENT, "too long to be sealed at once")
               : status_ok();
}

/* Both directions: what is associated, then the text. */
static bool begin(EVP_CIPHER_CTX *context, const struct cipher_place *place, int seals)
{
    int size;
    return EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, place->key, place->nonce, seals) ==
               1 &&
           (place->associated.size == 0 ||
            EVP_CipherUpdate(context, NULL, &size, place->associated.data,
                             (int)place->associated.size) == 1);
}

static bool add(EVP_CIPHER_CTX *context, bytes text, uint8_t *out)
{
    int size;
    return text.size == 0 || EVP_CipherUpdate(context, out, &size, text.data, (int)text.size) == 1;
}

static status seal(EVP_CIPHER_CTX *context, const struct cipher_place *place, bytes plain,
                   uint8_t *out)
{
    int size;
    bool is_done =
        begin(context, place, 1) && add(context, plain, out) &&
        EVP_CipherFinal_ex(context, out + plain.size, &size) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, CIPHER_TAG_BYTES, out + plain.size) == 1;
    return is_done ? status_ok() : has_failed();
}

status cipher_seal(const struct cipher_place *place, bytes plain, uint8_t *out)
{
    TRY(check_sizes(place, plain));
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL)
        return status_out_of_memory();
    status s = seal(context, place, plain, out);
    EVP_CIPHER_CTX_free(context);
    return s;
}

static status open_sealed(EVP_CIPHER_CTX *context, const struct cipher_place *place, bytes sealed,
                          uint8_t *out)
{
    bytes text = bytes_make(sealed.data, sealed.size - CIPHER_TAG_BYTES);
    uint8_t tag[CIPHER_TAG_BYTES], rest[CIPHER_TAG_BYTES];
    int size;
    memcpy(tag, sealed.data + text.size, sizeof tag);
    if (!begin(context, place, 0) || !add(context, text, out) ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, sizeof tag, tag) != 1)
        return has_failed();
    return EVP_CipherFinal_ex(context, rest, &size) == 1
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "it is not what was sealed");
}

status cipher_open(const struct cipher_place *place, bytes sealed, uint8_t *out)
{
    TRY(check_sizes(place, sealed));
    if (sealed.size < CIPHER_TAG_BYTES)
        return status_make(STATUS_DATA_LOSS, "it is cut off");
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL)
        return status_out_of_memory();
    status s = open_sealed(context, place, sealed, out);
    EVP_CIPHER_CTX_free(context);
    return s;
}

void cipher_forget(void *memory, size_t size)
{
    OPENSSL_cleanse(memory, size);
}

status cipher_random(uint8_t *out, size_t size)
{
    return size <= INT_MAX && RAND_bytes(out, (int)size) == 1
               ? status_ok()
               : status_make(STATUS_UNAVAILABLE, "no random numbers");
}
