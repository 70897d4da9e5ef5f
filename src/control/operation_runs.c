/* See operation_runs.h.
 *
 * An operation that runs is on the list `live` from the moment that its record is durable until its
 * end is; `lock` guards the list, and `changed` is signalled whenever one leaves it.
 *
 * Most have a thread of the pool `operations` to themselves. Those that are awaited
 * (operation_kind.is_awaited) are looked at in turn, all on the one thread `awaited`, for as long
 * as there are any: it alone takes them off the list. */
#include "control/operation_runs.h"

#include "base/check.h"
#include "base/clock.h"
#include "os/pool.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    THREADS = 2,
    LOOK_EVERY_US = 50000,
    MOST_LIVE = 1000,
    /* A call that waits takes a thread of the common pool from others. */
    MOST_WAITING = 2,
};

struct operation_runs {
    struct control *control;
    const struct operation_kind *kinds;
    size_t kind_count;
    struct pool *pool;
    struct pool *awaited; /* one thread */
    struct task look;     /* its task */
    bool is_looking;      /* the task is submitted, or runs; guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct operation *live;
    size_t live_count;
    unsigned waiting;
    atomic_bool is_closing;
};

struct operation {
    struct edit_on_commit on_commit;
    struct task task;
    struct operation_runs *runs;
    struct operation *next; /* on the list */
    const struct operation_kind *kind;
    char *name;
    bytes argument; /* behind the structure, as is the name */
    atomic_bool is_cancelled;
    bool is_finished; /* its end is staged; only its own thread looks at this */
    char *subject;    /* likewise; NULL: unknown */
    struct arena *arena;
};

/* --- one --- */

static void free_operation(struct operation *operation)
{
    arena_destroy(operation->arena);
    free(operation->subject);
    free(operation);
}

const char *operation_name(const struct operation *operation)
{
    return operation->name;
}

bytes operation_argument(const struct operation *operation)
{
    return operation->argument;
}

struct control *operation_control(const struct operation *operation)
{
    return operation->runs->control;
}

bool operation_is_stopping(const struct operation *operation)
{
    return atomic_load(&operation->runs->is_closing);
}

bool operation_is_cancelled(const struct operation *operation)
{
    return atomic_load(&operation->is_cancelled) || operation_is_stopping(operation);
}

void operation_set_subject(struct operation *operation, const char *name)
{
    free(operation->subject);
    operation->subject = strdup(name);
}

struct ending {
    struct operation *operation;
    struct operation_end end;
};

static status put_ending(void *context, struct edit *edit)
{
    const struct ending *ending = context;
    struct operation *operation = ending->operation;
    arena_reset(operation->arena);
    return operation_put_end(edit, operation->arena, operation->name, &ending->end);
}

status operation_report(struct operation *operation, const ProtobufCMessage *metadata)
{
    struct ending ending = {operation, {.metadata = metadata}};
    return control_edit(operation->runs->control, put_ending, &ending);
}

status operation_finish(struct operation *operation, struct edit *edit,
                        const ProtobufCMessage *metadata, const ProtobufCMessage *response)
{
    struct operation_end end = {.metadata = metadata, .response = response};
    arena_reset(operation->arena);
    TRY(operation_put_end(edit, operation->arena, operation->name, &end));
    operation->is_finished = true;
    return status_ok();
}

/* --- its life --- */

static void leave(struct operation *operation)
{
    struct operation_runs *runs = operation->runs;
    pthread_mutex_lock(&runs->lock);
    struct operation **at = &runs->live;
    while (*at != operation)
        at = &(*at)->next;
    *at = operation->next;
    runs->live_count--;
    pthread_cond_broadcast(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
    free_operation(operation);
}

static void log_failure(const struct operation *operation, status failure)
{
    const struct log *log = operation->runs->control->log;
    const char *subject = operation->subject == NULL ? "" : operation->subject;
    if (failure.code == STATUS_CANCELLED)
        log_info(log, "an operation was cancelled", LOG_STR("kind", operation->kind->name),
                 LOG_STR("of", subject), LOG_STR("operation", operation->name));
    else
        log_warn(log, "an operation has failed", LOG_STR("kind", operation->kind->name),
                 LOG_STR("of", subject), LOG_STR("operation", operation->name),
                 LOG_STR("code", status_code_name(failure.code)),
                 LOG_STR("cause", status_message(failure)));
}

/* An operation whose failure cannot be noted down is taken up again at the next start. */
static void note_failure(struct operation *operation, status failure)
{
    struct ending ending = {operation, {.error = &failure}};
    log_failure(operation, failure);
    status s = control_edit(operation->runs->control, put_ending, &ending);
    if (!status_is_ok(s))
        log_error(operation->runs->control->log, "an operation's failure could not be recorded",
                  LOG_STR("operation", operation->name), LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* Frees the operation, unless it is awaited further. */
static void carry_out(struct operation *operation)
{
    bool was_closing = atomic_load(&operation->runs->is_closing);
    status s =
        was_closing ? status_ok() : operation->kind->run(operation->kind->context, operation);
    bool has_no_end = status_is_ok(s) && !operation->is_finished && !was_closing;
    if (has_no_end && operation->kind->is_awaited)
        return;
    if (has_no_end)
        s = status_make(STATUS_INTERNAL, "The operation ended without a result");
    /* An operation that a stop cut short stays a running one, for the next start. */
    if (!status_is_ok(s) && !atomic_load(&operation->runs->is_closing))
        note_failure(operation, s);
    status_free(s);
    leave(operation);
}

static void run_operation(struct task *task)
{
    carry_out(LIST_ENTRY(&task->link, struct operation, task.link));
}

/* --- those that are awaited --- */

/* The first from there on; with lock held. */
static struct operation *next_awaited(struct operation *at)
{
    while (at != NULL && !at->kind->is_awaited)
        at = at->next;
    return at;
}

/* With lock held, and given up meanwhile: only this thread frees those that are awaited. */
static void look_at_each(struct operation_runs *runs)
{
    struct operation *at = next_awaited(runs->live);
    while (at != NULL) {
        struct operation *operation = at;
        at = next_awaited(at->next);
        pthread_mutex_unlock(&runs->lock);
        carry_out(operation);
        pthread_mutex_lock(&runs->lock);
    }
}

static struct timespec monotonic_time(int64_t us)
{
    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

/* With lock held. */
static void rest(struct operation_runs *runs)
{
    struct timespec until = monotonic_time(clock_steady_us(clock_system()) + LOOK_EVERY_US);
    int failure = 0;
    while (failure == 0 && !atomic_load(&runs->is_closing))
        failure = pthread_cond_clockwait(&runs->changed, &runs->lock, CLOCK_MONOTONIC, &until);
}

static void look_until_none_is_left(struct task *task)
{
    struct operation_runs *runs = LIST_ENTRY(&task->link, struct operation_runs, look.link);
    pthread_mutex_lock(&runs->lock);
    look_at_each(runs);
    while (next_awaited(runs->live) != NULL) {
        rest(runs);
        look_at_each(runs);
    }
    runs->is_looking = false;
    pthread_mutex_unlock(&runs->lock);
}

/* There is room in the pools: the one takes as many as may be live, the other has one task. */
static void start_operation(struct edit_on_commit *on_commit)
{
    struct operation *operation = LIST_ENTRY(&on_commit->link, struct operation, on_commit.link);
    struct operation_runs *runs = operation->runs;
    bool is_awaited = operation->kind->is_awaited, is_taken = true;
    pthread_mutex_lock(&runs->lock);
    operation->next = runs->live;
    runs->live = operation;
    runs->live_count++;
    if (is_awaited && !runs->is_looking)
        is_taken = runs->is_looking = pool_submit(runs->awaited, &runs->look);
    pthread_mutex_unlock(&runs->lock);
    CHECK(is_taken);
    if (!is_awaited) {
        is_taken = pool_submit(runs->pool, &operation->task);
        CHECK(is_taken);
    }
}

static void drop_operation(struct edit_on_commit *on_commit)
{
    free_operation(LIST_ENTRY(&on_commit->link, struct operation, on_commit.link));
}

static const struct operation_kind *find_kind(const struct operation_runs *runs, const char *name)
{
    for (size_t i = 0; i < runs->kind_count; i++)
        if (strcmp(runs->kinds[i].name, name) == 0)
            return &runs->kinds[i];
    return NULL;
}

static struct operation *new_operation(struct operation_runs *runs, const char *name,
                                       bytes argument)
{
    size_t name_size = strlen(name) + 1;
    struct operation *operation = calloc(1, sizeof *operation + name_size + argument.size);
    if (operation == NULL)
        return NULL;
    operation->on_commit = (struct edit_on_commit){.run = start_operation, .drop = drop_operation};
    operation->task.run = run_operation;
    operation->runs = runs;
    operation->name = (char *)(operation + 1);
    memcpy(operation->name, name, name_size);
    if (argument.size > 0)
        memcpy(operation->name + name_size, argument.data, argument.size);
    operation->argument = bytes_make(operation->name + name_size, argument.size);
    operation->arena = arena_create(OPERATION_MEMORY);
    if (operation->arena == NULL) {
        free(operation);
        return NULL;
    }
    return operation;
}

static bool is_full(struct operation_runs *runs)
{
    pthread_mutex_lock(&runs->lock);
    bool full = runs->live_count >= MOST_LIVE;
    pthread_mutex_unlock(&runs->lock);
    return full;
}

status runs_add(struct edit *edit, const char *name, const char *kind, bytes argument)
{
    struct control *control = edit_control(edit);
    struct operation_runs *runs = control->operations;
    const struct operation_kind *found = find_kind(runs, kind);
    CHECK(found != NULL);
    if (is_full(runs))
        return status_make(STATUS_RESOURCE_EXHAUSTED, "Too many operations are running");
    struct operation *operation = new_operation(runs, name, argument);
    if (operation == NULL)
        return status_out_of_memory();
    operation->kind = found;
    edit_add_on_commit(edit, &operation->on_commit);
    return status_ok();
}

status runs_recover(struct control *control, const char *name, const char *kind, bytes argument)
{
    const struct operation_kind *found = find_kind(control->operations, kind);
    if (found == NULL)
        return status_make(STATUS_ABORTED, "The server stopped while the operation was running");
    return found->recover(found->context, name, argument);
}

status runs_abandon(struct control *control, const char *name, const char *kind, bytes argument)
{
    const struct operation_kind *found = find_kind(control->operations, kind);
    if (found == NULL || found->abandon == NULL)
        return status_ok();
    return found->abandon(found->context, name, argument);
}

void runs_set_kinds(struct control *control, const struct operation_kind *kinds, size_t count)
{
    control->operations->kinds = kinds;
    control->operations->kind_count = count;
}

/* --- what clients ask --- */

/* With lock held. */
static struct operation *find_live(struct operation_runs *runs, const char *name)
{
    struct operation *at = runs->live;
    while (at != NULL && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

size_t operations_running(struct control *control)
{
    struct operation_runs *runs = control->operations;
    pthread_mutex_lock(&runs->lock);
    size_t count = runs->live_count;
    pthread_mutex_unlock(&runs->lock);
    return count;
}

bool operation_is_under_way(struct control *control,
                            bool (*is_it)(void *context, const char *kind, bytes argument),
                            void *context)
{
    struct operation_runs *runs = control->operations;
    pthread_mutex_lock(&runs->lock);
    struct operation *at = runs->live;
    while (at != NULL && !is_it(context, at->kind->name, at->argument))
        at = at->next;
    pthread_mutex_unlock(&runs->lock);
    return at != NULL;
}

status operation_cancel(struct control *control, const char *name)
{
    struct operation_runs *runs = control->operations;
    if (!control_has(control, RESOURCE_OPERATION, name))
        return status_make(STATUS_NOT_FOUND, "Operation not found: %s", name);
    pthread_mutex_lock(&runs->lock);
    struct operation *operation = find_live(runs, name);
    if (operation != NULL)
        atomic_store(&operation->is_cancelled, true);
    pthread_mutex_unlock(&runs->lock);
    return status_ok();
}

void operation_wait(struct control *control, const char *name, int64_t until_us)
{
    struct operation_runs *runs = control->operations;
    struct timespec until = monotonic_time(until_us);
    pthread_mutex_lock(&runs->lock);
    if (runs->waiting < MOST_WAITING) {
        runs->waiting++;
        int failure = 0;
        while (failure == 0 && find_live(runs, name) != NULL && !atomic_load(&runs->is_closing))
            failure = pthread_cond_clockwait(&runs->changed, &runs->lock, CLOCK_MONOTONIC, &until);
        runs->waiting--;
    }
    pthread_mutex_unlock(&runs->lock);
}

/* --- open and close --- */

status operations_open(struct control *control)
{
    struct operation_runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL)
        return status_out_of_memory();
    control->operations = runs;
    runs->control = control;
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->changed, NULL);
    runs->look.run = look_until_none_is_left;
    TRY(pool_create(1, 1, "awaited", &runs->awaited));
    return pool_create(THREADS, MOST_LIVE, "operations", &runs->pool);
}

void operations_close(struct control *control)
{
    struct operation_runs *runs = control->operations;
    if (runs == NULL)
        return;
    atomic_store(&runs->is_closing, true);
    pthread_cond_broadcast(&runs->changed);
    pool_destroy(runs->awaited);
    pool_destroy(runs->pool);
    CHECK(runs->live == NULL);
    pthread_cond_destroy(&runs->changed);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
    control->operations = NULL;
}
