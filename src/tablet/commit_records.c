/* The commit queue's records in the catalog: each 8 bytes, big-endian. See commit.h. */
#include "tablet/commit.h"

#include "tablet/commit_private.h"

#include <endian.h>

static const char VERSION_CEILING[] = "version-ceiling", SEQUENCE_CEILING[] = "sequence-ceiling",
                  CLUSTERS_FROM[] = "clusters-from";

bool commit_is_own_record(bytes key)
{
    return bytes_equal(key, bytes_of(VERSION_CEILING)) ||
           bytes_equal(key, bytes_of(SEQUENCE_CEILING)) ||
           bytes_equal(key, bytes_of(CLUSTERS_FROM));
}

static status read_number(struct keyspace *catalog, const char *key, uint64_t *out, bool *exists)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(catalog, NULL, bytes_of(key), STORE_READ_ANY, &value, &presence);
    *out = 0;
    *exists = status_is_ok(s) && presence == STORE_FOUND;
    if (*exists && value.bytes.size == sizeof *out)
        memcpy(out, value.bytes.data, sizeof *out);
    else if (*exists)
        s = status_make(STATUS_DATA_LOSS, "The record %s has %zu bytes instead of %zu", key,
                        value.bytes.size, sizeof *out);
    store_value_release(&value);
    *out = be64toh(*out);
    return s;
}

static void put_number(struct store_batch *batch, struct keyspace *catalog, const char *key,
                       uint64_t number)
{
    uint64_t record = htobe64(number);
    store_batch_put(batch, catalog, bytes_of(key), bytes_make(&record, sizeof record));
}

status commit_read_ceilings(struct keyspace *catalog, struct commit_ceilings *out)
{
    bool exists;
    *out = (struct commit_ceilings){0, 0};
    TRY(read_number(catalog, VERSION_CEILING, &out->version, &exists));
    TRY(read_number(catalog, SEQUENCE_CEILING, &out->sequence, &exists));
    if (!exists)
        out->sequence = out->version;
    return status_ok();
}

void commit_put_ceilings(struct store_batch *batch, struct keyspace *catalog,
                         const struct commit_ceilings *ceilings)
{
    put_number(batch, catalog, VERSION_CEILING, ceilings->version);
    put_number(batch, catalog, SEQUENCE_CEILING, ceilings->sequence);
}

status commit_read_clusters_from(struct keyspace *catalog, uint64_t *out)
{
    bool exists;
    TRY(read_number(catalog, CLUSTERS_FROM, out, &exists));
    if (!exists)
        *out = UINT64_MAX;
    return status_ok();
}

void commit_put_clusters_from(struct store_batch *batch, struct keyspace *catalog, uint64_t version)
{
    put_number(batch, catalog, CLUSTERS_FROM, version);
}
