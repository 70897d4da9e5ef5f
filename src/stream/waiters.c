/* Who waits for records of a tablet. See log.h.
 *
 * A waiter counts before it reads for the last time, and the commit thread looks at the count after
 * the batch is in the store: one of the two sees the other. */
#include "base/check.h"
#include "stream/log_private.h"

static struct list *bucket_of(struct stream_log *log, uint64_t tablet)
{
    return &log->waiters[tablet % WAITER_BUCKETS];
}

void waiters_init(struct stream_log *log)
{
    pthread_mutex_init(&log->waiting_lock, NULL);
}

void waiters_destroy(struct stream_log *log)
{
    DCHECK(atomic_load(&log->waiting) == 0);
    pthread_mutex_destroy(&log->waiting_lock);
}

void stream_log_wait(struct stream_log *log, struct stream_waiter *waiter)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(waiter->tablet != 0);
    pthread_mutex_lock(&log->waiting_lock);
    list_append(bucket_of(log, waiter->tablet), &waiter->link);
    atomic_fetch_add(&log->waiting, 1);
    pthread_mutex_unlock(&log->waiting_lock);
}

bool stream_log_forget(struct stream_log *log, struct stream_waiter *waiter)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    pthread_mutex_lock(&log->waiting_lock);
    struct list *bucket = bucket_of(log, waiter->tablet);
    struct link **at = &bucket->first;
    while (*at != NULL && *at != &waiter->link)
        at = &(*at)->next;
    bool is_waiting = *at != NULL;
    if (is_waiting) {
        list_take_at(bucket, at);
        atomic_fetch_sub(&log->waiting, 1);
    }
    pthread_mutex_unlock(&log->waiting_lock);
    return is_waiting;
}

/* Whoever is posted may be gone at once. With the lock held. */
static void wake_in(struct stream_log *log, struct list *bucket, uint64_t tablet, bool all)
{
    for (struct link **at = &bucket->first; *at != NULL;) {
        struct stream_waiter *waiter = LIST_ENTRY(*at, struct stream_waiter, link);
        if (!all && waiter->tablet != tablet) {
            at = &(*at)->next;
            continue;
        }
        list_take_at(bucket, at);
        atomic_fetch_sub(&log->waiting, 1);
        if (waiter->loop != NULL)
            loop_post(waiter->loop, &waiter->task);
        else
            waiter->task.run(&waiter->task);
    }
}

void stream_log_wake(struct stream_log *log, uint64_t tablet)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    if (atomic_load(&log->waiting) == 0)
        return;
    pthread_mutex_lock(&log->waiting_lock);
    wake_in(log, bucket_of(log, tablet), tablet, false);
    pthread_mutex_unlock(&log->waiting_lock);
}

void waiters_wake_touched(struct stream_log *log)
{
    if (atomic_load(&log->waiting) == 0)
        return;
    pthread_mutex_lock(&log->waiting_lock);
    for (size_t i = 0; i < log->touched_count; i++)
        wake_in(log, bucket_of(log, log->touched[i]), log->touched[i], false);
    for (size_t i = 0; i < WAITER_BUCKETS && log->has_touched_more; i++)
        wake_in(log, &log->waiters[i], 0, true);
    pthread_mutex_unlock(&log->waiting_lock);
}
