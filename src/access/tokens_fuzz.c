/* Token files: whatever is read has principals that are valid, in an order in which each hash is
 * found, and what is refused leaves nothing behind. */
#include "access/tokens.h"

#include "base/testing/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokens tokens;
    status s = tokens_parse("file", bytes_make(data, size), &tokens);
    CHECK(status_is_ok(s) || tokens.count == 0);
    for (size_t i = 0; i < tokens.count; i++) {
        CHECK(principal_is_valid(bytes_of(tokens.list[i].principal)));
        const struct token *found = tokens_find(&tokens, tokens.list[i].hash);
        CHECK(found != NULL && memcmp(found->hash, tokens.list[i].hash, TOKEN_HASH_SIZE) == 0);
    }
    status_free(s);
    tokens_free(&tokens);
    return 0;
}
