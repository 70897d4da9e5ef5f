/* Grouping: aggregates of each group, or of all rows. */
#include "sql/run/aggregate.h"
#include "sql/run/execute_private.h"

struct grouping {
    struct group_table groups; /* entries: a struct sql_accumulator for each aggregate */
    struct sql_value *key;
    struct group *next;
    bool is_done;
};

static status grouping_begin(struct iterator *iterator)
{
    struct grouping *grouping = iterator->state;
    const struct sql_operator *operator_ = iterator->operator_;
    struct arena *own = iterator->execution->own;
    const struct sql_type **types = arena_alloc(own, operator_->expr_count * sizeof *types);
    grouping->key = arena_alloc(own, operator_->expr_count * sizeof *grouping->key);
    if (types == NULL || grouping->key == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < operator_->expr_count; i++)
        types[i] = operator_->exprs[i]->type;
    grouping->groups.types = types;
    grouping->groups.type_count = operator_->expr_count;
    grouping->groups.entry_size = operator_->aggregate_count * sizeof(struct sql_accumulator);
    return status_ok();
}

static status begin_group(struct iterator *iterator, struct group *group)
{
    struct sql_accumulator *accumulators = group->entry;
    for (size_t i = 0; i < iterator->operator_->aggregate_count; i++)
        TRY(sql_accumulator_begin(&accumulators[i], &iterator->operator_->aggregates[i],
                                  &iterator->frame, iterator->execution->kept));
    return status_ok();
}

static status find_group(struct iterator *iterator, struct group **out)
{
    struct grouping *grouping = iterator->state;
    bool is_new;
    for (size_t i = 0; i < iterator->operator_->expr_count; i++)
        TRY(evaluate(iterator, iterator->operator_->exprs[i], &grouping->key[i]));
    TRY(group_of(iterator, &grouping->groups, grouping->key, out, &is_new));
    return is_new ? begin_group(iterator, *out) : status_ok();
}

/* Memory that an aggregate wants in vain is the query's. */
static status tell_limit(struct iterator *iterator, status result)
{
    if (result.code != STATUS_RESOURCE_EXHAUSTED || result.detail != NULL)
        return result;
    return out_of_query_memory(iterator->execution);
}

static status add_row(struct iterator *iterator, const struct sql_value *row)
{
    struct group *group;
    begin_row(iterator, row);
    TRY(find_group(iterator, &group));
    struct sql_accumulator *accumulators = group->entry;
    for (size_t i = 0; i < iterator->operator_->aggregate_count; i++)
        TRY(sql_accumulator_add(&accumulators[i], &iterator->frame));
    return status_ok();
}

static status group_all(struct iterator *iterator, struct grouping *grouping)
{
    const struct sql_value *row;
    struct group *group;
    if (!iterator->operator_->is_grouped)
        TRY(find_group(iterator, &group)); /* there is one, even of no rows */
    for (;;) {
        TRY(next_input(iterator, &row));
        if (row == NULL)
            break;
        TRY(add_row(iterator, row));
    }
    grouping->next = grouping->groups.first;
    grouping->is_done = true;
    return status_ok();
}

static status show_group(struct iterator *iterator, const struct group *group)
{
    const struct sql_operator *operator_ = iterator->operator_;
    struct sql_accumulator *accumulators = group->entry;
    begin_row(iterator, NULL);
    for (size_t i = 0; i < operator_->expr_count; i++)
        iterator->row[i] = group->key[i];
    for (size_t i = 0; i < operator_->aggregate_count; i++)
        TRY(sql_accumulator_finish(&accumulators[i], &iterator->frame,
                                   &iterator->row[operator_->expr_count + i]));
    return status_ok();
}

static status grouping_next(struct iterator *iterator, const struct sql_value **row)
{
    struct grouping *grouping = iterator->state;
    if (!grouping->is_done)
        TRY(tell_limit(iterator, group_all(iterator, grouping)));
    *row = NULL;
    if (grouping->next == NULL)
        return status_ok();
    TRY(tell_limit(iterator, show_group(iterator, grouping->next)));
    grouping->next = grouping->next->next;
    *row = iterator->row;
    return status_ok();
}

const struct iterator_kind aggregate_kind = {
    .state_size = sizeof(struct grouping), .begin = grouping_begin, .next = grouping_next};
