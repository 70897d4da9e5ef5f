/* Fuzzer: the changes of a row, folded in any grouping of neighbours, come to the same row. Plain
 * ones do in any order, too; and what the rules collect on the way, no reader misses.
 *
 * Input: choices (base/testing/fuzzing.h): changes as mutations, then groups. */
#include "base/testing/fuzzing.h"
#include "row/fold.h"
#include "row/hll.h"
#include "row/resolve.h"

#include <endian.h>
#include <stdlib.h>

enum {
    MOST_OPERANDS = 12,
    MOST_MUTATIONS = 6,
    QUALIFIER_SIZE = 2,
    BIG_VALUE = 12,
    ARENA_LIMIT = 16 << 20,
    NOW_US = 6000,
};

static const struct gc_rule two_versions = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
static const struct gc_rule three_ms = {.kind = GC_MAX_AGE, .max_age_us = 3000};

enum { COUNTED = 1, AGED, SUMS, MINIMA, MAXIMA, SKETCHES, FAMILIES = SKETCHES };

/* --- a row's history --- */

struct history {
    struct arena *arena;
    struct buffer operands[MOST_OPERANDS];
    size_t count;
    uint64_t version; /* of the newest */
    bool has_deletes;
    bool has_aggregates;
};

/* What an add to a cell of the family brings, in the arena. */
static bytes choose_operand(struct choices *choices, uint32_t family, struct arena *arena)
{
    uint8_t sketch[HLL_ONE_MOST];
    uint64_t word = htobe64((uint64_t)((int64_t)choose_number(choices, sizeof word) >> 8));
    bytes operand = bytes_make(&word, sizeof word);
    if (family == SKETCHES)
        operand = bytes_make(sketch, hll_state_write_one(HLL_INT64, word, sketch));
    bytes copy = arena_copy(arena, operand);
    CHECK(copy.data != NULL);
    return copy;
}

static void choose_addition(struct choices *choices, struct history *history, uint32_t family,
                            bytes qualifier, int64_t timestamp_us, struct row_change *change)
{
    static const enum entry_kind kinds[] = {
        [SUMS] = ENTRY_SUM, [MINIMA] = ENTRY_MIN, [MAXIMA] = ENTRY_MAX, [SKETCHES] = ENTRY_HLL};
    if (family < SUMS) {
        row_change_set(change, family, qualifier, timestamp_us,
                       choose_bytes(choices, BIG_VALUE + 1));
        return;
    }
    row_change_add(change, kinds[family], family, qualifier, timestamp_us,
                   choose_operand(choices, family, history->arena));
    history->has_aggregates = true;
}

static void choose_mutation(struct choices *choices, struct history *history,
                            struct row_change *change)
{
    unsigned kind = choose(choices, 8);
    uint32_t family = 1 + choose(choices, FAMILIES);
    bytes qualifier = choose_bytes(choices, QUALIFIER_SIZE);
    int64_t start_us = 1000 * (int64_t)choose(choices, 8);
    history->has_deletes = history->has_deletes || kind < 3;
    if (kind == 0)
        row_change_delete_row(change);
    else if (kind == 1)
        row_change_delete_family(change, family);
    else if (kind == 2)
        row_change_delete_column(change, family, qualifier, start_us,
                                 choose_bool(choices) ? INT64_MAX
                                                      : start_us + 1 + choose_byte(choices) * 10);
    else
        choose_addition(choices, history, family, qualifier, start_us, change);
}

static struct buffer choose_change(struct choices *choices, struct history *history)
{
    struct row_change *change = row_change_create(history->arena);
    CHECK(change != NULL);
    unsigned mutations = 1 + choose(choices, MOST_MUTATIONS);
    for (unsigned i = 0; i < mutations; i++)
        choose_mutation(choices, history, change);
    struct packed_change packed;
    status s = row_change_pack(change, BIG_VALUE, &packed);
    CHECK(status_is_ok(s));
    fragment_set_version(packed.fragment.data, history->version);
    return packed.fragment;
}

/* As row maintenance writes it: under the row's lock, so all that is older has moved, or nothing.
 */
static struct buffer choose_mark(struct choices *choices, const struct history *history)
{
    struct buffer out = {0};
    uint64_t moved = choose_bool(choices) ? history->version - 1 : 0;
    uint64_t purged = choose_bool(choices) ? history->version - 1 : 0;
    row_overflow_mark(&out, history->version, moved, purged, choose_bool(choices));
    CHECK(!out.failed);
    return out;
}

static void choose_history(struct choices *choices, struct history *history)
{
    while (history->count < MOST_OPERANDS && choices->left.size > 0) {
        unsigned kind = choose(choices, 16);
        if (kind == 0)
            return;
        history->version += 1 + choose(choices, 4) * 100;
        history->operands[history->count++] =
            kind == 1 ? choose_mark(choices, history) : choose_change(choices, history);
    }
}

/* --- folding --- */

/* Puts the fold of operands `from` … `to` - 1 in their place. */
static void fold_group(struct history *history, size_t from, size_t to)
{
    bytes operands[MOST_OPERANDS];
    struct buffer folded = {0};
    for (size_t i = from; i < to; i++)
        operands[i - from] = buffer_bytes(&history->operands[i]);
    const struct store_history group = {.operands = operands, .operand_count = to - from};
    CHECK(row_fold.part(NULL, &group, &folded));
    for (size_t i = from; i < to; i++)
        buffer_free(&history->operands[i]);
    history->operands[from] = folded;
    memmove(&history->operands[from + 1], &history->operands[to],
            (history->count - to) * sizeof history->operands[0]);
    history->count -= to - from - 1;
}

/* The record that the first `count` operands come to, on `base` if there is one. */
static struct buffer fold_record(const struct history *history, size_t count,
                                 const struct buffer *base, const struct row_rules *rules)
{
    bytes operands[MOST_OPERANDS], same = {0};
    struct buffer record = {0};
    size_t skipped = base == NULL ? 0 : count;
    size_t folded = base == NULL ? count : history->count - count;
    for (size_t i = 0; i < folded; i++)
        operands[i] = buffer_bytes(&history->operands[skipped + i]);
    const struct store_history whole = {.key = bytes_of("Rrow"),
                                        .has_base = base != NULL,
                                        .base = base == NULL ? same : buffer_bytes(base),
                                        .operands = operands,
                                        .operand_count = folded};
    CHECK(row_fold.whole(rules, &whole, &record, &same));
    buffer_append_bytes(&record, same);
    CHECK(!record.failed);
    status s = fragment_check(buffer_bytes(&record));
    CHECK(status_is_ok(s));
    return record;
}

/* In one go. */
static struct buffer fold_at_once(const struct history *history, const struct row_rules *rules)
{
    return fold_record(history, history->count, NULL, rules);
}

/* In two: the older operands become a record first, which the others then change. */
static struct buffer fold_on_base(const struct history *history, size_t older,
                                  const struct row_rules *rules)
{
    if (older == 0)
        return fold_at_once(history, rules);
    struct buffer base = fold_record(history, older, NULL, rules);
    struct buffer record = fold_record(history, older, &base, rules);
    buffer_free(&base);
    return record;
}

/* --- comparing --- */

static void check_same_entries(const struct buffer *a, const struct buffer *b)
{
    struct fragment_reader reader_a, reader_b;
    struct entry left, right;
    CHECK(fragment_reader_start(&reader_a, buffer_bytes(a)));
    CHECK(fragment_reader_start(&reader_b, buffer_bytes(b)));
    while (fragment_reader_next(&reader_a, &left)) {
        CHECK(fragment_reader_next(&reader_b, &right));
        CHECK(left.kind == right.kind && entry_compare(&left, &right) == 0);
        CHECK(left.version == right.version && left.end_us == right.end_us);
        CHECK(left.moved == right.moved && left.purged == right.purged);
        CHECK(left.has_overflow == right.has_overflow && bytes_equal(left.value, right.value));
    }
    CHECK(!reader_a.is_bad && !fragment_reader_next(&reader_b, &right) && !reader_b.is_bad);
}

static status seek_nothing(struct overflow_source *source, uint32_t family, bytes qualifier)
{
    (void)source, (void)family, (void)qualifier;
    return status_ok();
}

static status find_nothing(struct overflow_source *source, struct entry *entry, bool *found)
{
    (void)source, (void)entry;
    *found = false;
    return status_ok();
}

/* What a reader sees of the record, if nothing is in its overflow cells. */
static struct cell_list read_record(const struct buffer *record, const struct schema *schema,
                                    struct arena *arena)
{
    struct overflow_source source = {.seek = seek_nothing, .next = find_nothing};
    const struct resolve_request request = {
        .schema = schema,
        .record = buffer_bytes(record),
        .overflow = fragment_has_overflow(buffer_bytes(record)) ? &source : NULL,
        .now_us = NOW_US,
        .apply_gc = true,
        .size_limit = UINT64_MAX};
    struct cell_list cells = {.arena = arena};
    bool too_large;
    status s = row_resolve(&request, &cells, &too_large);
    CHECK(status_is_ok(s));
    return cells;
}

static void check_reads_same(const struct buffer *a, const struct buffer *b,
                             const struct schema *schema, struct arena *arena)
{
    struct cell_list left = read_record(a, schema, arena);
    struct cell_list right = read_record(b, schema, arena);
    CHECK(left.count == right.count);
    for (size_t i = 0; i < left.count; i++) {
        CHECK(left.items[i].family == right.items[i].family);
        CHECK(left.items[i].timestamp_us == right.items[i].timestamp_us);
        CHECK(bytes_equal(left.items[i].qualifier, right.items[i].qualifier));
        CHECK(bytes_equal(left.items[i].value, right.items[i].value));
    }
}

/* --- the checks --- */

static int64_t fixed_wall(struct clock *clock)
{
    (void)clock;
    return NOW_US;
}

/* A rule that counts may collect what a later delete would have uncovered: the API allows it. */
static struct schema *make_schema(const struct history *history)
{
    const struct family families[] = {
        {.id = COUNTED, .name = bytes_of("f"), .gc = history->has_deletes ? NULL : &two_versions},
        {.id = AGED, .name = bytes_of("e"), .gc = &three_ms},
        {.id = SUMS, .name = bytes_of("d"), .aggregate = AGGREGATE_SUM},
        {.id = MINIMA, .name = bytes_of("c"), .aggregate = AGGREGATE_MIN},
        {.id = MAXIMA, .name = bytes_of("b"), .aggregate = AGGREGATE_MAX},
        {.id = SKETCHES, .name = bytes_of("a"), .aggregate = AGGREGATE_HLL}};
    struct schema *schema;
    status s = schema_create(GRANULARITY_MILLIS, families, FAMILIES, FAMILIES + 1, &schema);
    CHECK(status_is_ok(s));
    return schema;
}

static void fold_groups(struct choices *choices, struct history *history)
{
    while (choices->left.size > 0 && history->count > 1) {
        size_t from = choose(choices, (unsigned)history->count - 1);
        size_t most = history->count - from;
        fold_group(history, from, from + 1 + choose(choices, (unsigned)most));
    }
}

static void turn_round(struct history *history)
{
    for (size_t i = 0, j = history->count; i + 1 < j; i++) {
        struct buffer first = history->operands[i];
        history->operands[i] = history->operands[--j];
        history->operands[j] = first;
    }
}

static void check(struct choices *choices, struct history *history, const struct row_rules *rules)
{
    size_t older = choose(choices, (unsigned)history->count);
    struct buffer expected = fold_at_once(history, NULL);
    struct buffer collected = fold_on_base(history, older, rules);
    check_reads_same(&expected, &collected, rules->schema, history->arena);
    buffer_free(&collected);
    if (!history->has_aggregates && choose_bool(choices))
        turn_round(history);
    fold_groups(choices, history);
    struct buffer grouped = fold_at_once(history, NULL);
    check_same_entries(&expected, &grouped);
    buffer_free(&grouped);
    buffer_free(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct history history = {.arena = arena_create(ARENA_LIMIT)};
    struct clock clock = {.wall_us = fixed_wall};
    CHECK(history.arena != NULL);
    choose_history(&choices, &history);
    if (history.count > 0) {
        struct schema *schema = make_schema(&history);
        const struct row_rules rules = {.schema = schema, .clock = &clock};
        check(&choices, &history, &rules);
        schema_destroy(schema);
    }
    for (size_t i = 0; i < history.count; i++)
        buffer_free(&history.operands[i]);
    arena_destroy(history.arena);
    return 0;
}
