/* See telling.h. */
#include "cluster/stream/telling.h"

#include "base/check.h"
#include "base/key_range.h"
#include "row/drops.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { TELLING_MAGIC = 0x74656c6c, MOST_SPANS = 1000, FIRST_BUCKET_BITS = 6 };

/* The rows of a drop, and the commits between which they are told. */
struct span {
    uint64_t sequence; /* of the drop; 0: it is announced */
    uint64_t end;      /* of what told the last row; 0: it is under way */
    uint64_t version;
    uint64_t life;
    struct buffer from;
    struct buffer to;
};

/* A row that was told before its turn; its key is the record's. */
struct told_row {
    struct told_row *next_in_bucket;
    struct told_row *next_of_batch;
    struct telling *telling;
    uint64_t hash;
    bool is_written;
    size_t key_size;
    uint8_t key[];
};

struct telling {
    uint32_t magic;
    uint64_t keyspace_id;
    bool holds;               /* the keyspace's drops; with admin held */
    atomic_bool is_announced; /* there is a `now` */
    atomic_bool has_begun;    /* and its drop is committed */
    atomic_size_t span_count;
    pthread_mutex_t working; /* held by the job while it reads rows and commits what it tells */
    pthread_rwlock_t lock;   /* of all that follows, but for what is reserved */
    struct span **spans;     /* those that have begun, by rising sequence */
    size_t capacity;
    struct span *now; /* announced and not ended; NULL: none is */
    struct buffer next;
    struct row_drops *before;
    struct told_row **buckets; /* of `now` */
    unsigned bucket_bits;      /* so many of a hash say which */
    size_t row_count;
    struct { /* with admin held */
        struct span *span;
        struct buffer next;
        struct row_drops *before;
    } reserved;
};

/* --- rows that are told before their turn: with the lock held --- */

static bytes row_of(const struct told_row *row)
{
    return bytes_make(row->key + TELLING_KEY_SIZE, row->key_size - TELLING_KEY_SIZE);
}

static size_t bucket_count(unsigned bits)
{
    return (size_t)1 << bits;
}

static struct told_row **bucket_of(struct told_row **buckets, unsigned bits, uint64_t hash)
{
    return &buckets[hash & (bucket_count(bits) - 1)];
}

static struct told_row **place_of(const struct telling *telling, bytes row_key)
{
    uint64_t hash = bytes_hash(row_key);
    struct told_row **at = bucket_of(telling->buckets, telling->bucket_bits, hash);
    while (*at != NULL && !((*at)->hash == hash && bytes_equal(row_of(*at), row_key)))
        at = &(*at)->next_in_bucket;
    return at;
}

static const struct told_row *find_row(const struct telling *telling, bytes row_key)
{
    return telling->row_count == 0 ? NULL : *place_of(telling, row_key);
}

/* Without memory the chains get longer. */
static void grow(struct telling *telling)
{
    unsigned bits = telling->bucket_bits + 1;
    struct told_row **buckets = calloc(bucket_count(bits), sizeof(struct told_row *));
    if (buckets == NULL)
        return;
    for (size_t i = 0; i < bucket_count(telling->bucket_bits); i++)
        for (struct told_row *row = telling->buckets[i], *next; row != NULL; row = next) {
            struct told_row **at = bucket_of(buckets, bits, row->hash);
            next = row->next_in_bucket;
            row->next_in_bucket = *at;
            *at = row;
        }
    free(telling->buckets);
    telling->buckets = buckets;
    telling->bucket_bits = bits;
}

static void insert_row(struct telling *telling, struct told_row *row)
{
    DCHECK(find_row(telling, row_of(row)) == NULL);
    if (telling->row_count >= bucket_count(telling->bucket_bits))
        grow(telling);
    struct told_row **at = bucket_of(telling->buckets, telling->bucket_bits, row->hash);
    row->next_in_bucket = *at;
    *at = row;
    telling->row_count++;
}

static void remove_row(struct telling *telling, bytes row_key)
{
    if (telling->row_count == 0)
        return;
    struct told_row **at = place_of(telling, row_key), *row = *at;
    if (row == NULL)
        return;
    *at = row->next_in_bucket;
    telling->row_count--;
    free(row);
}

static void clear_rows(struct telling *telling)
{
    for (size_t i = 0; i < bucket_count(telling->bucket_bits); i++) {
        for (struct told_row *at = telling->buckets[i], *next; at != NULL; at = next) {
            next = at->next_in_bucket;
            free(at);
        }
        telling->buckets[i] = NULL;
    }
    telling->row_count = 0;
}

static struct told_row *make_row(struct telling *telling, bytes row_key)
{
    struct told_row *row = malloc(sizeof *row + TELLING_KEY_SIZE + row_key.size);
    if (row == NULL)
        return NULL;
    *row = (struct told_row){.telling = telling,
                             .hash = bytes_hash(row_key),
                             .key_size = TELLING_KEY_SIZE + row_key.size};
    told_row_key(row->key, telling->keyspace_id, telling->now->sequence);
    memcpy(row->key + TELLING_KEY_SIZE, row_key.data, row_key.size);
    return row;
}

/* --- spans --- */

static void free_span(struct span *span)
{
    if (span == NULL)
        return;
    buffer_free(&span->from);
    buffer_free(&span->to);
    free(span);
}

static status make_span(bytes from, bytes to, uint64_t life, struct span **out)
{
    struct span *span = *out = calloc(1, sizeof *span);
    if (span == NULL)
        return status_out_of_memory();
    span->life = life;
    buffer_append_bytes(&span->from, from);
    buffer_append_bytes(&span->to, to);
    if (!span->from.failed && !span->to.failed)
        return status_ok();
    free_span(span);
    *out = NULL;
    return status_out_of_memory();
}

/* Room for one more. */
static status reserve_span(struct telling *telling)
{
    size_t count = atomic_load(&telling->span_count);
    if (count < telling->capacity)
        return status_ok();
    size_t capacity = 2 * telling->capacity + 4;
    pthread_rwlock_wrlock(&telling->lock);
    struct span **more = realloc(telling->spans, capacity * sizeof(struct span *));
    if (more != NULL) {
        telling->spans = more;
        telling->capacity = capacity;
    }
    pthread_rwlock_unlock(&telling->lock);
    return more == NULL ? status_out_of_memory() : status_ok();
}

static void add_span(struct telling *telling, struct span *span)
{
    size_t count = atomic_load(&telling->span_count);
    DCHECK(count < telling->capacity);
    DCHECK(count == 0 || telling->spans[count - 1]->sequence < span->sequence);
    telling->spans[count] = span;
    atomic_store(&telling->span_count, count + 1);
}

static void remove_span(struct telling *telling, size_t at)
{
    size_t count = atomic_load(&telling->span_count);
    free_span(telling->spans[at]);
    memmove(telling->spans + at, telling->spans + at + 1, (count - at - 1) * sizeof(struct span *));
    atomic_store(&telling->span_count, count - 1);
}

/* --- a drop --- */

static void free_reserved(struct telling *telling)
{
    free_span(telling->reserved.span);
    telling->reserved.span = NULL;
    buffer_free(&telling->reserved.next);
    row_drops_destroy(telling->reserved.before);
    telling->reserved.before = NULL;
}

status telling_reserve(struct telling *telling, bytes from, bytes to, uint64_t life,
                       struct row_drops *drops)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    DCHECK(!atomic_load(&telling->is_announced));
    free_reserved(telling);
    TRY(reserve_span(telling));
    TRY(make_span(from, to, life, &telling->reserved.span));
    buffer_append_bytes(&telling->reserved.next, from);
    if (telling->reserved.next.failed)
        return status_out_of_memory();
    return row_drops_copy(drops, &telling->reserved.before);
}

/* Whoever read by the former drops had a row's lock, or was the job of a drop that has ended. */
void telling_announce(struct telling *telling, struct row_drops *drops)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    DCHECK(!telling->holds && telling->reserved.span != NULL);
    row_drops_hold(drops);
    telling->holds = true;
    pthread_rwlock_wrlock(&telling->lock);
    row_drops_destroy(telling->before);
    buffer_free(&telling->next);
    telling->now = telling->reserved.span;
    telling->next = telling->reserved.next;
    telling->before = telling->reserved.before;
    pthread_rwlock_unlock(&telling->lock);
    telling->reserved.span = NULL;
    telling->reserved.next = (struct buffer){0};
    telling->reserved.before = NULL;
    atomic_store(&telling->is_announced, true);
}

struct telling_record telling_first_record(struct telling *telling, uint64_t version,
                                           uint64_t sequence)
{
    const struct span *now = telling->now;
    return (struct telling_record){.keyspace_id = telling->keyspace_id,
                                   .sequence = sequence,
                                   .version = version,
                                   .life = now->life,
                                   .from = buffer_bytes(&now->from),
                                   .to = buffer_bytes(&now->to),
                                   .next = buffer_bytes(&now->from)};
}

void telling_begin(struct telling *telling, uint64_t version, uint64_t sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_wrlock(&telling->lock);
    telling->now->version = version;
    telling->now->sequence = sequence;
    add_span(telling, telling->now);
    pthread_rwlock_unlock(&telling->lock);
    atomic_store(&telling->has_begun, true);
}

/* With the lock held. */
static void end_now(struct telling *telling)
{
    telling->now = NULL;
    clear_rows(telling);
    atomic_store(&telling->has_begun, false);
    atomic_store(&telling->is_announced, false);
}

void telling_withdraw(struct telling *telling, struct row_drops *drops)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    DCHECK(!atomic_load(&telling->has_begun));
    pthread_rwlock_wrlock(&telling->lock);
    free_span(telling->now);
    end_now(telling);
    pthread_rwlock_unlock(&telling->lock);
    telling_let_go(telling, drops);
}

void telling_let_go(struct telling *telling, struct row_drops *drops)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    if (!telling->holds || atomic_load(&telling->is_announced))
        return;
    telling->holds = false;
    row_drops_let_go(drops);
}

/* --- looks --- */

/* With the lock held. */
static bool is_ahead(const struct telling *telling, bytes row_key)
{
    const struct span *now = telling->now;
    return now != NULL && bytes_compare(row_key, buffer_bytes(&telling->next)) >= 0 &&
           key_is_before_end(row_key, buffer_bytes(&now->to));
}

bool telling_awaits(struct telling *telling, bytes row_key)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    if (!atomic_load_explicit(&telling->is_announced, memory_order_acquire))
        return false;
    pthread_rwlock_rdlock(&telling->lock);
    bool awaits = is_ahead(telling, row_key);
    const struct told_row *row = awaits ? find_row(telling, row_key) : NULL;
    awaits = awaits && (row == NULL || !row->is_written);
    pthread_rwlock_unlock(&telling->lock);
    return awaits;
}

struct row_drops *telling_before(struct telling *telling)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_rdlock(&telling->lock);
    struct row_drops *before = telling->before;
    pthread_rwlock_unlock(&telling->lock);
    return before;
}

bool telling_has_told(struct telling *telling, bytes row_key)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_rdlock(&telling->lock);
    const struct told_row *row = find_row(telling, row_key);
    bool is_told = row != NULL && row->is_written;
    pthread_rwlock_unlock(&telling->lock);
    return is_told;
}

bool telling_has_begun(struct telling *telling)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    return atomic_load_explicit(&telling->has_begun, memory_order_acquire);
}

void telling_look(struct telling *telling, struct telling_place *out)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    *out = (struct telling_place){.sequence = 0};
    pthread_rwlock_rdlock(&telling->lock);
    const struct span *now = telling->now;
    if (now != NULL && now->sequence != 0) {
        out->sequence = now->sequence;
        out->version = now->version;
        out->life = now->life;
        buffer_append_bytes(&out->first, buffer_bytes(&now->from));
        buffer_append_bytes(&out->next, buffer_bytes(&telling->next));
        buffer_append_bytes(&out->to, buffer_bytes(&now->to));
    }
    pthread_rwlock_unlock(&telling->lock);
}

void telling_begin_work(struct telling *telling)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_mutex_lock(&telling->working);
}

void telling_end_work(struct telling *telling)
{
    pthread_mutex_unlock(&telling->working);
}

void telling_await_work(struct telling *telling)
{
    telling_begin_work(telling);
    telling_end_work(telling);
}

/* --- on the commit thread --- */

bool telling_owes(struct telling *telling, uint64_t life, bytes row_key, uint64_t *version)
{
    if (!telling_has_begun(telling))
        return false;
    pthread_rwlock_rdlock(&telling->lock);
    bool owes = is_ahead(telling, row_key) && telling->now->life == life &&
                find_row(telling, row_key) == NULL;
    if (owes)
        *version = telling->now->version;
    pthread_rwlock_unlock(&telling->lock);
    return owes;
}

bool told_batch_prepare(struct told_batch *batch, struct telling *telling, bytes row_key)
{
    struct told_row *row = make_row(telling, row_key);
    if (row == NULL)
        return false;
    row->next_of_batch = batch->prepared;
    batch->prepared = row;
    return true;
}

void told_batch_cancel(struct told_batch *batch)
{
    for (struct told_row *row = batch->prepared, *next; row != NULL; row = next) {
        next = row->next_of_batch;
        free(row);
    }
    batch->prepared = NULL;
}

status told_batch_visit(const struct told_batch *batch, struct keyspace *system,
                        status (*visit)(void *context, const struct store_change *change),
                        void *context)
{
    for (const struct told_row *row = batch->prepared; row != NULL; row = row->next_of_batch) {
        const struct store_change change = {.kind = STORE_PUT,
                                            .keyspace = system,
                                            .key = bytes_make(row->key, row->key_size),
                                            .value = bytes_of("-")};
        TRY(visit(context, &change));
    }
    return status_ok();
}

void told_batch_add(struct told_batch *batch)
{
    for (struct told_row *row = batch->prepared, *next; row != NULL; row = next) {
        struct telling *telling = row->telling;
        next = row->next_of_batch;
        pthread_rwlock_wrlock(&telling->lock);
        insert_row(telling, row);
        pthread_rwlock_unlock(&telling->lock);
        row->next_of_batch = batch->added;
        batch->added = row;
    }
    batch->prepared = NULL;
}

void told_batch_written(struct told_batch *batch, bool is_written)
{
    for (struct told_row *row = batch->added, *next; row != NULL; row = next) {
        struct telling *telling = row->telling;
        next = row->next_of_batch;
        pthread_rwlock_wrlock(&telling->lock);
        if (is_written)
            row->is_written = true;
        else
            remove_row(telling, row_of(row));
        pthread_rwlock_unlock(&telling->lock);
    }
    batch->added = NULL;
}

bool telling_is_of(struct telling *telling, uint64_t sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_rdlock(&telling->lock);
    bool is_so = telling->now != NULL && telling->now->sequence == sequence;
    pthread_rwlock_unlock(&telling->lock);
    return is_so;
}

void telling_pass_row(struct telling *telling, bytes row_key)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_wrlock(&telling->lock);
    remove_row(telling, row_key);
    pthread_rwlock_unlock(&telling->lock);
}

void telling_advance(struct telling *telling, struct buffer *next)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_wrlock(&telling->lock);
    DCHECK(bytes_compare(buffer_bytes(&telling->next), buffer_bytes(next)) <= 0);
    buffer_free(&telling->next);
    telling->next = *next;
    pthread_rwlock_unlock(&telling->lock);
    *next = (struct buffer){0};
}

void telling_end(struct telling *telling, uint64_t sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_wrlock(&telling->lock);
    size_t count = atomic_load(&telling->span_count);
    DCHECK(count > 0 && telling->spans[count - 1] == telling->now);
    telling->now->end = sequence;
    if (sequence == 0)
        remove_span(telling, count - 1);
    end_now(telling);
    pthread_rwlock_unlock(&telling->lock);
}

/* --- readers of streams --- */

/* The last that began at or before the sequence, NULL: none did; with the lock held. One has ended
 * when the next one begins. */
static const struct span *span_at(const struct telling *telling, uint64_t sequence)
{
    size_t low = 0, high = atomic_load(&telling->span_count);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (telling->spans[middle]->sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : telling->spans[low - 1];
}

static bool is_over(const struct span *span, bytes start, bytes end)
{
    return key_ranges_meet(buffer_bytes(&span->from), buffer_bytes(&span->to), start, end);
}

uint64_t telling_cap(struct telling *telling, uint64_t life, bytes start, bytes end,
                     uint64_t sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    uint64_t version = 0;
    if (!telling_has_any(telling))
        return 0;
    pthread_rwlock_rdlock(&telling->lock);
    const struct span *span = span_at(telling, sequence);
    bool is_within = span != NULL && (span->end == 0 || sequence < span->end);
    if (is_within && span->life == life && is_over(span, start, end))
        version = span->version;
    pthread_rwlock_unlock(&telling->lock);
    return version;
}

bool telling_find_outdated(struct telling *telling, uint64_t life, uint64_t oldest,
                           uint64_t *sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    bool found = false;
    if (!telling_has_any(telling))
        return false;
    pthread_rwlock_rdlock(&telling->lock);
    size_t count = atomic_load(&telling->span_count);
    for (size_t i = 0; i < count && !found; i++) {
        const struct span *span = telling->spans[i];
        found =
            span->end != 0 && (span->life != life || span->end < oldest || count - i > MOST_SPANS);
        *sequence = span->sequence;
    }
    pthread_rwlock_unlock(&telling->lock);
    return found;
}

void telling_forget(struct telling *telling, uint64_t sequence)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    pthread_rwlock_wrlock(&telling->lock);
    for (size_t i = 0; i < atomic_load(&telling->span_count); i++)
        if (telling->spans[i]->sequence == sequence) {
            remove_span(telling, i);
            break;
        }
    pthread_rwlock_unlock(&telling->lock);
}

bool telling_has_any(struct telling *telling)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    return atomic_load_explicit(&telling->span_count, memory_order_acquire) > 0;
}

/* --- life --- */

status telling_create(uint64_t keyspace_id, struct telling **out)
{
    struct telling *telling = *out = calloc(1, sizeof *telling);
    if (telling == NULL)
        return status_out_of_memory();
    telling->buckets = calloc(bucket_count(FIRST_BUCKET_BITS), sizeof(struct told_row *));
    if (telling->buckets == NULL) {
        free(telling);
        *out = NULL;
        return status_out_of_memory();
    }
    telling->magic = TELLING_MAGIC;
    telling->keyspace_id = keyspace_id;
    telling->bucket_bits = FIRST_BUCKET_BITS;
    pthread_mutex_init(&telling->working, NULL);
    pthread_rwlock_init(&telling->lock, NULL);
    return status_ok();
}

void telling_destroy(struct telling *telling)
{
    if (telling == NULL)
        return;
    CHECK_MAGIC(telling, TELLING_MAGIC);
    if (telling->now != NULL && telling->now->sequence == 0)
        free_span(telling->now);
    for (size_t i = 0; i < atomic_load(&telling->span_count); i++)
        free_span(telling->spans[i]);
    free(telling->spans);
    free_reserved(telling);
    buffer_free(&telling->next);
    row_drops_destroy(telling->before);
    clear_rows(telling);
    free(telling->buckets);
    pthread_rwlock_destroy(&telling->lock);
    pthread_mutex_destroy(&telling->working);
    telling->magic = 0;
    free(telling);
}

/* --- a start --- */

static status load_span(void *context, const struct telling_record *record)
{
    struct telling *telling = context;
    struct span *span;
    TRY(reserve_span(telling));
    TRY(make_span(record->from, record->to, record->life, &span));
    span->sequence = record->sequence;
    span->version = record->version;
    span->end = record->end;
    add_span(telling, span);
    if (record->end != 0)
        return status_ok();
    if (telling->now != NULL)
        return status_make(STATUS_DATA_LOSS, "two drops of rows of a keyspace are being told");
    telling->now = span;
    buffer_append_bytes(&telling->next, record->next);
    return telling->next.failed ? status_out_of_memory() : status_ok();
}

static status load_row(void *context, bytes row_key)
{
    struct telling *telling = context;
    struct told_row *row = make_row(telling, row_key);
    if (row == NULL)
        return status_out_of_memory();
    row->is_written = true;
    insert_row(telling, row);
    return status_ok();
}

/* It goes on where it was. */
static status take_up(struct telling *telling, struct keyspace *system, struct row_drops *drops)
{
    uint64_t sequence = telling->now->sequence;
    TRY(told_rows_visit(system, telling->keyspace_id, sequence, load_row, telling));
    TRY(row_drops_copy(drops, &telling->before));
    (void)row_drops_remove(telling->before, sequence);
    row_drops_hold_from(drops, sequence);
    telling->holds = true;
    atomic_store(&telling->is_announced, true);
    atomic_store(&telling->has_begun, true);
    return status_ok();
}

status telling_load(struct telling *telling, struct keyspace *system, struct row_drops *drops)
{
    CHECK_MAGIC(telling, TELLING_MAGIC);
    TRY(telling_records_visit(system, telling->keyspace_id, load_span, telling));
    return telling->now == NULL ? status_ok() : take_up(telling, system, drops);
}
