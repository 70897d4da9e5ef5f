/* See moments.h. */
#include "datastore/moments.h"

#include "base/check.h"

static struct ds_moment *moment_of(struct link *link)
{
    return LIST_ENTRY(link, struct ds_moment, link);
}

void ds_moments_init(struct ds_moments *moments)
{
    *moments = (struct ds_moments){.last_us = 0};
    pthread_mutex_init(&moments->lock, NULL);
    pthread_cond_init(&moments->turned, NULL);
}

void ds_moments_free(struct ds_moments *moments)
{
    CHECK(list_is_empty(&moments->drawn));
    pthread_cond_destroy(&moments->turned);
    pthread_mutex_destroy(&moments->lock);
}

void ds_moment_draw(struct ds_moments *moments, int64_t now_us, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    moments->last_us = now_us > moments->last_us ? now_us : moments->last_us + 1;
    *moment = (struct ds_moment){.at_us = moments->last_us};
    list_append(&moments->drawn, &moment->link);
    pthread_mutex_unlock(&moments->lock);
}

/* With the lock held. */
static bool is_its_turn(const struct ds_moments *moments, const struct ds_moment *moment)
{
    struct link *at = moments->drawn.first;
    while (moment_of(at)->has_entered || moment_of(at)->is_done)
        at = at->next;
    return moment_of(at) == moment;
}

void ds_moment_wait(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    while (!is_its_turn(moments, moment))
        pthread_cond_wait(&moments->turned, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}

void ds_moment_entered(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    moment->has_entered = true;
    pthread_cond_broadcast(&moments->turned);
    pthread_mutex_unlock(&moments->lock);
}

/* With the lock held: all that are done, up to the first that is not. */
static void pass(struct ds_moments *moments)
{
    while (!list_is_empty(&moments->drawn) && moment_of(moments->drawn.first)->is_done)
        moment_of(list_take(&moments->drawn))->is_past = true;
    pthread_cond_broadcast(&moments->turned);
}

void ds_moment_end(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    moment->is_done = true;
    pass(moments);
    while (!moment->is_past)
        pthread_cond_wait(&moments->turned, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}

int64_t ds_moments_present(struct ds_moments *moments, int64_t now_us)
{
    pthread_mutex_lock(&moments->lock);
    int64_t present_us;
    if (!list_is_empty(&moments->drawn)) {
        present_us = moment_of(moments->drawn.first)->at_us - 1;
    } else {
        if (now_us > moments->last_us)
            moments->last_us = now_us;
        present_us = moments->last_us;
    }
    pthread_mutex_unlock(&moments->lock);
    return present_us;
}

void ds_moments_reach(struct ds_moments *moments, int64_t at_us)
{
    pthread_mutex_lock(&moments->lock);
    if (at_us > moments->last_us)
        moments->last_us = at_us;
    while (!list_is_empty(&moments->drawn) && moment_of(moments->drawn.first)->at_us <= at_us)
        pthread_cond_wait(&moments->turned, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}

void ds_moment_wait_for_earlier(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    while (moments->drawn.first != &moment->link)
        pthread_cond_wait(&moments->turned, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}
