/* Row locks: see row_locks.h.
 *
 * A stripe is handed over, never thrown open: while there are waiters, a release gives it straight
 * to the oldest, so no waiter is overtaken or starves. The releasing thread calls the waiter. A
 * waiter that is done at once (a blind write: it submits and releases) would make the releases nest
 * as deep as the queue is long; instead the release inside says so in `is_released`, and the one
 * outside goes on with the next.
 *
 * Nearly always nobody waits, and one exchange of `state` takes a stripe, or gives it back. Whoever
 * finds it held makes it STRIPE_AWAITED, under the mutex; from then on it is given back under the
 * mutex, too, until somebody gives it back and nobody waits. */
#include "tablet/row_locks.h"

#include "base/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STRIPE_COUNT = 4096 }; /* a power of two */

enum { STRIPE_FREE, STRIPE_HELD, STRIPE_AWAITED };

struct stripe {
    atomic_uint state;    /* leaves STRIPE_AWAITED under the lock alone */
    uint64_t sequence;    /* its holder's */
    pthread_mutex_t lock; /* of what follows; held for a few instructions only */
    bool is_granting;     /* some thread is in `granted`, and will look at is_released after it */
    bool is_released;     /* only while granting: the one that was granted has released already */
    struct list waiters;
};

struct row_locks {
    pthread_mutex_t all_lock; /* held by the thread that takes, or has, every stripe */
    struct stripe stripes[STRIPE_COUNT];
};

status row_locks_create(struct row_locks **out)
{
    struct row_locks *locks = *out = calloc(1, sizeof *locks);
    if (locks == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&locks->all_lock, NULL);
    for (size_t i = 0; i < STRIPE_COUNT; i++)
        pthread_mutex_init(&locks->stripes[i].lock, NULL);
    return status_ok();
}

/* By whomever. */
static bool is_held(const struct stripe *stripe)
{
    return atomic_load(&stripe->state) != STRIPE_FREE;
}

void row_locks_destroy(struct row_locks *locks)
{
    if (locks == NULL)
        return;
    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        CHECK(!is_held(&locks->stripes[i]));
        DCHECK(list_is_empty(&locks->stripes[i].waiters));
        pthread_mutex_destroy(&locks->stripes[i].lock);
    }
    pthread_mutex_destroy(&locks->all_lock);
    free(locks);
}

uint64_t row_lock_hash(uint64_t keyspace_id, bytes row_key)
{
    /* Any odd constant would do: it keeps equal keys of different tables apart. */
    return bytes_hash(row_key) ^ (keyspace_id * 0x9e3779b97f4a7c15u);
}

static size_t stripe_index(uint64_t hash)
{
    return (hash ^ hash >> 32) % STRIPE_COUNT;
}

static struct stripe *stripe_of(struct row_locks *locks, uint64_t hash)
{
    return &locks->stripes[stripe_index(hash)];
}

static bool try_acquire(struct stripe *stripe)
{
    unsigned state = STRIPE_FREE;
    return atomic_compare_exchange_strong_explicit(&stripe->state, &state, STRIPE_HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Takes it if it is free by now; else the waiter is in line. */
static __attribute__((noinline)) bool acquire_in_turn(struct stripe *stripe,
                                                      struct row_lock_waiter *waiter)
{
    pthread_mutex_lock(&stripe->lock);
    bool is_free = atomic_exchange(&stripe->state, STRIPE_AWAITED) == STRIPE_FREE;
    if (is_free)
        atomic_store(&stripe->state, STRIPE_HELD);
    else
        list_append(&stripe->waiters, &waiter->link);
    pthread_mutex_unlock(&stripe->lock);
    return is_free;
}

static bool acquire(struct stripe *stripe, struct row_lock_waiter *waiter)
{
    return try_acquire(stripe) || acquire_in_turn(stripe, waiter);
}

/* While somebody waits, or is granted it. */
static __attribute__((noinline)) void release_in_turn(struct stripe *stripe)
{
    pthread_mutex_lock(&stripe->lock);
    CHECK(is_held(stripe));
    if (stripe->is_granting) {
        stripe->is_released = true;
        pthread_mutex_unlock(&stripe->lock);
        return;
    }
    struct link *next;
    while ((next = list_take(&stripe->waiters)) != NULL) {
        stripe->is_granting = true;
        pthread_mutex_unlock(&stripe->lock);
        struct row_lock_waiter *waiter = LIST_ENTRY(next, struct row_lock_waiter, link);
        waiter->granted(waiter);
        pthread_mutex_lock(&stripe->lock);
        stripe->is_granting = false;
        if (!stripe->is_released)
            break;
        stripe->is_released = false;
    }
    DCHECK(next != NULL || list_is_empty(&stripe->waiters));
    if (next == NULL)
        atomic_store(&stripe->state, STRIPE_FREE);
    pthread_mutex_unlock(&stripe->lock);
}

static void release(struct stripe *stripe)
{
    unsigned state = STRIPE_HELD;
    if (!atomic_compare_exchange_strong_explicit(&stripe->state, &state, STRIPE_FREE,
                                                 memory_order_release, memory_order_relaxed))
        release_in_turn(stripe);
}

bool row_lock_acquire(struct row_locks *locks, uint64_t hash, struct row_lock_waiter *waiter)
{
    return acquire(stripe_of(locks, hash), waiter);
}

bool row_lock_try(struct row_locks *locks, uint64_t hash)
{
    return try_acquire(stripe_of(locks, hash));
}

void row_lock_release(struct row_locks *locks, uint64_t hash)
{
    release(stripe_of(locks, hash));
}

/* The sequence is its holder's alone; the changes of `state`, or the lock at a handover, order
 * accesses. */
static void note_sequence(struct stripe *stripe, uint64_t sequence)
{
    DCHECK(is_held(stripe));
    if (sequence > stripe->sequence)
        stripe->sequence = sequence;
}

void row_lock_note_sequence(struct row_locks *locks, uint64_t hash, uint64_t sequence)
{
    note_sequence(stripe_of(locks, hash), sequence);
}

uint64_t row_lock_sequence(struct row_locks *locks, uint64_t hash)
{
    struct stripe *stripe = stripe_of(locks, hash);
    DCHECK(is_held(stripe));
    return stripe->sequence;
}

/* --- waiting on a thread that may block --- */

struct blocked {
    struct row_lock_waiter waiter;
    pthread_mutex_t lock;
    pthread_cond_t granted;
    bool is_granted;
};

static void wake(struct row_lock_waiter *waiter)
{
    struct blocked *blocked = LIST_ENTRY(waiter, struct blocked, waiter);
    pthread_mutex_lock(&blocked->lock);
    DCHECK(!blocked->is_granted);
    blocked->is_granted = true;
    pthread_cond_signal(&blocked->granted);
    pthread_mutex_unlock(&blocked->lock);
}

static void acquire_blocking(struct stripe *stripe)
{
    struct blocked blocked = {.waiter = {.granted = wake},
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .granted = PTHREAD_COND_INITIALIZER};
    if (acquire(stripe, &blocked.waiter))
        return;
    pthread_mutex_lock(&blocked.lock);
    while (!blocked.is_granted)
        pthread_cond_wait(&blocked.granted, &blocked.lock);
    pthread_mutex_unlock(&blocked.lock);
}

void row_lock_wait(struct row_locks *locks, uint64_t hash)
{
    acquire_blocking(stripe_of(locks, hash));
}

/* Puts each stripe's index in place of its rows' hashes, once and in rising order. An index is a
 * hash of its own stripe. */
static size_t sort_stripes(uint64_t *hashes, size_t count)
{
    enum { WORD_BITS = 64 };
    uint64_t wanted[STRIPE_COUNT / WORD_BITS] = {0};
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t index = stripe_index(hashes[i]);
        wanted[index / WORD_BITS] |= (uint64_t)1 << index % WORD_BITS;
    }
    for (size_t i = 0; i < STRIPE_COUNT / WORD_BITS; i++)
        for (uint64_t word = wanted[i]; word != 0; word &= word - 1)
            hashes[kept++] = i * WORD_BITS + (size_t)__builtin_ctzll(word);
    DCHECK(kept <= count);
    return kept;
}

void row_locks_acquire_many(struct row_locks *locks, uint64_t *hashes, size_t *count)
{
    *count = sort_stripes(hashes, *count);
    for (size_t i = 0; i < *count; i++)
        acquire_blocking(stripe_of(locks, hashes[i]));
}

void row_locks_release_many(struct row_locks *locks, const uint64_t *hashes, size_t count,
                            uint64_t sequence)
{
    for (size_t i = 0; i < count; i++) {
        note_sequence(stripe_of(locks, hashes[i]), sequence);
        release(stripe_of(locks, hashes[i]));
    }
}

void row_locks_acquire_all(struct row_locks *locks)
{
    DCHECK(!check_is_held(&locks->all_lock));
    pthread_mutex_lock(&locks->all_lock);
    for (size_t i = 0; i < STRIPE_COUNT; i++)
        acquire_blocking(&locks->stripes[i]);
}

void row_locks_release_all(struct row_locks *locks, uint64_t sequence)
{
    DCHECK(check_is_held(&locks->all_lock));
    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        note_sequence(&locks->stripes[i], sequence);
        release(&locks->stripes[i]);
    }
    pthread_mutex_unlock(&locks->all_lock);
}

bool row_lock_is_held(struct row_locks *locks, uint64_t hash)
{
    return is_held(stripe_of(locks, hash));
}

bool row_locks_are_all_held(struct row_locks *locks)
{
    return check_is_locked(&locks->all_lock);
}
