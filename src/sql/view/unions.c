/* HLL_COUNT.MERGE and HLL_COUNT.MERGE_PARTIAL: see aggregate.h.
 *
 * A source row gives the union of its sketches, which is also its entry's value:
 *
 *     index of the aggregate (1 byte)   source key
 *
 * The record keeps the union of all; what is added is merged into it. A sketch cannot be taken out
 * of a union, since other rows may have raised the same registers, and at other precisions: when
 * one is taken back, the union is made anew of the entries, each of which is read. So a row that
 * leaves a group costs as much as the group has rows, but reads none of the source. */
#include "base/varint.h"
#include "base/vector.h"
#include "row/hll.h"
#include "sql/view/aggregate.h"

static bool parse(bytes written, struct hll_state *out)
{
    status parsed = hll_state_parse(written, out);
    bool is_valid = status_is_ok(parsed);
    status_free(parsed);
    return is_valid;
}

static status incompatible(const struct view_aggregate *aggregate)
{
    return status_make(STATUS_OUT_OF_RANGE, "Invalid or incompatible sketch in %s",
                       aggregate->kind->function);
}

/* --- of a source row --- */

struct gathered {
    struct vector sketches; /* of bytes */
    enum hll_value_type type;
};

static status gather(const struct view_aggregate *aggregate, void *state,
                     const struct sql_value *argument, struct arena *arena)
{
    struct gathered *gathered = state;
    struct hll_state sketch;
    if (!parse(argument->text, &sketch) || !hll_types_match(gathered->type, sketch.value_type))
        return incompatible(aggregate);
    if (gathered->type == HLL_UNKNOWN)
        gathered->type = sketch.value_type;
    return vector_add(&gathered->sketches, arena, &argument->text, sizeof argument->text);
}

static status merge_written(struct hll_sketch *sketch, bytes written)
{
    struct hll_state state;
    if (!parse(written, &state))
        return view_bad_record();
    return hll_sketch_merge(sketch, &state) ? status_ok() : status_out_of_memory();
}

static status write_union(const struct gathered *gathered, struct buffer *out)
{
    const bytes *sketches = gathered->sketches.items;
    struct hll_sketch sketch = {0};
    status result = status_ok();
    for (size_t i = 0; i < gathered->sketches.count && status_is_ok(result); i++)
        result = merge_written(&sketch, sketches[i]);
    if (status_is_ok(result) && gathered->sketches.count > 0 && !hll_sketch_write(&sketch, out))
        result = status_out_of_memory();
    hll_sketch_free(&sketch);
    return result;
}

static status write_body(const struct view_aggregate *aggregate, void *state, struct buffer *body)
{
    (void)aggregate;
    struct buffer written = {0};
    status result = write_union(state, &written);
    view_append_text(body, buffer_bytes(&written));
    buffer_free(&written);
    return result;
}

/* --- of a group --- */

struct tally {
    uint64_t count;      /* source rows with a sketch */
    bytes written;       /* the union; empty: of none, or of types that do not go together */
    struct vector added; /* of bytes: since then */
    bool is_unknown;     /* until it is settled: one was taken back */
    bool is_mixed;       /* their types do not go together: the group has no row */
};

static bool read_tally(const struct view_aggregate *aggregate, void *state, bytes *record)
{
    (void)aggregate;
    struct tally *tally = state;
    if (!view_take_number(record, &tally->count) || record->size == 0 || record->data[0] > 1)
        return false;
    tally->is_mixed = record->data[0] == 1;
    *record = bytes_from(*record, 1);
    return view_take_text(record, &tally->written);
}

static void write_tally(const struct view_aggregate *aggregate, const void *state,
                        struct buffer *record)
{
    (void)aggregate;
    const struct tally *tally = state;
    buffer_append_varint(record, tally->count);
    buffer_append_byte(record, tally->is_mixed);
    view_append_text(record, tally->written);
}

static status change_entry(const struct view_aggregate *aggregate, bytes sketch,
                           const struct view_folding *folding)
{
    const struct view_entries *entries = folding->entries;
    struct buffer entry = {0};
    buffer_append_byte(&entry, aggregate->index);
    buffer_append_bytes(&entry, folding->source_key);
    status result = entry.failed ? status_out_of_memory()
                    : folding->is_removal
                        ? entries->remove(entries->context, buffer_bytes(&entry))
                        : entries->put(entries->context, buffer_bytes(&entry), sketch);
    buffer_free(&entry);
    return result;
}

static status fold_tally(const struct view_aggregate *aggregate, void *state, bytes *body,
                         const struct view_folding *folding)
{
    struct tally *tally = state;
    bytes sketch;
    if (!view_take_text(body, &sketch))
        return view_bad_record();
    if (sketch.size == 0)
        return status_ok();
    TRY(change_entry(aggregate, sketch, folding));
    tally->count += folding->is_removal ? UINT64_MAX : 1;
    tally->is_unknown = tally->is_unknown || folding->is_removal;
    if (folding->is_removal)
        return status_ok();
    sketch = arena_copy(folding->arena, sketch);
    return sketch.data == NULL ? status_out_of_memory()
                               : vector_add(&tally->added, folding->arena, &sketch, sizeof sketch);
}

/* --- settling --- */

/* The union in the making. */
struct maker {
    struct hll_sketch sketch;
    bool is_mixed;
};

static status add_sketch(struct maker *maker, bytes written)
{
    struct hll_state state;
    if (!parse(written, &state))
        return view_bad_record();
    maker->is_mixed =
        maker->is_mixed || !hll_types_match(maker->sketch.value_type, state.value_type);
    if (maker->is_mixed)
        return status_ok();
    return hll_sketch_merge(&maker->sketch, &state) ? status_ok() : status_out_of_memory();
}

static status add_entries(const struct view_aggregate *aggregate, struct maker *maker,
                          const struct view_entries *entries)
{
    struct buffer from = {0};
    bytes entry, value, prefix = bytes_make(&aggregate->index, 1);
    bool found = true;
    status result = status_ok();
    buffer_append_bytes(&from, prefix);
    while (found && status_is_ok(result)) {
        result = from.failed ? status_out_of_memory()
                             : entries->find(entries->context, prefix, buffer_bytes(&from), false,
                                             &entry, &value, &found);
        if (!status_is_ok(result) || !found)
            break;
        result = add_sketch(maker, value);
        buffer_clear(&from);
        buffer_append_bytes(&from, entry);
        buffer_append_byte(&from, 0);
    }
    buffer_free(&from);
    return result;
}

static status add_added(const struct tally *tally, struct maker *maker)
{
    const bytes *added = tally->added.items;
    maker->is_mixed = tally->is_mixed;
    if (tally->written.size > 0)
        TRY(add_sketch(maker, tally->written));
    for (size_t i = 0; i < tally->added.count; i++)
        TRY(add_sketch(maker, added[i]));
    return status_ok();
}

static status keep_union(struct maker *maker, struct tally *tally, struct arena *arena)
{
    struct buffer written = {0};
    tally->is_mixed = maker->is_mixed;
    tally->is_unknown = false;
    tally->added.count = 0;
    tally->written = bytes_make(NULL, 0);
    if (tally->is_mixed || maker->sketch.precision == 0)
        return status_ok();
    if (hll_sketch_write(&maker->sketch, &written))
        tally->written = arena_copy(arena, buffer_bytes(&written));
    buffer_free(&written);
    return tally->written.data == NULL ? status_out_of_memory() : status_ok();
}

static status settle_tally(const struct view_aggregate *aggregate, void *state,
                           const struct view_entries *entries, struct arena *arena)
{
    struct tally *tally = state;
    struct maker maker = {0};
    if (!tally->is_unknown && tally->added.count == 0)
        return status_ok();
    status result =
        tally->is_unknown ? add_entries(aggregate, &maker, entries) : add_added(tally, &maker);
    if (status_is_ok(result))
        result = keep_union(&maker, tally, arena);
    hll_sketch_free(&maker.sketch);
    return result;
}

static status partial_value(const struct view_aggregate *aggregate, const void *state,
                            struct arena *arena, struct sql_value *out)
{
    (void)arena;
    const struct tally *tally = state;
    *out = tally->count == 0 ? sql_null() : sql_of_text(tally->written);
    return tally->is_mixed ? incompatible(aggregate) : status_ok();
}

static status estimate_value(const struct view_aggregate *aggregate, const void *state,
                             struct arena *arena, struct sql_value *out)
{
    (void)arena;
    const struct tally *tally = state;
    struct hll_state sketch;
    *out = sql_of_int64(0);
    if (tally->is_mixed)
        return incompatible(aggregate);
    if (tally->count == 0)
        return status_ok();
    if (!parse(tally->written, &sketch))
        return view_bad_record();
    *out = sql_of_int64(hll_estimate(&sketch));
    return status_ok();
}

#define UNION                                                                                      \
    .gathered_size = sizeof(struct gathered), .gather = gather, .write_body = write_body,          \
    .tally_size = sizeof(struct tally), .read = read_tally, .fold = fold_tally,                    \
    .settle = settle_tally, .write = write_tally

const struct view_aggregate_kind view_unions[] = {
    {.function = "HLL_COUNT.MERGE", UNION, .value = estimate_value},
    {.function = "HLL_COUNT.MERGE_PARTIAL", UNION, .value = partial_value},
    {0},
};
