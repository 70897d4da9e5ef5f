/* The threads of the engine: which source has its turn, and what is done in it. */
#include "views/views_private.h"

#include "os/thread.h"
#include "views/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* After a source's change its views are looked at so much later: what comes meanwhile is done at
 * once with it. */
enum { GATHER_US = 40 * 1000 };

/* --- the line of a source --- */

/* With the lock held. */
static void make_due(struct view_line *line, int64_t due_us)
{
    if (due_us < line->due_us)
        line->due_us = due_us;
    pthread_cond_signal(&line->views->wake);
}

/* On the commit thread. */
static void wake_line(struct view_feed_waiter *waiter)
{
    struct view_line *line = LIST_ENTRY(waiter, struct view_line, waiter);
    struct views *views = line->views;
    pthread_mutex_lock(&views->lock);
    line->is_waiting = false;
    make_due(line, views_steady_us(views) + GATHER_US);
    pthread_mutex_unlock(&views->lock);
}

/* With the lock held. NULL without memory. */
static struct view_line *line_of(struct views *views, struct table *source)
{
    for (struct view_line *line = views->lines; line != NULL; line = line->next)
        if (line->source == source)
            return line;
    struct view_line *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    table_retain(source);
    *made = (struct view_line){.next = views->lines,
                               .views = views,
                               .source = source,
                               .waiter = {.wake = wake_line},
                               .due_us = INT64_MAX};
    views->lines = made;
    return made;
}

static void free_memory(struct view_line *line)
{
    arena_destroy(line->arena);
    line->arena = NULL;
    view_commit_memory_destroy(line->commit_memory);
    line->commit_memory = NULL;
}

static status make_memory(struct view_line *line)
{
    if (line->arena == NULL)
        line->arena = arena_create(VIEW_PIECE_MEMORY);
    if (line->commit_memory == NULL)
        line->commit_memory = view_commit_memory_create();
    return line->arena != NULL && line->commit_memory != NULL ? status_ok()
                                                              : status_out_of_memory();
}

/* It has no entry, and nobody has its turn. Not with the lock held. */
static void free_line(struct view_line *line)
{
    free_memory(line);
    if (line->is_waiting)
        view_feed_forget(line->source, &line->waiter);
    view_changes_forget(&line->changes);
    table_release(line->source);
    free(line);
}

static void unlink_line(struct views *views, struct view_line *line)
{
    struct view_line **at = &views->lines;
    while (*at != line)
        at = &(*at)->next;
    *at = line->next;
}

void views_hurry(struct views *views)
{
    for (struct view_line *line = views->lines; line != NULL; line = line->next)
        line->due_us = 0;
    for (size_t i = 0; i < views->count; i++)
        views->entries[i]->retry_us = 0;
    pthread_cond_broadcast(&views->wake);
}

/* --- opening --- */

static void take_unopened(struct views *views, struct view_entry *entry)
{
    struct view_entry **at = &views->unopened;
    while (*at != entry)
        at = &(*at)->unopened;
    *at = entry->unopened;
    entry->unopened = NULL;
}

/* With the lock held. */
static status join_line(struct views *views, struct view_entry *entry)
{
    struct view_line *line = line_of(views, entry->upkeep.source);
    if (line == NULL)
        return status_out_of_memory();
    entry->line = line;
    entry->of_line = line->entries;
    line->entries = entry;
    make_due(line, 0);
    return status_ok();
}

/* With the lock held, which it gives up meanwhile. */
static void open_entry(struct views *views, struct view_entry *entry)
{
    bool is_gone = entry->is_deleted;
    entry->is_being_opened = true;
    pthread_mutex_unlock(&views->lock);
    status s = is_gone ? status_ok() : view_entry_open(views, entry);
    pthread_mutex_lock(&views->lock);
    if (status_is_ok(s) && !entry->is_deleted)
        s = join_line(views, entry);
    if (entry->line == NULL) {
        pthread_mutex_unlock(&views->lock);
        view_entry_close(entry);
        pthread_mutex_lock(&views->lock);
    }
    entry->is_being_opened = false;
    view_entry_note(views, entry, s);
    if (entry->line != NULL || entry->is_deleted)
        take_unopened(views, entry);
    if (entry->line == NULL && entry->is_deleted)
        view_entry_free(entry);
}

/* --- a turn --- */

struct turn {
    struct views *views;
    struct view_line *line;
    struct view_pace *pace;
    bool has_more;    /* something is to be done at once */
    int64_t retry_us; /* when something that was put off is to be done; INT64_MAX: nothing is */
};

static struct view_pace_sample sample(const struct views *views)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (struct view_pace_sample){.steady_us = views_steady_us(views),
                                     .process_us =
                                         (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000,
                                     .thread_us = thread_cpu_us()};
}

/* With the lock held, which it gives up while it waits. */
static void wait_until(struct views *views, int64_t until_us)
{
    if (until_us == INT64_MAX) {
        pthread_cond_wait(&views->wake, &views->lock);
        return;
    }
    int64_t rest_us = until_us - views_steady_us(views);
    const struct timespec until = thread_time_in(rest_us > 0 ? rest_us : 0);
    pthread_cond_clockwait(&views->wake, &views->lock, CLOCK_MONOTONIC, &until);
}

static void rest(void *context)
{
    struct turn *turn = context;
    struct views *views = turn->views;
    struct view_pace_sample now = sample(views);
    bool is_pressed = cluster_write_load(views->options.cluster) > 0.5;
    int64_t rest_us = view_pace_rest_us(turn->pace, &now, thread_processors(), is_pressed);
    int64_t until_us = now.steady_us + rest_us;
    if (rest_us > 0) {
        pthread_mutex_lock(&views->lock);
        while (!views->is_stopping && views_steady_us(views) < until_us)
            wait_until(views, until_us);
        pthread_mutex_unlock(&views->lock);
        now = sample(views);
    }
    view_pace_begin(turn->pace, &now);
}

static status load(struct turn *turn, struct view_entry *entry)
{
    status s = view_upkeep_load(&entry->upkeep);
    if (s.code != STATUS_ABORTED)
        return s;
    status_free(s);
    TRY(view_entry_remake(turn->views, entry));
    return view_upkeep_load(&entry->upkeep);
}

/* Whatever of it is out of service its source has. */
static status replace_damaged(struct turn *turn, struct view_entry *entry)
{
    if (!table_view_is_damaged(entry->upkeep.table))
        return status_ok();
    entry->upkeep.is_loaded = false;
    TRY(view_entry_remake(turn->views, entry));
    log_warn(turn->views->options.log, "a materialized view was damaged, and is populated anew",
             LOG_STR("view", entry->name));
    return status_ok();
}

/* A piece of its feed, and a piece of a pass. */
static status do_pieces(struct turn *turn, struct view_entry *entry)
{
    bool follows = false, passes = false;
    struct view_line *line = turn->line;
    TRY(make_memory(line));
    entry->upkeep.rest = rest;
    entry->upkeep.rest_context = turn;
    entry->upkeep.arena = line->arena;
    entry->upkeep.commit_memory = line->commit_memory;
    TRY(replace_damaged(turn, entry));
    if (!entry->upkeep.is_loaded)
        TRY(load(turn, entry));
    TRY(view_upkeep_follow(&entry->upkeep, &line->changes, &follows));
    TRY(view_upkeep_pass(&entry->upkeep, &passes));
    turn->has_more |= follows || passes || entry->upkeep.state.pass_count > 0;
    return status_ok();
}

/* With the lock held. */
static void leave_line(struct view_entry *entry)
{
    struct view_entry **at = &entry->line->entries;
    while (*at != entry)
        at = &(*at)->of_line;
    *at = entry->of_line;
}

/* With the lock held, which it gives up meanwhile. */
static void take_entry(struct turn *turn, struct view_entry *entry)
{
    struct views *views = turn->views;
    if (entry->is_deleted) {
        leave_line(entry);
        pthread_mutex_unlock(&views->lock);
        view_entry_close(entry);
        view_entry_free(entry);
        pthread_mutex_lock(&views->lock);
        return;
    }
    if (views->is_held || views->is_stopping)
        return;
    if (entry->retry_us > views_steady_us(views)) {
        turn->retry_us = entry->retry_us < turn->retry_us ? entry->retry_us : turn->retry_us;
        return;
    }
    pthread_mutex_unlock(&views->lock);
    int64_t began_us = thread_cpu_us();
    status s = do_pieces(turn, entry);
    int64_t cpu_us = thread_cpu_us() - began_us;
    rest(turn);
    pthread_mutex_lock(&views->lock);
    entry->cpu_us += cpu_us;
    view_entry_note(views, entry, s);
    if (entry->retry_us > 0 && entry->retry_us < turn->retry_us)
        turn->retry_us = entry->retry_us;
}

/* Gets into line for what comes, then looks whether something came before. With the lock held,
 * which it gives up meanwhile. */
static void wait_for_changes(struct turn *turn)
{
    struct views *views = turn->views;
    struct view_line *line = turn->line;
    struct view_entry *first = line->entries;
    bool is_waiting = line->is_waiting, has_more = false;
    line->is_waiting = true;
    pthread_mutex_unlock(&views->lock);
    if (!is_waiting)
        view_feed_wait(line->source, &line->waiter);
    pthread_mutex_lock(&views->lock);
    /* only the thread that has its turn takes entries off the line; who joined it made it due */
    for (struct view_entry *entry = first; entry != NULL; entry = entry->of_line)
        has_more |= entry->retry_us == 0 && entry->upkeep.is_loaded &&
                    view_feed_may_have(line->source, entry->upkeep.state.position);
    turn->has_more |= has_more && !views->is_held;
}

/* With the lock held, as for all that follows; it is given up meanwhile. */
static void take_turn(struct views *views, struct view_line *line, struct view_pace *pace)
{
    struct turn turn = {.views = views, .line = line, .pace = pace, .retry_us = INT64_MAX};
    line->has_turn = true;
    line->due_us = INT64_MAX;
    for (struct view_entry *entry = line->entries, *next; entry != NULL; entry = next) {
        next = entry->of_line;
        take_entry(&turn, entry);
    }
    if (!turn.has_more && line->entries != NULL)
        wait_for_changes(&turn);
    if (!turn.has_more)
        free_memory(line);
    line->has_turn = false;
    make_due(line, turn.has_more ? 0 : turn.retry_us);
    pthread_cond_broadcast(&views->changed);
    if (line->entries != NULL)
        return;
    unlink_line(views, line);
    pthread_mutex_unlock(&views->lock);
    free_line(line);
    pthread_mutex_lock(&views->lock);
}

/* --- what is next --- */

static struct view_entry *entry_to_open(struct views *views, int64_t now_us, int64_t *until_us)
{
    for (struct view_entry *at = views->unopened; at != NULL; at = at->unopened) {
        if (at->is_being_opened)
            continue;
        if (at->is_deleted || at->retry_us <= now_us)
            return at;
        *until_us = at->retry_us < *until_us ? at->retry_us : *until_us;
    }
    return NULL;
}

/* The one that has been due for longest. */
static struct view_line *line_to_take(struct views *views, int64_t now_us, int64_t *until_us)
{
    struct view_line *found = NULL;
    for (struct view_line *at = views->lines; at != NULL; at = at->next) {
        if (at->has_turn)
            continue;
        if (at->due_us <= now_us && (found == NULL || at->due_us < found->due_us))
            found = at;
        *until_us = at->due_us < *until_us ? at->due_us : *until_us;
    }
    return found;
}

/* One thing. False: there is nothing until `*until_us`. */
static bool work(struct views *views, struct view_pace *pace, int64_t *until_us)
{
    int64_t now_us = views_steady_us(views);
    *until_us = INT64_MAX;
    struct view_entry *entry = entry_to_open(views, now_us, until_us);
    if (entry != NULL) {
        open_entry(views, entry);
        return true;
    }
    struct view_line *line = line_to_take(views, now_us, until_us);
    if (line == NULL)
        return false;
    struct view_pace_sample begun = sample(views);
    view_pace_begin(pace, &begun);
    take_turn(views, line, pace);
    /* it goes behind those that were due meanwhile */
    return true;
}

void views_work(struct views *views, struct view_pace *pace)
{
    int64_t until_us;
    pthread_mutex_lock(&views->lock);
    views_hurry(views);
    while (work(views, pace, &until_us)) {
    }
    pthread_mutex_unlock(&views->lock);
}

static void *run(void *argument)
{
    struct view_thread *thread = argument;
    struct views *views = thread->views;
    int64_t until_us;
    thread_give_way();
    pthread_mutex_lock(&views->lock);
    while (!views->is_stopping)
        if (!work(views, &thread->pace, &until_us))
            wait_until(views, until_us);
    pthread_mutex_unlock(&views->lock);
    return NULL;
}

/* --- life --- */

status views_start_threads(struct views *views)
{
    for (; views->started < VIEW_THREADS; views->started++) {
        struct view_thread *thread = &views->threads[views->started];
        thread->views = views;
        TRY(thread_start(&thread->thread, "views", run, thread));
    }
    return status_ok();
}

static void give_up(struct views *views)
{
    views->is_stopping = true;
    for (struct view_line *line = views->lines; line != NULL; line = line->next)
        for (struct view_entry *entry = line->entries; entry != NULL; entry = entry->of_line)
            atomic_store(&entry->gives_up, true);
    pthread_cond_broadcast(&views->wake);
    pthread_cond_broadcast(&views->changed);
}

static void end_line(struct views *views, struct view_line *line)
{
    for (struct view_entry *entry = line->entries, *next; entry != NULL; entry = next) {
        next = entry->of_line;
        view_entry_close(entry);
        entry->line = NULL;
        entry->unopened = views->unopened; /* it may still be deleted before all are freed */
        views->unopened = entry;
    }
    free_line(line);
}

void views_stop_threads(struct views *views)
{
    pthread_mutex_lock(&views->lock);
    give_up(views);
    pthread_mutex_unlock(&views->lock);
    for (; views->started > 0; views->started--)
        pthread_join(views->threads[views->started - 1].thread, NULL);
    while (views->lines != NULL) {
        struct view_line *line = views->lines;
        views->lines = line->next;
        end_line(views, line);
    }
}
