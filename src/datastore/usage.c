/* See usage.h.
 *
 *  1. A ring's events are looked at only by the thread that has taken it, which is one exchange on
 *     a line of memory that no other processor uses. A thread that counts never waits for a ring:
 *     one that is taken is passed over for the next.
 *  2. A thread that collects takes a ring for as long as it takes to put other memory in; what was
 *     in it it reads without the ring. `lock` lets one collect at a time, and guards sums. */
#include "datastore/usage.h"

#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MINUTE_US (INT64_C(60) * 1000000)

enum {
    CACHE_LINE = 64,
    MOST_RINGS = 8, /* processors beyond share; a power of two */
    TAKE_ROUNDS = 2,
    USAGE_COUNTED_ALL = 512,
    STEP = 64, /* events between two halvings of the share that is counted */
    MOST_SHIFT = 8,
    RING_EVENTS = USAGE_COUNTED_ALL + STEP * MOST_SHIFT,
};

struct ring {
    alignas(CACHE_LINE) atomic_bool is_taken;
    atomic_uint calls; /* that were seen, about: the thread that runs here counts up */
    atomic_uint shift; /* one in 1 << shift of them is counted */
    unsigned count;
    struct ds_usage_event *events; /* RING_EVENTS; NULL: none was needed yet */
};

struct ds_usage {
    struct clock *clock;
    _Atomic uint32_t minute; /* of the wall clock */
    unsigned mask;           /* one less than there are rings */
    pthread_mutex_t lock;
    struct ds_usage_event *spare[MOST_RINGS]; /* memory for rings whose own is being read */
    unsigned counts[MOST_RINGS];              /* events in what was taken from each */
    const struct ds_usage_event **order;      /* room for all of them; NULL: not needed yet */
    struct ring rings[];
};

struct ds_usage_database {
    struct ds_index_marks *marks;
    struct ds_usage_sums *sums; /* under the lock of all; NULL: nothing was counted yet */
};

static unsigned ring_count(void)
{
    unsigned count = 1;
    while (count < MOST_RINGS && count < thread_processors())
        count *= 2;
    return count;
}

static void take_minute(struct ds_usage *usage)
{
    int64_t minute = clock_wall_us(usage->clock) / MINUTE_US;
    atomic_store_explicit(&usage->minute, minute > 0 ? (uint32_t)minute : 1, memory_order_relaxed);
}

uint32_t ds_usage_minute(const struct ds_usage *usage)
{
    return atomic_load_explicit(&usage->minute, memory_order_relaxed);
}

status ds_usage_create(struct clock *clock, struct ds_usage **out)
{
    unsigned count = ring_count();
    size_t size = sizeof(struct ds_usage) + count * sizeof(struct ring);
    size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct ds_usage *usage = *out = aligned_alloc(CACHE_LINE, size);
    if (usage == NULL)
        return status_out_of_memory();
    memset(usage, 0, size);
    usage->clock = clock;
    usage->mask = count - 1;
    take_minute(usage);
    pthread_mutex_init(&usage->lock, NULL);
    return status_ok();
}

void ds_usage_destroy(struct ds_usage *usage)
{
    if (usage == NULL)
        return;
    for (unsigned i = 0; i <= usage->mask; i++) {
        free(usage->rings[i].events);
        free(usage->spare[i]);
    }
    free(usage->order);
    pthread_mutex_destroy(&usage->lock);
    free(usage);
}

struct ds_usage_database *ds_usage_database_create(const struct ds_usage *usage)
{
    struct ds_usage_database *database = usage == NULL ? NULL : calloc(1, sizeof *database);
    if (database == NULL)
        return NULL;
    database->marks = ds_index_marks_create();
    if (database->marks == NULL) {
        free(database);
        return NULL;
    }
    ds_index_marks_begin(database->marks, ds_usage_minute(usage));
    return database;
}

struct ds_index_marks *ds_usage_marks(struct ds_usage_database *database)
{
    return database->marks;
}

void ds_usage_database_destroy(struct ds_usage_database *database)
{
    if (database == NULL)
        return;
    ds_index_marks_destroy(database->marks);
    ds_usage_sums_destroy(database->sums);
    free(database);
}

/* --- counting --- */

static unsigned own_ring(const struct ds_usage *usage)
{
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (unsigned)processor & usage->mask;
}

static bool try_take(struct ring *ring)
{
    return !atomic_exchange_explicit(&ring->is_taken, true, memory_order_acquire);
}

static void give_back(struct ring *ring)
{
    atomic_store_explicit(&ring->is_taken, false, memory_order_release);
}

/* NULL: all are taken, so this one is not counted. */
static struct ring *take_some_ring(struct ds_usage *usage)
{
    unsigned own = own_ring(usage);
    for (unsigned i = 0; i < TAKE_ROUNDS * (usage->mask + 1); i++) {
        struct ring *ring = &usage->rings[(own + i) & usage->mask];
        if (try_take(ring))
            return ring;
    }
    return NULL;
}

/* At no regular distance: calls may come in a rhythm. */
uint32_t ds_usage_choose(struct ds_usage *usage)
{
    const uint32_t golden_ratio = 0x9e3779b1;
    struct ring *ring = &usage->rings[own_ring(usage)];
    uint32_t call = atomic_load_explicit(&ring->calls, memory_order_relaxed);
    atomic_store_explicit(&ring->calls, call + 1, memory_order_relaxed);
    unsigned shift = atomic_load_explicit(&ring->shift, memory_order_relaxed);
    return call * golden_ratio <= UINT32_MAX >> shift ? 1u << shift : 0;
}

static unsigned shift_after(unsigned count)
{
    unsigned shift = count < USAGE_COUNTED_ALL ? 0 : 1 + (count - USAGE_COUNTED_ALL) / STEP;
    return shift < MOST_SHIFT ? shift : MOST_SHIFT;
}

static void put_in(struct ring *ring, const struct ds_usage_event *event)
{
    if (ring->events == NULL)
        ring->events = malloc(RING_EVENTS * sizeof *ring->events);
    if (ring->events == NULL || ring->count == RING_EVENTS)
        return;
    ring->events[ring->count++] = *event;
    atomic_store_explicit(&ring->shift, shift_after(ring->count), memory_order_relaxed);
}

void ds_usage_add(struct ds_usage *usage, const struct ds_usage_event *event)
{
    struct ring *ring = take_some_ring(usage);
    if (ring == NULL)
        return;
    put_in(ring, event);
    give_back(ring);
}

/* --- collecting; with the lock held --- */

static void swap(struct ring *ring, struct ds_usage_event **spare, unsigned *count)
{
    while (!try_take(ring)) /* for less than a microsecond, if its thread is not interrupted */
        sched_yield();
    struct ds_usage_event *events = ring->events;
    ring->events = *spare;
    *spare = events;
    *count = ring->count;
    ring->count = 0;
    atomic_store_explicit(&ring->shift, 0, memory_order_relaxed);
    give_back(ring);
}

static int by_beginning(const void *a, const void *b)
{
    const struct ds_usage_event *left = *(const struct ds_usage_event *const *)a;
    const struct ds_usage_event *right = *(const struct ds_usage_event *const *)b;
    return left->begun_us < right->begun_us ? -1 : left->begun_us > right->begun_us;
}

static void add_up(const struct ds_usage_event *event)
{
    struct ds_usage_database *database = event->database;
    if (database->sums == NULL)
        database->sums = ds_usage_sums_create(event->begun_us);
    if (database->sums != NULL)
        ds_usage_sums_add(database->sums, event);
}

/* Calls of one caller came one after the other on any processors. Without memory they are added
 * ring by ring. */
static void add_all(struct ds_usage *usage)
{
    size_t total = 0;
    if (usage->order == NULL)
        usage->order = malloc((usage->mask + 1) * RING_EVENTS * sizeof *usage->order);
    for (unsigned i = 0; i <= usage->mask; i++)
        for (unsigned j = 0; j < usage->counts[i]; j++)
            if (usage->order == NULL)
                add_up(&usage->spare[i][j]);
            else
                usage->order[total++] = &usage->spare[i][j];
    if (total == 0)
        return;
    qsort(usage->order, total, sizeof *usage->order, by_beginning);
    for (size_t i = 0; i < total; i++)
        add_up(usage->order[i]);
}

static void collect(struct ds_usage *usage)
{
    unsigned any = 0;
    take_minute(usage);
    for (unsigned i = 0; i <= usage->mask; i++) {
        swap(&usage->rings[i], &usage->spare[i], &usage->counts[i]);
        any |= usage->counts[i];
    }
    if (any > 0)
        add_all(usage);
}

void ds_usage_collect(struct ds_usage *usage)
{
    pthread_mutex_lock(&usage->lock);
    collect(usage);
    pthread_mutex_unlock(&usage->lock);
}

/* That time by the steady clock; INT64_MIN: always. */
static int64_t steady_since(const struct ds_usage *usage, int64_t since_us)
{
    int64_t passed_us = clock_wall_us(usage->clock) - since_us;
    return since_us == 0 ? INT64_MIN : clock_steady_us(usage->clock) - passed_us;
}

status ds_usage_look(struct ds_usage *usage, struct ds_usage_database *database, int64_t since_us,
                     struct arena *arena, struct ds_usage_view *out)
{
    status s = status_ok();
    *out = (struct ds_usage_view){.span_us = 0};
    pthread_mutex_lock(&usage->lock);
    collect(usage);
    if (database->sums != NULL)
        s = ds_usage_sums_view(database->sums, clock_steady_us(usage->clock),
                               steady_since(usage, since_us), arena, out);
    pthread_mutex_unlock(&usage->lock);
    return s;
}
