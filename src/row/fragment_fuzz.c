/* Fuzzer: any bytes as fragments. Reading, folding, resolving and overflowing them never goes wrong
 * in memory; a fragment in good order survives rewriting; a fold's result is in good order, and
 * folded again stays the same.
 *
 * Input: fragments, each after two bytes with its size. */
#include "row/fold.h"
#include "row/resolve.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_FRAGMENTS = 8, ARENA_LIMIT = 16 << 20 };

static size_t split(bytes input, bytes *fragments)
{
    size_t count = 0;
    while (input.size >= 2 && count < MOST_FRAGMENTS) {
        size_t size = (size_t)(input.data[0] << 8 | input.data[1]);
        input = bytes_from(input, 2);
        size = size < input.size ? size : input.size;
        fragments[count++] = bytes_make(input.data, size);
        input = bytes_from(input, size);
    }
    return count;
}

/* Whether every entry is good on its own, too: fragment_check looks at form and order. */
static bool is_good(bytes fragment)
{
    status s = fragment_check(fragment);
    bool good = status_is_ok(s);
    status_free(s);
    return good;
}

/* Reads and writes the fragment; what is written must read the same. */
static void rewrite(bytes fragment)
{
    struct fragment_reader reader, again;
    struct fragment_writer writer;
    struct buffer out = {0};
    struct entry entry, copy;
    CHECK(fragment_reader_start(&reader, fragment));
    fragment_writer_start(&writer, &out, reader.base_version);
    while (fragment_reader_next(&reader, &entry))
        fragment_writer_add(&writer, &entry);
    fragment_writer_finish(&writer);
    CHECK(!out.failed && is_good(buffer_bytes(&out)));
    CHECK(fragment_reader_start(&reader, fragment));
    CHECK(fragment_reader_start(&again, buffer_bytes(&out)));
    while (fragment_reader_next(&reader, &entry)) {
        CHECK(fragment_reader_next(&again, &copy));
        CHECK(entry_compare(&entry, &copy) == 0 && entry.kind == copy.kind);
        CHECK(entry.version == copy.version && entry.end_us == copy.end_us);
        CHECK(entry.moved == copy.moved && entry.purged == copy.purged);
        CHECK(bytes_equal(entry.value, copy.value) && entry.has_overflow == copy.has_overflow);
    }
    CHECK(!fragment_reader_next(&again, &copy));
    buffer_free(&out);
}

static void fold(const bytes *fragments, size_t count, bool all_good)
{
    struct store_history history = {.operands = fragments, .operand_count = count};
    struct buffer once = {0}, twice = {0}, whole = {0};
    bytes same;
    if (row_fold.part(NULL, &history, &once) && all_good) {
        bytes result = buffer_bytes(&once);
        CHECK(is_good(result));
        history.operands = &result;
        history.operand_count = 1;
        CHECK(row_fold.part(NULL, &history, &twice));
        CHECK(bytes_equal(result, buffer_bytes(&twice)));
    }
    history.operands = fragments;
    history.operand_count = count;
    history.key = bytes_of("Rr");
    row_fold.whole(NULL, &history, &whole, &same);
    buffer_free(&once);
    buffer_free(&twice);
    buffer_free(&whole);
}

static status see_nothing(void *context, const struct entry *cell, bytes operand)
{
    (void)context, (void)cell, (void)operand;
    return status_ok();
}

static void read_row(bytes record)
{
    const struct family families[] = {{.id = 2, .name = bytes_of("a")},
                                      {.id = 1, .name = bytes_of("b")}};
    struct schema *schema = NULL;
    struct arena *arena = arena_create(ARENA_LIMIT);
    status s = schema_create(GRANULARITY_MILLIS, families, 2, 4, &schema);
    if (arena != NULL && status_is_ok(s)) {
        struct resolve_request request = {
            .schema = schema, .record = record, .size_limit = UINT64_MAX};
        struct cell_list cells = {.arena = arena};
        bool too_large;
        uint64_t newest;
        status_ignore(row_resolve(&request, &cells, &too_large));
        status_ignore(row_overflow_cells(record, see_nothing, NULL, &newest));
    }
    status_free(s);
    schema_destroy(schema);
    arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes fragments[MOST_FRAGMENTS];
    size_t count = split(bytes_make(data, size), fragments);
    bool all_good = true;
    for (size_t i = 0; i < count; i++) {
        bool good = is_good(fragments[i]);
        all_good &= good;
        if (good)
            rewrite(fragments[i]);
        read_row(fragments[i]);
    }
    if (count > 0)
        fold(fragments, count, all_good);
    return 0;
}
