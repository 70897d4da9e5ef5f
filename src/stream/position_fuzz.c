/* Fuzzer: any bytes as a token. What is read is written again and reads the same; cut in two, both
 * halves are put together to what it was.
 *
 * Input: a token's bytes without checksum, which is put behind them, and without base64. It is also
 * read as a string, as it is. */
#include "base/crc32c.h"
#include "base/testing/fuzzing.h"
#include "stream/position.h"
#include "wire/grpc_text.h"

enum { ARENA_LIMIT = 64 << 20 };

static bool reads(bytes string, struct arena *arena, struct stream_token *out)
{
    status s = stream_token_read(string, arena, out);
    bool ok = status_is_ok(s);
    CHECK(ok || s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    return ok;
}

static void check_done(status s)
{
    CHECK(status_is_ok(s));
    status_free(s);
}

static bytes end_of(const struct stream_token *token)
{
    return token->parts[token->part_count - 1].end;
}

/* Neighbours at one position count as one part. */
static void check_same(const struct stream_token *a, const struct stream_token *b,
                       struct arena *arena)
{
    struct stream_token one, other;
    check_done(stream_token_join(a, 1, a->start, end_of(a), arena, &one));
    check_done(stream_token_join(b, 1, b->start, end_of(b), arena, &other));
    CHECK(one.life == other.life && one.era == other.era);
    CHECK(one.shard == other.shard && one.time_us == other.time_us);
    CHECK(bytes_equal(one.start, other.start) && one.part_count == other.part_count);
    for (size_t i = 0; i < one.part_count; i++) {
        CHECK(bytes_equal(one.parts[i].end, other.parts[i].end));
        CHECK(stream_position_compare(one.parts[i].after, other.parts[i].after) == 0);
    }
}

static void check_cut(const struct stream_token *token, bytes at, struct arena *arena)
{
    struct stream_token halves[2], whole;
    bytes end = end_of(token);
    bool is_inside =
        bytes_compare(at, token->start) > 0 && (end.size == 0 || bytes_compare(at, end) < 0);
    if (!is_inside)
        return;
    check_done(stream_token_cut(token, at, end, arena, &halves[0]));
    check_done(stream_token_cut(token, token->start, at, arena, &halves[1]));
    CHECK(bytes_equal(end_of(&halves[1]), at) && bytes_equal(halves[0].start, at));
    check_done(stream_token_join(halves, 2, token->start, end, arena, &whole));
    check_same(token, &whole, arena);
}

static void check_token(const struct stream_token *token, bytes string, struct arena *arena)
{
    struct buffer again = {0};
    struct stream_token read;
    stream_token_write(&again, token);
    CHECK(reads(buffer_bytes(&again), arena, &read));
    check_same(token, &read, arena);
    for (size_t i = 0; i < again.size; i++)
        CHECK(again.data[i] > ' ' && again.data[i] < 0x7f);
    buffer_free(&again);
    for (size_t i = 0; i < token->part_count; i++)
        check_cut(token, token->parts[i].end, arena);
    check_cut(token, string, arena);
}

static void append_checksum(struct buffer *packed)
{
    uint32_t checksum = crc32c_of(buffer_bytes(packed));
    for (unsigned i = 0; i < 4; i++)
        buffer_append_byte(packed, (uint8_t)(checksum >> (24 - 8 * i)));
}

static void make_string(bytes input, struct buffer *string)
{
    struct buffer packed = {0};
    buffer_append_bytes(&packed, input);
    append_checksum(&packed);
    base64url_encode(buffer_bytes(&packed), string);
    CHECK(!packed.failed && !string->failed);
    buffer_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct buffer string = {0};
    struct stream_token token;
    bytes input = bytes_make(data, size);
    CHECK(arena != NULL);
    if (reads(input, arena, &token))
        check_token(&token, input, arena);
    make_string(input, &string);
    if (reads(buffer_bytes(&string), arena, &token))
        check_token(&token, input, arena);
    buffer_free(&string);
    arena_destroy(arena);
    return 0;
}
