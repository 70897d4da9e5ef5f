/* See in_flight.h. */
#include "datastore/commit/in_flight.h"

#include "base/check.h"
#include "base/key_range.h"

void ds_in_flight_init(struct ds_in_flight *in_flight)
{
    *in_flight = (struct ds_in_flight){.first = NULL};
    pthread_mutex_init(&in_flight->lock, NULL);
}

void ds_in_flight_free(struct ds_in_flight *in_flight)
{
    CHECK(in_flight->first == NULL && in_flight->first_watch == NULL);
    pthread_mutex_destroy(&in_flight->lock);
}

/* --- what meets what --- */

static bool has_key(const struct ds_watch *watch, bytes key)
{
    size_t low = 0, high = watch->count; /* the first range that begins behind the key */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(watch->ranges[middle].from, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    return key_is_before_end(key, watch->ranges[low - 1].to);
}

static bool meets(const struct ds_flight *flight, const struct ds_watch *watch)
{
    for (size_t i = 0; i < flight->count; i++)
        if (has_key(watch, flight->keys[i]))
            return true;
    return false;
}

/* 0: it is not drawn, or will not come to anything. */
static int64_t moment_of(const struct ds_flight *flight)
{
    return atomic_load(&flight->has_failed) ? 0 : flight->moment->at_us;
}

/* --- commits --- */

void ds_in_flight_add(struct ds_in_flight *in_flight, struct ds_flight *flight)
{
    DCHECK(!flight->is_there && flight->moment != NULL);
    pthread_mutex_lock(&in_flight->lock);
    flight->is_there = true;
    flight->next = in_flight->first;
    in_flight->first = flight;
    pthread_mutex_unlock(&in_flight->lock);
}

void ds_flight_fail(struct ds_flight *flight)
{
    atomic_store(&flight->has_failed, true);
}

/* Validating commits that look at the table now may have looked before this one was applied. Its
 * moment is past: if they have drawn theirs, they are later. */
static void tell_watches(const struct ds_in_flight *in_flight, const struct ds_flight *flight)
{
    DCHECK(check_is_held(&in_flight->lock));
    int64_t at_us = moment_of(flight);
    for (struct ds_watch *at = in_flight->first_watch; at != NULL; at = at->next)
        at->is_met = at->is_met || (at_us > at->after_us && meets(flight, at));
}

void ds_in_flight_remove(struct ds_in_flight *in_flight, struct ds_flight *flight)
{
    if (!flight->is_there)
        return;
    pthread_mutex_lock(&in_flight->lock);
    struct ds_flight **at = &in_flight->first;
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
    flight->is_there = false;
    tell_watches(in_flight, flight);
    pthread_mutex_unlock(&in_flight->lock);
}

/* --- validating --- */

void ds_in_flight_watch(struct ds_in_flight *in_flight, struct ds_watch *watch)
{
    DCHECK(!watch->is_there);
    pthread_mutex_lock(&in_flight->lock);
    watch->is_there = true;
    watch->is_met = false;
    watch->next = in_flight->first_watch;
    in_flight->first_watch = watch;
    pthread_mutex_unlock(&in_flight->lock);
}

void ds_in_flight_unwatch(struct ds_in_flight *in_flight, struct ds_watch *watch)
{
    if (!watch->is_there)
        return;
    pthread_mutex_lock(&in_flight->lock);
    struct ds_watch **at = &in_flight->first_watch;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    watch->is_there = false;
    pthread_mutex_unlock(&in_flight->lock);
}

/* The moment of another commit. Others draw theirs meanwhile, under the lock of moments; later ones
 * than `moment`. */
static int64_t moment_of_other(const struct ds_flight *flight, struct ds_sequencer *sequencer)
{
    pthread_mutex_lock(&sequencer->lock);
    int64_t at_us = moment_of(flight);
    pthread_mutex_unlock(&sequencer->lock);
    return at_us;
}

bool ds_watch_is_met(struct ds_in_flight *in_flight, const struct ds_watch *watch,
                     struct ds_sequencer *sequencer, const struct ds_turn *moment)
{
    DCHECK(watch->is_there && moment->at_us > 0);
    pthread_mutex_lock(&in_flight->lock);
    bool is_met = watch->is_met;
    for (struct ds_flight *at = in_flight->first; at != NULL && !is_met; at = at->next) {
        int64_t at_us = moment_of_other(at, sequencer);
        is_met = at_us > watch->after_us && at_us < moment->at_us && meets(at, watch);
    }
    pthread_mutex_unlock(&in_flight->lock);
    return is_met;
}
