/* Fuzzer: the file of a mapping.
 *
 * A file that is taken lays items out, or refuses them in words that a user may be told: its cells
 * lie in families that it names, and keep Bigtable's limits. A file that is refused is named.
 *
 * Input: the file. */
#include "formats/item_mapping.h"

#include "base/limits.h"
#include "base/testing/fuzzing.h"

enum { ARENA_LIMIT = 16 << 20 };

static const char *const items[] = {
    "{\"PK\":{\"S\":\"a#1\"},\"SK\":{\"S\":\"b\"},\"N\":{\"N\":\"1700000000\"},\"M\":{\"M\":{\"x\":"
    "{\"NULL\":true}}},\"S\":{\"SS\":[\"y\"]},\"B\":{\"BOOL\":true},\"L\":{\"L\":[]}}",
    "{\"PK\":{\"N\":\"-1.5\"},\"SK\":{\"B\":\"AP8=\"},\"T\":{\"S\":\"2024-01-02\"},\"N\":{\"N\":"
    "\"7\"}}",
    "{\"SK\":{\"S\":\"Payment-1\"}}",
};

static bool has_family(const struct item_mapping *mapping, const char *name)
{
    for (size_t i = 0; i < mapping->family_count; i++)
        if (strcmp(mapping->families[i].name, name) == 0)
            return true;
    return false;
}

static void check_change(const struct item_mapping *mapping, const struct move_change *change)
{
    CHECK(change->row_key.size > 0 && change->row_key.size <= LIMIT_ROW_KEY_BYTES);
    CHECK(change->count > 0);
    for (size_t i = 0; i < change->count; i++) {
        const struct move_cell *cell = &change->cells[i];
        CHECK(has_family(mapping, cell->family));
        CHECK(cell->qualifier.size <= LIMIT_QUALIFIER_BYTES);
        CHECK(cell->timestamp_us >= 0 && cell->timestamp_us % 1000 == 0);
    }
}

static void check_items(const struct item_mapping *mapping, struct arena *arena)
{
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct item_value item;
        struct move_change change;
        CHECK(status_is_ok(item_read_json_map(bytes_of(items[i]), arena, &item)));
        status s = item_map(mapping, &item, 5000, 1000 * 1000, arena, &change);
        if (status_is_ok(s))
            check_change(mapping, &change);
        CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
              s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct item_mapping mapping;
    CHECK(arena != NULL);
    status s = item_mapping_parse("m.json", bytes_make(data, size), arena, &mapping);
    if (status_is_ok(s))
        check_items(&mapping, arena);
    else
        CHECK(s.code == STATUS_RESOURCE_EXHAUSTED ||
              strncmp(status_message(s), "m.json:", strlen("m.json:")) == 0);
    status_free(s);
    arena_destroy(arena);
    return 0;
}
