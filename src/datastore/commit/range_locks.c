/* See range_locks.h. */
#include "datastore/commit/range_locks.h"

#include "base/check.h"
#include "os/thread.h"
#include "wire/grpc.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* `LOOK_US`: after that long a locker that waits looks whether its call, or what it waits for, has
 * ended. */
enum { WAIT_US = 2 * 1000 * 1000, LOOK_US = 100 * 1000 };

/* The wish of a locker: ranges to share, or rows to claim. */
struct ds_wanted {
    const struct ds_read_range *ranges;
    size_t range_count;
    struct ds_claim claim; /* none: it wants to share */
};

struct ds_range_locks {
    struct clock *clock;
    struct metrics *metrics;
    unsigned most_waiting;
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* something was released, or given up */
    struct ds_locker *lockers; /* that hold, or want, something */
    unsigned waiting;
    uint64_t walks;
};

status ds_range_locks_create(struct clock *clock, struct metrics *metrics, unsigned most_waiting,
                             struct ds_range_locks **out)
{
    struct ds_range_locks *locks = *out = calloc(1, sizeof *locks);
    if (locks == NULL)
        return status_out_of_memory();
    locks->clock = clock;
    locks->metrics = metrics;
    locks->most_waiting = most_waiting;
    pthread_mutex_init(&locks->lock, NULL);
    thread_init_steady_wake(&locks->changed);
    return status_ok();
}

void ds_range_locks_destroy(struct ds_range_locks *locks)
{
    if (locks == NULL)
        return;
    CHECK(locks->lockers == NULL);
    pthread_cond_destroy(&locks->changed);
    pthread_mutex_destroy(&locks->lock);
    free(locks);
}

static void count(struct ds_range_locks *locks, enum metric metric)
{
    if (locks->metrics != NULL)
        metrics_add(locks->metrics, metric, 1);
}

/* --- expiry --- */

/* Owners keep and leave a locker, and others that want what it holds take it away: the first to
 * change `until_us` has decided. */

bool ds_locker_keep(struct ds_locker *locker, int64_t now_us)
{
    int64_t until_us = atomic_load(&locker->until_us);
    return now_us <= until_us &&
           atomic_compare_exchange_strong(&locker->until_us, &until_us, INT64_MAX);
}

void ds_locker_leave(struct ds_locker *locker, int64_t until_us)
{
    atomic_store(&locker->until_us, until_us);
}

static bool expires(struct ds_range_locks *locks, struct ds_locker *locker)
{
    int64_t until_us = atomic_load(&locker->until_us);
    return until_us != INT64_MAX && clock_steady_us(locks->clock) > until_us &&
           atomic_compare_exchange_strong(&locker->until_us, &until_us, INT64_MIN);
}

/* --- what meets what --- */

/* The first row that is not before the key. */
static size_t first_row(const struct ds_claim *claim, bytes key)
{
    size_t low = 0, high = claim->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bytes_compare(claim->rows[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool claim_meets_ranges(const struct ds_claim *claim, const struct ds_read_range *ranges,
                               size_t range_count)
{
    for (size_t i = 0; i < range_count; i++) {
        size_t at = first_row(claim, ranges[i].from);
        if (at < claim->count &&
            (ranges[i].to.size == 0 || bytes_compare(claim->rows[at], ranges[i].to) < 0))
            return true;
    }
    return false;
}

static bool claims_meet(const struct ds_claim *a, const struct ds_claim *b)
{
    const struct ds_claim *few = a->count < b->count ? a : b, *many = few == a ? b : a;
    for (size_t i = 0; i < few->count; i++) {
        size_t at = first_row(many, few->rows[i]);
        if (at < many->count && bytes_equal(many->rows[at], few->rows[i]))
            return true;
    }
    return false;
}

static bool wants_claim(const struct ds_locker *locker)
{
    return locker->wanted != NULL && locker->wanted->claim.count > 0;
}

static bool claim_is_met(const struct ds_claim *claim, const struct ds_wanted *wanted)
{
    return wanted->claim.count > 0 ? claims_meet(claim, &wanted->claim)
                                   : claim_meets_ranges(claim, wanted->ranges, wanted->range_count);
}

/* Whether `locker` waits for the other. */
static bool waits_for(const struct ds_locker *locker, const struct ds_locker *other)
{
    const struct ds_wanted *wanted = locker->wanted;
    DCHECK(wanted != NULL);
    if (other == locker || other->database != locker->database)
        return false;
    for (size_t i = 0; i < other->claim_count; i++)
        if (claim_is_met(&other->claims[i], wanted))
            return true;
    if (wants_claim(locker))
        return claim_meets_ranges(&wanted->claim, other->shared.items, other->shared.count);
    return other->age < locker->age && wants_claim(other) &&
           claim_is_met(&other->wanted->claim, wanted);
}

/* --- the list; with the lock held --- */

static void enlist(struct ds_range_locks *locks, struct ds_locker *locker)
{
    DCHECK(check_is_held(&locks->lock));
    if (locker->is_listed)
        return;
    locker->is_listed = true;
    locker->next = locks->lockers;
    locks->lockers = locker;
}

static void let_go(struct ds_range_locks *locks, struct ds_locker *locker)
{
    DCHECK(check_is_held(&locks->lock));
    struct ds_locker **at = &locks->lockers;
    if (!locker->is_listed)
        return;
    while (*at != locker)
        at = &(*at)->next;
    *at = locker->next;
    locker->is_listed = false;
    locker->shared.count = 0;
    locker->claim_count = 0;
    pthread_cond_broadcast(&locks->changed);
}

static bool must_wait(struct ds_range_locks *locks, const struct ds_locker *locker)
{
    DCHECK(check_is_held(&locks->lock) && locker->wanted != NULL);
    for (struct ds_locker *at = locks->lockers, *next; at != NULL; at = next) {
        next = at->next;
        if (!waits_for(locker, at))
            continue;
        if (!expires(locks, at))
            return true;
        let_go(locks, at);
    }
    return false;
}

/* --- which locker has to give way; with the lock held --- */

static struct ds_locker *younger(struct ds_locker *a, struct ds_locker *b)
{
    return a->age > b->age ? a : b;
}

/* The youngest of those that wait for `first` in a row that ends with `at`, by which it is a
 * circle; NULL: it is none. No deeper than there are threads that wait. */
static struct ds_locker *youngest_of_circle(struct ds_range_locks *locks, struct ds_locker *first,
                                            struct ds_locker *at)
{
    DCHECK(check_is_held(&locks->lock));
    at->walk = locks->walks;
    for (struct ds_locker *other = locks->lockers; other != NULL; other = other->next) {
        if (other->wanted == NULL || other->is_dropped || !waits_for(at, other))
            continue;
        if (other == first)
            return at;
        struct ds_locker *youngest =
            other->walk == locks->walks ? NULL : youngest_of_circle(locks, first, other);
        if (youngest != NULL)
            return younger(youngest, at);
    }
    return NULL;
}

static struct ds_locker *youngest_that_waits(struct ds_range_locks *locks, struct ds_locker *locker)
{
    struct ds_locker *youngest = locker;
    for (struct ds_locker *at = locks->lockers; at != NULL; at = at->next)
        if (at->is_waiting && !at->is_dropped)
            youngest = younger(youngest, at);
    return youngest;
}

static void doom(struct ds_range_locks *locks, struct ds_locker *locker)
{
    DCHECK(check_is_held(&locks->lock) && !locker->is_dropped);
    locker->is_dropped = true;
    count(locks, METRIC_datastore_lock_victims_total);
    pthread_cond_broadcast(&locks->changed);
}

static void break_circles(struct ds_range_locks *locks, struct ds_locker *locker)
{
    struct ds_locker *youngest;
    do {
        locks->walks++;
        youngest = locker->is_dropped ? NULL : youngest_of_circle(locks, locker, locker);
        if (youngest != NULL)
            doom(locks, youngest);
    } while (youngest != NULL);
}

/* --- waiting; with the lock held --- */

status ds_contended(void)
{
    return status_make(STATUS_ABORTED,
                       "Aborted due to cross-transaction contention. This occurs when multiple "
                       "transactions attempt to access the same data, requiring Firestore to abort "
                       "at least one in order to enforce serializability.");
}

static status wait_a_while(struct ds_range_locks *locks, struct ds_locker *locker, int64_t until_us,
                           const struct grpc_call *call)
{
    DCHECK(check_is_held(&locks->lock));
    int64_t left_us = until_us - clock_steady_us(locks->clock);
    break_circles(locks, locker);
    if (locker->is_dropped)
        return ds_contended();
    if (left_us <= 0) {
        count(locks, METRIC_datastore_lock_timeouts_total);
        return status_make(STATUS_ABORTED, "Transaction lock timeout.");
    }
    if (call != NULL && grpc_call_is_cancelled(call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    struct timespec next = thread_time_in(left_us < LOOK_US ? left_us : LOOK_US);
    pthread_cond_timedwait(&locks->changed, &locks->lock, &next);
    return status_ok();
}

static status wait_for(struct ds_range_locks *locks, struct ds_locker *locker,
                       const struct grpc_call *call)
{
    int64_t until_us = clock_steady_us(locks->clock) + WAIT_US;
    status s;
    bool counts = !locker->is_apart;
    count(locks, METRIC_datastore_lock_waits_total);
    if (counts && locks->waiting >= locks->most_waiting)
        doom(locks, youngest_that_waits(locks, locker));
    locker->is_waiting = counts;
    locks->waiting += counts;
    do
        s = wait_a_while(locks, locker, until_us, call);
    while (status_is_ok(s) && must_wait(locks, locker));
    locks->waiting -= counts;
    locker->is_waiting = false;
    return s;
}

/* --- sharing and claiming --- */

static status acquire(struct ds_range_locks *locks, struct ds_locker *locker,
                      const struct ds_wanted *wanted, const struct grpc_call *call)
{
    DCHECK(check_is_held(&locks->lock) && locker->wanted == NULL);
    status s = status_ok();
    size_t before = locker->shared.count;
    locker->wanted = wanted;
    locker->is_dropped = false;
    enlist(locks, locker);
    if (must_wait(locks, locker))
        s = wait_for(locks, locker, call);
    for (size_t i = 0; i < wanted->range_count && status_is_ok(s); i++)
        s = vector_add(&locker->shared, locker->arena, &wanted->ranges[i], sizeof *wanted->ranges);
    if (wanted->claim.count > 0 && status_is_ok(s))
        locker->claims[locker->claim_count++] = wanted->claim;
    locker->wanted = NULL;
    if (status_is_ok(s))
        return s;
    locker->shared.count = before;
    pthread_cond_broadcast(&locks->changed); /* lockers behind it need not wait for it */
    return s;
}

static bool is_shared(const struct ds_locker *locker, const struct ds_read_range *range)
{
    const struct ds_read_range *shared = locker->shared.items;
    for (size_t i = 0; i < locker->shared.count; i++)
        if (bytes_compare(shared[i].from, range->from) <= 0 &&
            (shared[i].to.size == 0 ||
             (range->to.size > 0 && bytes_compare(range->to, shared[i].to) <= 0)))
            return true;
    return false;
}

/* Copies of those that are not shared yet. */
static status copy_new(const struct ds_locker *locker, const struct ds_read_range *ranges,
                       size_t range_count, struct ds_read_range **out, size_t *out_count)
{
    struct ds_read_range *copies = arena_alloc(locker->arena, range_count * sizeof *copies);
    *out = copies;
    *out_count = 0;
    if (copies == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < range_count; i++) {
        if (is_shared(locker, &ranges[i]))
            continue;
        struct ds_read_range copy = {arena_copy(locker->arena, ranges[i].from),
                                     arena_copy(locker->arena, ranges[i].to)};
        if ((copy.from.data == NULL && ranges[i].from.size > 0) ||
            (copy.to.data == NULL && ranges[i].to.size > 0))
            return status_out_of_memory();
        copies[(*out_count)++] = copy;
    }
    return status_ok();
}

static status share(struct ds_range_locks *locks, struct ds_locker *locker,
                    const struct ds_read_range *ranges, size_t range_count,
                    const struct grpc_call *call)
{
    struct ds_wanted wanted = {0};
    struct ds_read_range *copies;
    if (range_count == 0)
        return status_ok();
    TRY(copy_new(locker, ranges, range_count, &copies, &wanted.range_count));
    if (wanted.range_count == 0)
        return status_ok();
    wanted.ranges = copies;
    pthread_mutex_lock(&locks->lock);
    status s = acquire(locks, locker, &wanted, call);
    pthread_mutex_unlock(&locks->lock);
    return s;
}

status ds_range_locks_share(struct ds_range_locks *locks, struct ds_locker *locker,
                            const struct ds_read_range *ranges, size_t range_count,
                            const struct grpc_call *call)
{
    status s = share(locks, locker, ranges, range_count, call);
    if (s.code != STATUS_RESOURCE_EXHAUSTED)
        return s;
    status_free(s);
    return status_make(STATUS_RESOURCE_EXHAUSTED, "The transaction has read too much.");
}

/* Whether rows rise, as a search among them expects; for DCHECKs. */
static bool rows_rise(const struct ds_claim *claim)
{
    for (size_t i = 1; i < claim->count; i++)
        if (bytes_compare(claim->rows[i - 1], claim->rows[i]) > 0)
            return false;
    return true;
}

status ds_range_locks_claim(struct ds_range_locks *locks, struct ds_locker *locker,
                            struct ds_claim claim, const struct grpc_call *call)
{
    DCHECK(rows_rise(&claim));
    const struct ds_wanted wanted = {.claim = claim};
    if (claim.count == 0)
        return status_ok();
    CHECK(locker->claim_count < DS_MOST_CLAIMS);
    pthread_mutex_lock(&locks->lock);
    status s = acquire(locks, locker, &wanted, call);
    pthread_mutex_unlock(&locks->lock);
    return s;
}

void ds_range_locks_release(struct ds_range_locks *locks, struct ds_locker *locker)
{
    pthread_mutex_lock(&locks->lock);
    let_go(locks, locker);
    pthread_mutex_unlock(&locks->lock);
}
