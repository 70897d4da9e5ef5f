/* See row_mutations.h. */
#include "client/row_mutations.h"

#include "wire/proto.h"

enum {
    US_PER_MS = 1000,
    MUTATIONS_OF_A_CELL = 2, /* at most */
};

static bool is_aggregate(const char *const *names, const char *family)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, family) == 0)
            return true;
    return false;
}

static status set_cell(const struct move_cell *cell, struct arena *arena, Bt__Mutation **out)
{
    Bt__Mutation__SetCell *set;
    PROTO_NEW(arena, set, BT__MUTATION__SET_CELL__INIT);
    set->family_name = cell->family;
    set->column_qualifier = proto_data(cell->qualifier);
    set->timestamp_micros = cell->timestamp_us;
    set->value = proto_data(cell->value);
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    (*out)->set_cell = set;
    return status_ok();
}

status row_mutations_remove_cell(const struct move_cell *cell, struct arena *arena,
                                 Bt__Mutation **out)
{
    Bt__Mutation__DeleteFromColumn *removal;
    PROTO_NEW(arena, removal, BT__MUTATION__DELETE_FROM_COLUMN__INIT);
    PROTO_NEW(arena, removal->time_range, BT__TIMESTAMP_RANGE__INIT);
    removal->family_name = cell->family;
    removal->column_qualifier = proto_data(cell->qualifier);
    removal->time_range->start_timestamp_micros = cell->timestamp_us;
    removal->time_range->end_timestamp_micros = cell->timestamp_us + US_PER_MS;
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_COLUMN;
    (*out)->delete_from_column = removal;
    return status_ok();
}

status row_mutations_merge_cell(const struct move_cell *cell, struct arena *arena,
                                Bt__Mutation **out)
{
    Bt__Mutation__MergeToCell *merge;
    PROTO_NEW(arena, merge, BT__MUTATION__MERGE_TO_CELL__INIT);
    PROTO_NEW(arena, merge->column_qualifier, BT__VALUE__INIT);
    PROTO_NEW(arena, merge->timestamp, BT__VALUE__INIT);
    PROTO_NEW(arena, merge->input, BT__VALUE__INIT);
    merge->family_name = cell->family;
    merge->column_qualifier->kind_case = BT__VALUE__KIND_RAW_VALUE;
    merge->column_qualifier->raw_value = proto_data(cell->qualifier);
    merge->timestamp->kind_case = BT__VALUE__KIND_RAW_TIMESTAMP_MICROS;
    merge->timestamp->raw_timestamp_micros = cell->timestamp_us;
    merge->input->kind_case = BT__VALUE__KIND_BYTES_VALUE;
    merge->input->bytes_value = proto_data(cell->value);
    PROTO_NEW(arena, *out, BT__MUTATION__INIT);
    (*out)->mutation_case = BT__MUTATION__MUTATION_MERGE_TO_CELL;
    (*out)->merge_to_cell = merge;
    return status_ok();
}

static status copy_cell(const struct move_cell *cell, struct arena *arena, struct move_cell *out)
{
    *out = *cell;
    out->qualifier = arena_copy(arena, cell->qualifier);
    out->value = arena_copy(arena, cell->value);
    out->family = arena_string(arena, bytes_of(cell->family));
    bool has_memory = out->qualifier.data != NULL && out->value.data != NULL && out->family != NULL;
    return has_memory ? status_ok() : status_out_of_memory();
}

static status add_cell(struct row_mutations *out, const char *const *aggregates,
                       const struct move_cell *cell, struct arena *arena)
{
    struct move_cell copy;
    TRY(copy_cell(cell, arena, &copy));
    if (!is_aggregate(aggregates, copy.family))
        return set_cell(&copy, arena, &out->all[out->count++]);
    TRY(row_mutations_remove_cell(&copy, arena, &out->all[out->count++]));
    return row_mutations_merge_cell(&copy, arena, &out->all[out->count++]);
}

/* The row's deletion comes first: mutations of a row are made in their order. */
static status remove_row(struct row_mutations *out, struct arena *arena)
{
    Bt__Mutation *mutation;
    PROTO_NEW(arena, mutation, BT__MUTATION__INIT);
    PROTO_NEW(arena, mutation->delete_from_row, BT__MUTATION__DELETE_FROM_ROW__INIT);
    mutation->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_ROW;
    out->all[out->count++] = mutation;
    return status_ok();
}

status row_mutations_make(const struct move_change *change, const char *const *aggregates,
                          struct arena *arena, struct row_mutations *out)
{
    bytes row_key = arena_copy(arena, change->row_key);
    size_t most = change->replaces + MUTATIONS_OF_A_CELL * change->count;
    *out = (struct row_mutations){.all = arena_alloc(arena, most * sizeof(Bt__Mutation *))};
    if (row_key.data == NULL || out->all == NULL)
        return status_out_of_memory();
    out->row_key = proto_data(row_key);
    if (change->replaces)
        TRY(remove_row(out, arena));
    for (size_t i = 0; i < change->count; i++)
        TRY(add_cell(out, aggregates, &change->cells[i], arena));
    return status_ok();
}

status row_mutations_condition(const struct row_mutations *mutations, int64_t written_us,
                               struct arena *arena, Bt__CheckAndMutateRowRequest **out)
{
    Bt__RowFilter *later;
    PROTO_NEW(arena, later, BT__ROW_FILTER__INIT);
    PROTO_NEW(arena, later->timestamp_range_filter, BT__TIMESTAMP_RANGE__INIT);
    later->filter_case = BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER;
    later->timestamp_range_filter->start_timestamp_micros = written_us + US_PER_MS;
    PROTO_NEW(arena, *out, BT__CHECK_AND_MUTATE_ROW_REQUEST__INIT);
    (*out)->row_key = mutations->row_key;
    (*out)->predicate_filter = later;
    (*out)->false_mutations = mutations->all;
    (*out)->n_false_mutations = mutations->count;
    return status_ok();
}
