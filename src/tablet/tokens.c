/* See tokens.h. */
#include "tablet/tokens.h"

#include "base/check.h"
#include "base/limits.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    TOKENS_MAGIC = 0x746f6b65,
    TOKEN_RECORD = 'I', /* how keys begin */
    SHARDS = 64,        /* so that growing one keeps its lock for a millisecond or two */
    GENERATIONS = 5,
    FIRST_SLOTS = 16,
    MOST_IN_SHARD = LIMIT_IDEMPOTENCY_TOKENS / SHARDS,
    RETRY_MS = 1000,
};

/* A token that begins in a generation is kept while the four after it last. */
#define GENERATION_US (TOKEN_FORGOTTEN_US / GENERATIONS)
_Static_assert((GENERATIONS - 1) * GENERATION_US >= TOKEN_KEPT_US, "tokens would be lost too soon");
_Static_assert(TOKEN_KEPT_US > INT64_C(1000000) * LIMIT_IDEMPOTENCY_SECONDS, "less than promised");

/* --- a set of fingerprints: open addressing, linear probing --- */

struct set {
    struct fingerprint *slots;
    size_t slot_count; /* a power of two; 0: none yet */
    size_t used;
};

/* Fingerprints are made odd (token_fingerprint), so this is none. */
static const struct fingerprint free_slot = {{0, 0}};

static bool is_free(struct fingerprint slot)
{
    return fingerprint_equal(slot, free_slot);
}

static size_t slot_after(const struct set *set, size_t at)
{
    return (at + 1) & (set->slot_count - 1);
}

/* Where the search for a fingerprint begins. */
static size_t home_of(const struct set *set, struct fingerprint fingerprint)
{
    return fingerprint.words[1] & (set->slot_count - 1);
}

/* The fingerprint's slot, or the free one where it belongs. The set has slots. */
static size_t slot_of(const struct set *set, struct fingerprint fingerprint)
{
    DCHECK(set->used < set->slot_count);
    size_t at = home_of(set, fingerprint);
    while (!is_free(set->slots[at]) && !fingerprint_equal(set->slots[at], fingerprint))
        at = slot_after(set, at);
    return at;
}

static bool has(const struct set *set, struct fingerprint fingerprint)
{
    return set->slot_count > 0 && !is_free(set->slots[slot_of(set, fingerprint)]);
}

static bool grow(struct set *set)
{
    struct set bigger = {.slot_count = set->slot_count == 0 ? FIRST_SLOTS : 2 * set->slot_count,
                         .used = set->used};
    bigger.slots = calloc(bigger.slot_count, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < set->slot_count; i++)
        if (!is_free(set->slots[i]))
            bigger.slots[slot_of(&bigger, set->slots[i])] = set->slots[i];
    free(set->slots);
    *set = bigger;
    return true;
}

/* Adds a fingerprint that is not in the set. At least a quarter of the slots stays free. */
static bool add(struct set *set, struct fingerprint fingerprint)
{
    DCHECK(!has(set, fingerprint) && !is_free(fingerprint));
    if (4 * (set->used + 1) > 3 * set->slot_count && !grow(set))
        return false;
    set->slots[slot_of(set, fingerprint)] = fingerprint;
    set->used++;
    return true;
}

/* Takes out a fingerprint that is in the set. What was found by passing its slot moves up, so that
 * no search ends early: all that follows without a gap, except what would then stand before its
 * home. */
static void take_out(struct set *set, struct fingerprint fingerprint)
{
    DCHECK(has(set, fingerprint));
    size_t mask = set->slot_count - 1;
    size_t hole = slot_of(set, fingerprint);
    for (size_t at = slot_after(set, hole); !is_free(set->slots[at]); at = slot_after(set, at)) {
        size_t from_home = (at - home_of(set, set->slots[at])) & mask;
        if (from_home < ((at - hole) & mask))
            continue;
        set->slots[hole] = set->slots[at];
        hole = at;
    }
    set->slots[hole] = free_slot;
    set->used--;
    DCHECK(!has(set, fingerprint));
}

static void clear(struct set *set)
{
    free(set->slots);
    *set = (struct set){0};
}

/* --- shards --- */

struct shard {
    pthread_mutex_t lock;
    int64_t generation; /* the newest */
    uint64_t failures;  /* that were forgotten */
    struct set sets[GENERATIONS];
};

struct tokens {
    uint32_t magic;
    struct tokens_options options;
    int64_t opened_us; /* clock_steady_us: generation 0 begins */
    struct shard shards[SHARDS];

    atomic_ullong newest_record; /* its sequence; raised by the commit thread alone */
    /* Maintenance's. */
    int64_t generation;              /* the newest that it saw */
    uint64_t sequences[GENERATIONS]; /* newest_record, seen in that generation; 0: not looked at */
    uint64_t deleted_sequence;       /* up to here */
};

static int64_t generation_now(const struct tokens *tokens)
{
    return (clock_steady_us(tokens->options.clock) - tokens->opened_us) / GENERATION_US;
}

static void count(struct tokens *tokens, int64_t change)
{
    metrics_add(tokens->options.metrics, METRIC_idempotency_tokens, change);
}

static void end_generation(struct tokens *tokens, struct set *set)
{
    count(tokens, -(int64_t)set->used);
    clear(set);
}

/* The shard of the fingerprint, locked, with the sets of today. */
static struct shard *lock_shard(struct tokens *tokens, struct fingerprint fingerprint)
{
    CHECK_MAGIC(tokens, TOKENS_MAGIC);
    struct shard *shard = &tokens->shards[fingerprint.words[0] / 2 % SHARDS];
    int64_t now = generation_now(tokens);
    pthread_mutex_lock(&shard->lock);
    if (now - shard->generation > GENERATIONS)
        shard->generation = now - GENERATIONS;
    while (shard->generation < now)
        end_generation(tokens, &shard->sets[++shard->generation % GENERATIONS]);
    return shard;
}

static struct set *set_with(struct shard *shard, struct fingerprint fingerprint)
{
    DCHECK(check_is_held(&shard->lock));
    for (int i = 0; i < GENERATIONS; i++)
        if (has(&shard->sets[i], fingerprint))
            return &shard->sets[i];
    return NULL;
}

static bool is_full(const struct shard *shard)
{
    DCHECK(check_is_held(&shard->lock));
    size_t used = 0;
    for (int i = 0; i < GENERATIONS; i++)
        used += shard->sets[i].used;
    return used >= MOST_IN_SHARD;
}

static status too_many(void)
{
    status s = status_make(STATUS_RESOURCE_EXHAUSTED,
                           "Too many writes with an idempotency token within 15 minutes");
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

/* With the shard's lock held. */
static status add_new(struct tokens *tokens, struct shard *shard, struct fingerprint fingerprint)
{
    DCHECK(check_is_held(&shard->lock));
    if (!add(&shard->sets[shard->generation % GENERATIONS], fingerprint))
        return status_out_of_memory();
    count(tokens, 1);
    return status_ok();
}

status tokens_claim(struct tokens *tokens, struct fingerprint fingerprint, bool *is_repeated,
                    uint64_t *failures)
{
    status s = status_ok();
    struct shard *shard = lock_shard(tokens, fingerprint);
    *is_repeated = set_with(shard, fingerprint) != NULL;
    if (!*is_repeated)
        s = is_full(shard) ? too_many() : add_new(tokens, shard, fingerprint);
    *failures = shard->failures;
    pthread_mutex_unlock(&shard->lock);
    return s;
}

void tokens_forget(struct tokens *tokens, struct fingerprint fingerprint)
{
    struct shard *shard = lock_shard(tokens, fingerprint);
    struct set *set = set_with(shard, fingerprint);
    shard->failures++;
    if (set != NULL) { /* not yet forgotten for its age */
        take_out(set, fingerprint);
        count(tokens, -1);
    }
    pthread_mutex_unlock(&shard->lock);
}

bool tokens_remember(struct tokens *tokens, struct fingerprint fingerprint, uint64_t *failures)
{
    struct shard *shard = lock_shard(tokens, fingerprint);
    bool is_there = set_with(shard, fingerprint) != NULL;
    *failures = shard->failures;
    pthread_mutex_unlock(&shard->lock);
    return is_there;
}

struct fingerprint token_fingerprint(uint64_t table_id, bytes row_key, bytes token)
{
    /* The sizes keep "a" with "bc" apart from "ab" with "c". */
    const uint64_t head[] = {htole64(table_id), htole64(row_key.size)};
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_make(head, sizeof head));
    siphash_add(&hash, row_key);
    siphash_add(&hash, token);
    struct fingerprint fingerprint = siphash_finish(&hash);
    fingerprint.words[0] |= 1;
    return fingerprint;
}

/* --- records --- */

struct record {
    uint8_t key[1 + sizeof(uint64_t)];
    uint64_t value[2]; /* little-endian */
};

static struct record record_of(uint64_t sequence, struct fingerprint fingerprint)
{
    struct record record = {
        .value = {htole64(fingerprint.words[0]), htole64(fingerprint.words[1])}};
    sequence = htobe64(sequence);
    record.key[0] = TOKEN_RECORD;
    memcpy(record.key + 1, &sequence, sizeof sequence);
    return record;
}

static uint64_t sequence_of(const struct record *record)
{
    uint64_t sequence;
    memcpy(&sequence, record->key + 1, sizeof sequence);
    return be64toh(sequence);
}

static bytes key_of(const struct record *record)
{
    return bytes_make(record->key, sizeof record->key);
}

void tokens_put_record(struct tokens *tokens, struct store_batch *batch, uint64_t sequence,
                       struct fingerprint fingerprint)
{
    DCHECK(!is_free(fingerprint));
    struct record record = record_of(sequence, fingerprint);
    store_batch_put(batch, tokens->options.catalog, key_of(&record),
                    bytes_make(record.value, sizeof record.value));
    if (sequence > atomic_load_explicit(&tokens->newest_record, memory_order_relaxed))
        atomic_store_explicit(&tokens->newest_record, sequence, memory_order_relaxed);
}

static status check_record(bytes key, bytes value)
{
    const struct record *form = NULL;
    if (key.size == sizeof form->key && value.size == sizeof form->value && (value.data[0] & 1))
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "The record of an idempotency token is damaged");
}

/* Over the records. */
static status open_cursor(struct keyspace *catalog, struct store_cursor **out)
{
    const uint8_t first = TOKEN_RECORD;
    const uint8_t behind = TOKEN_RECORD + 1;
    struct store_cursor_options options = {.lower = bytes_make(&first, 1),
                                           .upper = bytes_make(&behind, 1),
                                           .read_tier = STORE_READ_ANY,
                                           .bypasses_cache = true};
    TRY(store_cursor_create(catalog, &options, out));
    store_cursor_first(*out);
    return status_ok();
}

status tokens_count_records(struct keyspace *catalog, uint64_t *records, uint64_t *damaged)
{
    struct store_cursor *cursor;
    *records = 0;
    *damaged = 0;
    TRY(open_cursor(catalog, &cursor));
    for (; store_cursor_valid(cursor); store_cursor_next(cursor)) {
        status s = check_record(store_cursor_key(cursor), store_cursor_value(cursor));
        *damaged += !status_is_ok(s);
        *records += 1;
        status_free(s);
    }
    status s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* Keeps it, however many there are: it has been promised. */
static status load_record(struct tokens *tokens, bytes key, bytes value)
{
    TRY(check_record(key, value));
    struct record record;
    memcpy(record.key, key.data, sizeof record.key);
    memcpy(record.value, value.data, sizeof record.value);
    struct fingerprint fingerprint = {{le64toh(record.value[0]), le64toh(record.value[1])}};
    status s = status_ok();
    struct shard *shard = lock_shard(tokens, fingerprint);
    if (set_with(shard, fingerprint) == NULL)
        s = add_new(tokens, shard, fingerprint);
    pthread_mutex_unlock(&shard->lock);
    tokens->sequences[0] = sequence_of(&record); /* the last one's stays */
    return s;
}

static status load(struct tokens *tokens)
{
    struct store_cursor *cursor;
    status s = status_ok();
    TRY(open_cursor(tokens->options.catalog, &cursor));
    for (; store_cursor_valid(cursor) && status_is_ok(s); store_cursor_next(cursor))
        s = load_record(tokens, store_cursor_key(cursor), store_cursor_value(cursor));
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static status delete_up_to(const struct tokens *tokens, uint64_t sequence)
{
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    struct record first = record_of(0, free_slot);
    struct record behind = record_of(sequence + 1, free_slot);
    store_batch_delete_range(batch, tokens->options.catalog, key_of(&first), key_of(&behind));
    status s = store_write(tokens->options.store, batch, STORE_ASYNC);
    store_batch_destroy(batch);
    return s;
}

/* A record that was there when a generation was looked at is of that one, or of an earlier one. */
status tokens_delete_records(struct tokens *tokens)
{
    CHECK_MAGIC(tokens, TOKENS_MAGIC);
    int64_t now = generation_now(tokens);
    uint64_t forgotten = tokens->deleted_sequence;
    if (now - tokens->generation > GENERATIONS)
        tokens->generation = now - GENERATIONS;
    while (tokens->generation < now) {
        uint64_t *sequence = &tokens->sequences[++tokens->generation % GENERATIONS];
        forgotten = *sequence > forgotten ? *sequence : forgotten;
        *sequence = 0;
    }
    tokens->sequences[now % GENERATIONS] =
        atomic_load_explicit(&tokens->newest_record, memory_order_relaxed);
    if (forgotten == tokens->deleted_sequence)
        return status_ok();
    TRY(delete_up_to(tokens, forgotten));
    tokens->deleted_sequence = forgotten;
    return status_ok();
}

/* --- life --- */

status tokens_open(const struct tokens_options *options, struct tokens **out)
{
    *out = NULL;
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens == NULL)
        return status_out_of_memory();
    tokens->magic = TOKENS_MAGIC;
    tokens->options = *options;
    tokens->opened_us = clock_steady_us(options->clock);
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&tokens->shards[i].lock, NULL);
    status s = load(tokens);
    if (!status_is_ok(s)) {
        tokens_close(tokens);
        return s;
    }
    atomic_init(&tokens->newest_record, tokens->sequences[0]);
    *out = tokens;
    return status_ok();
}

static void free_shard(struct shard *shard)
{
    for (int i = 0; i < GENERATIONS; i++)
        clear(&shard->sets[i]);
    pthread_mutex_destroy(&shard->lock);
}

void tokens_close(struct tokens *tokens)
{
    if (tokens == NULL)
        return;
    CHECK_MAGIC(tokens, TOKENS_MAGIC);
    for (int i = 0; i < SHARDS; i++)
        free_shard(&tokens->shards[i]);
    tokens->magic = 0;
    free(tokens);
}
