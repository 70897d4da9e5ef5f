/* Covers: see cover.h. */
#include "row/cover.h"

#include "base/check.h"
#include "base/heap.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 8 };

void cover_free(struct cover *cover)
{
    free(cover->given);
    free(cover->parts);
    *cover = (struct cover){0};
}

void cover_clear(struct cover *cover)
{
    cover->given_count = 0;
    cover->part_count = 0;
    cover->at = 0;
}

static bool grow(struct cover *cover)
{
    size_t capacity = cover->capacity == 0 ? FIRST_CAPACITY : cover->capacity * 2;
    struct span *given = realloc(cover->given, capacity * sizeof *given);
    if (given == NULL)
        return false;
    cover->given = given;
    struct span *parts = realloc(cover->parts, 2 * capacity * sizeof *parts);
    if (parts == NULL)
        return false;
    cover->parts = parts;
    cover->capacity = capacity;
    return true;
}

bool cover_add(struct cover *cover, const struct span *span)
{
    DCHECK(span->start_us < span->end_us);
    if (cover->given_count == cover->capacity && !grow(cover))
        return false;
    cover->given[cover->given_count++] = *span;
    return true;
}

static void add_part(struct cover *cover, int64_t start_us, int64_t end_us, uint64_t version)
{
    DCHECK(start_us < end_us);
    struct span *last = cover->part_count > 0 ? &cover->parts[cover->part_count - 1] : NULL;
    DCHECK(last == NULL || last->end_us <= start_us);
    DCHECK(cover->part_count < 2 * cover->capacity);
    if (last != NULL && last->end_us == start_us && last->version == version)
        last->end_us = end_us;
    else
        cover->parts[cover->part_count++] =
            (struct span){.start_us = start_us, .end_us = end_us, .version = version};
}

static bool is_newer(const void *a, const void *b)
{
    const struct span *left = a, *right = b;
    return left->version > right->version;
}

/* A sweep over time: `active` holds the spans that have begun, the newest first; those that have
 * ended leave when they come up. */
static void sweep(struct cover *cover, void **active)
{
    size_t next = 0, active_count = 0;
    int64_t now = 0;
    while (next < cover->given_count || active_count > 0) {
        if (active_count == 0)
            now = cover->given[next].start_us;
        while (next < cover->given_count && cover->given[next].start_us <= now)
            heap_push(active, &active_count, &cover->given[next++], is_newer);
        while (active_count > 0 && ((struct span *)active[0])->end_us <= now)
            heap_pop(active, &active_count, is_newer);
        if (active_count == 0)
            continue;
        const struct span *newest = active[0];
        int64_t end_us = newest->end_us;
        if (next < cover->given_count && cover->given[next].start_us < end_us)
            end_us = cover->given[next].start_us;
        add_part(cover, now, end_us, newest->version);
        now = end_us;
    }
}

bool cover_build(struct cover *cover)
{
    DCHECK(cover->given_count <= cover->capacity);
    cover->part_count = 0;
    if (cover->given_count == 1) {
        cover->parts[cover->part_count++] = cover->given[0];
    } else if (cover->given_count > 1) {
        void **active = malloc(cover->given_count * sizeof *active);
        if (active == NULL)
            return false;
        sweep(cover, active);
        free(active);
    }
    cover->at = cover->part_count;
    return true;
}

uint64_t cover_version(struct cover *cover, int64_t timestamp_us)
{
    DCHECK(cover->at <= cover->part_count);
    while (cover->at > 0 && cover->parts[cover->at - 1].start_us > timestamp_us)
        cover->at--;
    if (cover->at == 0)
        return 0;
    const struct span *part = &cover->parts[cover->at - 1];
    return timestamp_us < part->end_us ? part->version : 0;
}
