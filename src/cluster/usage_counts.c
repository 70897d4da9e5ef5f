/* See usage_counts.h. What is kept is two states, of today and of the day before, each behind its
 * size. */
#include "cluster/usage_counts.h"

#include "base/check.h"
#include "base/varint.h"
#include "cluster/cluster_private.h"

#include <stdlib.h>

#define DAY_US  (INT64_C(24) * 3600 * 1000000)
#define SOON_US INT64_C(100000) /* after an answer: a caller's next request follows from it */

enum {
    SLICE_SHIFT = 14, /* microseconds: 16 ms */
    SPAN_SHIFT = 26,  /* 67 s */
    MOST_SHIFT = 5,
    CALLERS = 16,
    SEVERAL_KEYS = 16,
    ENDS_ALIKE = 4, /* bytes */
};

/* What a caller did last. */
struct caller {
    uint64_t id;
    int64_t ended_us; /* 0: nothing is known */
    bool is_write;
    struct usage_text key;
};

struct usage_counts {
    atomic_uint shift; /* one slice in 1 << shift is counted */
    _Atomic int64_t span;
    pthread_mutex_t lock;   /* of the rest; see invariant 1 */
    uint64_t counted;       /* in this span */
    bool is_loaded;         /* with what was kept */
    bool is_changed;        /* since it was kept */
    struct usage_state now; /* the present piece */
    int64_t day_us;         /* when today began; 0: it has not */
    /* Encoded; empty: nothing is known. */
    struct buffer today; /* before this piece */
    struct buffer before;
    struct buffer pieces[USAGE_PIECES]; /* by turns */
    size_t next_piece;
    struct caller callers[CALLERS];
};

/* --- life --- */

static struct usage_counts *create(void)
{
    struct usage_counts *counts = calloc(1, sizeof *counts);
    if (counts != NULL)
        pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

void usage_counts_destroy(struct usage_counts *counts)
{
    if (counts == NULL)
        return;
    buffer_free(&counts->today);
    buffer_free(&counts->before);
    for (size_t i = 0; i < USAGE_PIECES; i++)
        buffer_free(&counts->pieces[i]);
    pthread_mutex_destroy(&counts->lock);
    free(counts);
}

/* NULL: nothing is counted of this table, or there is no memory. */
static struct usage_counts *counts_of(struct table *table)
{
    struct usage_counts *counts = atomic_load_explicit(&table->usage.counts, memory_order_acquire);
    if (counts != NULL || !table->heat.is_counted)
        return counts;
    struct usage_counts *others = NULL;
    counts = create();
    if (counts == NULL || atomic_compare_exchange_strong(&table->usage.counts, &others, counts))
        return counts;
    usage_counts_destroy(counts);
    return others;
}

/* --- choosing --- */

uint32_t usage_weight(struct table *table, int64_t began_us)
{
    const uint32_t golden_ratio = 0x9e3779b1;
    struct usage_counts *counts = counts_of(table);
    if (counts == NULL)
        return 0;
    unsigned shift = atomic_load_explicit(&counts->shift, memory_order_relaxed);
    if (shift > 0 &&
        atomic_load_explicit(&counts->span, memory_order_relaxed) != began_us >> SPAN_SHIFT)
        shift = 0;
    uint32_t slice = (uint32_t)(began_us >> SLICE_SHIFT);
    return slice * golden_ratio <= UINT32_MAX >> shift ? 1u << shift : 0;
}

/* With the lock held. */
static void count_one(struct usage_counts *counts, int64_t began_us)
{
    DCHECK(check_is_held(&counts->lock));
    int64_t span = began_us >> SPAN_SHIFT;
    if (atomic_load_explicit(&counts->span, memory_order_relaxed) != span) {
        counts->counted = 0;
        atomic_store_explicit(&counts->shift, 0, memory_order_relaxed);
        atomic_store_explicit(&counts->span, span, memory_order_relaxed);
    }
    counts->counted++;
    unsigned shift = (unsigned)(counts->counted / USAGE_COUNTED_ALL);
    if (counts->counted % USAGE_COUNTED_ALL == 0 && shift <= MOST_SHIFT)
        atomic_store_explicit(&counts->shift, shift, memory_order_relaxed);
}

/* --- days --- */

static int64_t wall_us(const struct table *table)
{
    return clock_wall_us(table->cluster->options.clock);
}

/* Without memory it is empty, that is, forgotten. */
static void put_state(struct buffer *out, const struct usage_state *state)
{
    buffer_clear(out);
    usage_state_encode(state, out);
    if (out->failed)
        buffer_free(out);
}

static void add_state(struct usage_state *to, const struct buffer *encoded)
{
    struct usage_state from;
    if (usage_state_decode(buffer_bytes(encoded), &from))
        usage_state_add(to, &from);
}

/* With the lock held. The state of today. */
static struct usage_state whole_day(const struct usage_counts *counts)
{
    DCHECK(check_is_held(&counts->lock));
    struct usage_state day = counts->now;
    add_state(&day, &counts->today);
    return day;
}

/* With the lock held. */
static void turn_piece(struct usage_counts *counts)
{
    DCHECK(check_is_held(&counts->lock) && counts->now.from_us > 0);
    const struct usage_state day = whole_day(counts);
    put_state(&counts->pieces[counts->next_piece++ % USAGE_PIECES], &counts->now);
    put_state(&counts->today, &day);
    counts->now = (struct usage_state){0};
}

/* With the lock held, when a piece has ended. */
static void turn_day(struct usage_counts *counts)
{
    DCHECK(check_is_held(&counts->lock) && counts->now.from_us == 0);
    struct buffer before = counts->before;
    counts->before = counts->today;
    counts->today = before;
    buffer_clear(&counts->today);
    counts->day_us = 0;
}

/* With the lock held. */
static void turn(struct usage_counts *counts, int64_t now_us)
{
    DCHECK(check_is_held(&counts->lock));
    bool is_day_over = counts->day_us > 0 && now_us - counts->day_us >= DAY_US;
    bool is_over = counts->now.from_us > 0 && now_us - counts->now.from_us >= USAGE_PIECE_US;
    if (is_over || (is_day_over && counts->now.from_us > 0))
        turn_piece(counts);
    if (is_day_over)
        turn_day(counts);
}

/* The state to count in, with the lock held; NULL: this one is not counted. */
static struct usage_state *begin(struct table *table, struct usage_counts **out)
{
    struct usage_counts *counts = *out = counts_of(table);
    if (counts == NULL || pthread_mutex_trylock(&counts->lock) != 0)
        return NULL;
    counts->is_changed = true;
    int64_t now_us = wall_us(table);
    turn(counts, now_us);
    if (counts->now.from_us == 0)
        counts->now.from_us = now_us;
    if (counts->day_us == 0)
        counts->day_us = now_us;
    return &counts->now;
}

static void end(struct usage_counts *counts)
{
    DCHECK(check_is_held(&counts->lock));
    pthread_mutex_unlock(&counts->lock);
}

/* --- counting --- */

void usage_note_scan(struct table *table, const struct usage_scan *scan)
{
    struct usage_counts *counts;
    struct usage_state *state = begin(table, &counts);
    if (state == NULL)
        return;
    usage_add_scan(state, scan);
    end(counts);
}

static void set_example(struct usage_state *state, enum usage_example example, bytes from)
{
    usage_text_set(&state->examples[example], from);
}

/* The caller's place, or that of the caller that has been silent longest. */
static struct caller *caller_of(struct usage_counts *counts, uint64_t id)
{
    DCHECK(check_is_held(&counts->lock));
    struct caller *oldest = &counts->callers[0];
    for (size_t i = 0; i < CALLERS; i++) {
        struct caller *caller = &counts->callers[i];
        if (caller->id == id && caller->ended_us > 0)
            return caller;
        if (caller->ended_us < oldest->ended_us)
            oldest = caller;
    }
    *oldest = (struct caller){.id = id};
    return oldest;
}

static bool follows(const struct caller *caller, const struct usage_request *request)
{
    return caller->ended_us > 0 && request->began_us >= caller->ended_us &&
           request->began_us - caller->ended_us < SOON_US;
}

static void note_last(struct caller *caller, const struct usage_request *request, bytes key,
                      bool is_write)
{
    caller->ended_us = request->ended_us;
    caller->is_write = is_write;
    usage_text_set(&caller->key, key);
}

static bool is_above(bytes key, const struct usage_text *other)
{
    return bytes_compare(key, usage_text_get(other)) > 0;
}

static void note_single_read(struct usage_counts *counts, const struct usage_request *request,
                             bytes key)
{
    struct usage_state *state = &counts->now;
    struct caller *caller = caller_of(counts, request->caller);
    state->numbers[USAGE_SINGLE_READS] += request->weight;
    if (follows(caller, request) && !caller->is_write && is_above(key, &caller->key)) {
        state->numbers[USAGE_RISING_READS] += request->weight;
        set_example(state, USAGE_RISING_READ_KEY, key);
    }
    note_last(caller, request, key, false);
}

static size_t common_start(bytes a, bytes b)
{
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[size] == b.data[size])
        size++;
    return size;
}

static size_t common_end(bytes a, bytes b)
{
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[a.size - 1 - size] == b.data[b.size - 1 - size])
        size++;
    return size;
}

/* Whether the keys are of one thing, and begin with what differs: the greater part of each is the
 * same in all of them, behind no more than a letter or two. */
static bool are_scattered(const bytes *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t same = common_end(keys[0], keys[i]);
        size_t shorter = keys[0].size < keys[i].size ? keys[0].size : keys[i].size;
        if (same < ENDS_ALIKE || 2 * same < shorter || same == shorter ||
            common_start(keys[0], keys[i]) >= 3)
            return false;
    }
    return true;
}

static void note_several(struct usage_state *state, const struct usage_read *read)
{
    DCHECK(read->key_count > 1);
    state->numbers[USAGE_SEVERAL_READS] += read->request.weight;
    if (!are_scattered(read->keys, read->key_count))
        return;
    state->numbers[USAGE_SCATTERED_READS] += read->request.weight;
    set_example(state, USAGE_SCATTERED_KEY, read->keys[0]);
    set_example(state, USAGE_OTHER_SCATTERED_KEY, read->keys[1]);
}

void usage_note_read(struct table *table, const struct usage_read *read)
{
    struct usage_counts *counts;
    struct usage_state *state = begin(table, &counts);
    if (state == NULL)
        return;
    count_one(counts, read->request.began_us);
    if (read->knows_columns) {
        state->numbers[USAGE_READS] += read->request.weight;
        usage_add_columns(state, read->columns, read->request.weight);
    }
    if (read->key_count == 1)
        note_single_read(counts, &read->request, read->keys[0]);
    else if (read->key_count > 1 && read->key_count <= SEVERAL_KEYS)
        note_several(state, read);
    end(counts);
}

static void note_write(struct usage_counts *counts, const struct usage_request *request, bytes key,
                       bool is_cell)
{
    struct usage_state *state = &counts->now;
    struct caller *caller = caller_of(counts, request->caller);
    state->numbers[USAGE_SINGLE_WRITES] += request->weight;
    bool is_next = follows(caller, request);
    if (is_next && caller->is_write && is_above(key, &caller->key)) {
        state->numbers[USAGE_RISING_WRITES] += request->weight;
        set_example(state, USAGE_RISING_WRITE_KEY, key);
    }
    struct usage_text text;
    usage_text_set(&text, key);
    if (is_next && is_cell && !caller->is_write &&
        bytes_equal(usage_text_get(&text), usage_text_get(&caller->key))) {
        state->numbers[USAGE_REWRITES] += request->weight;
        usage_add_favourite(state, bytes_hash(key), request->weight);
        set_example(state, USAGE_REWRITTEN_KEY, key);
    }
    note_last(caller, request, key, true);
}

void usage_note_write(struct table *table, const struct usage_request *request, bytes key,
                      bool is_cell)
{
    struct usage_counts *counts;
    if (begin(table, &counts) == NULL)
        return;
    count_one(counts, request->began_us);
    note_write(counts, request, key, is_cell);
    end(counts);
}

void usage_note_increment(struct table *table, const struct usage_request *request, bytes key,
                          bytes family, bytes qualifier)
{
    struct usage_counts *counts;
    struct usage_state *state = begin(table, &counts);
    if (state == NULL)
        return;
    count_one(counts, request->began_us);
    state->numbers[USAGE_INCREMENTS] += request->weight;
    set_example(state, USAGE_INCREMENTED_KEY, key);
    set_example(state, USAGE_INCREMENTED_FAMILY, family);
    set_example(state, USAGE_INCREMENTED_QUALIFIER, qualifier);
    end(counts);
}

/* --- keeping --- */

static void append_sized(struct buffer *out, bytes state)
{
    buffer_append_varint(out, state.size);
    buffer_append_bytes(out, state);
}

static bytes take_state(bytes *from)
{
    uint64_t size;
    if (from->size == 0)
        return bytes_make(NULL, 0);
    const uint8_t *next = varint_read(from->data, from->data + from->size, &size);
    if (next == NULL || size > (size_t)(from->data + from->size - next))
        return bytes_make(NULL, 0);
    bytes state = bytes_make(next, (size_t)size);
    *from = bytes_from(*from, (size_t)(next - from->data) + state.size);
    return state;
}

/* Puts what was kept before the start to what has been counted since. With the lock held. */
static void add_kept(struct usage_counts *counts, bytes kept, int64_t now_us)
{
    DCHECK(check_is_held(&counts->lock) && !counts->is_loaded);
    struct usage_state kept_day, today = {0};
    bytes first = take_state(&kept), second = take_state(&kept);
    counts->is_loaded = true;
    if (first.data == NULL || !usage_state_decode(first, &kept_day))
        return;
    if (counts->day_us > 0) /* the first request since the start was then */
        now_us = counts->day_us;
    bool is_today = now_us - kept_day.from_us < DAY_US;
    if (is_today) {
        add_state(&today, &counts->today);
        usage_state_add(&today, &kept_day);
        put_state(&counts->today, &today);
        counts->day_us = kept_day.from_us;
    }
    buffer_clear(&counts->before);
    if (is_today || now_us - kept_day.from_us < 2 * DAY_US)
        buffer_append_bytes(&counts->before, is_today ? second : first);
    if (counts->before.failed)
        buffer_free(&counts->before);
}

static status load(struct table *table, struct usage_counts *counts)
{
    enum { LOAD_MEMORY = 1 << 20 };
    struct usage_record record;
    pthread_mutex_lock(&counts->lock);
    bool is_loaded = counts->is_loaded;
    pthread_mutex_unlock(&counts->lock);
    if (is_loaded)
        return status_ok();
    struct arena *arena = arena_create(LOAD_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = usage_get(table, USAGE_REQUESTS, arena, &record);
    pthread_mutex_lock(&counts->lock);
    if (status_is_ok(s) && !counts->is_loaded)
        add_kept(counts, record.value, wall_us(table));
    pthread_mutex_unlock(&counts->lock);
    arena_destroy(arena);
    return s;
}

static bool began_within(const struct buffer *encoded, int64_t from_us, int64_t until_us)
{
    struct usage_state state;
    return usage_state_decode(buffer_bytes(encoded), &state) && state.from_us >= from_us &&
           state.from_us < until_us;
}

/* With the lock held. The latest first, whose examples stay. */
static void add_pieces(const struct usage_counts *counts, int64_t from_us, int64_t until_us,
                       struct usage_state *out)
{
    DCHECK(check_is_held(&counts->lock) && from_us <= until_us);
    for (size_t i = 1; i <= USAGE_PIECES; i++) {
        size_t at = (counts->next_piece + USAGE_PIECES - i) % USAGE_PIECES;
        if (began_within(&counts->pieces[at], from_us, until_us))
            add_state(out, &counts->pieces[at]);
    }
}

/* With the lock held. */
static void add_since(const struct usage_counts *counts, int64_t since_us, struct usage_state *out)
{
    if (counts->day_us < since_us) {
        if (counts->now.from_us >= since_us)
            *out = counts->now;
        add_pieces(counts, since_us, INT64_MAX, out);
        return;
    }
    *out = whole_day(counts);
    if (began_within(&counts->before, since_us, INT64_MAX))
        add_state(out, &counts->before);
    else
        add_pieces(counts, since_us, counts->day_us, out);
}

status usage_look(struct table *table, int64_t since_us, struct usage_state *out)
{
    struct usage_counts *counts = counts_of(table);
    *out = (struct usage_state){0};
    if (counts == NULL)
        return status_ok();
    TRY(load(table, counts));
    pthread_mutex_lock(&counts->lock);
    add_since(counts, since_us, out);
    pthread_mutex_unlock(&counts->lock);
    return status_ok();
}

static void encode_all(struct usage_counts *counts, struct buffer *out)
{
    struct buffer today = {0};
    pthread_mutex_lock(&counts->lock);
    const struct usage_state day = whole_day(counts);
    usage_state_encode(&day, &today);
    append_sized(out, buffer_bytes(&today));
    append_sized(out, buffer_bytes(&counts->before));
    out->failed |= today.failed;
    counts->is_changed = false;
    pthread_mutex_unlock(&counts->lock);
    buffer_free(&today);
}

static void note_unkept(struct usage_counts *counts)
{
    pthread_mutex_lock(&counts->lock);
    counts->is_changed = true;
    pthread_mutex_unlock(&counts->lock);
}

status usage_keep(struct table *table)
{
    struct usage_counts *counts = atomic_load(&table->usage.counts);
    struct buffer all = {0};
    if (counts == NULL)
        return status_ok();
    pthread_mutex_lock(&counts->lock);
    bool is_changed = counts->is_changed;
    pthread_mutex_unlock(&counts->lock);
    if (!is_changed)
        return status_ok();
    TRY(load(table, counts));
    encode_all(counts, &all);
    status s =
        all.failed ? status_out_of_memory() : usage_put(table, USAGE_REQUESTS, buffer_bytes(&all));
    if (!status_is_ok(s))
        note_unkept(counts);
    buffer_free(&all);
    return s;
}
