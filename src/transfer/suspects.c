/* See suspects.h. */
#include "transfer/suspects.h"

#include <stdlib.h>

enum { FIRST_SIZE = 64 /* of the index, which is twice as large as what it finds, or more */ };

void suspects_free(struct suspects *suspects)
{
    free(suspects->all);
    free(suspects->index);
    *suspects = (struct suspects){0};
}

/* Where the hash is, or would go. */
static uint32_t *find(const struct suspects *suspects, uint64_t hash)
{
    size_t slot = hash % suspects->index_size;
    while (suspects->index[slot] != 0 && suspects->all[suspects->index[slot] - 1].hash != hash)
        slot = (slot + 1) % suspects->index_size;
    return &suspects->index[slot];
}

static status make_room(struct suspects *suspects)
{
    if (suspects->count < suspects->capacity)
        return status_ok();
    size_t size = suspects->index_size == 0 ? FIRST_SIZE : 2 * suspects->index_size;
    uint32_t *index = calloc(size, sizeof *index);
    struct suspect *all = realloc(suspects->all, size / 2 * sizeof *all);
    if (all != NULL)
        suspects->all = all;
    if (all == NULL || index == NULL) {
        free(index);
        return status_out_of_memory();
    }
    free(suspects->index);
    suspects->index = index;
    suspects->index_size = size;
    suspects->capacity = size / 2;
    for (size_t i = 0; i < suspects->count; i++)
        *find(suspects, suspects->all[i].hash) = (uint32_t)i + 1;
    return status_ok();
}

status suspects_add(struct suspects *suspects, bytes row_key, const struct transfer_place *place)
{
    if (suspects->count == SUSPECTS_MOST) {
        suspects->standing++;
        return status_ok();
    }
    TRY(make_room(suspects));
    uint64_t hash = bytes_hash(row_key);
    uint32_t *at = find(suspects, hash);
    if (*at != 0) {
        struct suspect *known = &suspects->all[*at - 1];
        suspects->standing += known->is_cleared;
        *known = (struct suspect){.hash = hash, .place = *place};
        return status_ok();
    }
    suspects->all[suspects->count++] = (struct suspect){.hash = hash, .place = *place};
    *at = (uint32_t)suspects->count;
    suspects->standing++;
    return status_ok();
}

void suspects_clear(struct suspects *suspects, bytes row_key)
{
    if (suspects->count == 0)
        return;
    uint32_t *at = find(suspects, bytes_hash(row_key));
    if (*at == 0 || suspects->all[*at - 1].is_cleared)
        return;
    suspects->all[*at - 1].is_cleared = true;
    suspects->standing--;
}
