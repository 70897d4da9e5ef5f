/* See transaction.h. They stand in a hash table by their numbers, under one lock, which is held for
 * a few instructions. */
#include "datastore/commit/transaction.h"

#include "base/check.h"
#include "base/limits.h"
#include "datastore/usage_note.h"

#include <endian.h>
#include <stdlib.h>

/* `SWEEP_US`: how often those that have expired are looked for, at the least. */
enum { BUCKETS = 1024, NOTES_LIMIT = 16 << 20, SWEEP_US = 10 * 1000 * 1000 };

struct ds_transactions {
    struct clock *clock;
    struct metrics *metrics;      /* may be NULL */
    struct ds_range_locks *locks; /* NULL: all are optimistic */
    struct ds_usage *usage;       /* may be NULL */
    int64_t most_bytes;
    atomic_llong charged;
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    struct ds_transaction *buckets[BUCKETS];
    unsigned count;
    int64_t swept_us; /* when those that have expired were looked for */
    uint64_t begun;   /* so far: numbers of ids, and ages */
    uint64_t run;     /* of this server's run: ids of another are none */
};

/* An id: its number; how old it is, which is the number of the first that was begun of what is done
 * now; the run. */
struct id {
    uint64_t number; /* both big-endian */
    uint64_t age;
    uint64_t run;
};

_Static_assert(sizeof(struct id) == DS_TRANSACTION_ID_SIZE, "ids have no gaps");

status ds_transactions_create(struct clock *clock, struct metrics *metrics,
                              struct ds_range_locks *locks, struct ds_usage *usage,
                              int64_t most_bytes, struct ds_transactions **out)
{
    struct ds_transactions *transactions = *out = calloc(1, sizeof *transactions);
    if (transactions == NULL)
        return status_out_of_memory();
    transactions->clock = clock;
    transactions->metrics = metrics;
    transactions->locks = locks;
    transactions->usage = usage;
    transactions->most_bytes = most_bytes;
    transactions->run = (uint64_t)clock_wall_us(clock) ^ (uintptr_t)transactions;
    pthread_mutex_init(&transactions->lock, NULL);
    pthread_cond_init(&transactions->given_back, NULL);
    return status_ok();
}

static void count(struct ds_transactions *transactions, enum metric metric, int64_t change)
{
    if (transactions->metrics != NULL)
        metrics_add(transactions->metrics, metric, change);
}

/* Charges the bytes to all transactions; returns their sum. */
static int64_t charge(struct ds_transactions *transactions, struct ds_transaction *transaction,
                      int64_t bytes)
{
    transaction->charged += bytes;
    DCHECK(transaction->charged >= 0);
    count(transactions, METRIC_datastore_transactions_bytes, bytes);
    return atomic_fetch_add(&transactions->charged, bytes) + bytes;
}

static void destroy(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    if (transaction->is_pessimistic)
        ds_range_locks_release(transactions->locks, &transaction->locker);
    charge(transactions, transaction, -transaction->charged);
    arena_destroy(transaction->arena);
    free(transaction->project);
    free(transaction->database);
    free(transaction);
}

static void destroy_all(struct ds_transactions *transactions, struct ds_transaction *first)
{
    for (struct ds_transaction *next; first != NULL; first = next) {
        next = first->next;
        destroy(transactions, first);
    }
}

/* Expired transactions are noted as of the kind that they have read. */
static void destroy_expired(struct ds_transactions *transactions, struct ds_transaction *first)
{
    int64_t now_us = clock_steady_us(transactions->clock);
    for (struct ds_transaction *at = first; at != NULL; at = at->next)
        ds_usage_note_expired(transactions->usage, at, now_us);
    destroy_all(transactions, first);
}

void ds_transactions_destroy(struct ds_transactions *transactions)
{
    if (transactions == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        destroy_all(transactions, transactions->buckets[i]);
    pthread_cond_destroy(&transactions->given_back);
    pthread_mutex_destroy(&transactions->lock);
    free(transactions);
}

/* --- the table; with the lock held --- */

static struct ds_transaction **bucket_of(struct ds_transactions *transactions, const uint8_t *id)
{
    return &transactions->buckets[bytes_hash(bytes_make(id, DS_TRANSACTION_ID_SIZE)) % BUCKETS];
}

static void take_out(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    DCHECK(transactions->count > 0);
    DCHECK(check_is_held(&transactions->lock));
    struct ds_transaction **at = bucket_of(transactions, transaction->id);
    while (*at != transaction)
        at = &(*at)->next;
    *at = transaction->next;
    transactions->count--;
    count(transactions, METRIC_datastore_transactions, -1);
}

/* Drops the transactions that have expired, to be destroyed without the lock: they have locks of
 * their own. */
static struct ds_transaction *drop_expired(struct ds_transactions *transactions)
{
    DCHECK(check_is_held(&transactions->lock));
    struct ds_transaction *expired = NULL;
    int64_t now_us = clock_steady_us(transactions->clock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct ds_transaction *at = transactions->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            if (now_us <= atomic_load(&at->locker.until_us))
                continue;
            take_out(transactions, at);
            count(transactions, METRIC_datastore_transactions_expired_total, 1);
            at->next = expired;
            expired = at;
        }
    transactions->swept_us = now_us;
    return expired;
}

/* --- beginnings and ends --- */

static status create(struct ds_transactions *transactions, const struct ds_beginning *beginning,
                     struct ds_transaction **out)
{
    struct ds_transaction *transaction = *out = calloc(1, sizeof *transaction);
    if (transaction == NULL)
        return status_out_of_memory();
    struct arena *arena = transaction->arena = arena_create(NOTES_LIMIT);
    transaction->project = strdup(beginning->database->project);
    transaction->database = strdup(beginning->database->id);
    transaction->is_read_only = beginning->is_read_only;
    transaction->is_pessimistic = transactions->locks != NULL && !beginning->is_read_only;
    transaction->at_us = beginning->at_us;
    transaction->is_taken = true;
    transaction->begun_us = clock_steady_us(transactions->clock);
    transaction->empty_bytes = arena == NULL ? 0 : (int64_t)arena_footprint(arena);
    transaction->locker = (struct ds_locker){.arena = arena, .until_us = INT64_MAX};
    if (arena != NULL && transaction->project != NULL && transaction->database != NULL)
        return status_ok();
    destroy(transactions, transaction);
    return status_out_of_memory();
}

/* Of what is done now, if it was begun before; of an id of another run, or of none, nothing is
 * known. */
static uint64_t age_of(const struct ds_transactions *transactions, uint64_t number, bytes previous)
{
    struct id id;
    if (previous.size != sizeof id)
        return number;
    memcpy(&id, previous.data, sizeof id);
    bool is_ours = id.run == transactions->run && be64toh(id.age) < number;
    return is_ours ? be64toh(id.age) : number;
}

/* With the lock held. */
static status add(struct ds_transactions *transactions, struct ds_transaction *transaction,
                  bytes previous, struct ds_transaction **expired)
{
    DCHECK(check_is_held(&transactions->lock));
    if (transactions->count >= LIMIT_DS_TRANSACTIONS ||
        clock_steady_us(transactions->clock) - transactions->swept_us > SWEEP_US)
        *expired = drop_expired(transactions);
    if (transactions->count >= LIMIT_DS_TRANSACTIONS)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "There are %d transactions already.",
                           LIMIT_DS_TRANSACTIONS);
    uint64_t number = ++transactions->begun;
    transaction->locker.age = age_of(transactions, number, previous);
    struct id id = {htobe64(number), htobe64(transaction->locker.age), transactions->run};
    memcpy(transaction->id, &id, sizeof id);
    struct ds_transaction **bucket = bucket_of(transactions, transaction->id);
    transaction->next = *bucket;
    *bucket = transaction;
    transactions->count++;
    count(transactions, METRIC_datastore_transactions, 1);
    count(transactions, METRIC_datastore_transactions_begun_total, 1);
    return status_ok();
}

status ds_transaction_begin(struct ds_transactions *transactions,
                            const struct ds_beginning *beginning, struct ds_transaction **out)
{
    struct ds_transaction *expired = NULL;
    TRY(create(transactions, beginning, out));
    pthread_mutex_lock(&transactions->lock);
    status s = add(transactions, *out, beginning->previous, &expired);
    pthread_mutex_unlock(&transactions->lock);
    destroy_expired(transactions, expired);
    if (!status_is_ok(s))
        destroy(transactions, *out);
    return s;
}

uint64_t ds_transactions_age(struct ds_transactions *transactions)
{
    pthread_mutex_lock(&transactions->lock);
    uint64_t age = ++transactions->begun;
    pthread_mutex_unlock(&transactions->lock);
    return age;
}

/* With the lock held. */
static struct ds_transaction *find(struct ds_transactions *transactions, bytes id,
                                   const struct ds_database *database)
{
    DCHECK(check_is_held(&transactions->lock) && id.size == DS_TRANSACTION_ID_SIZE);
    struct ds_transaction *at = *bucket_of(transactions, id.data);
    while (at != NULL && memcmp(at->id, id.data, id.size) != 0)
        at = at->next;
    bool is_it = at != NULL && strcmp(at->project, database->project) == 0 &&
                 strcmp(at->database, database->id) == 0;
    return is_it ? at : NULL;
}

/* With the lock held; waits for another request that has it. `*expired`: to be destroyed. */
static status take(struct ds_transactions *transactions, bytes id,
                   const struct ds_database *database, struct ds_transaction **out,
                   struct ds_transaction **expired)
{
    DCHECK(check_is_held(&transactions->lock));
    while ((*out = find(transactions, id, database)) != NULL && (*out)->is_taken)
        pthread_cond_wait(&transactions->given_back, &transactions->lock);
    if (*out != NULL && !ds_locker_keep(&(*out)->locker, clock_steady_us(transactions->clock))) {
        take_out(transactions, *out);
        count(transactions, METRIC_datastore_transactions_expired_total, 1);
        (*out)->next = NULL;
        *expired = *out;
        *out = NULL;
    }
    if (*out == NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The referenced transaction has expired or is no longer valid.");
    (*out)->is_taken = true;
    return status_ok();
}

status ds_transaction_take(struct ds_transactions *transactions, bytes id,
                           const struct ds_database *database, struct ds_transaction **out)
{
    struct ds_transaction *expired = NULL;
    *out = NULL;
    if (id.size != DS_TRANSACTION_ID_SIZE)
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid transaction.");
    pthread_mutex_lock(&transactions->lock);
    status s = take(transactions, id, database, out, &expired);
    pthread_mutex_unlock(&transactions->lock);
    destroy_expired(transactions, expired);
    return s;
}

void ds_transaction_give_back(struct ds_transactions *transactions,
                              struct ds_transaction *transaction)
{
    DCHECK(transaction->is_taken);
    int64_t idle_until_us = clock_steady_us(transactions->clock) + DS_IDLE_US;
    int64_t until_us = transaction->begun_us + DS_TRANSACTION_US;
    pthread_mutex_lock(&transactions->lock);
    transaction->left_us = idle_until_us - DS_IDLE_US;
    transaction->is_taken = false;
    ds_locker_leave(&transaction->locker, idle_until_us < until_us ? idle_until_us : until_us);
    pthread_cond_broadcast(&transactions->given_back);
    pthread_mutex_unlock(&transactions->lock);
}

void ds_transaction_end(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    DCHECK(transaction->is_taken);
    pthread_mutex_lock(&transactions->lock);
    take_out(transactions, transaction);
    pthread_cond_broadcast(&transactions->given_back);
    pthread_mutex_unlock(&transactions->lock);
    destroy(transactions, transaction);
}

void ds_transaction_abort(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    transaction->is_aborted = true;
    if (transaction->is_pessimistic)
        ds_range_locks_release(transactions->locks, &transaction->locker);
}

status ds_transaction_check(const struct ds_transaction *transaction)
{
    return transaction->is_aborted ? ds_contended() : status_ok();
}

status ds_transaction_roll_back(struct ds_transactions *transactions, bytes id,
                                const struct ds_database *database)
{
    struct ds_transaction *transaction;
    status s = ds_transaction_take(transactions, id, database, &transaction);
    if (status_is_ok(s)) {
        count(transactions, METRIC_datastore_transactions_rolled_back_total, 1);
        ds_transaction_end(transactions, transaction);
        return s;
    }
    if (s.code != STATUS_INVALID_ARGUMENT || id.size != DS_TRANSACTION_ID_SIZE)
        return s;
    status_free(s); /* it has ended already */
    return status_ok();
}

static bool is_left(const struct ds_transaction *transaction, const struct ds_database *database,
                    int64_t until_us)
{
    return !transaction->is_taken && !transaction->is_read_only &&
           transaction->left_us <= until_us &&
           strcmp(transaction->project, database->project) == 0 &&
           strcmp(transaction->database, database->id) == 0;
}

void ds_transactions_visit_left(
    struct ds_transactions *transactions, const struct ds_database *database, int64_t until_us,
    void (*visit)(void *context, const struct ds_transaction *transaction), void *context)
{
    pthread_mutex_lock(&transactions->lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct ds_transaction *at = transactions->buckets[i]; at != NULL; at = at->next)
            if (is_left(at, database, until_us))
                visit(context, at);
    pthread_mutex_unlock(&transactions->lock);
}

/* --- what was read --- */

status ds_transaction_note(struct ds_transaction *transaction, bytes from, bytes to)
{
    DCHECK(transaction->is_taken);
    if (transaction->is_read_only)
        return status_ok();
    struct ds_read_range range = {arena_copy(transaction->arena, from),
                                  arena_copy(transaction->arena, to)};
    status s = (range.from.data == NULL && from.size > 0) || (range.to.data == NULL && to.size > 0)
                   ? status_out_of_memory()
                   : vector_add(&transaction->ranges, transaction->arena, &range, sizeof range);
    if (s.code != STATUS_RESOURCE_EXHAUSTED)
        return s;
    status_free(s);
    return status_make(STATUS_RESOURCE_EXHAUSTED, "The transaction has read too much.");
}

/* Its arena begins with what every transaction has, and comes back to that. */
static void forget_reads(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    transaction->ranges = (struct vector){.count = 0};
    transaction->locker.shared = (struct vector){.count = 0};
    arena_reset(transaction->arena);
    charge(transactions, transaction, -transaction->charged);
}

status ds_transaction_charge(struct ds_transactions *transactions,
                             struct ds_transaction *transaction)
{
    int64_t bytes = (int64_t)arena_footprint(transaction->arena) - transaction->empty_bytes;
    if (bytes == transaction->charged ||
        charge(transactions, transaction, bytes - transaction->charged) <= transactions->most_bytes)
        return status_ok();
    ds_transaction_abort(transactions, transaction);
    forget_reads(transactions, transaction);
    count(transactions, METRIC_datastore_transactions_crowded_out_total, 1);
    return status_make(STATUS_ABORTED,
                       "All transactions together have read too much. Please try again.");
}
