/* Each place where the row layer may run out of memory is met once: it says so, leaks nothing, and
 * what comes out as good is whole. */
#include "row/filter.h"
#include "row/fold.h"
#include "row/resolve.h"
#include "row/testing/testing.h"

#include "base/testing/failmalloc.h"
#include "google/bigtable/v2/data.pb-c.h"

enum { ARENA_LIMIT = 64 << 20, CELLS = 200, RANGES = 20 };

static void make_schema(void *context)
{
    (void)context;
    const struct gc_rule rule = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family families[] = {{.id = 2, .name = bytes_of("a"), .gc = &rule},
                                      {.id = 1, .name = bytes_of("b")}};
    struct schema *schema, *without_rules = NULL;
    status s = schema_create(GRANULARITY_MILLIS, families, 2, 3, &schema);
    assert_int_equal(schema != NULL, status_is_ok(s));
    if (status_is_ok(s)) {
        s = schema_without_rules(schema, &without_rules);
        assert_int_equal(without_rules != NULL, status_is_ok(s));
    }
    status_ignore(s);
    schema_destroy(without_rules);
    schema_destroy(schema);
}

/* Falling columns, so that it has to sort; ranges that overlap. */
static void make_change(void *context)
{
    static char names[CELLS][4];
    (void)context;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct row_change *change = arena == NULL ? NULL : row_change_create(arena);
    struct packed_change packed = {0};
    if (change != NULL) {
        for (int i = 0; i < CELLS; i++) {
            snprintf(names[i], sizeof names[i], "%03d", CELLS - i);
            row_change_set(change, 1, bytes_of(names[i]), 1, bytes_of("value"));
        }
        for (int i = 0; i < RANGES; i++)
            row_change_delete_column(change, 1, bytes_of("a"), i, 2 * i + 2);
        status_ignore(row_change_pack(change, SIZE_MAX, &packed));
        if (packed.fragment.data != NULL)
            status_ignore(fragment_check(buffer_bytes(&packed.fragment)));
    }
    buffer_free(&packed.fragment);
    arena_destroy(arena);
}

struct operands {
    bytes fragments[3];
};

static void fold(void *context)
{
    const struct operands *operands = context;
    struct store_history history = {
        .key = bytes_of("Rr"), .operands = operands->fragments, .operand_count = 3};
    struct buffer part = {0}, whole = {0};
    bytes same = {0};
    if (row_fold.part(NULL, &history, &part))
        assert_int_equal(part.data[part.size - 1], 'y');
    if (row_fold.whole(NULL, &history, &whole, &same))
        assert_int_equal(whole.data[whole.size - 1], 'y');
    buffer_free(&part);
    buffer_free(&whole);
}

static status nothing_sought(struct overflow_source *source, uint32_t family, bytes qualifier)
{
    (void)source, (void)family, (void)qualifier;
    return status_ok();
}

static status nothing_overflow(struct overflow_source *source, struct entry *entry, bool *found)
{
    (void)source, (void)entry;
    *found = false;
    return status_ok();
}

static status keep_nothing(void *context, const struct entry *cell, bytes operand)
{
    (void)context, (void)cell, (void)operand;
    return status_ok();
}

struct reading {
    const struct schema *schema;
    bytes record;
};

static void read_and_filter(void *context)
{
    const struct reading *reading = context;
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct overflow_source source = {.seek = nothing_sought, .next = nothing_overflow};
    struct resolve_request request = {.schema = reading->schema,
                                      .record = reading->record,
                                      .overflow = &source,
                                      .size_limit = UINT64_MAX};
    struct cell_list cells = {.arena = arena}, passed = {.arena = arena};
    const struct filter_spec label = {.kind = FILTER_LABEL, .label = bytes_of("label")},
                             pass = {.kind = FILTER_PASS};
    const struct filter_spec *both[] = {&label, &pass};
    const struct filter_spec spec = {.kind = FILTER_INTERLEAVE, .children = both, .child_count = 2};
    struct filter *filter = NULL;
    uint64_t newest;
    bool too_large;
    if (arena == NULL)
        return;
    status s = row_resolve(&request, &cells, &too_large);
    if (status_is_ok(s))
        s = filter_compile(&spec, arena, &filter);
    if (status_is_ok(s))
        s = filter_apply(filter, bytes_of("r"), &cells, 0, NULL, &passed);
    if (status_is_ok(s))
        assert_int_equal(passed.count, 2 * cells.count);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_ignore(s);
    s = row_overflow_cells(reading->record, keep_nothing, NULL, &newest);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_ignore(s);
    filter_destroy(filter);
    arena_destroy(arena);
}

static void test_schemas(void **state)
{
    (void)state;
    failmalloc_each(make_schema, NULL);
}

static void test_changes(void **state)
{
    (void)state;
    failmalloc_each(make_change, NULL);
}

static void test_folds(void **state)
{
    (void)state;
    struct buffer first = FRAGMENT(cell_entry(1, "a", 9, "x", 1), cell_entry(1, "b", 1, "x", 1));
    struct buffer second =
        FRAGMENT(column_tombstone(1, "a", 0, 5, 2), column_tombstone(1, "a", 3, 8, 2));
    struct buffer third =
        FRAGMENT(column_tombstone(1, "a", 2, 9, 3), cell_entry(1, "b", 1, "y", 3));
    struct operands operands = {
        .fragments = {buffer_bytes(&first), buffer_bytes(&second), buffer_bytes(&third)}};
    failmalloc_each(fold, &operands);
    buffer_free(&first);
    buffer_free(&second);
    buffer_free(&third);
}

static void test_reads(void **state)
{
    (void)state;
    const struct family families[] = {{.id = 2, .name = bytes_of("a")},
                                      {.id = 1, .name = bytes_of("b")}};
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK, .version = 1, .has_overflow = true};
    struct buffer record =
        FRAGMENT(mark, column_tombstone(1, "a", 0, 5, 2), column_tombstone(1, "a", 7, 9, 2),
                 cell_entry(1, "a", 6, "x", 1), cell_entry(2, "b", 1, "y", 3));
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MILLIS, families, 2, 3, &schema));
    struct reading reading = {.schema = schema, .record = buffer_bytes(&record)};
    failmalloc_each(read_and_filter, &reading);
    schema_destroy(schema);
    buffer_free(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
