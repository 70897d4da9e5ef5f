/* Fuzzer: entities in their first form. Whatever the bytes, they are refused or read; what was read
 * is written in a form that says it: reading that, and writing and reading once more, changes
 * nothing.
 *
 * Input: the bytes. (The first reading may differ from the second in what cannot be said again, as
 * a user without a domain.) */
#include "base/testing/fuzzing.h"
#include "datastore/admin/legacy_entity.h"
#include "wire/proto.h"

enum { ARENA_BYTES = 1 << 24 };

static Ds__Entity *read_again(const Ds__Entity *entity, const struct ds_database *database,
                              struct arena *arena)
{
    struct buffer encoded = {0};
    Ds__Entity *again;
    ds_legacy_encode(entity, &encoded);
    bytes kept = arena_copy(arena, buffer_bytes(&encoded));
    CHECK(!encoded.failed && kept.data != NULL);
    CHECK(status_is_ok(ds_legacy_decode(kept, database, arena, &again)));
    buffer_free(&encoded);
    return again;
}

static void compare(const Ds__Entity *a, const Ds__Entity *b)
{
    struct buffer of_a = {0}, of_b = {0};
    proto_encode(&a->base, &of_a);
    proto_encode(&b->base, &of_b);
    CHECK(!of_a.failed && !of_b.failed);
    CHECK(bytes_equal(buffer_bytes(&of_a), buffer_bytes(&of_b)));
    buffer_free(&of_a);
    buffer_free(&of_b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ds_database database = {"p", ""};
    struct arena *arena = arena_create(ARENA_BYTES);
    Ds__Entity *entity;
    CHECK(arena != NULL);
    status s = ds_legacy_decode(bytes_make(data, size), &database, arena, &entity);
    if (status_is_ok(s)) {
        const Ds__Entity *second = read_again(entity, &database, arena);
        compare(second, read_again(second, &database, arena));
    }
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(arena);
    return 0;
}
