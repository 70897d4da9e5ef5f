/* See transaction.h. They stand in a hash table by their numbers, under one lock, which is held for
 * a few instructions. */
#include "datastore/transaction.h"

#include "base/limits.h"

#include <endian.h>
#include <stdlib.h>

enum { BUCKETS = 1024, NOTES_LIMIT = 16 << 20 };

struct ds_transactions {
    struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    struct ds_transaction *buckets[BUCKETS];
    unsigned count;
    uint64_t begun; /* so far: numbers of ids */
    uint64_t run;   /* of this server's run: ids of another are none */
};

status ds_transactions_create(struct clock *clock, struct ds_transactions **out)
{
    struct ds_transactions *transactions = *out = calloc(1, sizeof *transactions);
    if (transactions == NULL)
        return status_out_of_memory();
    transactions->clock = clock;
    transactions->run = (uint64_t)clock_wall_us(clock) ^ (uintptr_t)transactions;
    pthread_mutex_init(&transactions->lock, NULL);
    pthread_cond_init(&transactions->given_back, NULL);
    return status_ok();
}

static void destroy(struct ds_transaction *transaction)
{
    arena_destroy(transaction->arena);
    free(transaction);
}

void ds_transactions_destroy(struct ds_transactions *transactions)
{
    if (transactions == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct ds_transaction *at = transactions->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            destroy(at);
        }
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
    struct ds_transaction **at = bucket_of(transactions, transaction->id);
    while (*at != transaction)
        at = &(*at)->next;
    *at = transaction->next;
    transactions->count--;
}

static bool has_expired(const struct ds_transactions *transactions,
                        const struct ds_transaction *transaction)
{
    int64_t now_us = clock_steady_us(transactions->clock);
    return !transaction->is_taken && (now_us - transaction->begun_us > DS_TRANSACTION_US ||
                                      now_us - transaction->used_us > DS_IDLE_US);
}

static void drop_expired(struct ds_transactions *transactions)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct ds_transaction *at = transactions->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            if (!has_expired(transactions, at))
                continue;
            take_out(transactions, at);
            destroy(at);
        }
}

/* --- beginnings and ends --- */

static status create(const struct ds_database *database, struct ds_transaction **out)
{
    struct ds_transaction *transaction = *out = calloc(1, sizeof *transaction);
    if (transaction == NULL)
        return status_out_of_memory();
    transaction->arena = arena_create(NOTES_LIMIT);
    if (transaction->arena != NULL) {
        transaction->project = arena_string(transaction->arena, bytes_of(database->project));
        transaction->database = arena_string(transaction->arena, bytes_of(database->id));
    }
    if (transaction->project != NULL && transaction->database != NULL)
        return status_ok();
    destroy(transaction);
    return status_out_of_memory();
}

/* With the lock held. */
static status add(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    if (transactions->count >= LIMIT_DS_TRANSACTIONS)
        drop_expired(transactions);
    if (transactions->count >= LIMIT_DS_TRANSACTIONS)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "There are %d transactions already.",
                           LIMIT_DS_TRANSACTIONS);
    uint64_t number = htobe64(++transactions->begun);
    memcpy(transaction->id, &number, sizeof number);
    memcpy(transaction->id + sizeof number, &transactions->run, sizeof transactions->run);
    struct ds_transaction **bucket = bucket_of(transactions, transaction->id);
    transaction->next = *bucket;
    *bucket = transaction;
    transactions->count++;
    return status_ok();
}

status ds_transaction_begin(struct ds_transactions *transactions,
                            const struct ds_database *database, bool is_read_only, int64_t at_us,
                            struct ds_transaction **out)
{
    TRY(create(database, out));
    (*out)->is_read_only = is_read_only;
    (*out)->at_us = at_us;
    (*out)->is_taken = true;
    (*out)->begun_us = (*out)->used_us = clock_steady_us(transactions->clock);
    pthread_mutex_lock(&transactions->lock);
    status s = add(transactions, *out);
    pthread_mutex_unlock(&transactions->lock);
    if (!status_is_ok(s))
        destroy(*out);
    return s;
}

/* With the lock held. */
static struct ds_transaction *find(struct ds_transactions *transactions, bytes id,
                                   const struct ds_database *database)
{
    struct ds_transaction *at = *bucket_of(transactions, id.data);
    while (at != NULL && memcmp(at->id, id.data, id.size) != 0)
        at = at->next;
    bool is_it = at != NULL && strcmp(at->project, database->project) == 0 &&
                 strcmp(at->database, database->id) == 0;
    return is_it ? at : NULL;
}

/* With the lock held; waits for another request that has it. */
static status take(struct ds_transactions *transactions, bytes id,
                   const struct ds_database *database, struct ds_transaction **out)
{
    while ((*out = find(transactions, id, database)) != NULL && (*out)->is_taken)
        pthread_cond_wait(&transactions->given_back, &transactions->lock);
    if (*out != NULL && has_expired(transactions, *out)) {
        take_out(transactions, *out);
        destroy(*out);
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
    *out = NULL;
    if (id.size != DS_TRANSACTION_ID_SIZE)
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid transaction.");
    pthread_mutex_lock(&transactions->lock);
    status s = take(transactions, id, database, out);
    pthread_mutex_unlock(&transactions->lock);
    return s;
}

void ds_transaction_give_back(struct ds_transactions *transactions,
                              struct ds_transaction *transaction)
{
    pthread_mutex_lock(&transactions->lock);
    transaction->is_taken = false;
    transaction->used_us = clock_steady_us(transactions->clock);
    pthread_cond_broadcast(&transactions->given_back);
    pthread_mutex_unlock(&transactions->lock);
}

void ds_transaction_end(struct ds_transactions *transactions, struct ds_transaction *transaction)
{
    pthread_mutex_lock(&transactions->lock);
    take_out(transactions, transaction);
    pthread_cond_broadcast(&transactions->given_back);
    pthread_mutex_unlock(&transactions->lock);
    destroy(transaction);
}

status ds_transaction_roll_back(struct ds_transactions *transactions, bytes id,
                                const struct ds_database *database)
{
    struct ds_transaction *transaction;
    status s = ds_transaction_take(transactions, id, database, &transaction);
    if (status_is_ok(s)) {
        ds_transaction_end(transactions, transaction);
        return s;
    }
    if (s.code != STATUS_INVALID_ARGUMENT || id.size != DS_TRANSACTION_ID_SIZE)
        return s;
    status_free(s); /* it has ended already */
    return status_ok();
}

/* --- what was read --- */

status ds_transaction_note(struct ds_transaction *transaction, bytes from, bytes to)
{
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
