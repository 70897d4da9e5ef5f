/* Which views there are: see views.h and views_private.h. */
#include "views/views_private.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

/* A failure is tried again after so long, twice as long each time, up to the longest. */
enum { FIRST_RETRY_US = 100 * 1000, LONGEST_RETRY_US = 30 * 1000 * 1000, MOST_DOUBLINGS = 8 };

int64_t views_steady_us(const struct views *views)
{
    return clock_steady_us(cluster_clock(views->options.cluster));
}

/* --- entries --- */

void view_entry_free(struct view_entry *entry)
{
    if (entry->table != NULL)
        table_release(entry->table);
    free(entry->source_name);
    free(entry->name);
    free(entry->query);
    free(entry);
}

/* Where it is, or would be. */
static size_t place_of(const struct views *views, const char *name)
{
    size_t low = 0, high = views->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(views->entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct view_entry *views_entry(const struct views *views, const char *name)
{
    size_t at = place_of(views, name);
    bool is_there = at < views->count && strcmp(views->entries[at]->name, name) == 0;
    return is_there ? views->entries[at] : NULL;
}

static bool make_room(struct views *views)
{
    if (views->count < views->capacity)
        return true;
    size_t capacity = views->capacity == 0 ? 16 : 2 * views->capacity;
    struct view_entry **entries = realloc(views->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    views->entries = entries;
    views->capacity = capacity;
    return true;
}

static struct view_entry *make_entry(const char *name, const char *query)
{
    struct view_entry *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->name = strdup(name);
    made->query = strdup(query);
    if (made->name != NULL && made->query != NULL)
        return made;
    view_entry_free(made);
    return NULL;
}

/* With the lock held. Takes the entry; false: there is no memory. */
static bool add_entry(struct views *views, struct view_entry *entry)
{
    if (entry == NULL || !make_room(views)) {
        if (entry != NULL)
            view_entry_free(entry);
        return false;
    }
    size_t at = place_of(views, entry->name);
    memmove(&views->entries[at + 1], &views->entries[at],
            (views->count - at) * sizeof views->entries[0]);
    views->entries[at] = entry;
    views->count++;
    entry->unopened = views->unopened;
    views->unopened = entry;
    pthread_cond_signal(&views->wake);
    return true;
}

/* With the lock held: nobody finds it any more; who has it frees it. */
static void remove_entry(struct views *views, struct view_entry *entry)
{
    size_t at = place_of(views, entry->name);
    views->count--;
    memmove(&views->entries[at], &views->entries[at + 1],
            (views->count - at) * sizeof views->entries[0]);
    entry->is_deleted = true;
    atomic_store(&entry->gives_up, true);
    if (entry->line != NULL)
        entry->line->due_us = 0;
    pthread_cond_broadcast(&views->wake);
    pthread_cond_broadcast(&views->changed);
}

/* --- the watcher --- */

static status query_of(const struct resource *resource, struct arena *arena, const char **out)
{
    ProtobufCMessage *message;
    if (arena == NULL)
        return status_out_of_memory();
    TRY(resource_decode(resource, arena, &message));
    *out = ((const BtAdmin__MaterializedView *)(const void *)message)->query;
    return status_ok();
}

/* The entry of that name goes, if the query is another one. Whether one is to be made. */
static bool replace_entry(struct views *views, const char *name, const char *query)
{
    pthread_mutex_lock(&views->lock);
    struct view_entry *entry = views_entry(views, name);
    if (entry != NULL && (query == NULL || strcmp(entry->query, query) != 0)) {
        remove_entry(views, entry);
        entry = NULL;
    }
    pthread_mutex_unlock(&views->lock);
    return entry == NULL && query != NULL;
}

static status see(struct views *views, const char *name, const struct resource *resource,
                  struct arena *arena)
{
    const char *query = NULL;
    if (resource != NULL)
        TRY(query_of(resource, arena, &query));
    if (!replace_entry(views, name, query))
        return status_ok();
    struct view_entry *entry = make_entry(name, query);
    if (entry != NULL)
        view_entry_foresee(views, entry);
    pthread_mutex_lock(&views->lock);
    bool is_added = add_entry(views, entry);
    pthread_mutex_unlock(&views->lock);
    return is_added ? status_ok() : status_out_of_memory();
}

/* Without memory the view is not kept up until the next start, which is said. */
static void view_changed(void *context, const char *name, const struct resource *resource)
{
    enum { RESOURCE_MEMORY = 16 << 20 };
    struct views *views = context;
    struct arena *arena = arena_create(RESOURCE_MEMORY);
    status s = see(views, name, resource, arena);
    if (!status_is_ok(s))
        log_error(views->options.log, "a materialized view is not kept up to date",
                  LOG_STR("view", name), LOG_STR("cause", status_message(s)));
    status_free(s);
    arena_destroy(arena);
}

/* --- states --- */

enum view_state view_entry_state(const struct view_entry *entry)
{
    if (entry->has_failed)
        return VIEW_FAILED;
    if (!atomic_load(&entry->upkeep.counts.was_ready))
        return VIEW_POPULATING;
    return atomic_load(&entry->upkeep.counts.has_whole_pass) ? VIEW_RECONCILING : VIEW_READY;
}

/* What comes of what a person has made so, and does not pass by itself. */
static bool is_lasting(enum status_code code)
{
    return code == STATUS_INVALID_ARGUMENT || code == STATUS_NOT_FOUND ||
           code == STATUS_FAILED_PRECONDITION || code == STATUS_UNIMPLEMENTED;
}

static int64_t retry_after_us(unsigned failures)
{
    unsigned doublings = failures < MOST_DOUBLINGS ? failures : MOST_DOUBLINGS;
    int64_t us = (int64_t)FIRST_RETRY_US << doublings;
    return us > LONGEST_RETRY_US ? LONGEST_RETRY_US : us;
}

static void note_failure(struct views *views, struct view_entry *entry, status s)
{
    entry->has_failed = is_lasting(s.code);
    if (strcmp(entry->words, status_message(s)) != 0)
        log_warn(views->options.log, "a materialized view is not up to date",
                 LOG_STR("view", entry->name), LOG_STR("cause", status_message(s)));
    snprintf(entry->words, sizeof entry->words, "%s", status_message(s));
    entry->retry_us = views_steady_us(views) + retry_after_us(entry->failures++);
    entry->system_errors++;
}

void view_entry_note(struct views *views, struct view_entry *entry, status s)
{
    if (status_is_ok(s)) {
        entry->has_failed = false;
        entry->words[0] = 0;
        entry->failures = 0;
        entry->retry_us = 0;
    } else if (!entry->is_deleted && !views->is_stopping) {
        note_failure(views, entry, s);
    }
    status_free(s);
    pthread_cond_broadcast(&views->changed);
}

/* --- life --- */

static void watch(struct views *views)
{
    views->watcher = (struct control_watcher){
        .kind = RESOURCE_MATERIALIZED_VIEW, .context = views, .changed = view_changed};
    control_watch(views->options.control, &views->watcher);
}

status views_start(const struct views_options *options, struct views **out)
{
    struct views *views = calloc(1, sizeof *views);
    *out = views;
    if (views == NULL)
        return status_out_of_memory();
    views->options = *options;
    pthread_mutex_init(&views->lock, NULL);
    thread_init_steady_wake(&views->wake);
    thread_init_steady_wake(&views->changed);
    watch(views);
    return options->by_hand ? status_ok() : views_start_threads(views);
}

void views_stop(struct views *views)
{
    if (views != NULL)
        views_stop_threads(views);
}

void views_free(struct views *views)
{
    if (views == NULL)
        return;
    for (struct view_entry *entry = views->unopened, *next; entry != NULL; entry = next) {
        next = entry->unopened;
        if (entry->is_deleted)
            view_entry_free(entry);
    }
    for (size_t i = 0; i < views->count; i++)
        view_entry_free(views->entries[i]);
    free(views->entries);
    pthread_cond_destroy(&views->wake);
    pthread_cond_destroy(&views->changed);
    pthread_mutex_destroy(&views->lock);
    free(views);
}
