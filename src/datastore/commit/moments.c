/* See moments.h. */
#include "datastore/commit/moments.h"

#include "base/check.h"

static struct ds_moment *moment_of(struct link *link)
{
    return LIST_ENTRY(link, struct ds_moment, link);
}

/* Of those that are drawn, of which there is one. */
static const struct ds_moment *last_of(const struct ds_moments *moments)
{
    return moment_of((struct link *)(void *)moments->drawn.last); /* where its `next` is */
}

void ds_moments_init(struct ds_moments *moments)
{
    *moments = (struct ds_moments){.last_us = 0};
    pthread_mutex_init(&moments->lock, NULL);
    pthread_cond_init(&moments->passed, NULL);
}

void ds_moments_free(struct ds_moments *moments)
{
    CHECK(list_is_empty(&moments->drawn));
    pthread_cond_destroy(&moments->passed);
    pthread_mutex_destroy(&moments->lock);
}

void ds_moment_draw(struct ds_moments *moments, int64_t now_us, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    moments->last_us = now_us > moments->last_us ? now_us : moments->last_us + 1;
    *moment = (struct ds_moment){.at_us = moments->last_us};
    DCHECK(list_is_empty(&moments->drawn) || last_of(moments)->at_us < moments->last_us);
    list_append(&moments->drawn, &moment->link);
    if (moments->next == NULL)
        moments->next = &moment->link;
    pthread_mutex_unlock(&moments->lock);
}

/* --- on towards the past: with the lock held --- */

/* Enters all whose turn it is, in their order. The lock is let go for each of them. */
static void enter(struct ds_moments *moments)
{
    DCHECK(check_is_held(&moments->lock));
    while (!moments->is_entering && moments->next != NULL && moment_of(moments->next)->is_ready) {
        struct ds_moment *moment = moment_of(moments->next);
        DCHECK(!moment->has_entered);
        if (!moment->is_done) {
            moments->is_entering = true;
            pthread_mutex_unlock(&moments->lock);
            moment->enter(moment);
            pthread_mutex_lock(&moments->lock);
            moments->is_entering = false;
        }
        moment->has_entered = true;
        moments->next = moment->link.next;
    }
}

/* Takes those that are past now off the list. The result is of those whose owners are to be called.
 */
static struct list pass(struct ds_moments *moments)
{
    DCHECK(check_is_held(&moments->lock));
    struct list to_call = {0};
    while (!list_is_empty(&moments->drawn)) {
        struct ds_moment *first = moment_of(moments->drawn.first);
        if (!first->has_entered || !first->is_done)
            break;
        list_take(&moments->drawn);
        first->is_past = true;
        if (first->past != NULL)
            list_append(&to_call, &first->link);
        pthread_cond_broadcast(&moments->passed);
    }
    return to_call;
}

static void unlock_and_call(struct ds_moments *moments, struct list to_call)
{
    pthread_mutex_unlock(&moments->lock);
    while (!list_is_empty(&to_call)) {
        struct ds_moment *moment = moment_of(list_take(&to_call));
        moment->past(moment);
    }
}

/* --- what becomes of a moment --- */

void ds_moment_ready(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    DCHECK(!moment->is_ready && !moment->is_past);
    moment->is_ready = true;
    enter(moments);
    unlock_and_call(moments, pass(moments));
}

void ds_moment_give_up(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    DCHECK(!moment->is_ready && !moment->has_entered);
    moment->is_ready = moment->is_done = true;
    enter(moments);
    unlock_and_call(moments, pass(moments));
}

void ds_moment_applied(struct ds_moments *moments, struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    DCHECK(moment->has_entered || moments->is_entering);
    moment->is_done = true;
    unlock_and_call(moments, pass(moments));
}

void ds_moment_end(struct ds_moments *moments, struct ds_moment *moment)
{
    CHECK(moment->past == NULL);
    if (!moment->is_ready)
        ds_moment_give_up(moments, moment);
    pthread_mutex_lock(&moments->lock);
    while (!moment->is_past)
        pthread_cond_wait(&moments->passed, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}

/* --- who reads --- */

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
        pthread_cond_wait(&moments->passed, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}

void ds_moment_wait_for_earlier(struct ds_moments *moments, const struct ds_moment *moment)
{
    pthread_mutex_lock(&moments->lock);
    while (moments->drawn.first != &moment->link)
        pthread_cond_wait(&moments->passed, &moments->lock);
    pthread_mutex_unlock(&moments->lock);
}
