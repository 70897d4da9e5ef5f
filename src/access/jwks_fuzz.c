/* Key sets and signed tokens. An input is a key set, a line end, and a token. The fuzzer cannot
 * make up a signature: so whatever the input, a token is refused, and a key set that is read has a
 * key. */
#include "access/jwt.h"

#include "base/testing/fuzzing.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct jwt_expectation expected = {.issuer = "i", .audience = "a"};
    const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
    bytes input = bytes_make(data, size);
    bytes text = bytes_make(data, end == NULL ? size : (size_t)(end - data));
    bytes token = bytes_from(input, end == NULL ? size : text.size + 1);
    struct jwks *keys;
    char *principal;
    int64_t expires_us;
    status s = jwks_parse(text, &keys);
    if (status_is_ok(s)) {
        CHECK(jwks_count(keys) > 0);
        s = jwt_verify(keys, &expected, token, 0, &principal, &expires_us);
        CHECK(!status_is_ok(s) && principal == NULL);
    }
    status_free(s);
    jwks_destroy(keys);
    return 0;
}
