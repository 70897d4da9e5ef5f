/* A bump allocator over a list of blocks: see arena.h.
 *
 * Invariants: `blocks` is the newest block, and the only one that is bumped; the first block is
 * allocated together with the arena and lives as long as it. */
#include "base/arena.h"

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
    uint8_t *next;
    uint8_t *end;
    struct block *blocks;
    struct block *first;
};

#define ARENA_MAGIC 0x4152454eu

static struct block *new_block(size_t size)
{
    struct block *block = malloc(sizeof *block + size);
    if (block != NULL)
        *block = (struct block){.older = NULL, .size = size};
    return block;
}

static void use_block(struct arena *arena, struct block *block)
{
    arena->next = block->memory;
    arena->end = block->memory + block->size;
}

struct arena *arena_create(size_t limit)
{
    struct arena *arena = malloc(sizeof *arena);
    struct block *first = new_block(FIRST_BLOCK);
    if (arena == NULL || first == NULL) {
        free(arena);
        free(first);
        return NULL;
    }
    *arena = (struct arena){.magic = ARENA_MAGIC,
                            .limit = limit,
                            .footprint = sizeof *first + first->size,
                            .blocks = first,
                            .first = first};
    use_block(arena, first);
    return arena;
}

static void free_later_blocks(struct arena *arena)
{
    while (arena->blocks != arena->first) {
        struct block *older = arena->blocks->older;
        arena->footprint -= sizeof *arena->blocks + arena->blocks->size;
        free(arena->blocks);
        arena->blocks = older;
    }
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL)
        return;
    CHECK_MAGIC(arena, ARENA_MAGIC);
    free_later_blocks(arena);
    free(arena->first);
    arena->magic = 0;
    free(arena);
}

void arena_reset(struct arena *arena)
{
    CHECK_MAGIC(arena, ARENA_MAGIC);
    free_later_blocks(arena);
    use_block(arena, arena->first);
    arena->used = 0;
}

/* Blocks double up to LARGEST_BLOCK; what is larger gets a block of its own size. */
static bool grow(struct arena *arena, size_t size)
{
    size_t next = arena->blocks->size * 2;
    if (next > LARGEST_BLOCK)
        next = LARGEST_BLOCK;
    struct block *block = new_block(size > next ? size : next);
    if (block == NULL)
        return false;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->footprint += sizeof *block + block->size;
    use_block(arena, block);
    return true;
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
    if (size > (size_t)(arena->end - arena->next) && !grow(arena, size))
        return NULL;
    void *memory = arena->next;
    arena->next += size;
    arena->used += size;
    return memory;
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
