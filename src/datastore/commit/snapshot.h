/* A database as it was at one moment: docs/internals/datastore-layout.md, "Reading at T".
 *
 * Reads are consistent over all rows, without a lock: commits after the moment are not seen, those
 * before it are, each whole. On threads that may block. */
#ifndef TRESTLE_DATASTORE_COMMIT_SNAPSHOT_H
#define TRESTLE_DATASTORE_COMMIT_SNAPSHOT_H

#include "cluster/cluster.h"
#include "datastore/model/rows.h"

struct ds_index;
struct grpc_call;

struct ds_snapshot {
    struct table *table; /* held by the caller; NULL: there is nothing */
    struct ds_database database;
    int64_t at_us; /* microseconds since 1970 */
    /* Rows of indexes may be shown that the entities of the moment did not have: a reader asks the
     * entity. Readers of tables ask themselves, and leave it unset. */
    bool is_past;
    /* The composite indexes whose rows are read: they outlive the snapshot. */
    const struct ds_index *indexes;
    size_t index_count;
    const struct grpc_call *call; /* reading ends with CANCELLED when it is; NULL: none */
};

/* --- how far back --- */

/* Whether the moment is longer ago than that, by the versions' clock: moments are of it, and it is
 * never behind the wall clock, by which what was is kept. */
bool ds_is_older(struct cluster *cluster, int64_t at_us, int64_t age_us);

/* FAILED_PRECONDITION: the moment is too long ago. */
status ds_too_old(void);

/* To be asked after reading: if it is well, what was at the moment was still there. Else it has
 * taken too long, or the clock was set ahead meanwhile, and what was found means nothing. Callers
 * that read rows for long are told so by ds_rows_next, too. */
status ds_snapshot_check(const struct ds_snapshot *snapshot);

/* --- entities --- */

struct ds_version {
    const Ds__Entity *entity; /* NULL: it is not there. In the arena; normalised as when stored */
    bytes stored;             /* its serialised form, as it is stored; in the arena */
    int64_t version_us;       /* of the commit that wrote it, or that deleted it (0: unknown) */
    int64_t create_us;
};

/* `key` is complete, of the database. INTERNAL for what is damaged. */
status ds_snapshot_get(const struct ds_snapshot *snapshot, const Ds__Key *key, struct arena *arena,
                       struct ds_version *out);

/* --- rows in order: of an index, or entities by their keys --- */

struct ds_row_found {
    bytes key;   /* the row's; valid until the next call */
    bytes value; /* of an index row the types of its values; of an entity's row its Record */
};

struct ds_rows_reader;

enum ds_way { DS_FORWARDS, DS_BACKWARDS };

/* Rows from `from` up to `to` (exclusive; empty: no bound), or from there down. The bounds are
 * copied. */
status ds_rows_open(const struct ds_snapshot *snapshot, enum ds_way way, bytes from, bytes to,
                    struct arena *arena, struct ds_rows_reader **out);
void ds_rows_close(struct ds_rows_reader *reader); /* NULL is fine */

/* The next; `*found` false at the end. */
status ds_rows_next(struct ds_rows_reader *reader, struct ds_row_found *row, bool *found);

/* On to the first row at or after `key`, which is not before the rows that were given: what a merge
 * of several indexes skips by. Backwards to the last row before `key`, which is at or before all
 * that were given. */
status ds_rows_seek(struct ds_rows_reader *reader, bytes key);

/* The version in the value of an entity's row, in the arena, as when it was stored; `version_us` is
 * 0, since the cell has it. */
status ds_record_version(bytes record, struct arena *arena, struct ds_version *out);

/* The entity alone. */
status ds_record_entity(bytes record, struct arena *arena, const Ds__Entity **out);

/* --- to validate what was read --- */

/* Whether a row of the range has changed since the moment, as far as commits are applied. `from` is
 * before `to`, or `to` is empty: no bound. */
status ds_changed_since(const struct ds_snapshot *snapshot, bytes from, bytes to,
                        struct arena *arena, bool *out);

#endif
