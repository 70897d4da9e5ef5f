/* See recent.h. */
#include "datastore/commit/recent.h"

#include "base/arena.h"
#include "base/check.h"
#include "cluster/row_group.h"

#include <stdlib.h>
#include <string.h>

void ds_recent_init(struct ds_recent *recent)
{
    memset(recent, 0, sizeof *recent);
    pthread_mutex_init(&recent->lock, NULL);
}

/* A row key and its record are one allocation, which begins with the key. */
static void *memory_of(const struct ds_recent_entity *entity)
{
    return (void *)(uintptr_t)entity->row_key.data;
}

void ds_recent_free(struct ds_recent *recent)
{
    for (size_t i = 0; i < DS_RECENT_PLACES; i++)
        free(memory_of(&recent->places[i]));
    pthread_mutex_destroy(&recent->lock);
}

static struct ds_recent_entity *place_of(struct ds_recent *recent, bytes row_key)
{
    return &recent->places[bytes_hash(row_key) % DS_RECENT_PLACES];
}

static bool copy(const struct ds_recent_entity *entity, uint8_t *memory,
                 struct ds_recent_entity *out)
{
    DCHECK(entity->row_key.size > 0);
    if (memory == NULL)
        return false;
    *out = *entity;
    memcpy(memory, entity->row_key.data, entity->row_key.size);
    out->row_key.data = memory;
    out->record.data = memory + entity->row_key.size;
    if (entity->record.size > 0)
        memcpy(memory + entity->row_key.size, entity->record.data, entity->record.size);
    return true;
}

static size_t size_of(const struct ds_recent_entity *entity)
{
    return entity->row_key.size + entity->record.size;
}

void ds_recent_tell(struct ds_recent *recent, const struct ds_recent_entity *entity)
{
    struct ds_recent_entity told;
    struct ds_recent_entity *place = place_of(recent, entity->row_key);
    if (size_of(entity) > DS_RECENT_MOST || !copy(entity, malloc(size_of(entity)), &told))
        return;
    pthread_mutex_lock(&recent->lock);
    struct ds_recent_entity former = *place;
    *place = told;
    pthread_mutex_unlock(&recent->lock);
    free(memory_of(&former));
}

bool ds_recent_find(struct ds_recent *recent, struct table *table, bytes row_key,
                    struct arena *arena, struct ds_recent_entity *out)
{
    const struct ds_recent_entity *place = place_of(recent, row_key);
    pthread_mutex_lock(&recent->lock);
    bool found = bytes_equal(place->row_key, row_key) &&
                 copy(place, arena_alloc(arena, size_of(place)), out);
    pthread_mutex_unlock(&recent->lock);
    return found && row_group_is_newest(table, row_key, out->sequence);
}
