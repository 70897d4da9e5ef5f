/* Operators that put rows in order, or leave out those that were there: SORT and DISTINCT. */
#include "sql/aggregate.h"
#include "sql/execute_private.h"

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
    bool is_done;
};

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
    int64_t limit = 0;
    int64_t offset = 0;
    sort->bound = SIZE_MAX;
    if (iterator->operator_->limit == NULL)
        return status_ok();
    TRY(evaluate_count(iterator, iterator->operator_->limit, &limit));
    if (iterator->operator_->offset != NULL)
        TRY(evaluate_count(iterator, iterator->operator_->offset, &offset));
    if (!__builtin_add_overflow(limit, offset, &limit))
        sort->bound = (size_t)limit;
    return status_ok();
}

static status keep_sorted(struct iterator *iterator, const struct sorted *row, struct sorted *out)
{
    const struct sql_operator *operator_ = iterator->operator_;
    *out = *row;
    out->keys = arena_alloc(iterator->execution->kept, operator_->order_count * sizeof *out->keys);
    if (out->keys == NULL)
        return out_of_query_memory(iterator->execution);
    for (size_t i = 0; i < operator_->order_count; i++)
        TRY(keep_value(iterator, operator_->orders[i].expr->type, &row->keys[i], &out->keys[i]));
    return keep_row(iterator, operator_->columns, operator_->column_count, row->row, &out->row);
}

/* Of a bounded sort only what is before the last of those kept. What it replaces stays in the
 * arena: the memory of a bounded sort grows with the number of replacements, which on average is
 * the logarithm of the rows. */
static status add_sorted(struct iterator *iterator, struct sort *sort, const struct sorted *row)
{
    if (sort->rows.count < sort->bound) {
        struct sorted kept;
        TRY(keep_sorted(iterator, row, &kept));
        TRY(keep_item(iterator, &sort->rows, &kept, sizeof kept));
        if (sort->bound != SIZE_MAX)
            sift_up(iterator, sort);
        return status_ok();
    }
    void *context = (void *)(uintptr_t)iterator->operator_;
    if (sort->bound == 0 || compare_sorted(row, &rows_of(sort)[0], context) >= 0)
        return status_ok();
    TRY(keep_sorted(iterator, row, &rows_of(sort)[0]));
    sift_down(iterator, sort);
    return status_ok();
}

static status sort_all(struct iterator *iterator, struct sort *sort)
{
    const struct sql_operator *operator_ = iterator->operator_;
    struct sql_value *keys =
        arena_alloc(iterator->execution->own, operator_->order_count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t at = 0;; at++) {
        const struct sql_value *row;
        TRY(next_input(iterator, &row));
        if (row == NULL)
            break;
        begin_row(iterator, row);
        for (size_t i = 0; i < operator_->order_count; i++)
            TRY(evaluate(iterator, operator_->orders[i].expr, &keys[i]));
        struct sorted sorted = {keys, (struct sql_value *)(uintptr_t)row, at};
        TRY(add_sorted(iterator, sort, &sorted));
    }
    if (sort->rows.count > 0)
        qsort_r(sort->rows.items, sort->rows.count, sizeof(struct sorted), compare_sorted,
                (void *)(uintptr_t)operator_);
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
    .state_size = sizeof(struct sort), .begin = sort_begin, .next = sort_next};

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
