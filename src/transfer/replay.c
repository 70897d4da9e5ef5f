/* See replay.h. */
#include "transfer/replay.h"

#include "wire/proto.h"

#include <ctype.h>
#include <stdlib.h>

struct replayed_family {
    const char *name; /* the schema's */
    bool is_aggregate;
    bool is_collected; /* in the target, by the source's rule */
};

struct replay {
    struct replay_options options;
    struct replayed_family *families; /* of the source */
    size_t family_count;
    struct buffer aggregates; /* a regular expression and a NUL; empty: none */
};

/* --- families --- */

static const BtAdmin__ColumnFamily *find_family(const BtAdmin__Table *schema, const char *name)
{
    for (size_t i = 0; i < schema->n_column_families; i++)
        if (strcmp(schema->column_families[i]->key, name) == 0)
            return schema->column_families[i]->value;
    return NULL;
}

static status is_same_rule(const BtAdmin__GcRule *a, const BtAdmin__GcRule *b, bool *out)
{
    struct buffer first = {0}, second = {0};
    *out = false;
    if (a == NULL || b == NULL)
        return status_ok();
    proto_encode(&a->base, &first);
    proto_encode(&b->base, &second);
    bool has_memory = !first.failed && !second.failed;
    *out = has_memory && bytes_equal(buffer_bytes(&first), buffer_bytes(&second));
    buffer_free(&first);
    buffer_free(&second);
    return has_memory ? status_ok() : status_out_of_memory();
}

/* In a regular expression the name stands for itself: names are of letters, digits, "_.-". */
static void append_name(struct buffer *out, const char *name)
{
    if (out->size > 0)
        buffer_append_byte(out, '|');
    for (; *name != '\0'; name++)
        buffer_append_format(out, isalnum((unsigned char)*name) || *name == '_' ? "%c" : "\\%c",
                             *name);
}

static status add_family(struct replay *replay, const char *name,
                         const BtAdmin__ColumnFamily *source)
{
    struct replayed_family *family = &replay->families[replay->family_count++];
    const BtAdmin__ColumnFamily *target = find_family(replay->options.target, name);
    const BtAdmin__Type *type = source->value_type;
    *family = (struct replayed_family){.name = name};
    family->is_aggregate = type != NULL && type->kind_case == BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE;
    if (family->is_aggregate)
        append_name(&replay->aggregates, name);
    return is_same_rule(source->gc_rule, target == NULL ? NULL : target->gc_rule,
                        &family->is_collected);
}

static status prepare(struct replay *replay)
{
    const BtAdmin__Table *source = replay->options.source;
    replay->families = calloc(source->n_column_families + 1, sizeof *replay->families);
    if (replay->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < source->n_column_families; i++)
        TRY(add_family(replay, source->column_families[i]->key, source->column_families[i]->value));
    if (replay->aggregates.size > 0)
        buffer_append_byte(&replay->aggregates, '\0');
    return replay->aggregates.failed ? status_out_of_memory() : status_ok();
}

status replay_create(const struct replay_options *options, struct replay **out)
{
    struct replay *replay = *out = calloc(1, sizeof *replay);
    if (replay == NULL)
        return status_out_of_memory();
    replay->options = *options;
    status s = prepare(replay);
    if (status_is_ok(s))
        return s;
    replay_destroy(replay);
    *out = NULL;
    return s;
}

void replay_destroy(struct replay *replay)
{
    if (replay == NULL)
        return;
    free(replay->families);
    buffer_free(&replay->aggregates);
    free(replay);
}

const char *replay_aggregates(const struct replay *replay)
{
    return replay->aggregates.size == 0 ? NULL : (const char *)replay->aggregates.data;
}

/* --- mutations --- */

/* One that the source did not have when this began is taken for a plain one. */
static const struct replayed_family *family_of(const struct replay *replay, const char *name)
{
    static const struct replayed_family unknown = {0};
    for (size_t i = 0; i < replay->family_count; i++)
        if (strcmp(replay->families[i].name, name) == 0)
            return &replay->families[i];
    return &unknown;
}

static bool is_wanted(const struct replay *replay, bytes key)
{
    const struct replay_options *options = &replay->options;
    return bytes_compare(key, options->start) >= 0 &&
           (options->end.size == 0 || bytes_compare(key, options->end) < 0);
}

/* What is written, of a change under way. */
struct taking {
    struct replay *replay;
    const struct row_change *change;
    struct arena *arena;
    Bt__Mutation **written;
    size_t count;
};

static status mark_input(struct taking *taking, const char *family, const Bt__Value *qualifier,
                         const Bt__Value *timestamp)
{
    if (!family_of(taking->replay, family)->is_aggregate)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the source has the family %s since this began: when it is begun again "
                           "it goes on from here",
                           family);
    bool is_known = qualifier != NULL && qualifier->kind_case == BT__VALUE__KIND_RAW_VALUE &&
                    timestamp != NULL &&
                    timestamp->kind_case == BT__VALUE__KIND_RAW_TIMESTAMP_MICROS;
    if (!is_known)
        return status_make(STATUS_UNIMPLEMENTED,
                           "the source tells of an aggregate's cell in a way that is not known");
    const struct cell_mark mark = {.kind = MARK_CELL,
                                   .family = family,
                                   .qualifier = proto_bytes(qualifier->raw_value),
                                   .timestamp_us = timestamp->raw_timestamp_micros};
    return cell_marks_add(taking->replay->options.marks, taking->change->row_key, &mark);
}

static status take_deletion(struct taking *taking, Bt__Mutation *mutation,
                            const struct cell_mark *taken)
{
    const struct replay *replay = taking->replay;
    const struct replayed_family *family = family_of(replay, taken->family);
    if (taking->change->is_collection && family->is_collected && !replay->options.with_collections)
        return status_ok();
    taking->written[taking->count++] = mutation;
    if (!family->is_aggregate)
        return status_ok();
    return cell_marks_add(replay->options.marks, taking->change->row_key, taken);
}

static int64_t whole_ms(int64_t us)
{
    enum { US_PER_MS = 1000 };
    return us % US_PER_MS == 0 ? us : us - us % US_PER_MS + US_PER_MS;
}

struct rounded_deletion {
    Bt__Mutation mutation;
    Bt__Mutation__DeleteFromColumn deletion;
    Bt__TimestampRange range;
};

/* What was collected is told with bounds that no request may have, between two milliseconds: as no
 * cell lies there, the next whole one means the same. */
static status round_range(struct arena *arena, Bt__Mutation **mutation)
{
    const Bt__TimestampRange *range = (*mutation)->delete_from_column->time_range;
    if (range == NULL ||
        (whole_ms(range->start_timestamp_micros) == range->start_timestamp_micros &&
         whole_ms(range->end_timestamp_micros) == range->end_timestamp_micros))
        return status_ok();
    struct rounded_deletion *rounded = arena_alloc(arena, sizeof *rounded);
    if (rounded == NULL)
        return status_out_of_memory();
    rounded->mutation = **mutation;
    rounded->deletion = *(*mutation)->delete_from_column;
    rounded->range = *range;
    rounded->mutation.delete_from_column = &rounded->deletion;
    rounded->deletion.time_range = &rounded->range;
    rounded->range.start_timestamp_micros = whole_ms(range->start_timestamp_micros);
    rounded->range.end_timestamp_micros = whole_ms(range->end_timestamp_micros);
    *mutation = &rounded->mutation;
    return status_ok();
}

static status take_column_deletion(struct taking *taking, Bt__Mutation *mutation)
{
    TRY(round_range(taking->arena, &mutation));
    const Bt__Mutation__DeleteFromColumn *deletion = mutation->delete_from_column;
    const struct cell_mark taken = {.kind = MARK_COLUMN,
                                    .family = deletion->family_name,
                                    .qualifier = proto_bytes(deletion->column_qualifier)};
    return take_deletion(taking, mutation, &taken);
}

static status take_family_deletion(struct taking *taking, Bt__Mutation *mutation)
{
    const struct cell_mark taken = {.kind = MARK_FAMILY,
                                    .family = mutation->delete_from_family->family_name};
    return take_deletion(taking, mutation, &taken);
}

static status take(struct taking *taking, Bt__Mutation *mutation)
{
    const Bt__Mutation__AddToCell *add = mutation->add_to_cell;
    const Bt__Mutation__MergeToCell *merge = mutation->merge_to_cell;
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        taking->written[taking->count++] = mutation;
        return status_ok();
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        return take_column_deletion(taking, mutation);
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
        return take_family_deletion(taking, mutation);
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        return mark_input(taking, add->family_name, add->column_qualifier, add->timestamp);
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        return mark_input(taking, merge->family_name, merge->column_qualifier, merge->timestamp);
    default:
        return status_make(STATUS_UNIMPLEMENTED,
                           "the source tells of a mutation of a kind that is not known (%d)",
                           (int)mutation->mutation_case);
    }
}

status replay_take(struct replay *replay, const struct row_change *change, struct arena *arena,
                   Bt__Mutation ***out, size_t *count)
{
    struct taking taking = {.replay = replay, .change = change, .arena = arena};
    *count = 0;
    *out = taking.written = arena_alloc(arena, change->count * sizeof(Bt__Mutation *));
    if (taking.written == NULL)
        return status_out_of_memory();
    if (!is_wanted(replay, change->row_key))
        return status_ok();
    for (size_t i = 0; i < change->count; i++)
        TRY(take(&taking, change->mutations[i]));
    *count = taking.count;
    return status_ok();
}
