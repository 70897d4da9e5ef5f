/* Tablets: see tablet.h. */
#include "tablet/tablet.h"

#include "base/check.h"
#include "base/key_range.h"

#include <stdlib.h>

enum { TABLET_MAGIC = 0x7461626c };

status tablet_create(uint64_t id, struct shard *shard, struct keyspace *keyspace, bytes start,
                     bytes end, struct tablet **out)
{
    DCHECK(end.size == 0 || bytes_compare(start, end) < 0);
    *out = NULL;
    struct tablet *tablet = calloc(1, sizeof *tablet + start.size + end.size);
    if (tablet == NULL)
        return status_out_of_memory();
    uint8_t *keys = (uint8_t *)(tablet + 1);
    tablet->magic = TABLET_MAGIC;
    tablet->id = id;
    tablet->shard = shard;
    tablet->keyspace = keyspace;
    tablet->start = bytes_make(keys, start.size);
    tablet->end = bytes_make(keys + start.size, end.size);
    if (start.size > 0)
        memcpy(keys, start.data, start.size);
    if (end.size > 0)
        memcpy(keys + start.size, end.data, end.size);
    key_sample_init(&tablet->asked_for);
    atomic_init(&tablet->references, 1);
    *out = tablet;
    return status_ok();
}

void tablet_retain(struct tablet *tablet)
{
    CHECK_MAGIC(tablet, TABLET_MAGIC);
    unsigned before = atomic_fetch_add_explicit(&tablet->references, 1, memory_order_relaxed);
    DCHECK(before > 0);
}

void tablet_release(struct tablet *tablet)
{
    if (tablet == NULL)
        return;
    CHECK_MAGIC(tablet, TABLET_MAGIC);
    if (atomic_fetch_sub_explicit(&tablet->references, 1, memory_order_acq_rel) > 1)
        return;
    tablet->magic = 0;
    key_sample_free(&tablet->asked_for);
    free(tablet);
}

bool tablet_contains(const struct tablet *tablet, bytes row_key)
{
    DCHECK(tablet->magic == TABLET_MAGIC);
    return bytes_compare(row_key, tablet->start) >= 0 && key_is_before_end(row_key, tablet->end);
}
