/* See place_watch.h.
 *
 * `lock` guards all but what is set before the thread starts. The thread touches nothing but the
 * watch: a stop may have to leave the thread behind. The last of the two frees the watch. */
#include "server/place_watch.h"

#include "os/thread.h"

#include <stdlib.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)

enum { EVERY_SECONDS = 10, STALE_SECONDS = 60, STOP_SECONDS = 1, PLACES_MOST = 64 };

struct watched {
    char *path;
    uint64_t free_bytes;
    bool is_known;
};

struct place_watch {
    struct place_watch_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* both ways */
    bool is_stopping;
    bool has_ended;
    bool is_left;     /* the thread is not waited for */
    int64_t asked_us; /* when a round ended, by the steady clock; 0: none has */
    size_t count;
    struct watched places[PLACES_MOST];
};

static void free_watch(struct place_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        free(watch->places[i].path);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

/* --- which --- */

static bool is_bucket(bytes name)
{
    return bytes_start_with(name, bytes_of("s3://"));
}

static bool is_there(const struct place_watch *watch, bytes name)
{
    for (size_t i = 0; i < watch->count; i++)
        if (bytes_equal(bytes_of(watch->places[i].path), name))
            return true;
    return false;
}

/* More than PLACES_MOST are left out. */
static status add_place(struct place_watch *watch, bytes name)
{
    if (name.size == 0 || is_bucket(name) || is_there(watch, name) || watch->count == PLACES_MOST)
        return status_ok();
    char *path = bytes_to_string(name);
    if (path == NULL)
        return status_out_of_memory();
    watch->places[watch->count++].path = path;
    return status_ok();
}

static status add_places(struct place_watch *watch, const char *list)
{
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, ",");
        TRY(add_place(watch, bytes_make(list, size)));
        list += size + (list[size] == ',');
    }
    return status_ok();
}

/* --- asking --- */

static struct timespec after_seconds(int seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += seconds;
    return at;
}

static void ask(struct place_watch *watch, struct watched *place)
{
    uint64_t free_bytes = 0;
    status s = watch->options.ask(place->path, &free_bytes);
    pthread_mutex_lock(&watch->lock);
    place->is_known = status_is_ok(s);
    place->free_bytes = free_bytes;
    pthread_mutex_unlock(&watch->lock);
    status_ignore(s);
}

/* Returns whether to go on. */
static bool rest(struct place_watch *watch)
{
    const struct timespec until = after_seconds(EVERY_SECONDS);
    int waited = 0;
    pthread_mutex_lock(&watch->lock);
    if (!watch->is_stopping) /* else the clock may be gone */
        watch->asked_us = clock_steady_us(watch->options.clock);
    while (!watch->is_stopping && waited == 0)
        waited = pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
    bool goes_on = !watch->is_stopping;
    pthread_mutex_unlock(&watch->lock);
    return goes_on;
}

static void *run(void *argument)
{
    struct place_watch *watch = argument;
    do {
        for (size_t i = 0; i < watch->count; i++)
            ask(watch, &watch->places[i]);
    } while (rest(watch));
    pthread_mutex_lock(&watch->lock);
    watch->has_ended = true;
    bool is_left = watch->is_left;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (is_left)
        free_watch(watch);
    return NULL;
}

/* --- for the server --- */

static void init_locks(struct place_watch *watch)
{
    thread_init_steady_wake(&watch->wake);
    pthread_mutex_init(&watch->lock, NULL);
}

static status start(struct place_watch *watch)
{
    for (size_t i = 0; i < sizeof watch->options.places / sizeof *watch->options.places; i++)
        TRY(add_places(watch, watch->options.places[i]));
    return thread_start(&watch->thread, "places", run, watch);
}

status place_watch_start(const struct place_watch_options *options, struct place_watch **out)
{
    struct place_watch *watch = *out = calloc(1, sizeof *watch);
    if (watch == NULL)
        return status_out_of_memory();
    watch->options = *options;
    init_locks(watch);
    status s = start(watch);
    if (!status_is_ok(s)) {
        free_watch(watch);
        *out = NULL;
    }
    return s;
}

/* Whether the thread has ended, within a second. */
static bool wait_for_end(struct place_watch *watch)
{
    const struct timespec until = after_seconds(STOP_SECONDS);
    int waited = 0;
    pthread_mutex_lock(&watch->lock);
    watch->is_stopping = true;
    pthread_cond_signal(&watch->wake);
    while (!watch->has_ended && waited == 0)
        waited = pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
    bool has_ended = watch->has_ended;
    watch->is_left = !has_ended;
    pthread_mutex_unlock(&watch->lock);
    return has_ended;
}

void place_watch_stop(struct place_watch *watch)
{
    if (watch == NULL)
        return;
    pthread_t thread = watch->thread;
    if (wait_for_end(watch)) {
        pthread_join(thread, NULL);
        free_watch(watch);
    } else {
        pthread_detach(thread);
    }
}

void place_watch_look(struct place_watch *watch)
{
    struct metric_series series[PLACES_MOST];
    size_t count = 0;
    int64_t now_us = clock_steady_us(watch->options.clock);
    pthread_mutex_lock(&watch->lock);
    bool is_fresh = watch->asked_us != 0 && now_us - watch->asked_us <= STALE_SECONDS * SECOND_US;
    for (size_t i = 0; i < watch->count && is_fresh; i++)
        if (watch->places[i].is_known)
            series[count++] = (struct metric_series){.labels = {watch->places[i].path},
                                                     .value = (int64_t)watch->places[i].free_bytes};
    pthread_mutex_unlock(&watch->lock);
    status_ignore(
        metrics_replace(watch->options.metrics, METRIC_BY_place_free_bytes, series, count));
}
