/* Digests: see digest.h. */
#include "os/digest.h"

#include <openssl/evp.h>

status digest_compute(enum digest_kind kind, bytes text, uint8_t out[DIGEST_MOST_BYTES],
                      size_t *size)
{
    const EVP_MD *const kinds[] = {
        [DIGEST_MD5] = EVP_md5(),
        [DIGEST_SHA1] = EVP_sha1(),
        [DIGEST_SHA256] = EVP_sha256(),
        [DIGEST_SHA512] = EVP_sha512(),
    };
    unsigned written;
    const void *data = text.size == 0 ? "" : (const void *)text.data;
    if (EVP_Digest(data, text.size, out, &written, kinds[kind], NULL) != 1)
        return status_make(STATUS_UNAVAILABLE, "OpenSSL does not compute this digest");
    *size = written;
    return status_ok();
}
