/* A bump allocator over a list of blocks: see arena.h.
 *
 * Invariants: only the newest block is bumped; the first is part of the arena's own memory. Nothing
 * is in a kept block. */
#include "base/arena.h"

#include "base/budget.h"
#include "base/check.h"

#include <stdalign.h>
#include <stdlib.h>

enum { FIRST_BLOCK = 4096 - 128, LARGEST_BLOCK = 1 << 20 };

struct block {
    struct block *older;
    size_t size;
    alignas(max_align_t) uint8_t memory[];
};

struct arena {
    uint32_t magic;
    size_t limit;     /* of what is handed out */
    size_t used;      /* handed out so far, rounded up to alignment */
    size_t footprint; /* bytes of all blocks */
    struct budget *budget;
    uint8_t *next;
    uint8_t *end;
    struct block *blocks; /* newest first; NULL: there is only the first */
    struct block *kept;   /* of LARGEST_BLOCK each: for what comes */
    alignas(max_align_t) uint8_t first[FIRST_BLOCK];
};

#define ARENA_MAGIC 0x4152454eu

static struct block *new_block(struct budget *budget, size_t size)
{
    if (!budget_take(budget, sizeof(struct block) + size))
        return NULL;
    struct block *block = malloc(sizeof *block + size);
    if (block != NULL)
        *block = (struct block){.older = NULL, .size = size};
    else
        budget_give_back(budget, sizeof *block + size);
    return block;
}

static void use_memory(struct arena *arena, uint8_t *memory, size_t size)
{
    arena->next = memory;
    arena->end = memory + size;
}

struct arena *arena_create(size_t limit)
{
    return arena_create_within(limit, NULL);
}

struct arena *arena_create_within(size_t limit, struct budget *budget)
{
    struct arena *arena = malloc(sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->magic = ARENA_MAGIC;
    arena->limit = limit;
    arena->used = 0;
    arena->footprint = sizeof *arena;
    arena->budget = budget;
    arena->blocks = NULL;
    arena->kept = NULL;
    use_memory(arena, arena->first, sizeof arena->first);
    return arena;
}

static void free_blocks(struct arena *arena, struct block **blocks)
{
    while (*blocks != NULL) {
        struct block *older = (*blocks)->older;
        size_t size = sizeof **blocks + (*blocks)->size;
        arena->footprint -= size;
        free(*blocks);
        budget_give_back(arena->budget, size);
        *blocks = older;
    }
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL)
        return;
    CHECK_MAGIC(arena, ARENA_MAGIC);
    free_blocks(arena, &arena->blocks);
    free_blocks(arena, &arena->kept);
    arena->magic = 0;
    free(arena);
}

void arena_reset(struct arena *arena)
{
    CHECK_MAGIC(arena, ARENA_MAGIC);
    free_blocks(arena, &arena->blocks);
    free_blocks(arena, &arena->kept);
    use_memory(arena, arena->first, sizeof arena->first);
    arena->used = 0;
}

static size_t bytes_of_kept(const struct arena *arena)
{
    size_t size = 0;
    for (const struct block *at = arena->kept; at != NULL; at = at->older)
        size += at->size;
    return size;
}

/* Blocks of the largest usual size alone, since any of these may be the next. */
void arena_reset_keeping(struct arena *arena, size_t most)
{
    struct block *blocks = arena->blocks;
    CHECK_MAGIC(arena, ARENA_MAGIC);
    size_t kept = bytes_of_kept(arena);
    arena->blocks = NULL;
    for (struct block *at = blocks, *older; at != NULL; at = older) {
        bool stays = at->size == LARGEST_BLOCK && kept + at->size <= most;
        struct block **to = stays ? &arena->kept : &arena->blocks;
        older = at->older;
        at->older = *to;
        *to = at;
        kept += stays ? LARGEST_BLOCK : 0;
    }
    free_blocks(arena, &arena->blocks);
    use_memory(arena, arena->first, sizeof arena->first);
    arena->used = 0;
}

/* Blocks double up to LARGEST_BLOCK; what is larger gets a block of its own size. */
static bool grow(struct arena *arena, size_t size)
{
    size_t next = 2 * (arena->blocks == NULL ? sizeof arena->first : arena->blocks->size);
    if (next > LARGEST_BLOCK)
        next = LARGEST_BLOCK;
    struct block *block = arena->kept;
    if (block != NULL && size <= block->size) {
        arena->kept = block->older;
    } else {
        block = new_block(arena->budget, size > next ? size : next);
        if (block == NULL)
            return false;
        arena->footprint += sizeof *block + block->size;
    }
    block->older = arena->blocks;
    arena->blocks = block;
    use_memory(arena, block->memory, block->size);
    return true;
}

static inline void *take(struct arena *arena, size_t size)
{
    void *memory = arena->next;
    arena->next += size;
    arena->used += size;
    return memory;
}

/* The rare part of arena_alloc, out of its way. */
static __attribute__((noinline)) void *take_of_new_block(struct arena *arena, size_t size)
{
    return grow(arena, size) ? take(arena, size) : NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    enum { ALIGNMENT = alignof(max_align_t) };
    CHECK_MAGIC(arena, ARENA_MAGIC);
    if (size > arena->limit)
        return NULL;
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size > arena->limit - arena->used)
        return NULL;
    bool fits = size <= (size_t)(arena->end - arena->next);
    return fits ? take(arena, size) : take_of_new_block(arena, size);
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    void *memory = arena_alloc(arena, size);
    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

bytes arena_copy(struct arena *arena, bytes b)
{
    uint8_t *copy = arena_alloc(arena, b.size == 0 ? 1 : b.size);
    if (copy == NULL)
        return bytes_make(NULL, 0);
    if (b.size > 0)
        memcpy(copy, b.data, b.size);
    return bytes_make(copy, b.size);
}

char *arena_string(struct arena *arena, bytes b)
{
    char *copy = b.size == SIZE_MAX ? NULL : arena_alloc(arena, b.size + 1);
    if (copy == NULL)
        return NULL;
    if (b.size > 0)
        memcpy(copy, b.data, b.size);
    copy[b.size] = '\0';
    return copy;
}

void arena_set_limit(struct arena *arena, size_t limit)
{
    arena->limit = limit > arena->used ? limit : arena->used;
}

size_t arena_footprint(const struct arena *arena)
{
    return arena->footprint;
}
