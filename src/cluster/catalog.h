/* The catalog: which tables and tablets there are, in a keyspace of the store.
 *
 * Records are protobuf messages (proto/trestle/catalog.proto) under these keys:
 *
 *     'C'                                   Counters
 *     'K' <keyspace id>                     empty message: a preallocated keyspace, never used
 *     'U' <keyspace id>                     8 bytes, when it was found: a keyspace without a table
 *     'M' <table id>                        Mutes: see mutes.c
 *     'T' <table id>                        Table
 *     't' <table id> <start key>            Tablet
 *     'f' <table id> <tablet id>            FormerTablet: see cluster/stream/lineage.h
 *     'D' <keyspace id> <file> <block>      Damage: keys out of service, see cluster/damage.h
 *     'd' <keyspace id> <sequence>          not ours: rows that were dropped, see
 *                                           tablet/drop_records.h
 *     'u', 'w' <keyspace id> <sequence>     not ours: how far change streams were told of these,
 *                                           see tablet/telling_records.h
 *     'r' <table id> ...                    not ours: what a deleted table had, see control/kept.h;
 *                                           but they go when the table comes back or goes for good
 *     'I' <commit sequence>                 not ours: see tablet/tokens.h
 *     'L' <number>                          not ours: see stream/segment_records.h
 *     'R' <kind> <name>, 'V'                not ours: see control/
 *     'abandoned-operations'                not ours: see control/operations.c
 *     'stream-eras'                         not ours: see stream/eras.h
 *     'peers'                               not ours: see replica/peer_list.h
 *     'placed' <instance>, 'placed'         not ours: see replica/placed.h
 *     'lost-records'                        what was lost here: see cluster/lost_records.h
 *     'version-ceiling', 'sequence-ceiling', 'clusters-from'
 *                                           not ours: see tablet/commit.c
 *
 * Ids have 8 bytes, big-endian. A change is one batch, so a crash finds all of it or nothing; a
 * keyspace that no record names is what a crash left behind, and is dropped at start.
 *
 * Unless the log has lost something (cluster/salvage.h): then the record that named the keyspace
 * may be what was lost, and it becomes an unclaimed one, which stays until the operator decides. */
#ifndef TRESTLE_CLUSTER_CATALOG_H
#define TRESTLE_CLUSTER_CATALOG_H

#include "base/arena.h"
#include "row/schema.h"
#include "store/store.h"

enum { CATALOG_KEYSPACE_ID = 1 };

/* A table's change stream; all zeroes: it has none. */
struct table_stream {
    int64_t retention_us;
    uint64_t life;   /* names what was recorded since it was switched on; not 0 */
    int64_t from_us; /* nothing from before can be read: since 1970, by the versions' clock */
};

/* What a view's table is beside its rows; all zeroes: it is none. */
struct view_record {
    uint64_t source_id;  /* of the table that it reads */
    uint64_t records_id; /* of the keyspace of its records */
    unsigned shard;      /* that has it */
};

struct table_record {
    uint64_t id;
    const char *name;
    uint64_t generation;
    const struct schema *schema;
    bool deletion_protection;
    bytes extra;
    int64_t deleted_us;     /* since 1970; 0: it stands */
    bool records_deletions; /* also without a stream */
    struct table_stream stream;
    struct view_record view;
    bool is_viewed; /* it is a view's source */
    uint64_t uid;   /* that was given; 0: it follows from the id, see shared_table.h */
};

struct tablet_record {
    uint64_t table_id;
    uint64_t id;
    unsigned shard; /* whose keyspace it is; 0: the home's */
    uint64_t keyspace_id;
    bytes start;
    bytes end; /* empty: no bound */
};

/* A tablet that was split or merged while its table had a change stream. */
struct former_tablet_record {
    uint64_t table_id;
    uint64_t id;
    unsigned shard;
    bytes start;
    bytes end;       /* empty: no bound */
    int64_t gone_us; /* since 1970, by the versions' clock */
};

/* A bit in the number of a table file that another store had: marks what a table out of a backup
 * lacks (damage.h). No store counts its files so far. */
#define DAMAGE_FOREIGN_FILE (UINT64_C(1) << 62)

struct damage_record {
    uint64_t keyspace_id;
    uint64_t file;  /* perhaps with DAMAGE_FOREIGN_FILE */
    uint64_t block; /* 0: the file as a whole; else 1 more than the block's offset */
    bytes from;
    bytes to; /* exclusive; empty: no bound */
    const char *what;
    int64_t found_us; /* since 1970 */
};

/* --- writing: each adds to a batch, which store_write then makes durable --- */

status catalog_put_table(struct store_batch *batch, struct keyspace *catalog,
                         const struct table_record *record);
/* Deletes the table with its mutes. */
void catalog_delete_table(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id);
/* The key of the record of that, which mutes.c writes. */
struct catalog_mutes_key {
    uint8_t data[9];
};
struct catalog_mutes_key catalog_mutes_key(uint64_t table_id);
status catalog_put_tablet(struct store_batch *batch, struct keyspace *catalog,
                          const struct tablet_record *record);
status catalog_delete_tablet(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id,
                             bytes start);
/* Deletes all tablet records of a table. */
void catalog_delete_tablets(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id);

status catalog_put_former(struct store_batch *batch, struct keyspace *catalog,
                          const struct former_tablet_record *record);
void catalog_delete_former(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id,
                           uint64_t tablet_id);

/* Records of what a deleted table had: the key up to the table's id, and the end of all of them. */
void catalog_append_kept_key(struct buffer *key, uint64_t table_id);
enum { CATALOG_KEPT_KEY_SIZE = 9 };
void catalog_delete_kept(struct store_batch *batch, struct keyspace *catalog, uint64_t table_id);

void catalog_put_preallocated(struct store_batch *batch, struct keyspace *catalog,
                              uint64_t keyspace_id);
void catalog_delete_preallocated(struct store_batch *batch, struct keyspace *catalog,
                                 uint64_t keyspace_id);
/* `found_us`: since 1970, by the wall clock. */
void catalog_put_unclaimed(struct store_batch *batch, struct keyspace *catalog,
                           uint64_t keyspace_id, int64_t found_us);
void catalog_delete_unclaimed(struct store_batch *batch, struct keyspace *catalog,
                              uint64_t keyspace_id);
status catalog_put_next_id(struct store_batch *batch, struct keyspace *catalog, uint64_t next_id);

status catalog_put_damage(struct store_batch *batch, struct keyspace *catalog,
                          const struct damage_record *record);
void catalog_delete_damage(struct store_batch *batch, struct keyspace *catalog,
                           const struct damage_record *record);

/* --- a table's record by itself, as backups keep it --- */

status catalog_encode_table(const struct table_record *record, struct buffer *out);

/* The record points into `value` and the arena. Its schema is the caller's to destroy. DATA_LOSS or
 * INVALID_ARGUMENT if it is no such record, or not a sound one. */
status catalog_decode_table(bytes value, struct arena *arena, struct table_record *out,
                            struct schema **schema);

/* The first id in the key of one of the records above, by which its table or keyspace is known; 0
 * if it has none. */
uint64_t catalog_id_of_key(bytes key);

/* --- reading: everything, at start and for the doctor --- */

struct catalog_visitor {
    void *context;
    /* Tables come before all tablets, present and former, which come by table id. What is handed
     * over is valid during the call only. Any may be NULL. A failure ends the reading and is
     * returned. */
    status (*table)(void *context, const struct table_record *record);
    status (*tablet)(void *context, const struct tablet_record *record);
    status (*former)(void *context, const struct former_tablet_record *record);
    status (*preallocated)(void *context, uint64_t keyspace_id);
    status (*next_id)(void *context, uint64_t next_id);
    status (*damage)(void *context, const struct damage_record *record);
    status (*unclaimed)(void *context, uint64_t keyspace_id, int64_t found_us);
    /* Called for each record of a deleted table: after all tables. */
    status (*kept)(void *context, uint64_t table_id);
};

/* DATA_LOSS, naming the key, for a record that does not parse. */
status catalog_read(struct keyspace *catalog, const struct catalog_visitor *visitor);

#endif
