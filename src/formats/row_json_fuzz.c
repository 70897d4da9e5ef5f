/* Fuzzer: rows and records as JSON.
 *
 * A row that is read, written and read again is the same; a refusal is one that a user may be told.
 * Input: a line. */
#include "formats/row_json.h"

#include "base/testing/fuzzing.h"

enum { ARENA_LIMIT = 8 << 20, SOME_TIME = 1000 };

static bool is_same(const struct move_change *a, const struct move_change *b)
{
    if (!bytes_equal(a->row_key, b->row_key) || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->cells[i].family, b->cells[i].family) != 0 ||
            a->cells[i].timestamp_us != b->cells[i].timestamp_us ||
            !bytes_equal(a->cells[i].qualifier, b->cells[i].qualifier) ||
            !bytes_equal(a->cells[i].value, b->cells[i].value))
            return false;
    return true;
}

static void check_refusal(status s)
{
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void check_again(const struct move_change *row, struct arena *arena)
{
    struct buffer out = {0};
    struct move_change again;
    row_json_write(row, &out);
    CHECK(!out.failed);
    status s = row_json_read(buffer_bytes(&out), 0, arena, &again);
    CHECK(s.code == STATUS_RESOURCE_EXHAUSTED || (status_is_ok(s) && is_same(row, &again)));
    status_free(s);
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct field_part key[] = {{.text = {(const uint8_t *)"a", 1}, .is_field = true}};
    static struct field_typed types[] = {{{(const uint8_t *)"i", 1}, FIELD_INT64},
                                         {{(const uint8_t *)"d", 1}, FIELD_DOUBLE},
                                         {{(const uint8_t *)"h", 1}, FIELD_HEX},
                                         {{(const uint8_t *)"b", 1}, FIELD_BASE64}};
    const struct field_layout layout = {.key = key,
                                        .key_count = 1,
                                        .types = types,
                                        .type_count = 4,
                                        .family = "f",
                                        .timestamp = "t"};
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct move_change row;
    struct field *fields;
    size_t count;
    CHECK(arena != NULL);
    status s = row_json_read(bytes_make(data, size), SOME_TIME, arena, &row);
    if (status_is_ok(s))
        check_again(&row, arena);
    check_refusal(s);
    s = row_json_fields(bytes_make(data, size), arena, &fields, &count);
    if (status_is_ok(s))
        s = fields_lay_out(&layout, fields, count, arena, &row);
    check_refusal(s);
    arena_destroy(arena);
    return 0;
}
