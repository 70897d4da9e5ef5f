/* See in_flight.h. */
#include "datastore/in_flight.h"

#include "base/check.h"

void ds_in_flight_init(struct ds_in_flight *in_flight)
{
    *in_flight = (struct ds_in_flight){.first = NULL};
    pthread_mutex_init(&in_flight->lock, NULL);
}

void ds_in_flight_free(struct ds_in_flight *in_flight)
{
    CHECK(in_flight->first == NULL);
    pthread_mutex_destroy(&in_flight->lock);
}

void ds_in_flight_add(struct ds_in_flight *in_flight, struct ds_flight *flight)
{
    pthread_mutex_lock(&in_flight->lock);
    flight->is_there = true;
    flight->next = in_flight->first;
    in_flight->first = flight;
    pthread_mutex_unlock(&in_flight->lock);
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
    pthread_mutex_unlock(&in_flight->lock);
}

static bool meets(const struct ds_flight *flight, bytes from, bytes to)
{
    for (size_t i = 0; i < flight->count; i++)
        if (bytes_compare(flight->keys[i], from) >= 0 &&
            (to.size == 0 || bytes_compare(flight->keys[i], to) < 0))
            return true;
    return false;
}

bool ds_in_flight_meets(struct ds_in_flight *in_flight, bytes from, bytes to,
                        struct ds_moments *moments, const struct ds_moment *moment)
{
    bool found = false;
    pthread_mutex_lock(&in_flight->lock);
    for (struct ds_flight *at = in_flight->first; at != NULL && !found; at = at->next)
        found = ds_moment_is_under_way_before(moments, at->moment, moment) && meets(at, from, to);
    pthread_mutex_unlock(&in_flight->lock);
    return found;
}
