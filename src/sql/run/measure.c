/* What each operator of an execution takes, for EXPLAIN ANALYZE: its own time, without that of its
 * input.
 *
 * While an operator runs, `inner_ns` has what its input took since the operator was asked. What is
 * done in parts is measured in each part's own execution, and added up when the part is merged. */
#include "base/check.h"
#include "os/thread.h"
#include "sql/run/execute_private.h"
#include "sql/run/parts.h"

struct measurement {
    int64_t began_ns;
    int64_t outer_ns; /* of who asked */
};

static struct measurement begin_measurement(struct sql_execution *execution)
{
    struct measurement begun = {thread_steady_ns(), execution->inner_ns};
    execution->inner_ns = 0;
    return begun;
}

static void end_measurement(struct iterator *iterator, const struct measurement *begun)
{
    struct sql_execution *execution = iterator->execution;
    int64_t all_ns = thread_steady_ns() - begun->began_ns;
    iterator->took.ns += all_ns - execution->inner_ns;
    execution->inner_ns = begun->outer_ns + all_ns;
}

status measured_next(struct iterator *iterator, const struct sql_value **row)
{
    struct measurement begun = begin_measurement(iterator->execution);
    status result = iterator->kind->next(iterator, row);
    end_measurement(iterator, &begun);
    iterator->took.rows += status_is_ok(result) && *row != NULL;
    return result;
}

status measured_group_rows(struct iterator *iterator)
{
    if (!iterator->execution->is_measured)
        return group_rows(iterator);
    struct measurement begun = begin_measurement(iterator->execution);
    status result = group_rows(iterator);
    end_measurement(iterator, &begun);
    return result;
}

void add_part_times(struct sql_execution *execution, const struct sql_execution *part)
{
    struct iterator **whole = execution->iterators.items;
    struct iterator *const *own = part->iterators.items;
    DCHECK(part->iterators.count <= execution->iterators.count);
    for (size_t i = 0; i < part->iterators.count; i++) {
        whole[i]->parts_ns += own[i]->took.ns;
        whole[i]->took.rows += own[i]->took.rows;
    }
}

/* Who groups in parts waits for them, which is no time of its own. */
static int64_t time_of(const struct iterator *iterator)
{
    bool is_divided = iterator->operator_ == parts_of(iterator->execution);
    return iterator->parts_ns + (is_divided ? 0 : iterator->took.ns);
}

const struct sql_operator_time *operator_times(const struct sql_execution *execution)
{
    struct iterator *const *iterators = execution->iterators.items;
    size_t count = execution->iterators.count;
    if (!execution->is_measured)
        return NULL;
    struct sql_operator_time *times = arena_alloc(execution->own, count * sizeof *times);
    for (size_t i = 0; times != NULL && i < count; i++) {
        const struct iterator *iterator = iterators[count - 1 - i];
        times[i] = (struct sql_operator_time){iterator->took.rows, time_of(iterator)};
    }
    return times;
}
