/* What commits have just left of entities that change often: the next commit of one begins with it,
 * instead of a read of a row that lies in pieces while it is written to.
 *
 * Who asks, and who tells, has the entity's lock (entity_locks.h), or has claimed it
 * (range_locks.h), so between the two no commit changes it. What else may have changed its row, a
 * repair for instance, has left its sequence since, or is one of the rows' drops:
 * row_group_is_newest. So nothing here has to be told of it, and what is here is right, or is not
 * found. A place holds one entity, that which was told of last. Any thread. */
#ifndef TRESTLE_DATASTORE_COMMIT_RECENT_H
#define TRESTLE_DATASTORE_COMMIT_RECENT_H

#include "base/bytes.h"

#include <pthread.h>
#include <stdint.h>

struct arena;
struct table;

enum {
    DS_RECENT_PLACES = 256,
    DS_RECENT_MOST = 4096, /* bytes of a row key and its record */
};

struct ds_recent_entity {
    bytes row_key;
    bytes record;      /* the value of its row */
    int64_t at_us;     /* the moment of its commit, microseconds since 1970 */
    uint64_t sequence; /* the commit's */
};

struct ds_recent {
    pthread_mutex_t lock;
    struct ds_recent_entity
        places[DS_RECENT_PLACES]; /* by row keys' hashes; they own their bytes */
};

void ds_recent_init(struct ds_recent *recent);
void ds_recent_free(struct ds_recent *recent);

/* What is larger than DS_RECENT_MOST is passed over; so is all without memory. */
void ds_recent_tell(struct ds_recent *recent, const struct ds_recent_entity *entity);

/* Whether it is known what the row of the table is; then its bytes are in the arena. */
bool ds_recent_find(struct ds_recent *recent, struct table *table, bytes row_key,
                    struct arena *arena, struct ds_recent_entity *out);

#endif
