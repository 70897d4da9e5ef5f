/* HLL_COUNT.INIT: see aggregate.h. (HLL_COUNT.MERGE: unions.c.)
 *
 * A source row gives what a sketch's list has of each of its values (row/hll.h), and how many there
 * were. Its entries, without values, are
 *
 *     index of the aggregate (1 byte)   register (4)   255 - rho (1)   listed value (4)   source
 * key
 *
 * so that the first entry of a register has its greatest rho. The record keeps the sketch: what is
 * added goes into that. If what is taken back is listed by no other row, the sketch is made anew:
 * one look for each value that is still listed, until it is sparse no more, then one for each
 * register. That no row of the source is read is what the entries are for. */
#include "base/varint.h"
#include "base/vector.h"
#include "row/hll.h"
#include "sql/view/aggregate.h"

#include <stdlib.h>

enum {
    MOST_SPARSE = 25,
    SPARSE_MORE = 5,
    REGISTER_BYTES = 5, /* with rho */
    LISTED_BYTES = 4,
    ENTRY_BYTES = 1 + REGISTER_BYTES + LISTED_BYTES,
};

static uint8_t sparse_precision(const struct view_aggregate *aggregate)
{
    unsigned sparse = aggregate->precision + SPARSE_MORE;
    return (uint8_t)(sparse < MOST_SPARSE ? sparse : MOST_SPARSE);
}

/* --- of a source row --- */

struct gathered {
    uint64_t count;
    struct vector listed; /* of uint32_t */
};

static uint64_t hash_of(const struct sql_type *type, const struct sql_value *value)
{
    return type->kind == SQL_INT64 ? hll_hash_int64(value->int64) : hll_hash(value->text);
}

static status gather(const struct view_aggregate *aggregate, void *state,
                     const struct sql_value *argument, struct arena *arena)
{
    struct gathered *gathered = state;
    uint32_t listed = hll_listed_of(hash_of(aggregate->type, argument), aggregate->precision,
                                    sparse_precision(aggregate));
    gathered->count++;
    return vector_add(&gathered->listed, arena, &listed, sizeof listed);
}

static int compare_listed(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* How many values, how many different ones, and these. */
static status write_body(const struct view_aggregate *aggregate, void *state, struct buffer *body)
{
    (void)aggregate;
    struct gathered *gathered = state;
    uint32_t *listed = gathered->listed.items;
    size_t kept = 0;
    if (gathered->listed.count > 1)
        qsort(listed, gathered->listed.count, sizeof *listed, compare_listed);
    for (size_t i = 0; i < gathered->listed.count; i++)
        if (kept == 0 || listed[kept - 1] != listed[i])
            listed[kept++] = listed[i];
    buffer_append_varint(body, gathered->count);
    buffer_append_varint(body, kept);
    for (size_t i = 0; i < kept; i++)
        buffer_append_varint(body, listed[i]);
    return status_ok();
}

/* --- entries --- */

static void write_entry(const struct view_aggregate *aggregate, uint32_t listed,
                        uint8_t out[ENTRY_BYTES])
{
    struct hll_register place =
        hll_register_of(listed, aggregate->precision, sparse_precision(aggregate));
    *out++ = aggregate->index;
    for (int shift = 24; shift >= 0; shift -= 8)
        *out++ = (uint8_t)(place.index >> shift);
    *out++ = (uint8_t)(UINT8_MAX - place.rho);
    for (int shift = 24; shift >= 0; shift -= 8)
        *out++ = (uint8_t)(listed >> shift);
}

static uint32_t read_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static status change_entry(const struct view_aggregate *aggregate, uint32_t listed,
                           const struct view_folding *folding)
{
    const struct view_entries *entries = folding->entries;
    struct buffer entry = {0};
    uint8_t head[ENTRY_BYTES];
    write_entry(aggregate, listed, head);
    buffer_append(&entry, head, sizeof head);
    buffer_append_bytes(&entry, folding->source_key);
    status result = entry.failed ? status_out_of_memory()
                    : folding->is_removal
                        ? entries->remove(entries->context, buffer_bytes(&entry))
                        : entries->put(entries->context, buffer_bytes(&entry), bytes_make(NULL, 0));
    buffer_free(&entry);
    return result;
}

/* --- of a group --- */

struct tally {
    uint64_t count;
    bytes written;         /* the sketch, but for how many were counted; empty: of nothing */
    struct vector added;   /* of uint32_t: since then */
    struct vector removed; /* of uint32_t */
};

static bool read_tally(const struct view_aggregate *aggregate, void *state, bytes *record)
{
    (void)aggregate;
    struct tally *tally = state;
    return view_take_number(record, &tally->count) && view_take_text(record, &tally->written);
}

static void write_tally(const struct view_aggregate *aggregate, const void *state,
                        struct buffer *record)
{
    (void)aggregate;
    const struct tally *tally = state;
    buffer_append_varint(record, tally->count);
    view_append_text(record, tally->written);
}

static status fold_listed(const struct view_aggregate *aggregate, struct tally *tally,
                          uint64_t number, const struct view_folding *folding)
{
    uint32_t listed = (uint32_t)number;
    if (number > UINT32_MAX ||
        !hll_is_listed(listed, aggregate->precision, sparse_precision(aggregate)))
        return view_bad_record();
    TRY(change_entry(aggregate, listed, folding));
    return vector_add(folding->is_removal ? &tally->removed : &tally->added, folding->arena,
                      &listed, sizeof listed);
}

static status fold_tally(const struct view_aggregate *aggregate, void *state, bytes *body,
                         const struct view_folding *folding)
{
    struct tally *tally = state;
    uint64_t count, kept, number;
    if (!view_take_number(body, &count) || !view_take_number(body, &kept))
        return view_bad_record();
    tally->count += folding->is_removal ? 0 - count : count;
    for (; kept > 0; kept--) {
        if (!view_take_number(body, &number))
            return view_bad_record();
        TRY(fold_listed(aggregate, tally, number, folding));
    }
    return status_ok();
}

/* --- settling --- */

static status has_other(const struct view_aggregate *aggregate, uint32_t listed,
                        const struct view_entries *entries, bool *has)
{
    uint8_t head[ENTRY_BYTES];
    bytes entry, value, prefix = bytes_make(head, sizeof head);
    write_entry(aggregate, listed, head);
    return entries->find(entries->context, prefix, prefix, false, &entry, &value, has);
}

/* Whether anything that was taken back is not listed any more. */
static status is_lost(const struct view_aggregate *aggregate, const struct tally *tally,
                      const struct view_entries *entries, bool *out)
{
    const uint32_t *removed = tally->removed.items;
    *out = false;
    for (size_t i = 0; i < tally->removed.count && !*out; i++) {
        bool has;
        TRY(has_other(aggregate, removed[i], entries, &has));
        *out = !has;
    }
    return status_ok();
}

/* Behind all entries of a listed value; or, if the sketch has registers, of a register. */
static void pass_entry(uint8_t head[ENTRY_BYTES], bool is_sparse)
{
    size_t at = ENTRY_BYTES;
    if (!is_sparse) {
        memset(&head[REGISTER_BYTES], 0, ENTRY_BYTES - REGISTER_BYTES);
        at = REGISTER_BYTES;
    }
    while (--at > 0 && ++head[at] == 0)
        ;
}

static status add_next(const struct view_aggregate *aggregate, struct hll_sketch *sketch,
                       const struct view_entries *entries, uint8_t head[ENTRY_BYTES], bool *found)
{
    bytes entry, value;
    TRY(entries->find(entries->context, bytes_make(&aggregate->index, 1),
                      bytes_make(head, ENTRY_BYTES), false, &entry, &value, found));
    if (!*found)
        return status_ok();
    if (entry.size < ENTRY_BYTES)
        return view_bad_record();
    uint32_t listed = read_number(&entry.data[1 + REGISTER_BYTES]);
    memcpy(head, entry.data, ENTRY_BYTES);
    if (!hll_is_listed(listed, aggregate->precision, sparse_precision(aggregate)))
        return view_bad_record();
    if (!hll_sketch_add_listed(sketch, listed))
        return status_out_of_memory();
    pass_entry(head, sketch->is_sparse);
    return status_ok();
}

static status add_entries(const struct view_aggregate *aggregate, struct hll_sketch *sketch,
                          const struct view_entries *entries)
{
    uint8_t head[ENTRY_BYTES] = {aggregate->index};
    bool found = true;
    while (found)
        TRY(add_next(aggregate, sketch, entries, head, &found));
    return status_ok();
}

/* The record's sketch, which must be one of the aggregate's. */
static status read_sketch(const struct view_aggregate *aggregate, bytes written,
                          struct hll_state *out)
{
    status parsed = hll_state_parse(written, out);
    bool is_valid = status_is_ok(parsed) && out->precision == aggregate->precision &&
                    out->sparse_precision == sparse_precision(aggregate);
    status_free(parsed);
    return is_valid ? status_ok() : view_bad_record();
}

static status add_listed(const struct view_aggregate *aggregate, const struct tally *tally,
                         struct hll_sketch *sketch)
{
    const uint32_t *added = tally->added.items;
    struct hll_state state;
    if (tally->written.size > 0) {
        TRY(read_sketch(aggregate, tally->written, &state));
        if (!hll_sketch_merge(sketch, &state))
            return status_out_of_memory();
    }
    for (size_t i = 0; i < tally->added.count; i++)
        if (!hll_sketch_add_listed(sketch, added[i]))
            return status_out_of_memory();
    return status_ok();
}

static status write_sketch(struct hll_sketch *sketch, struct arena *arena, bytes *out)
{
    struct buffer written = {0};
    bool is_written = hll_sketch_write(sketch, &written);
    *out = is_written ? arena_copy(arena, buffer_bytes(&written)) : bytes_make(NULL, 0);
    buffer_free(&written);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status settle_tally(const struct view_aggregate *aggregate, void *state,
                           const struct view_entries *entries, struct arena *arena)
{
    struct tally *tally = state;
    struct hll_sketch sketch = {0};
    bool lost;
    TRY(is_lost(aggregate, tally, entries, &lost));
    if (!lost && tally->added.count == 0)
        return status_ok();
    bool is_int64 = aggregate->type->kind == SQL_INT64;
    hll_sketch_begin(&sketch, is_int64 ? HLL_INT64 : HLL_BYTES, aggregate->precision,
                     sparse_precision(aggregate));
    status result =
        lost ? add_entries(aggregate, &sketch, entries) : add_listed(aggregate, tally, &sketch);
    if (status_is_ok(result))
        result = write_sketch(&sketch, arena, &tally->written);
    tally->added.count = tally->removed.count = 0;
    hll_sketch_free(&sketch);
    return result;
}

/* The sketch, which says how many values were counted. */
static status tally_value(const struct view_aggregate *aggregate, const void *state,
                          struct arena *arena, struct sql_value *out)
{
    const struct tally *tally = state;
    struct hll_state sketch;
    struct buffer written = {0};
    *out = sql_null();
    if (tally->count == 0)
        return status_ok();
    TRY(read_sketch(aggregate, tally->written, &sketch));
    sketch.num_values = (int64_t)tally->count;
    hll_state_write(&sketch, &written);
    bytes text = arena_copy(arena, buffer_bytes(&written));
    buffer_free(&written);
    *out = sql_of_text(text);
    return text.data == NULL ? status_out_of_memory() : status_ok();
}

const struct view_aggregate_kind view_sketches[] = {
    {.function = "HLL_COUNT.INIT",
     .gathered_size = sizeof(struct gathered),
     .gather = gather,
     .write_body = write_body,
     .tally_size = sizeof(struct tally),
     .read = read_tally,
     .fold = fold_tally,
     .settle = settle_tally,
     .write = write_tally,
     .value = tally_value},
    {0},
};
