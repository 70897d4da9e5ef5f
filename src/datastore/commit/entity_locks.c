/* See entity_locks.h. Locks that are held stand in a hash table; a thread that waits looks again
 * when one is released that shares the table's part. */
#include "datastore/commit/entity_locks.h"

#include "base/check.h"
#include "os/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { PARTS = 64, BUCKETS = 256 };

struct part {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct ds_lock *buckets[BUCKETS];
};

struct ds_locks {
    struct part parts[PARTS];
};

status ds_locks_create(struct ds_locks **out)
{
    struct ds_locks *locks = *out = calloc(1, sizeof *locks);
    if (locks == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < PARTS; i++) {
        pthread_mutex_init(&locks->parts[i].lock, NULL);
        thread_init_steady_wake(&locks->parts[i].released);
    }
    return status_ok();
}

void ds_locks_destroy(struct ds_locks *locks)
{
    if (locks == NULL)
        return;
    for (size_t i = 0; i < PARTS; i++) {
        for (size_t k = 0; k < BUCKETS; k++)
            CHECK(locks->parts[i].buckets[k] == NULL);
        pthread_cond_destroy(&locks->parts[i].released);
        pthread_mutex_destroy(&locks->parts[i].lock);
    }
    free(locks);
}

static struct part *part_of(struct ds_locks *locks, bytes key)
{
    return &locks->parts[bytes_hash(key) % PARTS];
}

static struct ds_lock **bucket_of(struct part *part, bytes key)
{
    return &part->buckets[bytes_hash(key) / PARTS % BUCKETS];
}

/* With the part's lock held. */
static bool is_held(struct part *part, bytes key)
{
    DCHECK(check_is_held(&part->lock));
    const struct ds_lock *at = *bucket_of(part, key);
    while (at != NULL && !bytes_equal(at->key, key))
        at = at->next;
    return at != NULL;
}

static bool take_one(struct ds_locks *locks, struct ds_lock *lock, const struct timespec *until)
{
    struct part *part = part_of(locks, lock->key);
    int error = 0;
    pthread_mutex_lock(&part->lock);
    while (is_held(part, lock->key) && error == 0)
        error = pthread_cond_timedwait(&part->released, &part->lock, until);
    bool is_free = !is_held(part, lock->key);
    if (is_free) {
        struct ds_lock **bucket = bucket_of(part, lock->key);
        lock->next = *bucket;
        *bucket = lock;
    }
    pthread_mutex_unlock(&part->lock);
    return is_free;
}

static void release_one(struct ds_locks *locks, struct ds_lock *lock)
{
    struct part *part = part_of(locks, lock->key);
    pthread_mutex_lock(&part->lock);
    DCHECK(is_held(part, lock->key));
    struct ds_lock **at = bucket_of(part, lock->key);
    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
    pthread_cond_broadcast(&part->released);
    pthread_mutex_unlock(&part->lock);
}

status ds_locks_take(struct ds_locks *locks, struct ds_lock *taken, size_t count, int64_t most_us)
{
    const struct timespec until = thread_time_in(most_us);
    for (size_t i = 0; i < count; i++) {
        DCHECK(i == 0 || bytes_compare(taken[i - 1].key, taken[i].key) < 0);
        if (take_one(locks, &taken[i], &until))
            continue;
        ds_locks_release(locks, taken, i);
        return status_make(STATUS_ABORTED, "too much contention on these datastore entities. "
                                           "please try again.");
    }
    return status_ok();
}

void ds_locks_release(struct ds_locks *locks, struct ds_lock *taken, size_t count)
{
    for (size_t i = 0; i < count; i++)
        release_one(locks, &taken[i]);
}
