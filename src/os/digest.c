/* Digests: see digest.h. */
#include "os/digest.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

static const EVP_MD *implementation_of(enum digest_kind kind)
{
    switch (kind) {
    case DIGEST_MD5:
        return EVP_md5();
    case DIGEST_SHA1:
        return EVP_sha1();
    case DIGEST_SHA256:
        return EVP_sha256();
    case DIGEST_SHA512:
        break;
    }
    return EVP_sha512();
}

static status has_failed(void)
{
    return status_make(STATUS_UNAVAILABLE, "OpenSSL does not compute this digest");
}

static const void *data_of(bytes text)
{
    return text.size == 0 ? "" : (const void *)text.data;
}

status digest_compute(enum digest_kind kind, bytes text, uint8_t out[DIGEST_MOST_BYTES],
                      size_t *size)
{
    unsigned written;
    if (EVP_Digest(data_of(text), text.size, out, &written, implementation_of(kind), NULL) != 1)
        return has_failed();
    *size = written;
    return status_ok();
}

status hmac_sha256(bytes key, bytes text, uint8_t out[HMAC_SHA256_BYTES])
{
    if (key.size > INT_MAX)
        return status_make(STATUS_INVALID_ARGUMENT, "the key is too long");
    const uint8_t *made =
        HMAC(EVP_sha256(), data_of(key), (int)key.size, data_of(text), text.size, out, NULL);
    return made != NULL ? status_ok() : has_failed();
}

/* --- piece by piece: OpenSSL's context under a name of ours --- */

static EVP_MD_CTX *context_of(struct digest *digest)
{
    return (EVP_MD_CTX *)(void *)digest;
}

status digest_create(enum digest_kind kind, struct digest **out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    *out = NULL;
    if (context == NULL)
        return status_out_of_memory();
    if (EVP_DigestInit_ex(context, implementation_of(kind), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return has_failed();
    }
    *out = (struct digest *)(void *)context;
    return status_ok();
}

void digest_destroy(struct digest *digest)
{
    EVP_MD_CTX_free(context_of(digest));
}

status digest_add(struct digest *digest, bytes piece)
{
    return EVP_DigestUpdate(context_of(digest), data_of(piece), piece.size) == 1 ? status_ok()
                                                                                 : has_failed();
}

status digest_finish(struct digest *digest, uint8_t out[DIGEST_MOST_BYTES], size_t *size)
{
    unsigned written;
    if (EVP_DigestFinal_ex(context_of(digest), out, &written) != 1)
        return has_failed();
    *size = written;
    return status_ok();
}

status digest_file(enum digest_kind kind, const char *path, uint8_t out[DIGEST_MOST_BYTES],
                   size_t *size)
{
    FILE *stream = fopen(path, "re");
    struct digest *digest = NULL;
    uint8_t piece[16 << 10];
    size_t taken = sizeof piece;
    if (stream == NULL)
        return status_from_errno(errno, "cannot open %s", path);
    status s = digest_create(kind, &digest);
    while (status_is_ok(s) && taken == sizeof piece) { /* less is the end, or an error */
        taken = fread(piece, 1, sizeof piece, stream);
        s = digest_add(digest, bytes_make(piece, taken));
    }
    if (status_is_ok(s) && ferror(stream))
        s = status_from_errno(errno, "cannot read %s", path);
    if (status_is_ok(s))
        s = digest_finish(digest, out, size);
    digest_destroy(digest);
    fclose(stream);
    return s;
}
