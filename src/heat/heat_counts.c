/* See heat_counts.h. */
#include "heat/heat_counts.h"

#include "base/check.h"
#include "os/thread.h"

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    CACHE_LINE = 64,
    MOST_SLOTS = 8, /* processors beyond share; a power of two */
    MOST_SHIFT = 5,
    TAKE_ROUNDS = 4,
    MARK_STEPS = 256, /* writes of a range between two marks, once there have been as many */
};

struct heat_slot {
    alignas(CACHE_LINE) atomic_bool is_taken;
    atomic_uint requests; /* that were seen, about: the thread that runs here counts up */
    atomic_uint shift;    /* one in 1 << shift of them is counted */
    unsigned counted;
    uint64_t written; /* as many writes as those that were counted stand for */
    size_t front;     /* the range that became a front last, since the last take */
    const struct heat_ranges *ranges;
    struct heat_cell *cells; /* NULL: none was needed yet */
};

struct heat_counts {
    unsigned mask; /* one less than there are slots */
    struct heat_ranges *ranges;
    struct heat_slot slots[];
};

static unsigned slot_count(void)
{
    unsigned count = 1;
    while (count < MOST_SLOTS && count < thread_processors())
        count *= 2;
    return count;
}

struct heat_counts *heat_counts_create(void)
{
    unsigned count = slot_count();
    size_t size = sizeof(struct heat_counts) + count * sizeof(struct heat_slot);
    size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct heat_counts *counts = aligned_alloc(CACHE_LINE, size);
    if (counts == NULL)
        return NULL;
    memset(counts, 0, size);
    status s = heat_ranges_create(NULL, 0, NULL, &counts->ranges);
    if (!status_is_ok(s)) {
        status_free(s);
        free(counts);
        return NULL;
    }
    counts->mask = count - 1;
    for (unsigned i = 0; i < count; i++)
        counts->slots[i].ranges = counts->ranges;
    return counts;
}

void heat_counts_destroy(struct heat_counts *counts)
{
    if (counts == NULL)
        return;
    for (unsigned i = 0; i <= counts->mask; i++) {
        DCHECK(!atomic_load(&counts->slots[i].is_taken));
        free(counts->slots[i].cells);
    }
    heat_ranges_destroy(counts->ranges);
    free(counts);
}

/* --- slots --- */

static unsigned own_slot(const struct heat_counts *counts)
{
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (unsigned)processor & counts->mask;
}

static bool try_take(struct heat_slot *slot)
{
    return !atomic_exchange_explicit(&slot->is_taken, true, memory_order_acquire);
}

static void give_back(struct heat_slot *slot)
{
    DCHECK(atomic_load(&slot->is_taken));
    atomic_store_explicit(&slot->is_taken, false, memory_order_release);
}

/* NULL: all are taken, so this one is not counted. A thread that takes them one after the other may
 * be met in each, having just left the one before: hence several rounds. */
static struct heat_slot *take_some_slot(struct heat_counts *counts)
{
    unsigned own = own_slot(counts);
    for (unsigned i = 0; i < TAKE_ROUNDS * (counts->mask + 1); i++) {
        struct heat_slot *slot = &counts->slots[(own + i) & counts->mask];
        if (try_take(slot))
            return slot;
    }
    return NULL;
}

/* A slot is held for less than a microsecond, if its holder is not interrupted. */
static void take_slot(struct heat_slot *slot)
{
    while (!try_take(slot))
        sched_yield();
}

/* At no regular distance: requests may come in a rhythm. */
uint32_t heat_counts_choose(struct heat_counts *counts)
{
    const uint32_t golden_ratio = 0x9e3779b1;
    struct heat_slot *slot = &counts->slots[own_slot(counts)];
    uint32_t request = atomic_load_explicit(&slot->requests, memory_order_relaxed);
    atomic_store_explicit(&slot->requests, request + 1, memory_order_relaxed);
    unsigned shift = atomic_load_explicit(&slot->shift, memory_order_relaxed);
    return request * golden_ratio <= UINT32_MAX >> shift ? 1u << shift : 0;
}

/* --- counting --- */

static void keep_key(struct heat_key *to, bytes key)
{
    to->size = (uint32_t)key.size;
    if (key.size > 0)
        memcpy(to->data, key.data, key.size < HEAT_KEY_BYTES ? key.size : HEAT_KEY_BYTES);
}

static bytes kept(const struct heat_key *key)
{
    return bytes_make(key->data, key->size < HEAT_KEY_BYTES ? key->size : HEAT_KEY_BYTES);
}

/* By its beginning; keys that agree in all of that are alike. */
static bool is_after(bytes key, const struct heat_key *other)
{
    if (key.size > HEAT_KEY_BYTES)
        key.size = HEAT_KEY_BYTES;
    return bytes_compare(key, kept(other)) > 0;
}

static void vote(struct heat_cell *cell, bytes key, uint64_t weight)
{
    uint64_t hash = bytes_hash(key);
    if (cell->votes > 0 && cell->favourite_hash == hash) {
        cell->votes += weight;
    } else if (cell->votes > weight) {
        cell->votes -= weight;
    } else {
        cell->votes = weight;
        cell->favourite_hash = hash;
        keep_key(&cell->favourite, key);
    }
}

/* Invariant 4, of the range alone. */
static bool is_front(const struct heat_cell *cell)
{
    return cell->numbers[HEAT_RISING] > 0 &&
           2 * cell->numbers[HEAT_WRITES] >= cell->written_until - cell->written_from;
}

static void note_front(struct heat_slot *slot, size_t range)
{
    struct heat_cell *cell = &slot->cells[range];
    cell->written_until = slot->written;
    if (cell->was_front || !is_front(cell))
        return;
    cell->was_front = true;
    cell->fell = range < slot->front;
    slot->front = range;
}

/* The mark is set again after 1, 2, 4, … writes, and then once in MARK_STEPS: so writers that go
 * ahead together, each a little before or behind the others, are seen to rise all the same, while
 * keys that come in no order are next to never after the greatest of many. */
static void note_order(struct heat_slot *slot, size_t range, bytes key, uint32_t weight)
{
    struct heat_cell *cell = &slot->cells[range];
    DCHECK(slot->written >= cell->written_from);
    uint32_t seen = ++cell->writes_seen;
    if (seen == 1)
        cell->written_from = slot->written;
    slot->written += weight;
    if (seen > 1 && is_after(key, &cell->mark)) {
        cell->numbers[HEAT_RISING] += weight;
        note_front(slot, range);
    }
    if (seen == 1 || is_after(key, &cell->greatest))
        keep_key(&cell->greatest, key);
    if (seen < MARK_STEPS ? (seen & (seen - 1)) == 0 : seen % MARK_STEPS == 0)
        cell->mark = cell->greatest;
}

static void count_rows(struct heat_cell *cell, const struct heat_event *event)
{
    bool is_write = event->is_write;
    uint64_t *numbers = cell->numbers;
    numbers[is_write ? HEAT_WRITES : HEAT_READS] += event->rows * event->weight;
    numbers[is_write ? HEAT_WRITTEN_BYTES : HEAT_READ_BYTES] += event->bytes * event->weight;
    if (event->us > 0) {
        numbers[is_write ? HEAT_WRITE_US : HEAT_READ_US] += event->us * event->weight;
        numbers[is_write ? HEAT_TIMED_WRITES : HEAT_TIMED_READS] += event->weight;
    }
    if (event->largest_row > numbers[HEAT_LARGEST_ROW])
        numbers[HEAT_LARGEST_ROW] = event->largest_row;
}

static void count_in(struct heat_slot *slot, const struct heat_event *event)
{
    DCHECK(atomic_load(&slot->is_taken) && event->weight > 0);
    if (slot->cells == NULL)
        slot->cells = calloc(slot->ranges->count, sizeof *slot->cells);
    if (slot->cells == NULL)
        return;
    size_t range = heat_ranges_find(slot->ranges, event->key);
    DCHECK(range < slot->ranges->count);
    struct heat_cell *cell = &slot->cells[range];
    count_rows(cell, event);
    if (event->us > 0)
        vote(cell, event->key, event->weight);
    if (event->is_write)
        note_order(slot, range, event->key, event->weight);
    slot->counted++;
    unsigned shift = slot->counted / HEAT_COUNTED_ALL;
    if (shift <= MOST_SHIFT)
        atomic_store_explicit(&slot->shift, shift, memory_order_relaxed);
}

void heat_counts_add(struct heat_counts *counts, const struct heat_event *event)
{
    struct heat_slot *slot = take_some_slot(counts);
    if (slot == NULL)
        return;
    count_in(slot, event);
    give_back(slot);
}

/* --- taking --- */

static void add_votes(struct heat_cell *to, const struct heat_cell *cell)
{
    if (to->favourite_hash == cell->favourite_hash) {
        to->votes += cell->votes;
    } else if (to->votes >= cell->votes) {
        to->votes -= cell->votes;
    } else {
        to->votes = cell->votes - to->votes;
        to->favourite_hash = cell->favourite_hash;
        to->favourite = cell->favourite;
    }
}

void heat_cell_add(struct heat_cell *to, const struct heat_cell *cell)
{
    uint64_t largest = to->numbers[HEAT_LARGEST_ROW];
    for (unsigned i = 0; i < HEAT_NUMBERS; i++)
        to->numbers[i] += cell->numbers[i];
    if (largest < cell->numbers[HEAT_LARGEST_ROW])
        largest = cell->numbers[HEAT_LARGEST_ROW];
    to->numbers[HEAT_LARGEST_ROW] = largest;
    if (cell->votes > 0)
        add_votes(to, cell);
    if (cell->writes_seen > 0 &&
        (to->writes_seen == 0 || is_after(kept(&cell->greatest), &to->greatest)))
        to->greatest = cell->greatest;
    to->writes_seen += cell->writes_seen;
}

static bool is_untouched(const struct heat_cell *cell)
{
    return cell->numbers[HEAT_READS] == 0 && cell->numbers[HEAT_WRITES] == 0;
}

/* Invariant 4, of all ranges: whether one front moved on, and did not jump to and fro. */
static bool has_one_front(const struct heat_slot *slot)
{
    uint64_t rising = 0, fell = 0;
    for (size_t i = 0; i < slot->ranges->count; i++) {
        const struct heat_cell *cell = &slot->cells[i];
        uint64_t of_front = is_front(cell) ? cell->numbers[HEAT_RISING] : 0;
        rising += of_front;
        fell += cell->fell ? of_front : 0;
    }
    DCHECK(fell <= rising);
    return 10 * fell <= rising;
}

static void add_cells(struct heat_slot *slot, struct heat_cell *sums, bool empties)
{
    DCHECK(atomic_load(&slot->is_taken));
    bool has_front = has_one_front(slot);
    for (size_t i = 0; i < slot->ranges->count; i++) {
        struct heat_cell *cell = &slot->cells[i];
        if (is_untouched(cell))
            continue;
        heat_cell_add(&sums[i], cell);
        DCHECK(sums[i].numbers[HEAT_RISING] >= cell->numbers[HEAT_RISING]);
        if (!has_front || !is_front(cell))
            sums[i].numbers[HEAT_RISING] -= cell->numbers[HEAT_RISING];
        if (empties)
            *cell = (struct heat_cell){0};
    }
}

static void empty_slot(struct heat_slot *slot, struct heat_cell *sums,
                       const struct heat_ranges *next)
{
    take_slot(slot);
    if (slot->counted > 0)
        add_cells(slot, sums, true);
    slot->counted = 0;
    slot->front = 0;
    atomic_store_explicit(&slot->shift, 0, memory_order_relaxed);
    if (next != NULL) {
        free(slot->cells);
        slot->cells = NULL;
        slot->ranges = next;
    }
    give_back(slot);
}

const struct heat_ranges *heat_counts_ranges(const struct heat_counts *counts)
{
    return counts->ranges;
}

bool heat_counts_any(struct heat_counts *counts)
{
    bool any = false;
    for (unsigned i = 0; i <= counts->mask && !any; i++) {
        take_slot(&counts->slots[i]);
        any = counts->slots[i].counted > 0;
        give_back(&counts->slots[i]);
    }
    return any;
}

struct heat_ranges *heat_counts_take(struct heat_counts *counts, struct heat_cell *sums,
                                     struct heat_ranges *next)
{
    struct heat_ranges *former = counts->ranges;
    for (unsigned i = 0; i <= counts->mask; i++)
        empty_slot(&counts->slots[i], sums, next);
    if (next == NULL)
        return NULL;
    counts->ranges = next;
    return former;
}

void heat_counts_look(struct heat_counts *counts, struct heat_cell *sums)
{
    for (unsigned i = 0; i <= counts->mask; i++) {
        struct heat_slot *slot = &counts->slots[i];
        take_slot(slot);
        if (slot->counted > 0)
            add_cells(slot, sums, false);
        give_back(slot);
    }
}
