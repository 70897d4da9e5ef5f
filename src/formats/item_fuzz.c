/* Fuzzer: items as text, DynamoDB's JSON or Ion.
 *
 * What is read, written and read again is the same item; plain JSON of it is JSON; a refusal is one
 * that a user may be told. A number that is read orders as it does when it is written plainly.
 *
 * Input: the text; the first byte says which of the two it is ('{': JSON's map). */
#include "formats/item.h"

#include "base/testing/fuzzing.h"
#include "wire/json_text.h"

enum { ARENA_LIMIT = 8 << 20 };

static void check_again(const struct item_value *item, struct arena *arena)
{
    struct buffer out = {0};
    struct item_value again;
    item_write_json(item, &out);
    CHECK(!out.failed);
    status s = item_read_json(buffer_bytes(&out), arena, &again);
    if (s.code != STATUS_RESOURCE_EXHAUSTED) {
        CHECK(status_is_ok(s));
        CHECK(item_equal(item, &again));
    }
    status_free(s);
    buffer_free(&out);
}

static void check_plain(const struct item_value *item)
{
    struct buffer out = {0};
    item_write_plain(item, &out);
    CHECK(!out.failed);
    struct json_reader reader = {.at = out.data, .end = out.data + out.size};
    CHECK(json_skip(&reader, ITEM_MOST_DEPTH + 2) && reader.at == reader.end);
    buffer_free(&out);
}

static void check_number(bytes text)
{
    struct item_number number, again;
    struct buffer plain = {0}, ordered = {0}, ordered_again = {0};
    status s = item_number_parse(text, &number);
    if (status_is_ok(s)) {
        item_number_append_plain(&number, &plain);
        CHECK(!plain.failed);
        s = item_number_parse(buffer_bytes(&plain), &again);
        CHECK(status_is_ok(s));
        item_number_append_ordered(&number, &ordered);
        item_number_append_ordered(&again, &ordered_again);
        CHECK(bytes_equal(buffer_bytes(&ordered), buffer_bytes(&ordered_again)));
    }
    status_free(s);
    buffer_free(&plain);
    buffer_free(&ordered);
    buffer_free(&ordered_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    bytes text = bytes_make(data, size);
    struct item_value item;
    check_number(text);
    bool is_json = size > 1 && data[0] == '{' && data[1] == '"';
    status s = is_json ? item_read_json_map(text, arena, &item) : item_read_ion(text, arena, &item);
    if (status_is_ok(s)) {
        check_again(&item, arena);
        check_plain(&item);
    }
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    arena_destroy(arena);
    return 0;
}
