/* See datastore.h. */
#include "datastore/datastore.h"

#include "base/limits.h"

status datastore_init(struct datastore *datastore, const struct datastore_options *options)
{
    *datastore = (struct datastore){.cluster = options->cluster,
                                    .metrics = options->metrics,
                                    .clock = cluster_clock(options->cluster)};
    return pool_create(options->threads, LIMIT_POOL_QUEUE, "datastore", &datastore->pool);
}

void datastore_free(struct datastore *datastore)
{
    pool_destroy(datastore->pool);
    datastore->pool = NULL;
}
