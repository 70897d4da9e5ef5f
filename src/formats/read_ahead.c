/* See read_ahead.h.
 *
 * Invariants
 *  1. Of the ring, the `filled` blocks from `taking` on are the caller's, the others the thread's.
 *     So bytes are written and read without the mutex; what says whose they are is guarded by it.
 *  2. The thread fills a block whenever one is not filled. It ends after `has_ended` is set, or
 * when `is_closing` is.
 *  3. `failure` and `end_position` do not change once `has_ended` is set. */
#include "formats/read_ahead.h"

#include "base/check.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>

enum { BLOCKS = 8, BLOCK_BYTES = READ_AHEAD_BYTES / BLOCKS };

struct block {
    size_t size;
    uint64_t position; /* of the source, behind it */
    uint8_t bytes[BLOCK_BYTES];
};

struct read_ahead {
    uint32_t magic;
    struct read_ahead_source source;
    pthread_t thread;

    pthread_mutex_t mutex;
    pthread_cond_t has_filled; /* a block, or ended */
    pthread_cond_t has_room;   /* or is closing */
    unsigned filled;
    bool is_closing;
    bool has_ended;
    status failure; /* owned */
    uint64_t end_position;

    /* The caller's. */
    unsigned taking;
    size_t at; /* of the block that is being taken */
    uint64_t position;

    struct block blocks[BLOCKS];
};

#define READ_AHEAD_MAGIC 0x52414844u

/* --- on the thread that reads ahead --- */

/* False when the ring closes. */
static bool wait_for_room(struct read_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    while (ahead->filled == BLOCKS && !ahead->is_closing)
        pthread_cond_wait(&ahead->has_room, &ahead->mutex);
    bool is_closing = ahead->is_closing;
    pthread_mutex_unlock(&ahead->mutex);
    return !is_closing;
}

/* Whole blocks, so that small pieces do not wake the caller one by one. */
static status fill(const struct read_ahead_source *source, struct block *block, bool *is_end)
{
    block->size = 0;
    while (block->size < BLOCK_BYTES && !*is_end) {
        size_t made;
        TRY(source->read(source->context, block->bytes + block->size, BLOCK_BYTES - block->size,
                         &made));
        block->size += made;
        *is_end = made == 0;
    }
    return status_ok();
}

/* Takes the status. */
static void hand_over(struct read_ahead *ahead, struct block *block, status s, bool is_end)
{
    block->position = ahead->source.position(ahead->source.context);
    pthread_mutex_lock(&ahead->mutex);
    ahead->filled += block->size > 0;
    ahead->has_ended = is_end;
    ahead->failure = s;
    ahead->end_position = block->position;
    pthread_mutex_unlock(&ahead->mutex);
    pthread_cond_signal(&ahead->has_filled);
}

static void *read_all(void *argument)
{
    struct read_ahead *ahead = argument;
    bool is_end = false;
    for (unsigned next = 0; !is_end && wait_for_room(ahead); next = (next + 1) % BLOCKS) {
        status s = fill(&ahead->source, &ahead->blocks[next], &is_end);
        is_end |= !status_is_ok(s);
        hand_over(ahead, &ahead->blocks[next], s, is_end);
    }
    return NULL;
}

/* --- making and ending --- */

static void free_ring(struct read_ahead *ahead)
{
    pthread_cond_destroy(&ahead->has_room);
    pthread_cond_destroy(&ahead->has_filled);
    pthread_mutex_destroy(&ahead->mutex);
    status_free(ahead->failure);
    ahead->magic = 0;
    free(ahead);
}

status read_ahead_create(const struct read_ahead_source *source, struct read_ahead **out)
{
    struct read_ahead *ahead = calloc(1, sizeof *ahead);
    *out = NULL;
    if (ahead == NULL)
        return status_out_of_memory();
    ahead->magic = READ_AHEAD_MAGIC;
    ahead->source = *source;
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->has_filled, NULL);
    pthread_cond_init(&ahead->has_room, NULL);
    status s = thread_start(&ahead->thread, "read-ahead", read_all, ahead);
    if (!status_is_ok(s)) {
        free_ring(ahead);
        return s;
    }
    *out = ahead;
    return status_ok();
}

void read_ahead_destroy(struct read_ahead *ahead)
{
    if (ahead == NULL)
        return;
    CHECK_MAGIC(ahead, READ_AHEAD_MAGIC);
    pthread_mutex_lock(&ahead->mutex);
    ahead->is_closing = true;
    pthread_mutex_unlock(&ahead->mutex);
    pthread_cond_signal(&ahead->has_room);
    pthread_join(ahead->thread, NULL);
    free_ring(ahead);
}

/* --- on the caller's --- */

/* The block that is to be taken from; NULL when all of them have been. */
static const struct block *wait_for_block(struct read_ahead *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    while (ahead->filled == 0 && !ahead->has_ended)
        pthread_cond_wait(&ahead->has_filled, &ahead->mutex);
    bool is_there = ahead->filled > 0;
    pthread_mutex_unlock(&ahead->mutex);
    return is_there ? &ahead->blocks[ahead->taking] : NULL;
}

static void give_back(struct read_ahead *ahead)
{
    ahead->taking = (ahead->taking + 1) % BLOCKS;
    ahead->at = 0;
    pthread_mutex_lock(&ahead->mutex);
    ahead->filled--;
    pthread_mutex_unlock(&ahead->mutex);
    pthread_cond_signal(&ahead->has_room);
}

status read_ahead_take(struct read_ahead *ahead, uint8_t *to, size_t room, size_t *made)
{
    CHECK_MAGIC(ahead, READ_AHEAD_MAGIC);
    const struct block *block = wait_for_block(ahead);
    *made = 0;
    if (block == NULL) {
        ahead->position = ahead->end_position;
        return status_copy(ahead->failure);
    }
    size_t left = block->size - ahead->at;
    *made = left < room ? left : room;
    memcpy(to, block->bytes + ahead->at, *made);
    ahead->at += *made;
    ahead->position = block->position;
    if (*made == left)
        give_back(ahead);
    return status_ok();
}

uint64_t read_ahead_position(const struct read_ahead *ahead)
{
    return ahead->position;
}
