/* Kept resources are those of a deleted table: its views, its schema bundles, policies. While it
 * can be undeleted they are kept in the catalog's keyspace, out of the way of another table of its
 * name, and not in memory:
 *
 *     'r' <table id, 8 bytes> <kind, one letter> <name>      Resource, as it stood
 *
 * The edit that deletes the table writes them, and the one that brings it back reads them. The
 * cluster removes them, in the same batch, when the table comes back or goes for good. */
#include "control/control_private.h"

enum { HEAD = CATALOG_KEPT_KEY_SIZE };

status kept_put(struct catalog_txn *txn, uint64_t table_id, const struct resource *resource)
{
    struct buffer key = {0};
    struct buffer value = {0};
    catalog_append_kept_key(&key, table_id);
    buffer_append_byte(&key, (uint8_t)resource->kind);
    buffer_append_bytes(&key, bytes_of(resource->name));
    resource_append_value(&value, resource);
    bool failed = key.failed || value.failed;
    if (!failed)
        catalog_txn_put(txn, buffer_bytes(&key), buffer_bytes(&value));
    buffer_free(&key);
    buffer_free(&value);
    return failed ? status_out_of_memory() : status_ok();
}

status kept_read(struct keyspace *catalog, uint64_t table_id,
                 status (*visit)(void *context, bytes key, bytes value, struct arena *arena),
                 void *context)
{
    struct buffer key = {0};
    catalog_append_kept_key(&key, table_id);
    bytes prefix = bytes_make(key.data, table_id == 0 ? 1 : key.size);
    status s = key.failed ? status_out_of_memory() : catalog_visit(catalog, prefix, visit, context);
    buffer_free(&key);
    return s;
}

static uint64_t id_of_key(bytes key)
{
    uint64_t id = 0;
    for (size_t i = 1; i < HEAD; i++)
        id = id << 8 | key.data[i];
    return id;
}

/* Parses a kept resource into the record that it was. */
status kept_parse(bytes key, bytes value, struct arena *arena, uint64_t *table_id,
                  struct resource **out)
{
    *out = NULL;
    struct buffer former = {0};
    if (key.size < HEAD)
        return status_make(STATUS_DATA_LOSS, "its key has no table");
    *table_id = id_of_key(key);
    buffer_append_byte(&former, RESOURCE_KEY);
    buffer_append_bytes(&former, bytes_from(key, HEAD));
    status s = former.failed ? status_out_of_memory()
                             : resource_parse(buffer_bytes(&former), value, arena, out);
    buffer_free(&former);
    return s;
}
