/* Runs a plan: see execute.h. Here are its beginning and end, and the operators that keep nothing.
 */
#include "sql/plan/optimize.h"
#include "sql/run/execute_private.h"
#include "sql/run/parts.h"

#include <stdlib.h>

enum { OWN_LIMIT = 64 << 20, SCRATCH_LIMIT = 256 << 20 };

/* --- rows --- */

void begin_row(struct iterator *iterator, const struct sql_value *input)
{
    arena_reset(iterator->frame.arena);
    iterator->execution->session->row_work = 0;
    iterator->execution->session->progress++;
    iterator->frame.row = input;
}

status out_of_query_memory(const struct sql_execution *execution)
{
    (void)execution;
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The query needs more memory than it is given (--query-memory)");
}

status keep_value(struct iterator *iterator, const struct sql_type *type,
                  const struct sql_value *value, struct sql_value *out)
{
    status result = sql_value_copy(type, value, iterator->execution->kept, out);
    if (result.code != STATUS_RESOURCE_EXHAUSTED)
        return result;
    status_free(result);
    return out_of_query_memory(iterator->execution);
}

status keep_item(struct iterator *iterator, struct vector *list, const void *item, size_t size)
{
    status result = vector_add(list, iterator->execution->kept, item, size);
    if (status_is_ok(result))
        return result;
    status_free(result);
    return out_of_query_memory(iterator->execution);
}

status pause_query(struct sql_execution *execution)
{
    execution->is_paused = true;
    return status_make(STATUS_ABORTED, "The query was paused");
}

status count_row(struct iterator *iterator, uint64_t steps)
{
    struct sql_execution *execution = iterator->execution;
    TRY(sql_work(execution->session, steps));
    return execution->session->is_turn_over ? pause_query(execution) : status_ok();
}

status evaluate_count(struct iterator *iterator, const struct sql_expr *expr, int64_t *out)
{
    struct sql_value value;
    TRY(evaluate(iterator, expr, &value));
    if (value.is_null)
        return status_make(STATUS_OUT_OF_RANGE, "Limit requires non-null count and offset");
    if (value.int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Limit requires non-negative count and offset");
    *out = value.int64;
    return status_ok();
}

/* --- SELECT without FROM --- */

static status one_row_next(struct iterator *iterator, const struct sql_value **row)
{
    bool *is_done = iterator->state;
    *row = *is_done ? NULL : iterator->row;
    *is_done = true;
    return status_ok();
}

static const struct iterator_kind one_row_kind = {.state_size = sizeof(bool), .next = one_row_next};

/* --- filter --- */

static status filter_next(struct iterator *iterator, const struct sql_value **row)
{
    for (;;) {
        struct sql_value passes;
        TRY(next_input(iterator, row));
        if (*row == NULL)
            return status_ok();
        begin_row(iterator, *row);
        TRY(evaluate(iterator, iterator->operator_->condition, &passes));
        if (!passes.is_null && passes.boolean)
            return status_ok();
    }
}

static const struct iterator_kind filter_kind = {.next = filter_next};

/* --- projection --- */

static status project_next(struct iterator *iterator, const struct sql_value **row)
{
    const struct sql_operator *operator_ = iterator->operator_;
    TRY(next_input(iterator, row));
    if (*row == NULL)
        return status_ok();
    begin_row(iterator, *row);
    for (size_t i = 0; i < operator_->expr_count; i++)
        TRY(evaluate(iterator, operator_->exprs[i], &iterator->row[i]));
    *row = iterator->row;
    return status_ok();
}

static const struct iterator_kind project_kind = {.next = project_next};

/* --- limit --- */

struct limit {
    int64_t to_skip;
    int64_t left;
};

/* What an earlier execution has given counts. */
static void limit_after(struct limit *limit, uint64_t rows)
{
    limit->to_skip = 0;
    limit->left -= rows < (uint64_t)limit->left ? (int64_t)rows : limit->left;
}

static status limit_begin(struct iterator *iterator)
{
    struct limit *limit = iterator->state;
    TRY(evaluate_count(iterator, iterator->operator_->limit, &limit->left));
    if (iterator->operator_->offset != NULL)
        TRY(evaluate_count(iterator, iterator->operator_->offset, &limit->to_skip));
    if (iterator->execution->after_key.size > 0)
        limit_after(limit, iterator->execution->after_rows);
    return status_ok();
}

static status limit_next(struct iterator *iterator, const struct sql_value **row)
{
    struct limit *limit = iterator->state;
    *row = NULL;
    if (limit->left == 0)
        return status_ok();
    do
        TRY(next_input(iterator, row));
    while (*row != NULL && limit->to_skip-- > 0);
    limit->to_skip = 0;
    limit->left--;
    return status_ok();
}

static const struct iterator_kind limit_kind = {
    .state_size = sizeof(struct limit), .begin = limit_begin, .next = limit_next};

/* --- UNNEST --- */

struct unnest {
    struct sql_value array;
    size_t at;
    bool has_row;  /* of the input */
    bool is_empty; /* the array is: an outer join shows the row once */
};

static status unnest_input(struct iterator *iterator, const struct sql_value **row)
{
    struct unnest *unnest = iterator->state;
    TRY(next_input(iterator, row));
    unnest->has_row = *row != NULL;
    if (*row == NULL)
        return status_ok();
    begin_row(iterator, *row);
    TRY(evaluate(iterator, iterator->operator_->exprs[0], &unnest->array));
    if (unnest->array.is_null)
        unnest->array = sql_of_items(NULL, 0);
    unnest->is_empty = unnest->array.count == 0 && iterator->operator_->is_outer;
    unnest->at = 0;
    size_t count = iterator->input->operator_->column_count;
    if (count > 0)
        memcpy(iterator->row, *row, count * sizeof **row);
    return status_ok();
}

static void unnest_element(struct iterator *iterator)
{
    struct unnest *unnest = iterator->state;
    struct sql_value *element = iterator->row + iterator->input->operator_->column_count;
    element[0] = unnest->is_empty ? sql_null() : unnest->array.items[unnest->at];
    if (iterator->operator_->has_offset)
        element[1] = unnest->is_empty ? sql_null() : sql_of_int64((int64_t)unnest->at);
    unnest->at++;
    unnest->is_empty = false;
}

static status unnest_next(struct iterator *iterator, const struct sql_value **row)
{
    struct unnest *unnest = iterator->state;
    *row = NULL;
    TRY(count_row(iterator, 1));
    while (!unnest->has_row || (unnest->at >= unnest->array.count && !unnest->is_empty)) {
        TRY(unnest_input(iterator, row));
        if (*row == NULL)
            return status_ok();
    }
    unnest_element(iterator);
    *row = iterator->row;
    return status_ok();
}

static const struct iterator_kind unnest_kind = {.state_size = sizeof(struct unnest),
                                                 .next = unnest_next};

/* --- the beginning --- */

static const struct iterator_kind *kind_of(enum sql_operator_kind kind)
{
    static const struct iterator_kind *const kinds[] = {
        [SQL_OP_ONE_ROW] = &one_row_kind,     [SQL_OP_SCAN] = &scan_kind,
        [SQL_OP_FILTER] = &filter_kind,       [SQL_OP_PROJECT] = &project_kind,
        [SQL_OP_UNNEST] = &unnest_kind,       [SQL_OP_UNPACK] = &unpack_kind,
        [SQL_OP_AGGREGATE] = &aggregate_kind, [SQL_OP_DISTINCT] = &distinct_kind,
        [SQL_OP_SORT] = &sort_kind,           [SQL_OP_LIMIT] = &limit_kind,
        [SQL_OP_WINDOW] = &window_kind,
    };
    return kinds[kind];
}

static status make_iterator(struct sql_execution *execution, const struct sql_operator *operator_,
                            struct iterator *input, struct iterator **out)
{
    struct arena *own = execution->own;
    struct iterator *iterator = arena_zalloc(own, sizeof *iterator);
    if (iterator == NULL)
        return status_out_of_memory();
    iterator->execution = execution;
    iterator->operator_ = operator_;
    iterator->input = input;
    iterator->kind = kind_of(operator_->kind);
    iterator->row = arena_zalloc(own, operator_->column_count * sizeof *iterator->row);
    iterator->state = arena_zalloc(own, iterator->kind->state_size);
    iterator->frame = (struct sql_frame){.parameters = execution->parameters,
                                         .arguments = execution->arguments,
                                         .calls = execution->calls,
                                         .session = execution->session,
                                         .kept = own};
    TRY(vector_add(&execution->iterators, own, &iterator, sizeof iterator));
    iterator->frame.arena = arena_create_within(SCRATCH_LIMIT, execution->session->budget);
    *out = iterator;
    return iterator->row == NULL || iterator->state == NULL || iterator->frame.arena == NULL
               ? status_out_of_memory()
               : status_ok();
}

/* From the scan upwards: an operator's input is there before it. */
static status make_iterators(struct sql_execution *execution, const struct sql_operator *operator_,
                             struct iterator **out)
{
    struct iterator *input = NULL;
    if (operator_->input != NULL)
        TRY(make_iterators(execution, operator_->input, &input));
    return make_iterator(execution, operator_, input, out);
}

static bool is_streamed(const struct sql_plan *plan)
{
    unsigned limits = 0;
    const struct sql_operator *operator_ = plan->root;
    for (; operator_->input != NULL; operator_ = operator_->input) {
        limits += operator_->kind == SQL_OP_LIMIT;
        if (operator_->kind != SQL_OP_PROJECT && operator_->kind != SQL_OP_FILTER &&
            operator_->kind != SQL_OP_LIMIT)
            return false;
    }
    return operator_->kind == SQL_OP_SCAN && limits <= 1 &&
           !sql_relation_has_versions(operator_->scan->table);
}

status sql_execution_make(struct sql_execution *execution, const struct sql_operator *root,
                          size_t memory_limit)
{
    const struct sql_plan *plan = execution->plan;
    struct budget *budget = execution->session->budget;
    execution->own = arena_create_within(OWN_LIMIT, budget);
    execution->kept = arena_create_within(memory_limit, budget);
    execution->memory_limit = memory_limit;
    if (execution->own == NULL || execution->kept == NULL)
        return status_out_of_memory();
    execution->calls = arena_zalloc(execution->own, plan->call_count * sizeof *execution->calls);
    execution->arguments =
        arena_alloc(execution->own, plan->argument_count * sizeof *execution->arguments);
    if (execution->calls == NULL || execution->arguments == NULL)
        return status_out_of_memory();
    return make_iterators(execution, root, &execution->root);
}

status sql_execution_create(const struct sql_execution_spec *spec, struct sql_execution **out)
{
    struct sql_execution *execution = calloc(1, sizeof *execution);
    *out = NULL;
    if (execution == NULL)
        return status_out_of_memory();
    execution->plan = spec->plan;
    execution->catalog = spec->catalog;
    execution->session = spec->session;
    execution->parameters = spec->parameters;
    execution->is_streamed = is_streamed(spec->plan);
    execution->after_key = spec->after_key;
    execution->after_rows = spec->after_rows;
    execution->is_measured = spec->is_measured;
    status result = sql_execution_make(execution, spec->plan->root, spec->memory_limit);
    if (status_is_ok(result))
        *out = execution;
    else
        sql_execution_destroy(execution);
    return result;
}

void sql_execution_end(struct sql_execution *execution)
{
    struct iterator **iterators = execution->iterators.items;
    for (size_t i = execution->iterators.count; i-- > 0;) {
        if (iterators[i]->kind->end != NULL && iterators[i]->state != NULL)
            iterators[i]->kind->end(iterators[i]);
        arena_destroy(iterators[i]->frame.arena);
    }
    if (execution->calls != NULL)
        sql_calls_release(execution->calls, execution->plan->call_count);
    arena_destroy(execution->kept);
    arena_destroy(execution->own);
}

void sql_execution_destroy(struct sql_execution *execution)
{
    if (execution == NULL)
        return;
    sql_execution_end(execution);
    free(execution);
}

status sql_execution_begin(struct sql_execution *execution)
{
    struct iterator **iterators = execution->iterators.items;
    execution->has_begun = true;
    for (size_t i = 0; i < execution->iterators.count; i++)
        if (iterators[i]->kind->begin != NULL)
            TRY(iterators[i]->kind->begin(iterators[i]));
    return status_ok();
}

/* What has no words of its own is the memory of one row. */
static status tell_limit(status result)
{
    if (result.code != STATUS_RESOURCE_EXHAUSTED || result.detail != NULL)
        return result;
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The query needs more memory for one row than the %d MB that it may have",
                       SCRATCH_LIMIT >> 20);
}

status sql_execution_next(struct sql_execution *execution, const struct sql_value **row)
{
    execution->is_paused = false;
    execution->session->is_turn_over = false;
    if (!execution->has_begun)
        TRY(sql_execution_begin(execution));
    status result = iterator_next(execution->root, row);
    if (!execution->is_paused)
        return tell_limit(result);
    status_free(result);
    *row = NULL;
    return status_ok();
}

bool sql_execution_is_paused(const struct sql_execution *execution)
{
    return execution->is_paused;
}

void sql_execution_rest(struct sql_execution *execution)
{
    struct iterator **iterators = execution->iterators.items;
    for (size_t i = 0; i < execution->iterators.count; i++)
        if (iterators[i]->kind->rest != NULL)
            iterators[i]->kind->rest(iterators[i]);
    if (execution->is_streamed) /* none keeps anything of a row */
        for (size_t i = 0; i < execution->iterators.count; i++)
            arena_reset(iterators[i]->frame.arena);
    execution->place = bytes_make(NULL, 0);
}

status sql_execution_explain(struct sql_execution *execution, struct buffer *out)
{
    if (!execution->has_begun)
        TRY(sql_execution_begin(execution));
    const struct sql_explained explained = {.plan = execution->plan,
                                            .reading = execution->reading,
                                            .divided = parts_of(execution),
                                            .parts = parts_count(execution->parts),
                                            .times = operator_times(execution)};
    sql_explain(&explained, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

size_t sql_execution_footprint(const struct sql_execution *execution)
{
    struct iterator *const *iterators = execution->iterators.items;
    size_t bytes = arena_footprint(execution->own) + arena_footprint(execution->kept) +
                   execution->aside + parts_footprint(execution->parts);
    for (size_t i = 0; i < execution->iterators.count; i++)
        bytes += arena_footprint(iterators[i]->frame.arena);
    return bytes;
}

bytes sql_execution_place(const struct sql_execution *execution)
{
    return execution->is_streamed ? execution->place : bytes_make(NULL, 0);
}

struct sql_execution_counts sql_execution_counts(const struct sql_execution *execution)
{
    struct sql_execution_counts counts = execution->counts;
    parts_add_counts(execution->parts, &counts);
    counts.memory_peak = arena_footprint(execution->kept) + execution->aside;
    return counts;
}
