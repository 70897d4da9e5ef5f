/* HLL_COUNT.MERGE and HLL_COUNT.MERGE_PARTIAL: see aggregate.h.
 *
 * A source row gives the union of its sketches, which is also its entry's value. The record keeps
 * the union of all; what is added is merged into it. A sketch cannot be taken out of a union, since
 * other rows may have raised the same registers, and at other precisions: when one is taken back,
 * the union is made anew of the entries (union_buckets.h). */
#include "base/varint.h"
#include "base/vector.h"
#include "sql/view/union_buckets.h"

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
    if (!view_sketch_parse(argument->text, &sketch) ||
        !hll_types_match(gathered->type, sketch.value_type))
        return incompatible(aggregate);
    if (gathered->type == HLL_UNKNOWN)
        gathered->type = sketch.value_type;
    return vector_add(&gathered->sketches, arena, &argument->text, sizeof argument->text);
}

static status write_union(const struct gathered *gathered, struct buffer *out)
{
    const bytes *sketches = gathered->sketches.items;
    struct view_union all = {0};
    status result = status_ok();
    for (size_t i = 0; i < gathered->sketches.count && status_is_ok(result); i++)
        result = view_union_add(&all, sketches[i]);
    if (status_is_ok(result) && gathered->sketches.count > 0 && !hll_sketch_write(&all.sketch, out))
        result = status_out_of_memory();
    hll_sketch_free(&all.sketch);
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
    uint64_t count; /* source rows with a sketch */
    bytes written;  /* the union; empty: of none, or of types that do not go together */
    bool is_mixed;  /* their types do not go together: the group has no row */
    bool has_buckets;
    struct vector added; /* of struct view_union_row: since then */
    bool is_unknown;     /* until it is settled: one was taken back */
    struct view_union_touched touched;
};

enum { MIXED = 1, BUCKETS = 2 }; /* of the record's flags */

static bool read_tally(const struct view_aggregate *aggregate, void *state, bytes *record)
{
    (void)aggregate;
    struct tally *tally = state;
    if (!view_take_number(record, &tally->count) || record->size == 0 || record->data[0] > 3)
        return false;
    tally->is_mixed = (record->data[0] & MIXED) != 0;
    tally->has_buckets = (record->data[0] & BUCKETS) != 0;
    *record = bytes_from(*record, 1);
    return view_take_text(record, &tally->written);
}

static void write_tally(const struct view_aggregate *aggregate, const void *state,
                        struct buffer *record)
{
    (void)aggregate;
    const struct tally *tally = state;
    buffer_append_varint(record, tally->count);
    buffer_append_byte(record, (tally->is_mixed ? MIXED : 0) | (tally->has_buckets ? BUCKETS : 0));
    view_append_text(record, tally->written);
}

static status change_entry(const struct view_aggregate *aggregate, bytes sketch,
                           const struct view_folding *folding)
{
    const struct view_entries *entries = folding->entries;
    struct buffer entry = {0};
    view_union_row_entry(aggregate, folding->source_key, &entry);
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
    view_union_touch(&tally->touched, folding->source_key);
    if (folding->is_removal)
        return status_ok();
    const struct view_union_row row = {arena_copy(folding->arena, folding->source_key),
                                       arena_copy(folding->arena, sketch)};
    return row.source_key.data == NULL || row.sketch.data == NULL
               ? status_out_of_memory()
               : vector_add(&tally->added, folding->arena, &row, sizeof row);
}

/* --- settling --- */

/* What was added, to the union and to the buckets that there are. */
static status add_added(const struct view_aggregate *aggregate, const struct tally *tally,
                        struct view_union *all, const struct view_entries *entries)
{
    const struct view_union_row *added = tally->added.items;
    all->is_mixed = tally->is_mixed;
    if (tally->written.size > 0)
        TRY(view_union_add(all, tally->written));
    for (size_t i = 0; i < tally->added.count; i++) {
        TRY(view_union_add(all, added[i].sketch));
        if (tally->has_buckets)
            TRY(view_union_add_to_bucket(aggregate, &added[i], entries));
    }
    return status_ok();
}

static status make_anew(const struct view_aggregate *aggregate, struct tally *tally,
                        struct view_union *all, const struct view_entries *entries)
{
    tally->has_buckets = tally->has_buckets || tally->count >= VIEW_UNION_MANY;
    return tally->has_buckets ? view_union_of_buckets(aggregate, &tally->touched, entries, all)
                              : view_union_of_rows(aggregate, entries, all);
}

static status keep_union(struct view_union *all, struct tally *tally, struct arena *arena)
{
    struct buffer written = {0};
    tally->is_mixed = all->is_mixed;
    tally->is_unknown = false;
    tally->added.count = 0;
    tally->touched = (struct view_union_touched){0};
    tally->written = bytes_make(NULL, 0);
    if (tally->is_mixed || all->sketch.precision == 0)
        return status_ok();
    if (hll_sketch_write(&all->sketch, &written))
        tally->written = arena_copy(arena, buffer_bytes(&written));
    buffer_free(&written);
    return tally->written.data == NULL ? status_out_of_memory() : status_ok();
}

static status settle_tally(const struct view_aggregate *aggregate, void *state,
                           const struct view_entries *entries, struct arena *arena)
{
    struct tally *tally = state;
    struct view_union all = {0};
    if (!tally->is_unknown && tally->added.count == 0)
        return status_ok();
    status result = tally->is_unknown ? make_anew(aggregate, tally, &all, entries)
                                      : add_added(aggregate, tally, &all, entries);
    if (status_is_ok(result))
        result = keep_union(&all, tally, arena);
    hll_sketch_free(&all.sketch);
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
    if (!view_sketch_parse(tally->written, &sketch))
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
