/* Changes for later: see deferred_batch.h. */
#include "tablet/deferred_batch.h"

#include "base/check.h"
#include "base/varint.h"

enum change_kind { PUT, MERGE, DELETE, DELETE_RANGE };

static void note(struct deferred_batch *batch, enum change_kind kind, bytes key, bytes value)
{
    DCHECK(key.size > 0);
    buffer_append_byte(&batch->changes, (uint8_t)kind);
    buffer_append_varint(&batch->changes, key.size);
    buffer_append_bytes(&batch->changes, key);
    buffer_append_varint(&batch->changes, value.size);
    buffer_append_bytes(&batch->changes, value);
}

void deferred_put(struct deferred_batch *batch, bytes key, bytes value)
{
    note(batch, PUT, key, value);
}

void deferred_merge(struct deferred_batch *batch, bytes key, bytes operand)
{
    note(batch, MERGE, key, operand);
}

void deferred_delete(struct deferred_batch *batch, bytes key)
{
    note(batch, DELETE, key, bytes_make(NULL, 0));
}

void deferred_delete_range(struct deferred_batch *batch, bytes from, bytes to)
{
    DCHECK(bytes_compare(from, to) < 0);
    note(batch, DELETE_RANGE, from, to);
}

void deferred_batch_free(struct deferred_batch *batch)
{
    buffer_free(&batch->changes);
}

static bytes take_bytes(const uint8_t **at, const uint8_t *end)
{
    uint64_t size;
    *at = varint_read(*at, end, &size);
    CHECK(*at != NULL && size <= (size_t)(end - *at));
    bytes taken = bytes_make(*at, size);
    *at += size;
    return taken;
}

void deferred_batch_replay(const struct deferred_batch *batch, struct keyspace *keyspace,
                           struct store_batch *out)
{
    CHECK(!batch->changes.failed);
    if (batch->changes.size == 0)
        return;
    const uint8_t *at = batch->changes.data;
    const uint8_t *end = at + batch->changes.size;
    while (at < end) {
        enum change_kind kind = *at++;
        bytes key = take_bytes(&at, end);
        bytes value = take_bytes(&at, end);
        DCHECK(kind <= DELETE_RANGE);
        if (kind == PUT)
            store_batch_put(out, keyspace, key, value);
        else if (kind == MERGE)
            store_batch_merge(out, keyspace, key, value);
        else if (kind == DELETE)
            store_batch_delete(out, keyspace, key);
        else
            store_batch_delete_range(out, keyspace, key, value);
    }
}
