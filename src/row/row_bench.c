/* What the row layer costs: nanoseconds of one thread for rows of ten cells of 100 bytes.
 *
 *     ./dev bench row
 *
 * Each figure is the best of several rounds; nothing is asserted. */
#include "row/filter.h"
#include "row/fold.h"
#include "row/hll.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 10, VALUE_SIZE = 100, ROUNDS = 300, ROWS = 500, ARENA_LIMIT = 1 << 20 };
enum { COUNTED = 100000 /* values of the sketch */ };

struct bench {
    struct arena *arena;
    struct schema *schema;
    struct row_rules rules;
    char qualifiers[CELLS][8];
    uint8_t value[VALUE_SIZE];
    struct buffer row;     /* all cells, version 1000 */
    struct buffer update;  /* one cell, version 2000 */
    struct buffer rewrite; /* all cells, version 3000 */
    struct buffer sketch;  /* a sketch, version 1000 */
    struct buffer add;     /* a value to it, version 2000 */
    struct filter *filter;
    struct cell_list cells;
    uint64_t sum; /* of what was made, so that it is made */
};

static void need(status s)
{
    CHECK(status_is_ok(s));
}

static struct buffer pack(struct bench *bench, int first, int count, uint64_t version)
{
    struct packed_change packed;
    struct row_change *change = row_change_create(bench->arena);
    CHECK(change != NULL);
    for (int i = first; i < first + count; i++)
        row_change_set(change, 1, bytes_of(bench->qualifiers[i]), 1700000000000000,
                       bytes_make(bench->value, VALUE_SIZE));
    need(row_change_pack(change, SIZE_MAX, &packed));
    fragment_set_version(packed.fragment.data, version);
    return packed.fragment;
}

static struct buffer pack_sketch(struct bench *bench, bytes state, uint64_t version)
{
    struct packed_change packed;
    struct row_change *change = row_change_create(bench->arena);
    CHECK(change != NULL);
    row_change_add(change, ENTRY_HLL, 1, bytes_of("visitors"), 1700000000000000, state);
    need(row_change_pack(change, SIZE_MAX, &packed));
    fragment_set_version(packed.fragment.data, version);
    return packed.fragment;
}

static struct buffer pack_add(struct bench *bench, int64_t counted, uint64_t version)
{
    uint8_t one[HLL_ONE_MOST];
    size_t size = hll_state_write_one(HLL_INT64, hll_hash_int64(counted), one);
    return pack_sketch(bench, bytes_make(one, size), version);
}

static struct buffer pack_many(struct bench *bench, uint64_t version)
{
    struct hll_sketch sketch = {0};
    struct hll_state nothing = {.value_type = HLL_INT64,
                                .precision = HLL_PRECISION,
                                .sparse_precision = HLL_SPARSE_PRECISION};
    struct buffer state = {0};
    CHECK(hll_sketch_merge(&sketch, &nothing));
    for (int64_t i = 0; i < COUNTED; i++)
        CHECK(hll_sketch_add(&sketch, hll_hash_int64(i)));
    CHECK(hll_sketch_write(&sketch, &state));
    struct buffer fragment = pack_sketch(bench, buffer_bytes(&state), version);
    hll_sketch_free(&sketch);
    buffer_free(&state);
    return fragment;
}

static void set_up(struct bench *bench)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family family = {.id = 1, .name = bytes_of("cf"), .gc = &newest};
    *bench = (struct bench){.arena = arena_create(ARENA_LIMIT)};
    CHECK(bench->arena != NULL);
    need(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &bench->schema));
    bench->rules = (struct row_rules){.schema = bench->schema, .clock = clock_system()};
    memset(bench->value, 'v', VALUE_SIZE);
    for (int i = 0; i < CELLS; i++)
        snprintf(bench->qualifiers[i], sizeof bench->qualifiers[i], "field%d", i);
    bench->row = pack(bench, 0, CELLS, 1000);
    bench->update = pack(bench, 4, 1, 2000);
    bench->rewrite = pack(bench, 0, CELLS, 3000);
    bench->sketch = pack_many(bench, 1000);
    bench->add = pack_add(bench, COUNTED, 2000);
    arena_reset(bench->arena);
}

static void change_row(struct bench *bench)
{
    struct buffer fragment = pack(bench, 0, CELLS, 1);
    bench->sum += fragment.size;
    buffer_free(&fragment);
}

static void change_sketch(struct bench *bench)
{
    struct buffer fragment = pack_add(bench, 1, 1);
    bench->sum += fragment.size;
    buffer_free(&fragment);
}

static void fold(struct bench *bench, const struct buffer *first, const struct buffer *second)
{
    bytes operands[] = {buffer_bytes(first), second == NULL ? (bytes){0} : buffer_bytes(second)};
    struct store_history history = {
        .key = bytes_of("Rr"), .operands = operands, .operand_count = second == NULL ? 1 : 2};
    struct buffer out = {0};
    bytes same = {0};
    CHECK(row_fold.whole(&bench->rules, &history, &out, &same));
    bench->sum += out.size + same.size;
    buffer_free(&out);
}

static void fold_one(struct bench *bench)
{
    fold(bench, &bench->row, NULL);
}

static void fold_update(struct bench *bench)
{
    fold(bench, &bench->row, &bench->update);
}

static void fold_rewrite(struct bench *bench)
{
    fold(bench, &bench->row, &bench->rewrite);
}

static void fold_sketch(struct bench *bench)
{
    fold(bench, &bench->sketch, &bench->add);
}

static void resolve(struct bench *bench)
{
    struct resolve_request request = {.schema = bench->schema,
                                      .record = buffer_bytes(&bench->row),
                                      .apply_gc = true,
                                      .size_limit = UINT64_MAX};
    bool too_large;
    bench->cells = (struct cell_list){.arena = bench->arena};
    need(row_resolve(&request, &bench->cells, &too_large));
    bench->sum += bench->cells.count;
}

static void filter(struct bench *bench)
{
    struct cell_list out = {.arena = bench->arena};
    need(filter_apply(bench->filter, bytes_of("row"), &bench->cells, 1, NULL, &out));
    bench->sum += out.count;
}

static int64_t best_of(struct bench *bench, void (*work)(struct bench *bench))
{
    int64_t best = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_us = clock_steady_us(clock_system());
        for (int i = 0; i < ROWS; i++) {
            work(bench);
            if (work != filter || i % 64 == 63)
                arena_reset(bench->arena);
        }
        int64_t taken_us = clock_steady_us(clock_system()) - start_us;
        best = taken_us < best ? taken_us : best;
    }
    return best * 1000 / ROWS;
}

static void report(struct bench *bench, const char *what, void (*work)(struct bench *bench))
{
    fprintf(stdout, "%-50s %6lld ns\n", what, (long long)best_of(bench, work));
}

/* The cells that filters look at live in an arena of their own, which stays. */
static void report_filter(struct bench *bench, const char *what, const struct filter_spec *spec)
{
    struct arena *work = bench->arena;
    struct arena *kept = arena_create(ARENA_LIMIT);
    CHECK(kept != NULL);
    bench->arena = kept;
    need(filter_compile(spec, kept, &bench->filter));
    resolve(bench);
    bench->arena = work;
    report(bench, what, filter);
    filter_destroy(bench->filter);
    arena_destroy(kept);
}

#define REPORT(what, ...) report_filter(bench, what, &(const struct filter_spec){__VA_ARGS__})

static void report_places(struct bench *bench)
{
    REPORT("family name", .kind = FILTER_FAMILY_REGEX, .pattern = bytes_of("cf"));
    REPORT("qualifier, a literal", .kind = FILTER_QUALIFIER_REGEX, .pattern = bytes_of("field3"));
    REPORT("qualifier, a regular expression", .kind = FILTER_QUALIFIER_REGEX,
           .pattern = bytes_of("field[35]"));
    REPORT("row key, a regular expression", .kind = FILTER_KEY_REGEX, .pattern = bytes_of("r.w"));
    REPORT("column range", .kind = FILTER_COLUMN_RANGE, .family = bytes_of("cf"),
           .range = {.has_start = true, .start = bytes_of("field3")});
    REPORT("timestamp range", .kind = FILTER_TIMESTAMP_RANGE, .start_us = 1000);
}

static void report_values(struct bench *bench)
{
    uint8_t mask[VALUE_SIZE];
    memset(mask, 'v', VALUE_SIZE);
    REPORT("value range", .kind = FILTER_VALUE_RANGE,
           .range = {.has_start = true, .start = bytes_of("vv")});
    REPORT("value bitmask", .kind = FILTER_VALUE_BITMASK, .mask = bytes_make(mask, VALUE_SIZE));
    REPORT("value, a literal", .kind = FILTER_VALUE_REGEX, .pattern = bytes_of("vvv"));
    REPORT("value, a regular expression", .kind = FILTER_VALUE_REGEX,
           .pattern = bytes_of("v[vw]*"));
}

static void report_counts(struct bench *bench)
{
    REPORT("pass all", .kind = FILTER_PASS);
    REPORT("block all", .kind = FILTER_BLOCK);
    REPORT("sink", .kind = FILTER_SINK);
    REPORT("cells per row", .kind = FILTER_ROW_LIMIT, .count = 5);
    REPORT("cells per row, offset", .kind = FILTER_ROW_OFFSET, .count = 5);
    REPORT("cells per column", .kind = FILTER_COLUMN_LIMIT, .count = 1);
    REPORT("row sample", .kind = FILTER_ROW_SAMPLE, .probability = 0.5);
    REPORT("strip values", .kind = FILTER_STRIP_VALUE);
    REPORT("label", .kind = FILTER_LABEL, .label = bytes_of("label"));
}

/* Of a family and a limit. */
static void report_composites(struct bench *bench)
{
    const struct filter_spec family = {.kind = FILTER_FAMILY_REGEX, .pattern = bytes_of("cf")};
    const struct filter_spec latest = {.kind = FILTER_COLUMN_LIMIT, .count = 1};
    const struct filter_spec *filters[CONDITION_CHILDREN] = {&family, &latest, NULL};
    REPORT("chain of family name and cells per column", .kind = FILTER_CHAIN, .children = filters,
           .child_count = 2);
    REPORT("interleave of the same", .kind = FILTER_INTERLEAVE, .children = filters,
           .child_count = 2);
    REPORT("condition: family name, then cells per column", .kind = FILTER_CONDITION,
           .children = filters, .child_count = CONDITION_CHILDREN);
}

int main(void)
{
    struct bench bench;
    set_up(&bench);
    report(&bench, "request to fragment", change_row);
    report(&bench, "fold of one fragment, nothing to do", fold_one);
    report(&bench, "fold of a row and an update of one cell", fold_update);
    report(&bench, "fold of a row and its rewrite", fold_rewrite);
    report(&bench, "an add to a sketch, to fragment", change_sketch);
    report(&bench, "fold of a sketch of 100,000 values and an add", fold_sketch);
    report(&bench, "resolve", resolve);
    fprintf(stdout, "filters, each of a row that was resolved:\n");
    report_places(&bench);
    report_values(&bench);
    report_counts(&bench);
    report_composites(&bench);
    fprintf(stdout, "(%llu)\n", (unsigned long long)bench.sum);
    buffer_free(&bench.row);
    buffer_free(&bench.update);
    buffer_free(&bench.rewrite);
    buffer_free(&bench.sketch);
    buffer_free(&bench.add);
    schema_destroy(bench.schema);
    arena_destroy(bench.arena);
    return 0;
}
