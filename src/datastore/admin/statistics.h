/* Statistics of a database: what production keeps in entities of the kinds `__Stat_…__`.
 *
 * Entities are counted one by one: those of each kind, roots and others; their values by kind,
 * property and type, with the rows of the built-in indexes that they make; the rows of each
 * composite index. All else is summed up from these when statistics are made. Sizes are those of
 * storage_size.h, and rows those of production, which has two of a value, one in each direction.
 *
 * Values are counted one by one, those in arrays and in entities too, the latter under
 * "outer.inner". Statistics themselves are not counted, nor are the rows of the sample
 * (index_rows.h).
 *
 * Memory is bounded. When it does not suffice, statistics are left out, from the most detailed on:
 * those by property, then those by namespace, then those by kind. */
#ifndef TRESTLE_DATASTORE_ADMIN_STATISTICS_H
#define TRESTLE_DATASTORE_ADMIN_STATISTICS_H

#include "base/vector.h"
#include "datastore/admin/tallies.h"
#include "datastore/index/index_rows.h"

#define DS_STATISTIC_PREFIX "__Stat_"
#define DS_STATISTIC_TOTAL  "total_entity_usage" /* the name of the one of all entities */

enum ds_statistics_detail {
    DS_ALL_STATISTICS,
    DS_NOT_BY_PROPERTY,
    DS_NOT_BY_NAMESPACE,
    DS_NOT_BY_KIND,
};

struct ds_statistics {
    struct ds_tallies tallies;
    size_t memory;
    enum ds_statistics_detail detail;
    bool has_namespaces; /* beside the one without a name */
};

/* `memory`: bytes; twice as much while statistics are being left out. */
status ds_statistics_init(struct ds_statistics *statistics, size_t memory);
void ds_statistics_free(struct ds_statistics *statistics); /* all zeroes is fine */

/* Counts an entity as it is stored. `indexes`: the composite ones of the database. The arena is for
 * what is needed meanwhile. RESOURCE_EXHAUSTED if the memory does not suffice for the least. */
status ds_statistics_count(struct ds_statistics *statistics, const Ds__Entity *entity,
                           const struct ds_index *indexes, size_t index_count, struct arena *arena);

/* How many kinds of statistics there are; of the last is the one that is written last. */
size_t ds_statistic_kinds(void);

/* The statistics of one kind, of all namespaces that have them: appends Ds__Entity *, in the arena.
 * `at_us`: their timestamp, microseconds since 1970. */
status ds_statistics_make(const struct ds_statistics *statistics, size_t kind,
                          const struct ds_database *database, int64_t at_us, struct arena *arena,
                          struct vector *out);

#endif
