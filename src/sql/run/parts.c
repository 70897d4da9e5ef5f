/* See parts.h. */
#include "sql/run/parts.h"

#include "base/budget.h"
#include "base/check.h"
#include "os/loop.h"
#include "os/thread.h"
#include "sql/run/aggregate.h"
#include "sql/time/zone.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_PARTS = 64, PARTS_A_THREAD = 16, MOST_HELPERS = 15, WAIT_US = 5000 };

struct part {
    struct parts *parts;
    struct sql_key_range range;
    struct sql_session session;
    struct sql_watch watch;        /* the session's: looks whether all is to end, too */
    const struct sql_watch *inner; /* of the thread's turn */
    struct sql_execution execution;
    struct arena *arena; /* of the turn's watch */
    bool is_taken;
    bool is_done; /* or has failed */
    status failure;
    struct sql_execution_counts told;
};

struct helper {
    struct task task;
    struct parts *parts;
    bool is_out; /* its task is queued, or runs */
};

struct parts {
    const struct sql_operator *aggregate;
    struct sql_helpers helpers_given;
    struct budget budget; /* of what the parts keep */
    atomic_size_t held;
    size_t most; /* bytes */
    atomic_bool is_short;
    atomic_bool is_stopping;
    atomic_uint holders;

    pthread_mutex_t lock; /* of what follows, and of each part's state */
    pthread_cond_t changed;
    struct part *items;
    size_t count;
    size_t failed; /* the first part that has; `count`: none */
    struct sql_execution_counts counts;
    struct helper helpers[MOST_HELPERS];

    size_t merged; /* the query's thread's: those before it are */
};

/* --- the budget --- */

static bool take(struct budget *budget, size_t size)
{
    struct parts *parts = LIST_ENTRY(budget, struct parts, budget);
    if (atomic_fetch_add(&parts->held, size) + size <= parts->most)
        return true;
    atomic_fetch_sub(&parts->held, size);
    atomic_store(&parts->is_short, true);
    return false;
}

static void give_back(struct budget *budget, size_t size)
{
    atomic_fetch_sub(&LIST_ENTRY(budget, struct parts, budget)->held, size);
}

/* --- one part --- */

static status look(void *context, bool *is_turn_over)
{
    const struct part *part = context;
    if (atomic_load(&part->parts->is_stopping))
        return status_make(STATUS_CANCELLED, "The query has ended");
    return part->inner->look(part->inner->context, is_turn_over);
}

static status begin_session(struct part *part, const struct sql_session *query, uint64_t number)
{
    const struct sql_helpers *helpers = query->helpers;
    part->session = *query;
    part->session.helpers = NULL;
    part->session.budget = &part->parts->budget;
    part->session.random ^= (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    part->session.zones = NULL;
    part->arena = arena_create(SIZE_MAX / 2);
    if (part->arena == NULL)
        return status_out_of_memory();
    part->session.zones = sql_zones_create();
    if (part->session.zones == NULL)
        return status_out_of_memory();
    TRY(helpers->add_turn(helpers->query, &part->session, part->arena));
    part->inner = part->session.watch;
    part->watch = (struct sql_watch){look, part};
    return status_ok();
}

/* On the query's thread: whatever a scan asks of the catalog at its beginning is asked there. */
static status begin_part(struct part *part, const struct iterator *iterator, uint64_t number)
{
    const struct sql_execution *whole = iterator->execution;
    TRY(begin_session(part, whole->session, number));
    part->execution = (struct sql_execution){.plan = whole->plan,
                                             .catalog = whole->catalog,
                                             .session = &part->session,
                                             .parameters = whole->parameters,
                                             .is_measured = whole->is_measured,
                                             .within = &part->range};
    TRY(sql_execution_make(&part->execution, iterator->operator_, whole->memory_limit));
    return sql_execution_begin(&part->execution);
}

static void end_part(struct part *part)
{
    if (part->arena == NULL)
        return;
    sql_execution_end(&part->execution);
    sql_zones_destroy(part->session.zones);
    arena_destroy(part->arena);
    status_free(part->failure);
    part->failure = status_ok();
    part->arena = NULL;
}

/* With the lock held. */
static void count_part(struct parts *parts, struct part *part)
{
    const struct sql_execution_counts *now = &part->execution.counts;
    parts->counts.rows_read += now->rows_read - part->told.rows_read;
    parts->counts.cells_read += now->cells_read - part->told.cells_read;
    part->told = *now;
}

/* Goes on with a part that the thread has taken, for a turn, and gives it back. */
static void run_part(struct part *part)
{
    struct parts *parts = part->parts;
    struct sql_execution *execution = &part->execution;
    part->session.watch = part->inner;
    parts->helpers_given.begin_turn(&part->session);
    part->session.watch = &part->watch;
    part->session.is_turn_over = execution->is_paused = false;
    status s = measured_group_rows(execution->root);
    pthread_mutex_lock(&parts->lock);
    count_part(parts, part);
    part->is_taken = false;
    part->is_done = !execution->is_paused;
    if (part->is_done)
        part->failure = s;
    else
        status_free(s);
    size_t at = (size_t)(part - parts->items);
    if (!status_is_ok(part->failure) && at < parts->failed)
        parts->failed = at;
    pthread_cond_broadcast(&parts->changed);
    pthread_mutex_unlock(&parts->lock);
}

/* The first that nobody has, of those before a failure; NULL: none, or all is to end. With the lock
 * held. */
static struct part *take_part(struct parts *parts)
{
    for (size_t i = 0; i < parts->failed && !atomic_load(&parts->is_stopping); i++) {
        struct part *part = &parts->items[i];
        if (part->is_taken || part->is_done)
            continue;
        part->is_taken = true;
        return part;
    }
    return NULL;
}

/* --- helpers --- */

static void release(struct parts *parts)
{
    if (atomic_fetch_sub(&parts->holders, 1) > 1)
        return;
    pthread_cond_destroy(&parts->changed);
    pthread_mutex_destroy(&parts->lock);
    free(parts->items);
    free(parts);
}

static struct part *take_part_for(struct helper *helper)
{
    struct parts *parts = helper->parts;
    pthread_mutex_lock(&parts->lock);
    struct part *part = take_part(parts);
    helper->is_out = part != NULL;
    pthread_mutex_unlock(&parts->lock);
    return part;
}

/* The thread goes back to what it is there for: the query's asks again in its next turn. */
static void leave(struct helper *helper)
{
    struct parts *parts = helper->parts;
    pthread_mutex_lock(&parts->lock);
    helper->is_out = false;
    pthread_mutex_unlock(&parts->lock);
    release(parts);
}

/* A turn of a thread that helps; behind others that wait for one it has its next. */
static void help(struct task *task)
{
    struct helper *helper = LIST_ENTRY(&task->link, struct helper, task.link);
    struct parts *parts = helper->parts;
    struct part *part = take_part_for(helper);
    if (part == NULL) {
        release(parts);
        return;
    }
    run_part(part); /* the query may be gone from here on */
    if (!parts->helpers_given.submit(parts->helpers_given.context, task))
        leave(helper);
}

static bool send_out(struct parts *parts, struct helper *helper)
{
    pthread_mutex_lock(&parts->lock);
    bool goes = !helper->is_out;
    helper->is_out = true;
    pthread_mutex_unlock(&parts->lock);
    if (!goes)
        return true;
    atomic_fetch_add(&parts->holders, 1);
    if (parts->helpers_given.submit(parts->helpers_given.context, &helper->task))
        return true;
    leave(helper);
    return false;
}

static void ask_helpers(struct parts *parts)
{
    for (unsigned i = 0; i < parts->helpers_given.most && i < MOST_HELPERS; i++)
        if (!send_out(parts, &parts->helpers[i]))
            break;
}

/* --- the query's thread --- */

/* Whether the part that is to be merged next is done. */
static bool is_next_done(struct parts *parts)
{
    if (parts->merged == parts->count || atomic_load(&parts->is_short))
        return false;
    pthread_mutex_lock(&parts->lock);
    bool is_done = parts->items[parts->merged].is_done;
    pthread_mutex_unlock(&parts->lock);
    return is_done;
}

/* Also of a part that failed what came before: there may be a failure that comes first. */
static status merge_part(struct iterator *iterator, struct part *part)
{
    TRY(merge_groups(iterator, part->execution.root));
    status failure = part->failure;
    part->failure = status_ok();
    add_part_times(iterator->execution, &part->execution);
    end_part(part);
    return failure;
}

static status merge_done(struct iterator *iterator, struct parts *parts)
{
    while (is_next_done(parts)) {
        TRY(merge_part(iterator, &parts->items[parts->merged]));
        parts->merged++;
        TRY(count_row(iterator, 1));
    }
    return status_ok();
}

/* Goes on with a part; or, if others have all that are left, waits a little. */
static void work(struct parts *parts)
{
    const struct timespec until = thread_time_in(WAIT_US);
    pthread_mutex_lock(&parts->lock);
    struct part *part = take_part(parts);
    if (part == NULL && !parts->items[parts->merged].is_done)
        pthread_cond_timedwait(&parts->changed, &parts->lock, &until);
    pthread_mutex_unlock(&parts->lock);
    if (part != NULL)
        run_part(part);
}

status parts_run(struct iterator *iterator, struct parts *parts, bool *is_short)
{
    struct sql_execution *execution = iterator->execution;
    *is_short = false;
    ask_helpers(parts);
    for (;;) {
        status s = merge_done(iterator, parts);
        *is_short = atomic_load(&parts->is_short);
        if (!status_is_ok(s) || parts->merged == parts->count || *is_short)
            return s;
        work(parts);
        TRY(sql_look(execution->session));
        if (execution->session->is_turn_over)
            return pause_query(execution);
    }
}

/* --- what is divided --- */

static bool hands_rows_on(const struct sql_operator *operator_)
{
    return operator_->kind == SQL_OP_FILTER || operator_->kind == SQL_OP_PROJECT ||
           operator_->kind == SQL_OP_UNNEST || operator_->kind == SQL_OP_UNPACK;
}

/* Whether the parts' results can be put together; whether it is worth it, the catalog knows. */
static bool has_parts(const struct iterator *iterator)
{
    const struct sql_operator *operator_ = iterator->operator_;
    const struct sql_scan_spec *reading = iterator->execution->reading;
    for (size_t i = 0; i < operator_->aggregate_count; i++)
        if (!sql_aggregation_has_parts(&operator_->aggregates[i]))
            return false;
    do
        operator_ = operator_->input;
    while (hands_rows_on(operator_));
    return operator_->kind == SQL_OP_SCAN && reading != NULL && reading->range_count == 1 &&
           !sql_key_range_is_point(&reading->ranges[0]) && !reading->is_reversed &&
           reading->row_limit == 0;
}

static status divide(const struct iterator *iterator, bytes **borders, size_t *count)
{
    const struct sql_execution *execution = iterator->execution;
    const struct sql_catalog *catalog = execution->catalog;
    const struct sql_helpers *helpers = execution->session->helpers;
    *count = 0;
    if (helpers == NULL || helpers->most == 0 || catalog->divide == NULL ||
        execution->session->budget != NULL || !has_parts(iterator))
        return status_ok();
    size_t most = (size_t)(helpers->most + 1) * PARTS_A_THREAD;
    return catalog->divide(catalog->context, execution->plan->table, execution->reading->ranges,
                           most < MOST_PARTS ? most : MOST_PARTS, execution->own, borders, count);
}

/* --- life --- */

static struct parts *create(const struct iterator *iterator, size_t count)
{
    struct parts *parts = calloc(1, sizeof *parts);
    struct part *items = calloc(count, sizeof *items);
    if (parts == NULL || items == NULL) {
        free(parts);
        free(items);
        return NULL;
    }
    parts->aggregate = iterator->operator_;
    parts->helpers_given = *iterator->execution->session->helpers;
    parts->budget = (struct budget){take, give_back};
    parts->most = iterator->execution->memory_limit;
    atomic_init(&parts->holders, 1);
    pthread_mutex_init(&parts->lock, NULL);
    thread_init_steady_wake(&parts->changed);
    parts->items = items;
    parts->count = parts->failed = count;
    for (size_t i = 0; i < MOST_HELPERS; i++)
        parts->helpers[i] = (struct helper){.task = {.run = help}, .parts = parts};
    return parts;
}

static status begin_parts(struct parts *parts, const struct iterator *iterator,
                          const bytes *borders)
{
    const struct sql_key_range *whole = &iterator->execution->reading->ranges[0];
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        part->parts = parts;
        part->failure = status_ok();
        part->range = (struct sql_key_range){i == 0 ? whole->from : borders[i - 1],
                                             i + 1 == parts->count ? whole->to : borders[i]};
        TRY(begin_part(part, iterator, i));
    }
    return status_ok();
}

status parts_create(struct iterator *iterator, struct parts **out)
{
    bytes *borders;
    size_t count;
    TRY(divide(iterator, &borders, &count));
    if (count == 0)
        return status_ok();
    *out = create(iterator, count + 1);
    return *out == NULL ? status_out_of_memory() : begin_parts(*out, iterator, borders);
}

static bool has_taken(const struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].is_taken)
            return true;
    return false;
}

void parts_destroy(struct parts *parts)
{
    if (parts == NULL)
        return;
    atomic_store(&parts->is_stopping, true);
    pthread_mutex_lock(&parts->lock);
    while (has_taken(parts))
        pthread_cond_wait(&parts->changed, &parts->lock);
    pthread_mutex_unlock(&parts->lock);
    for (size_t i = 0; i < parts->count; i++)
        end_part(&parts->items[i]);
    CHECK(atomic_load(&parts->held) == 0);
    release(parts);
}

/* --- what is told of them --- */

const struct sql_operator *parts_of(const struct sql_execution *execution)
{
    return execution->parts == NULL ? NULL : execution->parts->aggregate;
}

size_t parts_count(const struct parts *parts)
{
    return parts == NULL ? 0 : parts->count;
}

size_t parts_footprint(const struct parts *parts)
{
    return parts == NULL ? 0 : atomic_load(&parts->held);
}

void parts_add_counts(struct parts *parts, struct sql_execution_counts *counts)
{
    if (parts == NULL)
        return;
    pthread_mutex_lock(&parts->lock);
    counts->rows_read += parts->counts.rows_read;
    counts->cells_read += parts->counts.cells_read;
    pthread_mutex_unlock(&parts->lock);
}
