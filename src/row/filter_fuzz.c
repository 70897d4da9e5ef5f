/* Fuzzer: any filter message, compiled and applied to a small row. It never goes wrong in memory,
 * nor takes more than its arena; and reading no more than the filter's scope changes nothing in
 * what comes out (the coin of row_sample apart, which is the same both times).
 *
 * Input: a serialised google.bigtable.v2.RowFilter. */
#include "row/filter.h"

#include "base/check.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_LIMIT = 64 << 20, COIN = 12345 };

/* Two families of three columns with two cells each. */
static struct buffer make_record(void)
{
    static const char *const qualifiers[] = {"", "a", "q1"};
    struct buffer out = {0};
    struct fragment_writer writer;
    fragment_writer_start(&writer, &out, 1);
    for (uint32_t family = 1; family <= 2; family++)
        for (int column = 0; column < 3; column++)
            for (int64_t time = 2000; time > 0; time -= 1000) {
                struct entry cell = {.kind = ENTRY_CELL,
                                     .family = family,
                                     .qualifier = bytes_of(qualifiers[column]),
                                     .timestamp_us = time,
                                     .version = 1,
                                     .value = bytes_of(time == 1000 ? "v\n\xff" : "")};
                fragment_writer_add(&writer, &cell);
            }
    fragment_writer_finish(&writer);
    CHECK(!out.failed);
    return out;
}

static bool filter_row(const struct filter *filter, const struct schema *schema,
                       const struct read_scope *scope, bytes record, struct arena *arena,
                       struct cell_list *out)
{
    struct resolve_request request = {
        .schema = schema, .record = record, .scope = scope, .size_limit = UINT64_MAX};
    struct cell_list cells = {.arena = arena};
    bool too_large;
    *out = (struct cell_list){.arena = arena};
    status s = row_resolve(&request, &cells, &too_large);
    if (status_is_ok(s))
        s = filter_apply(filter, bytes_of("row"), &cells, COIN, out);
    bool ok = status_is_ok(s);
    status_free(s);
    return ok;
}

static void check_same(const struct cell_list *a, const struct cell_list *b)
{
    CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        CHECK(a->items[i].family == b->items[i].family);
        CHECK(a->items[i].timestamp_us == b->items[i].timestamp_us);
        CHECK(bytes_equal(a->items[i].qualifier, b->items[i].qualifier));
        CHECK(bytes_equal(a->items[i].value, b->items[i].value));
    }
}

static void apply(const struct filter *filter, const struct schema *schema, struct arena *arena)
{
    struct buffer record = make_record();
    struct read_scope scope;
    struct cell_list all, scoped;
    status s = filter_scope(filter, schema, arena, &scope);
    if (status_is_ok(s) && !filter_rejects_key(filter, bytes_of("row")) &&
        filter_row(filter, schema, NULL, buffer_bytes(&record), arena, &all) &&
        filter_row(filter, schema, &scope, buffer_bytes(&record), arena, &scoped))
        check_same(&all, &scoped);
    status_free(s);
    buffer_free(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct family families[] = {{.id = 1, .name = bytes_of("f")},
                                      {.id = 2, .name = bytes_of("g")}};
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct schema *schema = NULL;
    struct filter *filter = NULL;
    ProtobufCMessage *message = NULL;
    status s = schema_create(GRANULARITY_MILLIS, families, 2, 3, &schema);
    if (status_is_ok(s))
        s = proto_decode(&bt__row_filter__descriptor, bytes_make(data, size), arena, &message);
    if (status_is_ok(s))
        s = filter_compile((const Bt__RowFilter *)(const void *)message, arena, &filter);
    if (status_is_ok(s))
        apply(filter, schema, arena);
    status_free(s);
    filter_destroy(filter);
    schema_destroy(schema);
    arena_destroy(arena);
    return 0;
}
