/* Memory that is freed all at once: one arena a request.
 *
 * An arena hands out memory from blocks that double in size, up to a limit on the sum, so that a
 * hostile message cannot take more than it was granted. Nothing is freed before the arena is.
 * One thread at a time may use an arena; it may pass from thread to thread. */
#ifndef TRESTLE_BASE_ARENA_H
#define TRESTLE_BASE_ARENA_H

#include "base/bytes.h"

struct arena;

/* `limit`: bytes that may be handed out in all. NULL without memory. */
struct arena *arena_create(size_t limit);
/* The same, whose blocks, all but the first, are asked of a budget, which outlives it. */
struct arena *arena_create_within(size_t limit, struct budget *budget);
void arena_destroy(struct arena *arena); /* NULL is fine */

/* Memory aligned for any type, not cleared; NULL when the limit is reached or memory is short.
 * A size of 0 gives a pointer that must not be followed. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);

/* A copy in the arena. On failure `data` is NULL and `size` 0, even for an empty input's copy. */
bytes arena_copy(struct arena *arena, bytes b);

/* A NUL-terminated copy; NULL on failure. */
char *arena_string(struct arena *arena, bytes b);

/* Frees all but the first block, for the next request. */
void arena_reset(struct arena *arena);

/* The same, but keeps of the other blocks what has at most so many bytes in all: for one that will
 * need as much again, soon, and whose memory the system would clear anew each time. */
void arena_reset_keeping(struct arena *arena, size_t most);

/* Changes the limit, as for a request whose size is known later than its arena. Memory that has
 * been handed out stays; at least that much counts as the limit. */
void arena_set_limit(struct arena *arena, size_t limit);

/* Bytes taken from the system at present, all blocks. */
size_t arena_footprint(const struct arena *arena);

#endif
