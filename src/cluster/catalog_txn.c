/* See catalog_txn.h. */
#include "cluster/catalog_txn.h"

#include "base/check.h"
#include "row/row_key.h"
#include "store/store.h"

#include <stdlib.h>

enum { RECORD_MEMORY = 64 << 20 }; /* one record's, while it is read */

/* --- edits --- */

struct catalog_txn {
    struct keyspace *catalog;
    struct store_batch *batch;
};

struct catalog_txn *catalog_txn_create(struct keyspace *catalog)
{
    struct catalog_txn *txn = malloc(sizeof *txn);
    struct store_batch *batch = store_batch_create();
    if (txn == NULL || batch == NULL) {
        store_batch_destroy(batch);
        free(txn);
        return NULL;
    }
    *txn = (struct catalog_txn){.catalog = catalog, .batch = batch};
    return txn;
}

void catalog_txn_destroy(struct catalog_txn *txn)
{
    if (txn == NULL)
        return;
    store_batch_destroy(txn->batch);
    free(txn);
}

void catalog_txn_put(struct catalog_txn *txn, bytes key, bytes value)
{
    DCHECK(key.size > 0);
    store_batch_put(txn->batch, txn->catalog, key, value);
}

void catalog_txn_delete(struct catalog_txn *txn, bytes key)
{
    DCHECK(key.size > 0);
    store_batch_delete(txn->batch, txn->catalog, key);
}

status catalog_txn_write_unserved(struct catalog_txn *txn, struct store *store)
{
    return store_write(store, txn->batch, STORE_SYNCED);
}

struct store_batch *catalog_txn_batch(struct catalog_txn *txn)
{
    return txn->batch;
}

/* --- looks --- */

status catalog_get(struct keyspace *catalog, bytes key, struct buffer *value, bool *is_there)
{
    struct store_value found = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(catalog, NULL, key, STORE_READ_ANY, &found, &presence);
    *is_there = status_is_ok(s) && presence == STORE_FOUND;
    if (*is_there)
        buffer_append_bytes(value, found.bytes);
    store_value_release(&found);
    TRY(s);
    return value->failed ? status_out_of_memory() : status_ok();
}

static status visit_all(struct store_cursor *cursor, struct arena *arena,
                        status (*visit)(void *context, bytes key, bytes value, struct arena *arena),
                        void *context)
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        arena_reset(arena);
        TRY(visit(context, store_cursor_key(cursor), store_cursor_value(cursor), arena));
    }
    return store_cursor_status(cursor);
}

static status visit_range(struct keyspace *catalog, bytes lower, bytes upper,
                          status (*visit)(void *context, bytes key, bytes value,
                                          struct arena *arena),
                          void *context)
{
    DCHECK(bytes_compare(lower, upper) < 0);
    struct store_cursor_options options = {
        .read_tier = STORE_READ_ANY, .lower = lower, .upper = upper};
    struct store_cursor *cursor;
    TRY(store_cursor_create(catalog, &options, &cursor));
    struct arena *arena = arena_create(RECORD_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : visit_all(cursor, arena, visit, context);
    arena_destroy(arena);
    store_cursor_destroy(cursor);
    return s;
}

status catalog_visit(struct keyspace *catalog, bytes prefix,
                     status (*visit)(void *context, bytes key, bytes value, struct arena *arena),
                     void *context)
{
    DCHECK(prefix.size > 0);
    struct buffer end = {0};
    key_after_prefix(&end, prefix); /* there is one: the first byte is a letter */
    status s = end.failed ? status_out_of_memory()
                          : visit_range(catalog, prefix, buffer_bytes(&end), visit, context);
    buffer_free(&end);
    return s;
}
