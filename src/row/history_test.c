/* The life of a row against a naive model of it.
 *
 * A history is a random list of requests, applied to the row as the server does it (changes, folds
 * in any grouping, overflows, purges, collection, drops that are held, or thrown away and
 * forgotten) and to an array of cells as the words of the API say it. What a reader sees must be
 * the same after every step. A failure prints the seed. */
#include "row/fold.h"
#include "row/hll.h"
#include "row/resolve.h"

#include "base/testing/testing.h"

#include <endian.h>
#include <stdio.h>

enum {
    HISTORIES = 400,
    STEPS = 60,
    MOST_CELLS = 256,
    MOST_OPERANDS = STEPS,
    MOST_OVERFLOW = 512,
    BIG_VALUE = 24,
    ARENA_LIMIT = 16 << 20,
    NOW_US = 6000,
    MAX_AGE_US = 3000,
};

/* Names and numbers in different order. Aggregates do not change their kind. */
enum { COUNTED = 1, KEPT = 2, SUMS = 3, MINIMA = 4, SKETCHES = 5, FAMILIES = 5 };

static const struct gc_rule two_versions = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
static const struct gc_rule three_ms = {.kind = GC_MAX_AGE, .max_age_us = MAX_AGE_US};
static const struct gc_rule both_rules[] = {{.kind = GC_MAX_VERSIONS, .max_versions = 1},
                                            {.kind = GC_MAX_AGE, .max_age_us = MAX_AGE_US}};
static const struct gc_rule old_and_many = {
    .kind = GC_INTERSECTION, .children = both_rules, .child_count = 2};

static const char *const qualifiers[] = {"", "a", "ab", "b"};
enum { QUALIFIERS = 4, TIMES = 6, MEMBERS = 6 /* that sketches count */ };

/* --- chance --- */

struct chance {
    uint64_t state;
};

static uint64_t next_random(struct chance *chance)
{
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return chance->state;
}

static uint64_t below(struct chance *chance, uint64_t end)
{
    return (next_random(chance) >> 11) % end;
}

/* --- the model --- */

struct model_cell {
    uint32_t family;
    bytes qualifier;
    int64_t timestamp_us;
    uint8_t value[64];
    size_t size;
    int adds;         /* of a sketch */
    unsigned members; /* bits: which numbers */
};

struct model {
    struct model_cell cells[MOST_CELLS];
    size_t count;
};

static struct model_cell *model_find(struct model *model, uint32_t family, bytes qualifier,
                                     int64_t timestamp_us)
{
    for (size_t i = 0; i < model->count; i++) {
        struct model_cell *cell = &model->cells[i];
        if (cell->family == family && cell->timestamp_us == timestamp_us &&
            bytes_equal(cell->qualifier, qualifier))
            return cell;
    }
    return NULL;
}

static void model_set(struct model *model, uint32_t family, bytes qualifier, int64_t timestamp_us,
                      bytes value)
{
    struct model_cell *cell = model_find(model, family, qualifier, timestamp_us);
    if (cell == NULL) {
        assert_true(model->count < MOST_CELLS);
        cell = &model->cells[model->count++];
    }
    *cell = (struct model_cell){
        .family = family, .qualifier = qualifier, .timestamp_us = timestamp_us, .size = value.size};
    if (value.size > 0)
        memcpy(cell->value, value.data, value.size);
}

static int64_t number_in(const uint8_t *value)
{
    uint64_t word;
    memcpy(&word, value, sizeof word);
    return (int64_t)be64toh(word);
}

static void model_add(struct model *model, uint32_t family, bytes qualifier, int64_t timestamp_us,
                      int64_t number)
{
    const struct model_cell *cell = model_find(model, family, qualifier, timestamp_us);
    if (cell != NULL && family == SUMS)
        number += number_in(cell->value);
    if (cell != NULL && family == MINIMA && number_in(cell->value) < number)
        number = number_in(cell->value);
    uint64_t word = htobe64((uint64_t)number);
    model_set(model, family, qualifier, timestamp_us, bytes_make(&word, sizeof word));
}

/* Builds the sketch again from all members that it counts. */
static void model_count(struct model *model, bytes qualifier, int64_t timestamp_us, unsigned member)
{
    const struct model_cell *cell = model_find(model, SKETCHES, qualifier, timestamp_us);
    unsigned members = (cell == NULL ? 0 : cell->members) | 1U << member;
    int adds = (cell == NULL ? 0 : cell->adds) + 1;
    struct hll_sketch sketch = {0};
    struct hll_state state = {.value_type = HLL_INT64,
                              .precision = HLL_PRECISION,
                              .sparse_precision = HLL_SPARSE_PRECISION};
    struct buffer written = {0};
    assert_true(hll_sketch_merge(&sketch, &state));
    for (unsigned i = 0; i < MEMBERS; i++)
        if ((members & 1U << i) != 0)
            assert_true(hll_sketch_add(&sketch, hll_hash_int64(i)));
    assert_true(hll_sketch_state(&sketch, &state));
    state.num_values = adds;
    hll_state_write(&state, &written);
    model_set(model, SKETCHES, qualifier, timestamp_us, buffer_bytes(&written));
    struct model_cell *set = model_find(model, SKETCHES, qualifier, timestamp_us);
    set->members = members;
    set->adds = adds;
    hll_sketch_free(&sketch);
    buffer_free(&written);
}

/* family 0: all; qualifier NULL: all */
static void model_delete(struct model *model, uint32_t family, const bytes *qualifier,
                         int64_t start_us, int64_t end_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_cell *cell = &model->cells[i];
        bool is_deleted = (family == 0 || cell->family == family) &&
                          (qualifier == NULL || bytes_equal(cell->qualifier, *qualifier)) &&
                          cell->timestamp_us >= start_us && cell->timestamp_us < end_us;
        if (!is_deleted)
            model->cells[kept++] = *cell;
    }
    model->count = kept;
}

/* --- the row as the server keeps it --- */

struct overflow {
    struct buffer key;
    struct buffer value;
};

struct life {
    struct chance chance;
    struct clock clock;
    struct schema *schema;
    struct row_rules rules;
    struct row_rules plain; /* the same drops, and nothing is collected */
    bool collects;          /* folds get the rules */
    bool deletes;           /* requests may delete */
    bool drops;             /* the row may be dropped */
    bool is_held;
    struct arena *arena;
    uint64_t seed;
    int step;
    uint64_t version;
    struct model model;
    struct buffer base;
    bool has_base;
    struct buffer operands[MOST_OPERANDS];
    size_t operand_count;
    struct overflow overflow[MOST_OVERFLOW]; /* by key */
    size_t overflow_count;
};

static const bytes row_key = {.data = (const uint8_t *)"r\0w", .size = 3};

static int64_t fixed_wall(struct clock *clock)
{
    (void)clock;
    return NOW_US;
}

static const struct row_rules *rules_of(const struct life *life)
{
    return life->collects ? &life->rules : &life->plain;
}

static void fold_whole(const struct life *life, bytes key, const struct buffer *base,
                       const struct buffer *operands, size_t count, struct buffer *out)
{
    bytes slices[MOST_OPERANDS];
    bytes same = {0};
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&operands[i]);
    struct store_history history = {.key = key,
                                    .has_base = base != NULL,
                                    .base = base != NULL ? buffer_bytes(base) : same,
                                    .operands = slices,
                                    .operand_count = count};
    assert_true(row_fold.whole(rules_of(life), &history, out, &same));
    if (same.size > 0)
        buffer_append_bytes(out, same);
    assert_ok(fragment_check(buffer_bytes(out)));
}

/* The record as a read gets it; empty if there is none. */
static struct buffer record_of(const struct life *life)
{
    struct buffer key = {0};
    struct buffer record = {0};
    row_record_key(&key, row_key);
    if (life->has_base && life->operand_count == 0)
        buffer_append_bytes(&record,
                            buffer_bytes(&life->base)); /* the store folds no single value */
    else if (life->operand_count > 0)
        fold_whole(life, buffer_bytes(&key), life->has_base ? &life->base : NULL, life->operands,
                   life->operand_count, &record);
    buffer_free(&key);
    return record;
}

static void add_operand(struct life *life, struct buffer operand)
{
    assert_true(life->operand_count < MOST_OPERANDS);
    assert_ok(fragment_check(buffer_bytes(&operand)));
    life->operands[life->operand_count++] = operand;
}

static void merge_overflow(struct life *life, bytes key, bytes operand)
{
    size_t at = 0;
    while (at < life->overflow_count &&
           bytes_compare(buffer_bytes(&life->overflow[at].key), key) < 0)
        at++;
    struct buffer fragment = {0}, folded = {0};
    buffer_append_bytes(&fragment, operand);
    if (at < life->overflow_count && bytes_equal(buffer_bytes(&life->overflow[at].key), key)) {
        fold_whole(life, key, &life->overflow[at].value, &fragment, 1, &folded);
        buffer_free(&life->overflow[at].value);
    } else {
        assert_true(life->overflow_count < MOST_OVERFLOW);
        memmove(&life->overflow[at + 1], &life->overflow[at],
                (life->overflow_count++ - at) * sizeof life->overflow[0]);
        life->overflow[at] = (struct overflow){0};
        buffer_append_bytes(&life->overflow[at].key, key);
        fold_whole(life, key, NULL, &fragment, 1, &folded);
    }
    life->overflow[at].value = folded;
    buffer_free(&fragment);
}

static void remove_overflow(struct life *life, size_t at)
{
    buffer_free(&life->overflow[at].key);
    buffer_free(&life->overflow[at].value);
    memmove(&life->overflow[at], &life->overflow[at + 1],
            (--life->overflow_count - at) * sizeof life->overflow[0]);
}

/* --- a reader's source of overflow cells --- */

struct source {
    struct overflow_source interface;
    const struct life *life;
    size_t at;
    struct buffer scratch;
    struct overflow_key key;     /* of the last record */
    struct fragment_reader rest; /* of its value: adds that are kept apart */
    bool has_rest;
};

static status source_seek(struct overflow_source *interface, uint32_t family, bytes qualifier)
{
    struct source *source = (struct source *)(void *)interface;
    struct buffer prefix = {0};
    overflow_column_prefix(&prefix, row_key, family, qualifier);
    prefix.size -= 2; /* at or after the qualifier, which need not be there */
    source->at = 0;
    source->has_rest = false;
    while (source->at < source->life->overflow_count &&
           bytes_compare(buffer_bytes(&source->life->overflow[source->at].key),
                         buffer_bytes(&prefix)) < 0)
        source->at++;
    buffer_free(&prefix);
    return status_ok();
}

static void read_rest(struct source *source, struct entry *entry, bool *found)
{
    *found = source->has_rest = fragment_reader_next(&source->rest, entry);
    assert_false(source->rest.is_bad);
    entry->family = source->key.family;
    entry->qualifier = source->key.qualifier;
    entry->timestamp_us = source->key.timestamp_us;
}

static status source_next(struct overflow_source *interface, struct entry *entry, bool *found)
{
    struct source *source = (struct source *)(void *)interface;
    struct entry first;
    *found = false;
    if (source->has_rest)
        read_rest(source, entry, found);
    while (!*found && source->at < source->life->overflow_count) {
        const struct overflow *overflow = &source->life->overflow[source->at++];
        bytes value = buffer_bytes(&overflow->value);
        assert_true(
            overflow_key_parse(buffer_bytes(&overflow->key), &source->scratch, &source->key));
        assert_true(bytes_equal(source->key.row_key, row_key));
        assert_true(overflow_cell_read(&source->key, value, entry, found));
        source->has_rest = fragment_has_apart(value);
        if (source->has_rest)
            assert_true(fragment_reader_start(&source->rest, value) &&
                        fragment_reader_next(&source->rest, &first));
    }
    return status_ok();
}

/* --- steps --- */

static void random_addition(struct life *life, struct row_change *change, uint32_t family,
                            bytes qualifier, int64_t timestamp_us)
{
    if (family == SUMS || family == MINIMA) {
        int64_t number = (int64_t)below(&life->chance, 100) - 50;
        uint64_t word = htobe64((uint64_t)number);
        bytes state = arena_copy(life->arena, bytes_make(&word, sizeof word));
        row_change_add(change, family == SUMS ? ENTRY_SUM : ENTRY_MIN, family, qualifier,
                       timestamp_us, state);
        model_add(&life->model, family, qualifier, timestamp_us, number);
        return;
    }
    if (family == SKETCHES) {
        unsigned member = (unsigned)below(&life->chance, MEMBERS);
        uint8_t *state = arena_alloc(life->arena, HLL_ONE_MOST);
        size_t size = hll_state_write_one(HLL_INT64, hll_hash_int64(member), state);
        row_change_add(change, ENTRY_HLL, family, qualifier, timestamp_us, bytes_make(state, size));
        model_count(&life->model, qualifier, timestamp_us, member);
        return;
    }
    uint8_t *value = arena_alloc(life->arena, BIG_VALUE + 8);
    size_t size = below(&life->chance, BIG_VALUE + 8);
    memset(value, 'a' + (int)below(&life->chance, 26), BIG_VALUE + 8);
    row_change_set(change, family, qualifier, timestamp_us, bytes_make(value, size));
    model_set(&life->model, family, qualifier, timestamp_us, bytes_make(value, size));
}

static void random_mutation(struct life *life, struct row_change *change)
{
    uint32_t family = 1 + (uint32_t)below(&life->chance, FAMILIES);
    bytes qualifier = bytes_of(qualifiers[below(&life->chance, QUALIFIERS)]);
    int64_t timestamp_us = 1000 * (int64_t)below(&life->chance, TIMES);
    uint64_t kind = below(&life->chance, life->deletes ? 16 : 10);
    if (kind == 15) {
        row_change_delete_row(change);
        model_delete(&life->model, 0, NULL, 0, INT64_MAX);
    } else if (kind == 14) {
        row_change_delete_family(change, family);
        model_delete(&life->model, family, NULL, 0, INT64_MAX);
    } else if (kind >= 10) {
        int64_t length = 1000 * (int64_t)below(&life->chance, TIMES);
        int64_t end_us = kind == 10 ? INT64_MAX : timestamp_us + length;
        row_change_delete_column(change, family, qualifier, timestamp_us, end_us);
        model_delete(&life->model, family, &qualifier, timestamp_us, end_us);
    } else {
        random_addition(life, change, family, qualifier, timestamp_us);
    }
}

static void request(struct life *life)
{
    struct packed_change packed;
    struct row_change *change = row_change_create(life->arena);
    struct buffer key = {0}, value = {0};
    for (uint64_t left = 1 + below(&life->chance, 6); left > 0; left--)
        random_mutation(life, change);
    assert_ok(row_change_pack(change, BIG_VALUE, &packed));
    life->version += 1 + below(&life->chance, 1000);
    fragment_set_version(packed.fragment.data, life->version);
    add_operand(life, packed.fragment);
    for (size_t i = 0; i < packed.big_count; i++) {
        buffer_clear(&key);
        buffer_clear(&value);
        overflow_cell_key(&key, row_key, packed.big[i].family, packed.big[i].qualifier,
                          packed.big[i].timestamp_us);
        overflow_cell_write(&value, ENTRY_CELL, life->version, 0, packed.big[i].value);
        merge_overflow(life, buffer_bytes(&key), buffer_bytes(&value));
    }
    buffer_free(&key);
    buffer_free(&value);
}

/* Some neighbouring operands become one. */
static void fold_some(struct life *life)
{
    if (life->operand_count < 2)
        return;
    size_t first = below(&life->chance, life->operand_count - 1);
    size_t count = 2 + below(&life->chance, life->operand_count - first - 1);
    bytes slices[MOST_OPERANDS];
    struct buffer out = {0};
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&life->operands[first + i]);
    struct store_history history = {
        .key = bytes_of("Rr\0w"), .operands = slices, .operand_count = count};
    history.key.size = 1 + row_key.size;
    assert_true(row_fold.part(rules_of(life), &history, &out));
    assert_ok(fragment_check(buffer_bytes(&out)));
    for (size_t i = 0; i < count; i++)
        buffer_free(&life->operands[first + i]);
    life->operands[first] = out;
    life->operand_count -= count - 1;
    memmove(&life->operands[first + 1], &life->operands[first + count],
            (life->operand_count - first - 1) * sizeof out);
}

static void compact(struct life *life)
{
    struct buffer record = record_of(life);
    struct buffer key = {0}, out = {0};
    if (record.size == 0)
        return;
    for (size_t i = 0; i < life->operand_count; i++)
        buffer_free(&life->operands[i]);
    life->operand_count = 0;
    buffer_free(&life->base);
    life->base = record;
    life->has_base = true;
    row_record_key(&key, row_key);
    switch (row_fold.tidy(rules_of(life), buffer_bytes(&key), buffer_bytes(&record), &out)) {
    case STORE_KEEP:
        break;
    case STORE_REMOVE:
        life->has_base = false;
        break;
    case STORE_REPLACE:
        buffer_free(&life->base);
        life->base = out;
        out = (struct buffer){0};
        break;
    }
    buffer_free(&key);
    buffer_free(&out);
}

static status overflow_cell(void *context, const struct entry *cell, bytes operand)
{
    struct life *life = context;
    struct buffer key = {0};
    overflow_cell_key(&key, row_key, cell->family, cell->qualifier, cell->timestamp_us);
    merge_overflow(life, buffer_bytes(&key), operand);
    buffer_free(&key);
    return status_ok();
}

static void overflow(struct life *life)
{
    struct buffer record = record_of(life);
    struct buffer mark = {0};
    uint64_t newest;
    if (record.size > 0) {
        assert_ok(row_overflow_cells(buffer_bytes(&record), overflow_cell, life, &newest));
        row_overflow_mark(&mark, ++life->version, newest, 0, life->overflow_count > 0);
        add_operand(life, mark);
    }
    buffer_free(&record);
}

/* Whether a tombstone of the record covers the overflow cell; `*newest` of all tombstones. */
static bool is_covered(bytes record, const struct entry *cell, uint64_t *newest)
{
    struct fragment_reader reader;
    struct entry entry;
    bool covered = false;
    assert_true(fragment_reader_start(&reader, record));
    while (fragment_reader_next(&reader, &entry)) {
        if (entry.kind > ENTRY_COLUMN_TOMBSTONE)
            continue;
        *newest = entry.version > *newest ? entry.version : *newest;
        bool is_over =
            entry.kind == ENTRY_ROW_TOMBSTONE ||
            (entry.family == cell->family &&
             (entry.kind == ENTRY_FAMILY_TOMBSTONE ||
              (bytes_equal(entry.qualifier, cell->qualifier) &&
               entry.timestamp_us <= cell->timestamp_us && cell->timestamp_us < entry.end_us)));
        covered |= is_over && cell->version < entry.version;
    }
    assert_false(reader.is_bad);
    return covered;
}

static void purge(struct life *life)
{
    struct buffer record = record_of(life);
    struct buffer mark = {0}, scratch = {0};
    uint64_t newest = 0;
    for (size_t at = life->overflow_count; record.size > 0 && at > 0; at--) {
        struct overflow_key key;
        struct entry cell;
        bool found;
        const struct overflow *overflow = &life->overflow[at - 1];
        assert_true(overflow_key_parse(buffer_bytes(&overflow->key), &scratch, &key));
        assert_true(overflow_cell_read(&key, buffer_bytes(&overflow->value), &cell, &found));
        if (!found || is_covered(buffer_bytes(&record), &cell, &newest))
            remove_overflow(life, at - 1);
    }
    if (fragment_has_overflow(buffer_bytes(&record))) {
        row_overflow_mark(&mark, ++life->version, 0, newest, life->overflow_count > 0);
        add_operand(life, mark);
    }
    buffer_free(&record);
    buffer_free(&scratch);
}

/* --- drops --- */

static void drop_row(struct life *life)
{
    struct row_drop *drop;
    if (!life->drops)
        return;
    life->version += 1 + below(&life->chance, 1000);
    bool is_all = below(&life->chance, 2) == 0;
    assert_ok(row_drop_create(is_all ? bytes_make(NULL, 0) : row_key,
                              is_all ? bytes_make(NULL, 0) : bytes_of("s"), &drop));
    assert_ok(row_drops_reserve(life->rules.drops));
    row_drops_add(life->rules.drops, drop, life->version, life->version);
    model_delete(&life->model, 0, NULL, 0, INT64_MAX);
}

static void hold_or_let_go(struct life *life)
{
    if (!life->drops)
        return;
    if (life->is_held)
        row_drops_let_go(life->rules.drops);
    else
        row_drops_hold(life->rules.drops);
    life->is_held = !life->is_held;
}

/* A compaction of all overflow cells. */
static void tidy_overflow(struct life *life)
{
    for (size_t at = life->overflow_count; at > 0; at--) {
        struct overflow *overflow = &life->overflow[at - 1];
        struct buffer out = {0};
        switch (row_fold.tidy(rules_of(life), buffer_bytes(&overflow->key),
                              buffer_bytes(&overflow->value), &out)) {
        case STORE_REMOVE:
            remove_overflow(life, at - 1);
            break;
        case STORE_REPLACE:
            buffer_free(&overflow->value);
            overflow->value = out;
            out = (struct buffer){0};
            break;
        case STORE_KEEP:
            break;
        }
        buffer_free(&out);
    }
}

/* Folds all that there is, and forgets the drops that nothing is left of. */
static void forget_drops(struct life *life)
{
    struct row_drop_words words = {.sequence = 0};
    compact(life);
    tidy_overflow(life);
    while (!life->is_held && row_drops_next(life->rules.drops, words.sequence, &words))
        assert_true(row_drops_remove(life->rules.drops, words.sequence));
}

/* --- comparing --- */

static bool model_shows(const struct life *life, const struct model_cell *cell, bool apply_gc)
{
    int32_t newer = 0;
    for (size_t i = 0; i < life->model.count; i++) {
        const struct model_cell *other = &life->model.cells[i];
        newer += other->family == cell->family && other->timestamp_us > cell->timestamp_us &&
                 bytes_equal(other->qualifier, cell->qualifier);
    }
    return !apply_gc || !gc_condemns(schema_family(life->schema, cell->family)->gc,
                                     cell->timestamp_us, newer, NOW_US);
}

static void read_row(struct life *life, struct cell_list *cells)
{
    struct buffer record = record_of(life);
    struct source source = {.interface = {.seek = source_seek, .next = source_next}, .life = life};
    bool too_large;
    uint64_t dropped = row_drops_over(life->rules.drops, row_key);
    bool has_overflow = record_has_overflow(buffer_bytes(&record), dropped);
    assert_true(has_overflow || life->overflow_count == 0 || dropped != 0);
    struct resolve_request request = {.schema = life->schema,
                                      .record = arena_copy(life->arena, buffer_bytes(&record)),
                                      .overflow = has_overflow ? &source.interface : NULL,
                                      .dropped = dropped,
                                      .now_us = NOW_US,
                                      .apply_gc = life->collects,
                                      .size_limit = UINT64_MAX};
    *cells = (struct cell_list){.arena = life->arena};
    assert_ok(row_resolve(&request, cells, &too_large));
    buffer_free(&record);
    buffer_free(&source.scratch);
}

static int compare_cells(const struct cell *a, const struct cell *b)
{
    int order = bytes_compare(a->family->name, b->family->name);
    if (order == 0)
        order = bytes_compare(a->qualifier, b->qualifier);
    return order != 0 ? order : b->timestamp_us < a->timestamp_us ? -1 : 1;
}

static void expect(const struct life *life, bool holds, const char *what)
{
    if (!holds)
        fail_msg("seed %d, step %d: %s", (int)life->seed, life->step, what);
}

/* Where rules collect and requests delete, cells may have vanished that would have come into view
 * again; but what is seen must be true. */
static void compare(struct life *life)
{
    struct cell_list cells;
    size_t expected = 0;
    read_row(life, &cells);
    for (size_t i = 0; i < life->model.count; i++)
        expected += model_shows(life, &life->model.cells[i], life->collects);
    bool may_lack = life->collects && life->deletes;
    expect(life, cells.count == expected || (may_lack && cells.count < expected), "count of cells");
    for (size_t i = 0; i < cells.count; i++) {
        const struct cell *cell = &cells.items[i];
        const struct model_cell *truth =
            model_find(&life->model, cell->family->id, cell->qualifier, cell->timestamp_us);
        expect(life, truth != NULL, "a cell that should not be");
        expect(life, bytes_equal(cell->value, bytes_make(truth->value, truth->size)), "a value");
        expect(life, i == 0 || compare_cells(&cells.items[i - 1], cell) < 0, "the order of cells");
    }
}

/* --- lives --- */

static void begin(struct life *life, uint64_t seed, bool collects, bool deletes, bool drops)
{
    const struct family families[] = {
        {.id = COUNTED, .name = bytes_of("d"), .gc = &two_versions},
        {.id = KEPT, .name = bytes_of("a"), .gc = &old_and_many},
        {.id = SUMS, .name = bytes_of("c"), .aggregate = AGGREGATE_SUM},
        {.id = MINIMA, .name = bytes_of("b"), .gc = &three_ms, .aggregate = AGGREGATE_MIN},
        {.id = SKETCHES, .name = bytes_of("e"), .aggregate = AGGREGATE_HLL},
    };
    *life = (struct life){.seed = seed,
                          .chance = {.state = seed * 0x9e3779b97f4a7c15 + 1},
                          .clock = {.wall_us = fixed_wall},
                          .collects = collects,
                          .deletes = deletes,
                          .drops = drops,
                          .arena = arena_create(ARENA_LIMIT)};
    assert_ok(schema_create(GRANULARITY_MILLIS, families, FAMILIES, FAMILIES + 1, &life->schema));
    life->rules = (struct row_rules){.schema = life->schema, .clock = &life->clock};
    assert_ok(row_drops_create(&life->rules.drops));
    life->plain = (struct row_rules){.drops = life->rules.drops};
}

static void end(struct life *life)
{
    for (size_t i = 0; i < life->operand_count; i++)
        buffer_free(&life->operands[i]);
    while (life->overflow_count > 0)
        remove_overflow(life, life->overflow_count - 1);
    buffer_free(&life->base);
    row_drops_destroy(life->rules.drops);
    schema_destroy(life->schema);
    arena_destroy(life->arena);
}

static void step(struct life *life)
{
    switch (below(&life->chance, life->drops ? 20 : 16)) {
    case 19:
    case 18:
        drop_row(life);
        break;
    case 17:
        hold_or_let_go(life);
        break;
    case 16:
        forget_drops(life);
        break;
    case 0:
    case 1:
        compact(life);
        break;
    case 2:
        overflow(life);
        break;
    case 3:
        purge(life);
        break;
    case 4:
    case 5:
    case 6:
        fold_some(life);
        break;
    default:
        request(life);
    }
}

static void live(bool collects, bool deletes, bool drops)
{
    static struct life life;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        begin(&life, seed, collects, deletes, drops);
        for (; life.step < STEPS && life.operand_count < MOST_OPERANDS - 1; life.step++) {
            step(&life);
            compare(&life);
        }
        end(&life);
    }
}

static void test_a_row_is_what_its_requests_say(void **state)
{
    (void)state;
    live(false, true, false);
}

static void test_collection_takes_just_what_the_rules_condemn(void **state)
{
    (void)state;
    live(true, false, false);
}

static void test_collection_never_uncovers_old_values(void **state)
{
    (void)state;
    live(true, true, false);
}

static void test_a_dropped_row_begins_anew(void **state)
{
    (void)state;
    live(false, true, true);
}

static void test_what_is_dropped_condemns_nothing(void **state)
{
    (void)state;
    live(true, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_is_what_its_requests_say),
        cmocka_unit_test(test_collection_takes_just_what_the_rules_condemn),
        cmocka_unit_test(test_collection_never_uncovers_old_values),
        cmocka_unit_test(test_a_dropped_row_begins_anew),
        cmocka_unit_test(test_what_is_dropped_condemns_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
