/* Operators that put rows in order, or leave out those that were there: SORT and DISTINCT. */
#include "sql/run/aggregate.h"
#include "sql/run/execute_private.h"

#include <stdlib.h>

/* --- SORT --- */

struct sorted {
    struct sql_value *keys; /* as many as there are orders */
    struct sql_value *row;
    size_t at; /* rows that are equal stay in their order */
};

struct sort {
    struct vector rows; /* of struct sorted: a heap, its last on top, as long as it is bounded */
    size_t bound;       /* the first so many are wanted; SIZE_MAX: all */
    size_t next;
    size_t seen;            /* rows of the input */
    struct sql_value *keys; /* of the row in hand */
    struct arena *own;      /* of a bounded sort: what its rows point to, and those it dropped */
    size_t live;            /* bytes of it, when there were no dropped rows in it */
    bool is_done;
};

/* Dropped rows are not worth an effort below that. */
enum { LEAST_DROPPED = 256 << 10 };

static struct sorted *rows_of(const struct sort *sort)
{
    return sort->rows.items;
}

static int compare_sorted(const void *a, const void *b, void *context)
{
    const struct sql_operator *operator_ = context;
    const struct sorted *left = a;
    const struct sorted *right = b;
    int order =
        sql_compare_orders(operator_->orders, operator_->order_count, left->keys, right->keys);
    return order != 0 ? order : (left->at > right->at) - (left->at < right->at);
}

static void sift_down(struct iterator *iterator, struct sort *sort)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < sort->rows.count; at = child) {
        void *context = (void *)(uintptr_t)iterator->operator_;
        if (child + 1 < sort->rows.count &&
            compare_sorted(&rows_of(sort)[child], &rows_of(sort)[child + 1], context) < 0)
            child++;
        if (compare_sorted(&rows_of(sort)[at], &rows_of(sort)[child], context) >= 0)
            return;
        struct sorted moved = rows_of(sort)[at];
        rows_of(sort)[at] = rows_of(sort)[child];
        rows_of(sort)[child] = moved;
    }
}

static void sift_up(struct iterator *iterator, struct sort *sort)
{
    for (size_t at = sort->rows.count - 1; at > 0;) {
        size_t parent = (at - 1) / 2;
        void *context = (void *)(uintptr_t)iterator->operator_;
        if (compare_sorted(&rows_of(sort)[parent], &rows_of(sort)[at], context) >= 0)
            return;
        struct sorted moved = rows_of(sort)[at];
        rows_of(sort)[at] = rows_of(sort)[parent];
        rows_of(sort)[parent] = moved;
        at = parent;
    }
}

static status sort_begin(struct iterator *iterator)
{
    struct sort *sort = iterator->state;
    const struct sql_operator *operator_ = iterator->operator_;
    int64_t limit = 0;
    int64_t offset = 0;
    sort->bound = SIZE_MAX;
    sort->keys = arena_alloc(iterator->execution->own, operator_->order_count * sizeof *sort->keys);
    if (sort->keys == NULL)
        return status_out_of_memory();
    if (operator_->limit == NULL)
        return status_ok();
    TRY(evaluate_count(iterator, operator_->limit, &limit));
    if (operator_->offset != NULL)
        TRY(evaluate_count(iterator, operator_->offset, &offset));
    if (__builtin_add_overflow(limit, offset, &limit))
        return status_ok();
    sort->bound = (size_t)limit;
    sort->own = arena_create(iterator->execution->memory_limit);
    return sort->own == NULL ? status_out_of_memory() : status_ok();
}

static void sort_end(struct iterator *iterator)
{
    arena_destroy(((struct sort *)iterator->state)->own);
}

/* --- the memory of rows --- */

static status copy_value(struct iterator *iterator, const struct sql_type *type,
                         const struct sql_value *value, struct arena *arena, struct sql_value *out)
{
    status result = sql_value_copy(type, value, arena, out);
    if (result.code != STATUS_RESOURCE_EXHAUSTED)
        return result;
    status_free(result);
    return out_of_query_memory(iterator->execution);
}

static status copy_sorted(struct iterator *iterator, const struct sorted *row, struct arena *arena,
                          struct sorted *out)
{
    const struct sql_operator *operator_ = iterator->operator_;
    struct sql_value *keys = arena_alloc(arena, operator_->order_count * sizeof *keys);
    struct sql_value *values = arena_alloc(arena, operator_->column_count * sizeof *values);
    if (keys == NULL || values == NULL)
        return out_of_query_memory(iterator->execution);
    for (size_t i = 0; i < operator_->order_count; i++)
        TRY(copy_value(iterator, operator_->orders[i].expr->type, &row->keys[i], arena, &keys[i]));
    for (size_t i = 0; i < operator_->column_count; i++)
        TRY(copy_value(iterator, operator_->columns[i].type, &row->row[i], arena, &values[i]));
    *out = (struct sorted){keys, values, row->at};
    return status_ok();
}

/* Grants the arena what the query's memory has left beside the other arenas, of which `old`, if it
 * is to be freed, is none. */
static void grant(struct sql_execution *execution, struct arena *arena, const struct arena *old)
{
    size_t others = arena_footprint(execution->kept) + execution->aside;
    others -= arena_footprint(old);
    arena_set_limit(arena, others < execution->memory_limit ? execution->memory_limit - others : 0);
}

/* What the arena took, or gave back, is missing in `kept`, or there again. */
static void account(struct sql_execution *execution, size_t before, size_t after)
{
    execution->aside = execution->aside - before + after;
    arena_set_limit(execution->kept, execution->aside < execution->memory_limit
                                         ? execution->memory_limit - execution->aside
                                         : 0);
}

/* Copies the rows that are left into an arena of their own, without those that were dropped. */
static status leave_dropped(struct iterator *iterator, struct sort *sort)
{
    struct sql_execution *execution = iterator->execution;
    struct arena *fresh = arena_create(execution->memory_limit);
    status result = fresh == NULL ? status_out_of_memory() : status_ok();
    if (fresh != NULL)
        grant(execution, fresh, sort->own);
    for (size_t i = 0; i < sort->rows.count && status_is_ok(result); i++)
        result = copy_sorted(iterator, &rows_of(sort)[i], fresh, &rows_of(sort)[i]);
    if (!status_is_ok(result)) {
        sort->rows.count = 0; /* some point into what goes */
        arena_destroy(fresh);
        return result;
    }
    account(execution, arena_footprint(sort->own), arena_footprint(fresh));
    arena_destroy(sort->own);
    sort->own = fresh;
    sort->live = arena_footprint(fresh);
    return status_ok();
}

static status keep_sorted(struct iterator *iterator, struct sort *sort, const struct sorted *row,
                          struct sorted *out)
{
    struct sql_execution *execution = iterator->execution;
    if (sort->own == NULL)
        return copy_sorted(iterator, row, execution->kept, out);
    size_t before = arena_footprint(sort->own);
    grant(execution, sort->own, sort->own);
    status result = copy_sorted(iterator, row, sort->own, out);
    account(execution, before, arena_footprint(sort->own));
    return result;
}

/* Of a bounded sort only what is before the last of those kept. What it replaces stays in the arena
 * until that is as much as what is kept: so memory is bounded in whatever order rows come. */
static status add_sorted(struct iterator *iterator, struct sort *sort, const struct sorted *row)
{
    if (sort->rows.count < sort->bound) {
        struct sorted kept;
        TRY(keep_sorted(iterator, sort, row, &kept));
        TRY(keep_item(iterator, &sort->rows, &kept, sizeof kept));
        if (sort->own != NULL) {
            sort->live = arena_footprint(sort->own);
            sift_up(iterator, sort);
        }
        return status_ok();
    }
    void *context = (void *)(uintptr_t)iterator->operator_;
    if (sort->bound == 0 || compare_sorted(row, &rows_of(sort)[0], context) >= 0)
        return status_ok();
    TRY(keep_sorted(iterator, sort, row, &rows_of(sort)[0]));
    sift_down(iterator, sort);
    return arena_footprint(sort->own) > 2 * sort->live + LEAST_DROPPED
               ? leave_dropped(iterator, sort)
               : status_ok();
}

static status sort_all(struct iterator *iterator, struct sort *sort)
{
    const struct sql_operator *operator_ = iterator->operator_;
    for (;;) {
        const struct sql_value *row;
        TRY(next_input(iterator, &row));
        if (row == NULL)
            break;
        begin_row(iterator, row);
        for (size_t i = 0; i < operator_->order_count; i++)
            TRY(evaluate(iterator, operator_->orders[i].expr, &sort->keys[i]));
        struct sorted sorted = {sort->keys, (struct sql_value *)(uintptr_t)row, sort->seen++};
        TRY(add_sorted(iterator, sort, &sorted));
    }
    TRY(sql_sort(sort->rows.items, sort->rows.count, sizeof(struct sorted), compare_sorted,
                 (void *)(uintptr_t)operator_, iterator->execution->session));
    sort->is_done = true;
    return status_ok();
}

static status sort_next(struct iterator *iterator, const struct sql_value **row)
{
    struct sort *sort = iterator->state;
    if (!sort->is_done)
        TRY(sort_all(iterator, sort));
    *row = sort->next < sort->rows.count ? rows_of(sort)[sort->next++].row : NULL;
    return status_ok();
}

const struct iterator_kind sort_kind = {
    .state_size = sizeof(struct sort), .begin = sort_begin, .next = sort_next, .end = sort_end};

/* --- DISTINCT --- */

static status distinct_begin(struct iterator *iterator)
{
    struct group_table *seen = iterator->state;
    const struct sql_operator *operator_ = iterator->operator_;
    const struct sql_type **types =
        arena_alloc(iterator->execution->own, operator_->column_count * sizeof *types);
    if (types == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < operator_->column_count; i++)
        types[i] = operator_->columns[i].type;
    seen->types = types;
    seen->type_count = operator_->column_count;
    return status_ok();
}

static status distinct_next(struct iterator *iterator, const struct sql_value **row)
{
    for (bool is_new = false; !is_new;) {
        struct group *group;
        TRY(next_input(iterator, row));
        if (*row == NULL)
            return status_ok();
        TRY(group_of(iterator, iterator->state, *row, &group, &is_new));
    }
    return status_ok();
}

const struct iterator_kind distinct_kind = {
    .state_size = sizeof(struct group_table), .begin = distinct_begin, .next = distinct_next};
