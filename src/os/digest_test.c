/* Digests, whole and piece by piece (RFC 1321, FIPS 180-4: the vectors of "abc"). */
#include "os/digest.h"

#include "base/testing/testing.h"

static const struct {
    enum digest_kind kind;
    size_t size;
    const char *start; /* its first four bytes */
} vectors[] = {
    {DIGEST_MD5, 16, "\x90\x01\x50\x98"},
    {DIGEST_SHA1, 20, "\xa9\x99\x3e\x36"},
    {DIGEST_SHA256, 32, "\xba\x78\x16\xbf"},
    {DIGEST_SHA512, 64, "\xdd\xaf\x35\xa1"},
};

static void the_standards_vectors_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint8_t out[DIGEST_MOST_BYTES];
        size_t size;
        assert_ok(digest_compute(vectors[i].kind, bytes_of("abc"), out, &size));
        assert_int_equal(size, vectors[i].size);
        assert_memory_equal(out, vectors[i].start, 4);
    }
}

static void pieces_make_the_digest_of_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint8_t out[DIGEST_MOST_BYTES];
        size_t size;
        struct digest *digest;
        assert_ok(digest_create(vectors[i].kind, &digest));
        assert_ok(digest_add(digest, bytes_of("a")));
        assert_ok(digest_add(digest, bytes_make(NULL, 0)));
        assert_ok(digest_add(digest, bytes_of("bc")));
        assert_ok(digest_finish(digest, out, &size));
        digest_destroy(digest);
        assert_int_equal(size, vectors[i].size);
        assert_memory_equal(out, vectors[i].start, 4);
    }
    digest_destroy(NULL);
}

/* RFC 4231, case 2. */
static void hmac_holds_the_standards_vector(void **state)
{
    static const char *const start = "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e";
    uint8_t out[HMAC_SHA256_BYTES];
    (void)state;
    assert_ok(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"), out));
    assert_memory_equal(out, start, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_vectors_hold),
        cmocka_unit_test(pieces_make_the_digest_of_the_whole),
        cmocka_unit_test(hmac_holds_the_standards_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
