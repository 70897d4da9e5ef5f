/* MIN and MAX: see aggregate.h.
 *
 * A source row gives the best of its values. Its entry is
 *
 *     index of the aggregate (1 byte)   value in order (code.c)   source key
 *
 * and has no value, but for a text that is cut there: that is in it, whole. The record keeps the
 * best of all, with the row that it is from; when that is taken back, the next one is looked up:
 * the first entry, or the last. Of texts that are cut and begin alike all are looked at. */
#include "base/varint.h"
#include "sql/view/aggregate.h"

#include <math.h>

/* --- values as bytes --- */

enum { NUMBER_BYTES = 8 };

static bool is_least(const struct view_aggregate *aggregate)
{
    return aggregate->kind->function[1] == 'I'; /* MIN */
}

static void append_value(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value)
{
    uint64_t bits = (uint64_t)value->int64;
    uint8_t number[NUMBER_BYTES];
    if (sql_is_text(type)) {
        view_append_text(out, value->text);
        return;
    }
    if (sql_is_float(type))
        memcpy(&bits, &value->float64, sizeof bits);
    else if (type->kind == SQL_BOOL)
        bits = value->boolean;
    for (int i = 0; i < NUMBER_BYTES; i++)
        number[i] = (uint8_t)(bits >> (56 - 8 * i));
    view_append_text(out, bytes_make(number, sizeof number));
}

static bool take_value(bytes *rest, const struct sql_type *type, struct sql_value *out)
{
    bytes text;
    uint64_t bits = 0;
    if (!view_take_text(rest, &text))
        return false;
    *out = sql_of_text(text);
    if (sql_is_text(type))
        return true;
    for (size_t i = 0; i < text.size && i < NUMBER_BYTES; i++)
        bits = bits << 8 | text.data[i];
    *out = sql_of_int64((int64_t)bits);
    if (sql_is_float(type))
        memcpy(&out->float64, &bits, sizeof bits);
    else if (type->kind == SQL_BOOL)
        *out = sql_of_bool(bits != 0);
    return text.size == NUMBER_BYTES;
}

static bool is_nan(const struct sql_type *type, const struct sql_value *value)
{
    return sql_is_float(type) && isnan(value->float64);
}

/* As SQL's MIN and MAX: NaN is better than all. */
static bool is_better(const struct view_aggregate *aggregate, const struct sql_value *value,
                      const struct sql_value *than)
{
    const struct sql_type *type = aggregate->type;
    if (is_nan(type, value) || is_nan(type, than))
        return is_nan(type, value) && !is_nan(type, than);
    int order = sql_value_total_order(type, value, than);
    return is_least(aggregate) ? order < 0 : order > 0;
}

/* --- of a source row --- */

struct gathered {
    bool has_any;
    struct sql_value best;
};

static status gather(const struct view_aggregate *aggregate, void *state,
                     const struct sql_value *argument, struct arena *arena)
{
    (void)arena;
    struct gathered *gathered = state;
    if (!gathered->has_any || is_better(aggregate, argument, &gathered->best))
        *gathered = (struct gathered){true, *argument};
    return status_ok();
}

static status write_body(const struct view_aggregate *aggregate, void *state, struct buffer *body)
{
    const struct gathered *gathered = state;
    buffer_append_byte(body, gathered->has_any);
    if (gathered->has_any)
        append_value(body, aggregate->type, &gathered->best);
    return status_ok();
}

static bool take_body(bytes *rest, const struct sql_type *type, struct gathered *out)
{
    if (rest->size == 0 || rest->data[0] > 1)
        return false;
    out->has_any = rest->data[0] == 1;
    *rest = bytes_from(*rest, 1);
    return !out->has_any || take_value(rest, type, &out->best);
}

/* --- entries --- */

static status append_entry(const struct view_aggregate *aggregate, const struct sql_value *value,
                           bytes source_key, struct buffer *out, bool *is_cut)
{
    buffer_append_byte(out, aggregate->index);
    view_append_ordered(out, aggregate->type, value, is_least(aggregate), is_cut);
    buffer_append_bytes(out, source_key);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status change_entry(const struct view_aggregate *aggregate, const struct sql_value *value,
                           const struct view_folding *folding)
{
    const struct view_entries *entries = folding->entries;
    struct buffer entry = {0};
    bool is_cut;
    status result = append_entry(aggregate, value, folding->source_key, &entry, &is_cut);
    bytes whole = is_cut ? value->text : bytes_make(NULL, 0);
    if (status_is_ok(result))
        result = folding->is_removal ? entries->remove(entries->context, buffer_bytes(&entry))
                                     : entries->put(entries->context, buffer_bytes(&entry), whole);
    buffer_free(&entry);
    return result;
}

/* --- of a group --- */

struct extreme {
    bool is_unknown; /* until it is settled */
    bool has_any;
    struct sql_value best; /* in the group's arena, or its record */
    bytes source_key;      /* the row's that it is from */
};

static bool read_extreme(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    struct extreme *extreme = tally;
    struct gathered best = {0};
    if (!take_body(record, aggregate->type, &best))
        return false;
    extreme->has_any = best.has_any;
    extreme->best = best.best;
    return !best.has_any || view_take_text(record, &extreme->source_key);
}

static void write_extreme(const struct view_aggregate *aggregate, const void *tally,
                          struct buffer *record)
{
    const struct extreme *extreme = tally;
    buffer_append_byte(record, extreme->has_any);
    if (!extreme->has_any)
        return;
    append_value(record, aggregate->type, &extreme->best);
    view_append_text(record, extreme->source_key);
}

static status take_best(const struct view_aggregate *aggregate, struct extreme *extreme,
                        const struct sql_value *value, bytes source_key, struct arena *arena)
{
    extreme->has_any = true;
    extreme->source_key = arena_copy(arena, source_key);
    if (extreme->source_key.data == NULL)
        return status_out_of_memory();
    return sql_value_copy(aggregate->type, value, arena, &extreme->best);
}

static status fold_extreme(const struct view_aggregate *aggregate, void *tally, bytes *body,
                           const struct view_folding *folding)
{
    struct extreme *extreme = tally;
    struct gathered more = {0};
    if (!take_body(body, aggregate->type, &more))
        return view_bad_record();
    if (!more.has_any)
        return status_ok();
    TRY(change_entry(aggregate, &more.best, folding));
    bool is_of_best = extreme->has_any && bytes_equal(extreme->source_key, folding->source_key);
    if (folding->is_removal)
        extreme->is_unknown = extreme->is_unknown || is_of_best;
    else if (!extreme->is_unknown &&
             (!extreme->has_any || is_better(aggregate, &more.best, &extreme->best)))
        return take_best(aggregate, extreme, &more.best, folding->source_key, folding->arena);
    return status_ok();
}

/* --- settling --- */

/* An entry taken apart: behind the aggregate's index. */
struct ordered_entry {
    bytes ordered; /* with the index */
    bytes source_key;
    struct sql_value value; /* unless it is cut */
    bool is_cut;
};

/* Where an ordered text ends: behind 00 01 or 00 02. */
static size_t text_end(bytes entry, size_t at, bool *is_cut)
{
    for (; at + 1 < entry.size; at++)
        if (entry.data[at] == 0 && entry.data[at + 1] != 0xff) {
            *is_cut = entry.data[at + 1] == 2;
            return at + 2;
        } else if (entry.data[at] == 0) {
            at++;
        }
    return 0;
}

static status read_text(bytes ordered, struct arena *arena, struct sql_value *out)
{
    uint8_t *text = arena_alloc(arena, ordered.size);
    size_t size = 0;
    if (text == NULL)
        return status_out_of_memory();
    for (size_t i = 1; i + 2 < ordered.size; i++) {
        text[size++] = ordered.data[i];
        i += ordered.data[i] == 0;
    }
    *out = sql_of_text(bytes_make(text, size));
    return status_ok();
}

static void read_number(bytes ordered, const struct sql_type *type, struct sql_value *out)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits = 0;
    for (size_t i = 1; i <= NUMBER_BYTES; i++)
        bits = bits << 8 | ordered.data[i];
    if (type->kind == SQL_BOOL) {
        *out = sql_of_bool(bits != 0);
    } else if (!sql_is_float(type)) {
        *out = sql_of_int64((int64_t)(bits ^ sign));
    } else if (bits == 0 || bits == UINT64_MAX) {
        *out = sql_of_float64(NAN);
    } else {
        bits = (bits & sign) != 0 ? bits ^ sign : ~bits;
        memcpy(&out->float64, &bits, sizeof bits);
    }
}

static status take_apart(const struct view_aggregate *aggregate, bytes entry, struct arena *arena,
                         struct ordered_entry *out)
{
    bool is_text = sql_is_text(aggregate->type);
    *out = (struct ordered_entry){0};
    size_t end = is_text ? text_end(entry, 1, &out->is_cut) : 1 + NUMBER_BYTES;
    if (end == 0 || end > entry.size)
        return view_bad_record();
    out->ordered = arena_copy(arena, bytes_make(entry.data, end));
    out->source_key = arena_copy(arena, bytes_from(entry, end));
    if (out->ordered.data == NULL || out->source_key.data == NULL)
        return status_out_of_memory();
    if (!is_text)
        read_number(out->ordered, aggregate->type, &out->value);
    else if (!out->is_cut)
        return read_text(out->ordered, arena, &out->value);
    return status_ok();
}

/* The best of the entries that begin with the same cut text. */
static status best_of_cut(const struct view_aggregate *aggregate, struct extreme *extreme,
                          bytes ordered, const struct view_entries *entries, struct arena *arena)
{
    struct buffer from = {0};
    bytes entry, text;
    bool found = true;
    status result = status_ok();
    extreme->has_any = false;
    buffer_append_bytes(&from, ordered);
    while (found && !from.failed && status_is_ok(result)) {
        result = entries->find(entries->context, ordered, buffer_bytes(&from), false, &entry, &text,
                               &found);
        if (!status_is_ok(result) || !found)
            break;
        const struct sql_value value = sql_of_text(text);
        if (!extreme->has_any || is_better(aggregate, &value, &extreme->best))
            result = take_best(aggregate, extreme, &value, bytes_from(entry, ordered.size), arena);
        buffer_clear(&from);
        buffer_append_bytes(&from, entry);
        buffer_append_byte(&from, 0);
    }
    if (status_is_ok(result) && from.failed)
        result = status_out_of_memory();
    buffer_free(&from);
    return result;
}

static status settle_extreme(const struct view_aggregate *aggregate, void *tally,
                             const struct view_entries *entries, struct arena *arena)
{
    struct extreme *extreme = tally;
    struct ordered_entry best;
    bytes prefix = bytes_make(&aggregate->index, 1), entry, value;
    bool found;
    if (!extreme->is_unknown)
        return status_ok();
    *extreme = (struct extreme){0};
    TRY(entries->find(entries->context, prefix, prefix, !is_least(aggregate), &entry, &value,
                      &found));
    if (!found)
        return status_ok();
    TRY(take_apart(aggregate, entry, arena, &best));
    if (best.is_cut)
        return best_of_cut(aggregate, extreme, best.ordered, entries, arena);
    *extreme = (struct extreme){.has_any = true, .best = best.value, .source_key = best.source_key};
    return status_ok();
}

static status extreme_value(const struct view_aggregate *aggregate, const void *tally,
                            struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct extreme *extreme = tally;
    *out = extreme->has_any ? extreme->best : sql_null();
    return status_ok();
}

#define EXTREME                                                                                    \
    .gathered_size = sizeof(struct gathered), .gather = gather, .write_body = write_body,          \
    .tally_size = sizeof(struct extreme), .read = read_extreme, .fold = fold_extreme,              \
    .settle = settle_extreme, .write = write_extreme, .value = extreme_value

const struct view_aggregate_kind view_extremes[] = {
    {.function = "MIN", EXTREME},
    {.function = "MAX", EXTREME},
    {0},
};
