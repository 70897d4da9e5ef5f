/* Which writes were done lately: so that a client that asks again, not knowing whether its first
 * request arrived, adds to an aggregate once.
 *
 * A client gives such a write a token. A write is known by its fingerprint, 128 bits of table, row
 * key and token, which is remembered in memory, and in a record of the catalog's keyspace:
 *
 *     'I' <commit sequence, 8 bytes, big-endian>     the fingerprint, 2 words, little-endian
 *
 * Invariants
 *  1. The record is in the same batch as the change: after a crash both are there, or neither.
 *  2. A fingerprint is remembered from before its write enters the commit queue until TOKEN_KEPT_US
 *     after, or until the write has failed, and that before any commit behind it in the queue is
 *     answered: a repeated write that waits for its own place in the queue, and still finds the
 *     fingerprint, with no failure in between, knows that the first has been committed.
 *  3. Keys begin with the time, so forgetting is one range delete. A start reads what is there and
 *     keeps it all as if it were new.
 *  4. Memory is bounded by LIMIT_IDEMPOTENCY_TOKENS. Beyond it writes with a token are refused: a
 *     token that is forgotten early would be a write that is done twice.
 *
 * In memory there are shards, by the fingerprint, each with its lock; in a shard, one set for each
 * of some generations of time, of which the oldest is forgotten as a whole. Time is the steady
 * clock: setting the other one makes nothing old. Any thread, unless said; a lock is held for a
 * search, and now and then for the growth of a set. */
#ifndef TRESTLE_TABLET_TOKENS_H
#define TRESTLE_TABLET_TOKENS_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/siphash.h"
#include "store/store.h"

struct tokens;

/* How long a token is remembered at least, and when it is forgotten at last. Clients are promised
 * LIMIT_IDEMPOTENCY_SECONDS from when they first sent it, by their own clock; a minute more is for
 * clocks that differ. */
#define TOKEN_KEPT_US      (INT64_C(16) * 60 * 1000000)
#define TOKEN_FORGOTTEN_US (INT64_C(20) * 60 * 1000000)

struct tokens_options {
    struct store *store;
    struct keyspace *catalog; /* keeps the records */
    struct clock *clock;
    struct metrics *metrics; /* may be NULL */
};

/* Reads what is remembered. */
status tokens_open(const struct tokens_options *options, struct tokens **out);
void tokens_close(struct tokens *tokens); /* NULL is fine */

struct fingerprint token_fingerprint(uint64_t table_id, bytes row_key, bytes token);

/* Remembers it; `*is_repeated` if it was already. With the row's lock held from here until the
 * write has entered the commit queue, so that a repetition can only come behind it.
 * RESOURCE_EXHAUSTED, with RetryInfo, if there are too many. */
status tokens_claim(struct tokens *tokens, struct fingerprint fingerprint, bool *is_repeated,
                    uint64_t *failures);

/* The write failed: it may be tried again. */
void tokens_forget(struct tokens *tokens, struct fingerprint fingerprint);

/* `*failures`, of this and of tokens_claim: a count that goes up when a write with this token, or
 * with one of its neighbours, is forgotten. What is remembered now is what was remembered then if
 * both counts are the same; else another write may have claimed the token again. */
bool tokens_remember(struct tokens *tokens, struct fingerprint fingerprint, uint64_t *failures);

/* Adds the record to the batch of the write. The commit thread's alone: sequences rise. */
void tokens_put_record(struct tokens *tokens, struct store_batch *batch, uint64_t sequence,
                       struct fingerprint fingerprint);

/* Deletes the records of what has been forgotten: maintenance's alone, to be called now and then.
 */
status tokens_delete_records(struct tokens *tokens);

/* For the doctor: how many records there are, and how many of them are damaged. */
status tokens_count_records(struct keyspace *catalog, uint64_t *records, uint64_t *damaged);

#endif
