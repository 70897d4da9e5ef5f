/* Ranges of rows that were dropped: see drops.h.
 *
 * The ends of all ranges cut the keys into parts. Each part knows what the drops over it come to,
 * so that a lookup is one binary search; all parts are made anew when a drop comes or goes. */
#include "row/drops.h"

#include "base/check.h"
#include "base/key_range.h"
#include "row/row_key.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A row key, as the keys of its record and its overflow cells begin. No bound, where a range ends,
 * is the end of either space. */
struct bound {
    struct buffer record;
    struct buffer overflow;
};

struct row_drop {
    uint64_t version;
    uint64_t sequence;
    uint64_t bytes;
    uint64_t newest_table;
    bool is_held;
    bool has_end;
    struct bound from;
    struct bound to;
};

/* The keys from a bound up to the next part's. */
struct part {
    const struct bound *start;
    uint64_t newest;    /* the greatest version of the drops over it; 0: there are none */
    uint64_t thrown;    /* the same of those that are not held */
    uint64_t held_from; /* the least version of those that are; 0: none is */
    uint64_t sequence;  /* the greatest of them all */
};

enum { DROPS_MAGIC = 0x64726f70 };

struct row_drops {
    uint32_t magic;
    atomic_size_t count;
    atomic_ullong gone; /* the greatest sequence of a drop that is here no more; 0: none went */
    pthread_rwlock_t lock;
    struct row_drop **drops; /* by rising sequence */
    size_t capacity;
    struct part *parts; /* by start; room for two a drop */
    size_t part_count;
    size_t holders;
};

/* --- drops --- */

static bool set_start(struct bound *bound, bytes row_key)
{
    row_record_key(&bound->record, row_key);
    overflow_range_start(&bound->overflow, row_key);
    return !bound->record.failed && !bound->overflow.failed;
}

static bool set_end(struct bound *bound, bytes row_key)
{
    if (row_key.size > 0)
        return set_start(bound, row_key);
    buffer_append_byte(&bound->record, ROW_SPACE + 1);
    buffer_append_byte(&bound->overflow, OVERFLOW_SPACE + 1);
    return !bound->record.failed && !bound->overflow.failed;
}

static void free_bound(struct bound *bound)
{
    buffer_free(&bound->record);
    buffer_free(&bound->overflow);
}

void row_drop_destroy(struct row_drop *drop)
{
    if (drop == NULL)
        return;
    free_bound(&drop->from);
    free_bound(&drop->to);
    free(drop);
}

status row_drop_create(bytes from, bytes to, struct row_drop **out)
{
    struct row_drop *drop = *out = calloc(1, sizeof *drop);
    if (drop == NULL)
        return status_out_of_memory();
    drop->has_end = to.size > 0;
    if (set_start(&drop->from, from) && set_end(&drop->to, to))
        return status_ok();
    row_drop_destroy(drop);
    *out = NULL;
    return status_out_of_memory();
}

void row_drop_set_bytes(struct row_drop *drop, uint64_t bytes)
{
    drop->bytes = bytes;
}

void row_drop_set_newest_table(struct row_drop *drop, uint64_t number)
{
    drop->newest_table = number;
}

/* --- parts --- */

static int compare_bounds(const struct bound *a, const struct bound *b)
{
    return bytes_compare(buffer_bytes(&a->record), buffer_bytes(&b->record));
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    return compare_bounds(left->start, right->start);
}

static void cut(struct row_drops *drops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        drops->parts[2 * i] = (struct part){.start = &drops->drops[i]->from};
        drops->parts[2 * i + 1] = (struct part){.start = &drops->drops[i]->to};
    }
    size_t kept = 0;
    if (count > 0)
        qsort(drops->parts, 2 * count, sizeof *drops->parts, compare_parts);
    for (size_t i = 0; i < 2 * count; i++)
        if (kept == 0 || compare_parts(&drops->parts[kept - 1], &drops->parts[i]) != 0)
            drops->parts[kept++] = drops->parts[i];
    drops->part_count = kept;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void lay_over(struct part *part, const struct row_drop *drop)
{
    part->newest = greater(part->newest, drop->version);
    part->sequence = greater(part->sequence, drop->sequence);
    if (!drop->is_held)
        part->thrown = greater(part->thrown, drop->version);
    else if (part->held_from == 0 || drop->version < part->held_from)
        part->held_from = drop->version;
}

/* How many of the parts begin at or before where `compare` says; they are in order. */
static size_t parts_up_to(const struct row_drops *drops,
                          int (*compare)(const void *key, const struct bound *start),
                          const void *key)
{
    size_t low = 0, high = drops->part_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(key, drops->parts[middle].start) >= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_to_bound(const void *key, const struct bound *start)
{
    return compare_bounds(key, start);
}

/* With the lock held alone. */
static void make_parts(struct row_drops *drops, size_t count)
{
    cut(drops, count);
    for (size_t i = 0; i < count; i++) {
        const struct row_drop *drop = drops->drops[i];
        size_t end = parts_up_to(drops, compare_to_bound, &drop->to);
        size_t at = parts_up_to(drops, compare_to_bound, &drop->from);
        for (; at < end; at++)
            lay_over(&drops->parts[at - 1], drop);
    }
}

/* --- what is dropped where --- */

static int compare_record(const void *key, const struct bound *start)
{
    return bytes_compare(*(const bytes *)key, buffer_bytes(&start->record));
}

static int compare_overflow(const void *key, const struct bound *start)
{
    return bytes_compare(*(const bytes *)key, buffer_bytes(&start->overflow));
}

/* The end of all rows is no row's record. */
static int compare_row(const void *row_key, const struct bound *start)
{
    if (start->record.data[0] != ROW_SPACE)
        return -1;
    return bytes_compare(*(const bytes *)row_key, bytes_from(buffer_bytes(&start->record), 1));
}

static struct part part_of(struct row_drops *drops,
                           int (*compare)(const void *key, const struct bound *start), bytes key)
{
    struct part part = {.start = NULL};
    pthread_rwlock_rdlock(&drops->lock);
    size_t count = parts_up_to(drops, compare, &key);
    if (count > 0)
        part = drops->parts[count - 1];
    pthread_rwlock_unlock(&drops->lock);
    return part;
}

static bool has_none(const struct row_drops *drops)
{
    return atomic_load_explicit(&drops->count, memory_order_acquire) == 0;
}

/* Keys of other spaces come before all parts, or into the last, which no drop is over. */
struct row_drops_look row_drops_look(struct row_drops *drops, bytes key)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    if (has_none(drops) || key.size == 0)
        return (struct row_drops_look){.dropped = 0};
    struct part part =
        part_of(drops, key.data[0] == ROW_SPACE ? compare_record : compare_overflow, key);
    return (struct row_drops_look){.dropped = part.thrown, .held_from = part.held_from};
}

uint64_t row_drops_over(struct row_drops *drops, bytes row_key)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    return has_none(drops) ? 0 : part_of(drops, compare_row, row_key).newest;
}

bool row_drops_since(struct row_drops *drops, bytes row_key, uint64_t as_of)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    if (!has_none(drops) && part_of(drops, compare_row, row_key).sequence > as_of)
        return true;
    return row_drops_gone(drops) > as_of;
}

uint64_t row_drops_gone(const struct row_drops *drops)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    return atomic_load_explicit(&drops->gone, memory_order_acquire);
}

size_t row_drops_count(const struct row_drops *drops)
{
    return atomic_load_explicit(&drops->count, memory_order_acquire);
}

static bytes record_row(const struct bound *bound)
{
    return bytes_from(buffer_bytes(&bound->record), 1);
}

static bytes end_of(const struct row_drop *drop)
{
    return drop->has_end ? record_row(&drop->to) : bytes_make(NULL, 0);
}

static struct row_drop_words words_of(const struct row_drop *drop)
{
    return (struct row_drop_words){.version = drop->version,
                                   .sequence = drop->sequence,
                                   .bytes = drop->bytes,
                                   .newest_table = drop->newest_table,
                                   .from = record_row(&drop->from),
                                   .to = end_of(drop),
                                   .is_held = drop->is_held};
}

bool row_drops_next(struct row_drops *drops, uint64_t after, struct row_drop_words *out)
{
    const struct row_drop *next = NULL;
    pthread_rwlock_rdlock(&drops->lock);
    for (size_t i = 0; i < row_drops_count(drops) && next == NULL; i++)
        if (drops->drops[i]->sequence > after)
            next = drops->drops[i];
    if (next != NULL)
        *out = words_of(next);
    pthread_rwlock_unlock(&drops->lock);
    return next != NULL;
}

static bool ends_before(bytes end, bytes other)
{
    return end.size > 0 && (other.size == 0 || bytes_compare(end, other) < 0);
}

static bool is_over(const struct row_drop *drop, bytes from, bytes to)
{
    return key_ranges_meet(record_row(&drop->from), end_of(drop), from, to);
}

static void copy_bytes(struct buffer *to, bytes from)
{
    buffer_clear(to);
    buffer_append_bytes(to, from);
}

bool row_drops_within(struct row_drops *drops, bytes from, bytes to, uint64_t after,
                      struct row_drop_words *out, struct buffer *out_from, struct buffer *out_to)
{
    const struct row_drop *next = NULL;
    if (has_none(drops))
        return false;
    pthread_rwlock_rdlock(&drops->lock);
    for (size_t i = 0; i < row_drops_count(drops) && next == NULL; i++)
        if (drops->drops[i]->sequence > after && is_over(drops->drops[i], from, to))
            next = drops->drops[i];
    if (next != NULL) {
        bytes start = record_row(&next->from), end = end_of(next);
        *out = words_of(next);
        copy_bytes(out_from, bytes_compare(start, from) < 0 ? from : start);
        copy_bytes(out_to, ends_before(end, to) ? end : to);
        out->from = buffer_bytes(out_from);
        out->to = buffer_bytes(out_to);
    }
    pthread_rwlock_unlock(&drops->lock);
    return next != NULL;
}

/* Of keys of other spaces none is between bounds. */
static bool covers(const struct row_drop *drop, bytes from, bytes to)
{
    bool is_overflow = from.data[0] == OVERFLOW_SPACE;
    const struct buffer *start = is_overflow ? &drop->from.overflow : &drop->from.record;
    const struct buffer *end = is_overflow ? &drop->to.overflow : &drop->to.record;
    return bytes_compare(buffer_bytes(start), from) <= 0 &&
           bytes_compare(to, buffer_bytes(end)) <= 0;
}

bool row_drops_cover_table(struct row_drops *drops, bytes from, bytes to, uint64_t table)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    bool is_covered = false;
    if (has_none(drops) || from.size == 0)
        return false;
    pthread_rwlock_rdlock(&drops->lock);
    for (size_t i = 0; i < row_drops_count(drops) && !is_covered; i++) {
        const struct row_drop *drop = drops->drops[i];
        is_covered = !drop->is_held && table <= drop->newest_table && covers(drop, from, to);
    }
    pthread_rwlock_unlock(&drops->lock);
    return is_covered;
}

/* --- drops that come and go --- */

status row_drops_reserve(struct row_drops *drops)
{
    enum { FIRST_CAPACITY = 8 };
    CHECK_MAGIC(drops, DROPS_MAGIC);
    if (row_drops_count(drops) < drops->capacity)
        return status_ok();
    size_t capacity = drops->capacity == 0 ? FIRST_CAPACITY : 2 * drops->capacity;
    struct row_drop **list = calloc(capacity, sizeof(struct row_drop *));
    struct part *parts = calloc(2 * capacity, sizeof *parts);
    if (list == NULL || parts == NULL) {
        free(list);
        free(parts);
        return status_out_of_memory();
    }
    pthread_rwlock_wrlock(&drops->lock);
    if (drops->capacity > 0) {
        memcpy(list, drops->drops, row_drops_count(drops) * sizeof(struct row_drop *));
        memcpy(parts, drops->parts, drops->part_count * sizeof *parts);
    }
    free(drops->drops);
    free(drops->parts);
    drops->drops = list;
    drops->parts = parts;
    drops->capacity = capacity;
    pthread_rwlock_unlock(&drops->lock);
    return status_ok();
}

void row_drops_add(struct row_drops *drops, struct row_drop *drop, uint64_t version,
                   uint64_t sequence)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    size_t count = row_drops_count(drops);
    CHECK(version != 0 && sequence != 0 && count < drops->capacity);
    pthread_rwlock_wrlock(&drops->lock);
    DCHECK(count == 0 || drops->drops[count - 1]->sequence < sequence);
    drop->version = version;
    drop->sequence = sequence;
    drop->is_held = drops->holders > 0;
    drops->drops[count] = drop;
    make_parts(drops, count + 1);
    atomic_store_explicit(&drops->count, count + 1, memory_order_release);
    pthread_rwlock_unlock(&drops->lock);
}

/* `gone` rises while the drop is still here: who asks meets one or the other. */
bool row_drops_remove(struct row_drops *drops, uint64_t sequence)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    size_t count = row_drops_count(drops), at = 0;
    while (at < count && drops->drops[at]->sequence != sequence)
        at++;
    if (at == count)
        return false;
    pthread_rwlock_wrlock(&drops->lock);
    CHECK(drops->holders == 0);
    struct row_drop *drop = drops->drops[at];
    if (atomic_load_explicit(&drops->gone, memory_order_relaxed) < sequence)
        atomic_store_explicit(&drops->gone, sequence, memory_order_release);
    memmove(drops->drops + at, drops->drops + at + 1, (count - at - 1) * sizeof(struct row_drop *));
    make_parts(drops, count - 1);
    atomic_store_explicit(&drops->count, count - 1, memory_order_release);
    pthread_rwlock_unlock(&drops->lock);
    row_drop_destroy(drop);
    return true;
}

/* --- holders --- */

void row_drops_hold(struct row_drops *drops)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    pthread_rwlock_wrlock(&drops->lock);
    drops->holders++;
    pthread_rwlock_unlock(&drops->lock);
}

void row_drops_hold_from(struct row_drops *drops, uint64_t sequence)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    pthread_rwlock_wrlock(&drops->lock);
    size_t count = row_drops_count(drops);
    drops->holders++;
    for (size_t i = 0; i < count; i++)
        drops->drops[i]->is_held |= drops->drops[i]->sequence >= sequence;
    make_parts(drops, count);
    pthread_rwlock_unlock(&drops->lock);
}

void row_drops_let_go(struct row_drops *drops)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    pthread_rwlock_wrlock(&drops->lock);
    CHECK(drops->holders > 0);
    size_t count = row_drops_count(drops);
    if (--drops->holders == 0) {
        for (size_t i = 0; i < count; i++)
            drops->drops[i]->is_held = false;
        make_parts(drops, count);
    }
    pthread_rwlock_unlock(&drops->lock);
}

bool row_drops_are_held(struct row_drops *drops)
{
    CHECK_MAGIC(drops, DROPS_MAGIC);
    pthread_rwlock_rdlock(&drops->lock);
    bool are_held = drops->holders > 0;
    pthread_rwlock_unlock(&drops->lock);
    return are_held;
}

/* --- life --- */

status row_drops_create(struct row_drops **out)
{
    struct row_drops *drops = *out = calloc(1, sizeof *drops);
    if (drops == NULL)
        return status_out_of_memory();
    drops->magic = DROPS_MAGIC;
    pthread_rwlock_init(&drops->lock, NULL);
    return status_ok();
}

static status add_copy(struct row_drops *drops, const struct row_drop_words *words)
{
    struct row_drop *drop;
    TRY(row_drops_reserve(drops));
    TRY(row_drop_create(words->from, words->to, &drop));
    drop->bytes = words->bytes;
    drop->newest_table = words->newest_table;
    row_drops_add(drops, drop, words->version, words->sequence);
    return status_ok();
}

status row_drops_copy(struct row_drops *drops, struct row_drops **out)
{
    struct row_drop_words words = {.sequence = 0};
    status s = row_drops_create(out);
    while (status_is_ok(s) && row_drops_next(drops, words.sequence, &words))
        s = add_copy(*out, &words);
    if (status_is_ok(s))
        return s;
    row_drops_destroy(*out);
    *out = NULL;
    return s;
}

void row_drops_destroy(struct row_drops *drops)
{
    if (drops == NULL)
        return;
    CHECK_MAGIC(drops, DROPS_MAGIC);
    for (size_t i = 0; i < row_drops_count(drops); i++)
        row_drop_destroy(drops->drops[i]);
    pthread_rwlock_destroy(&drops->lock);
    free(drops->drops);
    free(drops->parts);
    drops->magic = 0;
    free(drops);
}
