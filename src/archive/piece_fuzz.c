/* Fuzzer: any bytes as a piece of an archive, as they are and with the checksum that they should
 * have. A piece that parses is written again, byte for byte the same.
 *
 * Input: a piece without its checksum, or with. */
#include "archive/piece.h"
#include "base/testing/fuzzing.h"
#include "os/digest.h"

static void rewrite(bytes b)
{
    struct piece piece;
    struct buffer out = {0};
    bytes entry;
    status s = piece_parse(b, &piece);
    bool parsed = status_is_ok(s);
    CHECK(parsed || s.code == STATUS_DATA_LOSS);
    status_free(s);
    if (!parsed)
        return;
    uint8_t digest[PIECE_DIGEST_BYTES];
    piece_start(&out, &piece);
    while (piece_next_entry(&piece.entries, &entry))
        piece_add(&out, entry);
    CHECK(status_is_ok(piece_finish(&out, piece.last, digest)));
    CHECK(bytes_equal(buffer_bytes(&out), b));
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t digest_size;
    struct buffer with = {0};
    rewrite(bytes_make(data, size));
    buffer_append(&with, data, size);
    CHECK(
        status_is_ok(digest_compute(DIGEST_SHA256, bytes_make(data, size), digest, &digest_size)));
    buffer_append(&with, digest, digest_size);
    CHECK(!with.failed);
    rewrite(buffer_bytes(&with));
    buffer_free(&with);
    return 0;
}
