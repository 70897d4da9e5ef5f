/* See audit_trail.h: a ring of entries, each in a block of its own.
 *
 * Invariant: `added` counts all that were added; the last min(added, LIMIT_AUDIT_ENTRIES) of them
 * are there, the n-th in the place n % LIMIT_AUDIT_ENTRIES. */
#include "access/audit_trail.h"

#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>

enum { TEXT_MOST = 1024 };

/* An entry and, behind it, the texts that it points to. */
struct kept {
    struct audit_entry entry;
    uint8_t texts[];
};

struct audit_trail {
    int64_t since_us;
    pthread_mutex_t lock; /* of what follows */
    uint64_t added;
    struct kept *ring[LIMIT_AUDIT_ENTRIES];
};

status audit_trail_create(int64_t since_us, struct audit_trail **out)
{
    struct audit_trail *trail = calloc(1, sizeof *trail);
    *out = trail;
    if (trail == NULL)
        return status_out_of_memory();
    trail->since_us = since_us;
    pthread_mutex_init(&trail->lock, NULL);
    return status_ok();
}

void audit_trail_destroy(struct audit_trail *trail)
{
    if (trail == NULL)
        return;
    for (size_t i = 0; i < LIMIT_AUDIT_ENTRIES; i++)
        free(trail->ring[i]);
    pthread_mutex_destroy(&trail->lock);
    free(trail);
}

int64_t audit_trail_since_us(const struct audit_trail *trail)
{
    return trail->since_us;
}

static bytes cut(bytes text)
{
    return bytes_make(text.data, text.size < TEXT_MOST ? text.size : TEXT_MOST);
}

/* Moves the text to `*to`, and that behind it. */
static void move_text(bytes *text, uint8_t **to)
{
    bytes short_text = cut(*text);
    if (short_text.size > 0)
        memcpy(*to, short_text.data, short_text.size);
    *text = bytes_make(*to, short_text.size);
    *to += short_text.size;
}

static struct kept *keep(const struct audit_entry *entry)
{
    size_t size = cut(entry->principal).size + cut(entry->resource).size + cut(entry->source).size +
                  cut(entry->changes).size + cut(entry->address).size;
    struct kept *kept = malloc(sizeof *kept + size);
    if (kept == NULL)
        return NULL;
    kept->entry = *entry;
    uint8_t *to = kept->texts;
    move_text(&kept->entry.principal, &to);
    move_text(&kept->entry.resource, &to);
    move_text(&kept->entry.source, &to);
    move_text(&kept->entry.changes, &to);
    move_text(&kept->entry.address, &to);
    return kept;
}

void audit_trail_add(struct audit_trail *trail, const struct audit_entry *entry)
{
    struct kept *kept = keep(entry);
    if (kept == NULL)
        return;
    pthread_mutex_lock(&trail->lock);
    struct kept **place = &trail->ring[trail->added++ % LIMIT_AUDIT_ENTRIES];
    struct kept *oldest = *place;
    *place = kept;
    pthread_mutex_unlock(&trail->lock);
    free(oldest);
}

static bool copy_text(struct arena *arena, bytes *text)
{
    *text = arena_copy(arena, *text);
    return text->data != NULL;
}

static status copy_entry(const struct kept *kept, struct arena *arena, struct audit_entry *out)
{
    *out = kept->entry;
    bool is_whole = copy_text(arena, &out->principal) && copy_text(arena, &out->resource) &&
                    copy_text(arena, &out->source) && copy_text(arena, &out->changes) &&
                    copy_text(arena, &out->address);
    return is_whole ? status_ok() : status_out_of_memory();
}

/* With the lock held. */
static status copy_entries(const struct audit_trail *trail, size_t most, struct arena *arena,
                           struct audit_entry **entries, size_t *count)
{
    uint64_t there = trail->added < LIMIT_AUDIT_ENTRIES ? trail->added : LIMIT_AUDIT_ENTRIES;
    size_t wanted = there < most ? (size_t)there : most;
    *entries = arena_alloc(arena, wanted * sizeof **entries);
    if (*entries == NULL)
        return status_out_of_memory();
    for (; *count < wanted; ++*count) {
        uint64_t number = trail->added - 1 - *count;
        TRY(copy_entry(trail->ring[number % LIMIT_AUDIT_ENTRIES], arena, &(*entries)[*count]));
    }
    return status_ok();
}

status audit_trail_list(struct audit_trail *trail, size_t most, struct arena *arena,
                        struct audit_entry **entries, size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&trail->lock);
    status s = copy_entries(trail, most, arena, entries, count);
    pthread_mutex_unlock(&trail->lock);
    return s;
}
