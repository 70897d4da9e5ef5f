/* See vectors.h. */
#include "vectors.h"

#include <openssl/evp.h>
#include <stdio.h>

static json_t *vectors;

bool vectors_load(const char *path)
{
    json_error_t error;
    vectors = json_load_file(path, 0, &error);
    return vectors != NULL;
}

void vectors_free(void)
{
    json_decref(vectors);
}

const json_t *section(const char *name)
{
    json_t *found = json_object_get(vectors, name);
    assert_true(json_array_size(found) > 0);
    return found;
}

void each(const char *name, void (*check)(const json_t *vector))
{
    const json_t *all = section(name);
    for (size_t i = 0; i < json_array_size(all); i++)
        check(json_array_get(all, i));
}

const char *text_of(const json_t *vector, const char *key)
{
    return json_string_value(json_object_get(vector, key));
}

int64_t number_of(const json_t *vector, const char *key)
{
    json_t *number = json_object_get(vector, key);
    assert_true(json_is_integer(number));
    return json_integer_value(number);
}

struct buffer from_hex(const char *hex)
{
    struct buffer out = {0};
    for (; *hex != '\0'; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        buffer_append_byte(&out, (uint8_t)byte);
    }
    assert_false(out.failed);
    return out;
}

void assert_sha256(bytes state, const char *expected)
{
    uint8_t digest[32];
    char hex[2 * sizeof digest + 1];
    assert_int_equal(EVP_Digest(state.data, state.size, digest, NULL, EVP_sha256(), NULL), 1);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
}
