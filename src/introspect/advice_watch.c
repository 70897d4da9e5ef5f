/* See advice_watch.h. */
#include "introspect/advice_watch.h"

#include "base/check.h"
#include "base/clock.h"
#include "bigtable/names.h"
#include "datastore/index/index_check.h"
#include "introspect/methods.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    SERIES_MOST = 100, /* what there is beyond is told as one, of "other" */
    MEMORY = 16 << 20,
};

#define SECOND_US     INT64_C(1000000)
#define LIST_EVERY_US (60 * SECOND_US)
#define IDLE_US       (10 * SECOND_US)
#define FIRST_US      (60 * SECOND_US)
#define SELDOM_US     (3600 * SECOND_US)

/* A table, or a database. */
struct watched {
    char *name;
    size_t waiting;
    bool is_known;    /* it has been looked at */
    int64_t due_us;   /* for a look; clock_steady_us, as below */
    int64_t pause_us; /* until the next after that */
};

/* By rising name: those of an instance are neighbours. */
struct watched_list {
    struct watched *all;
    size_t count;
    size_t capacity;
};

struct advice_watch {
    struct insight *insight;
    pthread_t thread;
    bool has_thread;
    struct thread_stop stop;
    atomic_bool is_stopping;
    int64_t list_us;           /* when tables are to be listed again; the thread's */
    pthread_mutex_t lock;      /* of what follows */
    struct watched_list known; /* those that there were then, and such as were asked about since */
};

static int64_t now_us(void)
{
    return clock_steady_us(clock_system());
}

/* --- lists --- */

static bool make_room(struct watched_list *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = 2 * list->capacity + 16;
    struct watched *all = realloc(list->all, capacity * sizeof *all);
    if (all == NULL)
        return false;
    list->all = all;
    list->capacity = capacity;
    return true;
}

/* Puts a new one there; NULL without memory. */
static struct watched *insert(struct watched_list *list, size_t at, const char *name)
{
    char *copy = make_room(list) ? strdup(name) : NULL;
    if (copy == NULL)
        return NULL;
    struct watched *place = &list->all[at];
    memmove(place + 1, place, (list->count - at) * sizeof *place);
    *place =
        (struct watched){.name = copy, .due_us = now_us() + FIRST_US, .pause_us = 2 * FIRST_US};
    list->count++;
    return place;
}

static void free_list(struct watched_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->all[i].name);
    free(list->all);
}

/* Where it is, or would be. */
static size_t place_of(const struct watched_list *list, const char *name, bool *is_there)
{
    size_t from = 0, to = list->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(list->all[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *is_there = from < list->count && strcmp(list->all[from].name, name) == 0;
    return from;
}

/* --- what is told --- */

/* The instance of a table; a database is told by its own name. */
static const char *resource_of(const struct watched *watched, struct arena *arena)
{
    return ds_is_database_table(watched->name) ? watched->name : name_parent(arena, watched->name);
}

/* False without memory. */
static bool add_to_series(const struct watched *watched, struct arena *arena,
                          struct metric_series *series, size_t *count)
{
    const char *resource = resource_of(watched, arena);
    if (resource == NULL)
        return false;
    bool is_same = *count > 0 && strcmp(series[*count - 1].labels[0], resource) == 0;
    bool is_full = *count == SERIES_MOST;
    if (is_full && !is_same)
        series[*count - 1].labels[0] = "other";
    if (!is_full && !is_same)
        series[(*count)++] = (struct metric_series){.labels = {resource}};
    series[*count - 1].value += (int64_t)watched->waiting;
    return true;
}

/* With the lock held. Without memory it stays as it was told before. */
static void tell(struct advice_watch *watch)
{
    DCHECK(check_is_held(&watch->lock));
    struct metric_series series[SERIES_MOST];
    struct arena *arena = arena_create(MEMORY);
    size_t count = 0;
    bool is_whole = arena != NULL;
    for (size_t i = 0; i < watch->known.count && is_whole; i++)
        if (watch->known.all[i].is_known)
            is_whole = add_to_series(&watch->known.all[i], arena, series, &count);
    if (is_whole)
        status_ignore(
            metrics_replace(watch->insight->metrics, METRIC_BY_advice_waiting, series, count));
    arena_destroy(arena);
}

static size_t count_waiting(const Insight__TableAdvice *found)
{
    size_t count = 0;
    for (size_t i = 0; i < found->n_findings; i++) {
        const Insight__TableAdvice__Finding *finding = found->findings[i];
        count += finding->severity > INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__INFO &&
                 !finding->is_muted;
    }
    return count;
}

void advice_watch_note(struct advice_watch *watch, const char *name,
                       const Insight__TableAdvice *found)
{
    bool is_there;
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    size_t at = place_of(&watch->known, name, &is_there);
    struct watched *watched = is_there ? &watch->known.all[at] : insert(&watch->known, at, name);
    if (watched != NULL) { /* else the thread comes to it */
        watched->waiting = count_waiting(found);
        watched->is_known = true;
        watched->due_us = now_us() + watched->pause_us;
        tell(watch);
    }
    pthread_mutex_unlock(&watch->lock);
}

void advice_watch_ask(struct advice_watch *watch, const char *name)
{
    bool is_there;
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    size_t at = place_of(&watch->known, name, &is_there);
    if (is_there)
        watch->known.all[at].due_us = now_us();
    pthread_mutex_unlock(&watch->lock);
}

/* --- which tables there are --- */

struct listing {
    struct watched_list list;
    bool failed;
};

static bool is_watched(const char *name)
{
    if (ds_is_database_table(name))
        return true;
    status s = name_check_table(name);
    bool is_table = status_is_ok(s);
    status_free(s);
    return is_table;
}

static bool list_table(void *context, struct table *table)
{
    struct listing *listing = context;
    const char *name = table_name(table);
    listing->failed = is_watched(name) && insert(&listing->list, listing->list.count, name) == NULL;
    return !listing->failed;
}

/* What is known of those that are still there. */
static void take_over(struct watched_list *list, const struct watched_list *former)
{
    bool is_there;
    for (size_t i = 0; i < list->count; i++) {
        struct watched *watched = &list->all[i];
        char *name = watched->name;
        size_t at = place_of(former, name, &is_there);
        if (is_there)
            *watched = former->all[at];
        watched->name = name;
    }
}

/* Without memory those of before stay. */
static void list_anew(struct advice_watch *watch)
{
    struct listing listing = {.failed = false};
    status s = cluster_list_tables(watch->insight->bigtable->cluster, bytes_of("projects/"),
                                   bytes_make(NULL, 0), list_table, &listing);
    if (status_is_ok(s) && !listing.failed) {
        pthread_mutex_lock(&watch->lock);
        const struct watched_list former = watch->known;
        take_over(&listing.list, &former);
        watch->known = listing.list;
        listing.list = former;
        tell(watch);
        pthread_mutex_unlock(&watch->lock);
    }
    status_free(s);
    free_list(&listing.list);
    watch->list_us = now_us() + LIST_EVERY_US;
}

/* --- the thread --- */

/* The name of the one that is overdue longest; NULL: none is, or there is no memory. */
static const char *take_due(struct advice_watch *watch, struct arena *arena)
{
    struct watched *first = NULL;
    const char *name = NULL;
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->known.count; i++)
        if (first == NULL || watch->known.all[i].due_us < first->due_us)
            first = &watch->known.all[i];
    if (first != NULL && first->due_us <= now_us()) {
        name = arena_string(arena, bytes_of(first->name));
        first->due_us = now_us() + first->pause_us;
        first->pause_us = first->pause_us > SELDOM_US / 2 ? SELDOM_US : 2 * first->pause_us;
    }
    pthread_mutex_unlock(&watch->lock);
    return name;
}

/* Asks as a client would; who answers notes what is found. What fails is tried when it is due
 * again. */
static status ask(struct advice_watch *watch, const char *name, struct arena *arena)
{
    struct insight *insight = watch->insight;
    Insight__AdviseRequest message = INSIGHT__ADVISE_REQUEST__INIT;
    const struct admin_request request = {.bigtable = insight->bigtable,
                                          .arena = arena,
                                          .deadline_us = INT64_MAX,
                                          .message = &message.base,
                                          .more = insight};
    const ProtobufCMessage *answer;
    const char *id = name_id(name);
    message.name = name;
    if (!ds_is_database_table(name)) {
        message.name = name_parent(arena, name);
        message.tables = &id;
        message.n_tables = 1;
    }
    return message.name == NULL ? status_out_of_memory() : give_advice(&request, &answer);
}

/* Returns how long to rest. */
static int64_t look(struct advice_watch *watch)
{
    int64_t before_us = thread_cpu_us();
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return IDLE_US;
    if (now_us() >= watch->list_us)
        list_anew(watch);
    const char *name = take_due(watch, arena);
    if (name != NULL)
        status_ignore(ask(watch, name, arena));
    arena_destroy(arena);
    int64_t rest_us = ADVICE_REST * (thread_cpu_us() - before_us);
    int64_t least_us = name == NULL ? IDLE_US : SECOND_US;
    return rest_us < least_us ? least_us : rest_us;
}

static void *run(void *argument)
{
    struct advice_watch *watch = argument;
    thread_give_way();
    while (thread_rest(&watch->stop, look(watch)))
        ;
    return NULL;
}

bool advice_watch_is_stopping(struct advice_watch *watch)
{
    return watch != NULL && atomic_load(&watch->is_stopping);
}

status advice_watch_start(struct insight *insight, struct advice_watch **out)
{
    struct advice_watch *watch = calloc(1, sizeof *watch);
    *out = NULL;
    if (watch == NULL)
        return status_out_of_memory();
    watch->insight = insight;
    thread_stop_init(&watch->stop);
    pthread_mutex_init(&watch->lock, NULL);
    insight->watch = watch;
    status s = thread_start(&watch->thread, "advice", run, watch);
    watch->has_thread = status_is_ok(s);
    if (watch->has_thread)
        *out = watch;
    else
        advice_watch_stop(watch);
    return s;
}

void advice_watch_stop(struct advice_watch *watch)
{
    if (watch == NULL)
        return;
    atomic_store(&watch->is_stopping, true);
    thread_stop_now(&watch->stop);
    if (watch->has_thread)
        pthread_join(watch->thread, NULL);
    watch->insight->watch = NULL;
    free_list(&watch->known);
    pthread_mutex_destroy(&watch->lock);
    thread_stop_destroy(&watch->stop);
    free(watch);
}
