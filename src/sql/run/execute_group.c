/* Grouping: aggregates of each group, or of all rows. */
#include "sql/run/aggregate.h"
#include "sql/run/execute_private.h"
#include "sql/run/parts.h"

struct grouping {
    struct group_table groups; /* entries: a struct sql_accumulator for each aggregate */
    struct sql_value *key;
    struct group *next;
    bool has_begun; /* the one group of all rows */
    bool is_done;
    bool has_parts; /* its accumulators are those of parts */
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
    grouping->has_parts = iterator->execution->within != NULL;
    if (!grouping->has_parts)
        TRY(parts_create(iterator, &iterator->execution->parts));
    return status_ok();
}

static void grouping_end(struct iterator *iterator)
{
    struct sql_execution *execution = iterator->execution;
    if (parts_of(execution) != iterator->operator_)
        return;
    parts_destroy(execution->parts);
    execution->parts = NULL;
}

static status begin_group(struct iterator *iterator, struct group *group)
{
    const struct grouping *grouping = iterator->state;
    struct sql_accumulator *accumulators = group->entry;
    for (size_t i = 0; i < iterator->operator_->aggregate_count; i++) {
        const struct sql_aggregation *aggregation = &iterator->operator_->aggregates[i];
        struct arena *kept = iterator->execution->kept;
        TRY(grouping->has_parts
                ? sql_accumulator_begin_part(&accumulators[i], aggregation, &iterator->frame, kept)
                : sql_accumulator_begin(&accumulators[i], aggregation, &iterator->frame, kept));
    }
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

/* Of an aggregate without GROUP BY there is one group, even of no rows. */
static status begin_all(struct iterator *iterator)
{
    struct grouping *grouping = iterator->state;
    struct group *group;
    if (iterator->operator_->is_grouped || grouping->has_begun)
        return status_ok();
    grouping->has_begun = true;
    return find_group(iterator, &group);
}

static status add_rows(struct iterator *iterator)
{
    const struct sql_value *row;
    for (;;) {
        TRY(next_input(iterator, &row));
        if (row == NULL)
            return status_ok();
        TRY(add_row(iterator, row));
    }
}

status group_rows(struct iterator *iterator)
{
    status s = begin_all(iterator);
    return tell_limit(iterator, status_is_ok(s) ? add_rows(iterator) : s);
}

/* --- parts --- */

static status merge_group(struct iterator *iterator, const struct group *part)
{
    struct grouping *grouping = iterator->state;
    struct group *group;
    bool is_new;
    TRY(group_of(iterator, &grouping->groups, part->key, &group, &is_new));
    if (is_new)
        TRY(begin_group(iterator, group));
    struct sql_accumulator *accumulators = group->entry;
    const struct sql_accumulator *later = part->entry;
    for (size_t i = 0; i < iterator->operator_->aggregate_count; i++)
        if (later[i].state != NULL) /* else memory was short */
            TRY(sql_accumulator_merge(&accumulators[i], &later[i]));
    return status_ok();
}

status merge_groups(struct iterator *iterator, const struct iterator *part)
{
    const struct grouping *of_part = part->state;
    ((struct grouping *)iterator->state)->has_parts = true;
    for (const struct group *group = of_part->groups.first; group != NULL; group = group->next) {
        begin_row(iterator, NULL);
        TRY(tell_limit(iterator, merge_group(iterator, group)));
    }
    return status_ok();
}

void forget_groups(struct iterator *iterator)
{
    struct grouping *grouping = iterator->state;
    struct group_table *groups = &grouping->groups;
    *groups = (struct group_table){
        .types = groups->types, .type_count = groups->type_count, .entry_size = groups->entry_size};
    grouping->has_begun = grouping->has_parts = false;
    arena_reset(iterator->execution->kept);
}

/* In parts, as long as there is memory for it. */
static status group_all(struct iterator *iterator)
{
    struct sql_execution *execution = iterator->execution;
    if (parts_of(execution) == iterator->operator_) {
        bool is_short;
        status s = parts_run(iterator, execution->parts, &is_short);
        if (!is_short)
            return s;
        status_free(s);
        grouping_end(iterator);
        forget_groups(iterator);
    }
    return group_rows(iterator);
}

/* --- groups that are shown --- */

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
    if (!grouping->is_done) {
        TRY(group_all(iterator));
        grouping->next = grouping->groups.first;
        grouping->is_done = true;
    }
    *row = NULL;
    if (grouping->next == NULL)
        return status_ok();
    TRY(tell_limit(iterator, show_group(iterator, grouping->next)));
    grouping->next = grouping->next->next;
    *row = iterator->row;
    return status_ok();
}

const struct iterator_kind aggregate_kind = {.state_size = sizeof(struct grouping),
                                             .begin = grouping_begin,
                                             .next = grouping_next,
                                             .end = grouping_end};
