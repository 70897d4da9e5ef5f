/* See h2_memory.h.
 *
 * A piece of memory is a header, which says how large it is in steps, and what nghttp2 sees. Pieces
 * of fewer steps than there are classes are kept when they are freed: linked through what nghttp2
 * saw. Others go back to malloc. */
#include "wire/h2_memory.h"

#include "base/limits.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The sanitizers' headers come with their libraries, of which a release is built without. */
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, size)   ((void)(start), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#endif

enum { STEP = 64 };

struct piece {
    size_t steps; /* of STEP bytes, with this header */
    alignas(max_align_t) uint8_t memory[];
};

struct h2_kept {
    struct h2_kept *next;
};

static struct piece *piece_of(void *memory)
{
    return (struct piece *)(void *)((uint8_t *)memory - offsetof(struct piece, memory));
}

static size_t room_in(const struct piece *piece)
{
    return piece->steps * STEP - sizeof *piece;
}

/* The link stays readable: the search for leaks follows it. */
static void poison(struct h2_kept *kept)
{
    ASAN_POISON_MEMORY_REGION(kept + 1, room_in(piece_of(kept)) - sizeof *kept);
}

static void unpoison(struct h2_kept *kept)
{
    ASAN_UNPOISON_MEMORY_REGION(kept + 1, room_in(piece_of(kept)) - sizeof *kept);
}

static void *take(size_t size, void *context)
{
    struct h2_memory *memory = context;
    if (size > SIZE_MAX - sizeof(struct piece) - STEP)
        return NULL;
    size_t steps = (size + sizeof(struct piece) + STEP - 1) / STEP;
    if (steps < H2_MEMORY_CLASSES && memory->kept[steps] != NULL) {
        struct h2_kept *kept = memory->kept[steps];
        unpoison(kept);
        memory->kept[steps] = kept->next;
        memory->kept_bytes -= steps * STEP;
        return kept;
    }
    struct piece *piece = malloc(steps * STEP);
    if (piece == NULL)
        return NULL;
    piece->steps = steps;
    return piece->memory;
}

static void give_back(void *given, void *context)
{
    struct h2_memory *memory = context;
    if (given == NULL)
        return;
    struct piece *piece = piece_of(given);
    size_t size = piece->steps * STEP;
    if (piece->steps >= H2_MEMORY_CLASSES || memory->kept_bytes + size > LIMIT_H2_KEPT_BYTES) {
        free(piece);
        return;
    }
    struct h2_kept *kept = given;
    kept->next = memory->kept[piece->steps];
    memory->kept[piece->steps] = kept;
    memory->kept_bytes += size;
    poison(kept);
}

static void *take_zeroes(size_t count, size_t size, void *context)
{
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    void *taken = take(count * size, context);
    if (taken != NULL)
        memset(taken, 0, count * size);
    return taken;
}

static void *change_size(void *given, size_t size, void *context)
{
    if (given == NULL)
        return take(size, context);
    size_t room = room_in(piece_of(given));
    if (size <= room)
        return given;
    void *taken = take(size, context);
    if (taken == NULL)
        return NULL;
    memcpy(taken, given, room);
    give_back(given, context);
    return taken;
}

void h2_memory_init(struct h2_memory *memory)
{
    *memory = (struct h2_memory){.functions = {.mem_user_data = memory,
                                               .malloc = take,
                                               .free = give_back,
                                               .calloc = take_zeroes,
                                               .realloc = change_size}};
}

void h2_memory_free(struct h2_memory *memory)
{
    for (size_t i = 0; i < H2_MEMORY_CLASSES; i++) {
        while (memory->kept[i] != NULL) {
            struct h2_kept *kept = memory->kept[i];
            unpoison(kept);
            memory->kept[i] = kept->next;
            free(piece_of(kept));
        }
    }
    memory->kept_bytes = 0;
}
