/* See index_repair.h. */
#include "datastore/index/index_repair.h"

#include "datastore/commit/rows_write.h"
#include "datastore/database.h"
#include "tablet/row_locks.h"

#include <stdlib.h>

enum {
    LOT_ROWS = 1000,
    LOT_BYTES = 4 << 20,
    LOT_MEMORY = 64 << 20, /* a row of a composite index has less than 2 MiB */
};

/* Rows that wait to be written: commits[0] carries the others. */
struct lot {
    struct arena *arena;
    struct commit commits[LOT_ROWS];
    struct packed_change changes[LOT_ROWS];
    size_t count;
    size_t bytes;
    uint64_t kinds[DS_DAMAGE_KINDS];
};

struct repairing {
    struct ds_index_repair *repair;
    struct ds_index_check told; /* what the caller set: whom to tell */
    struct ds_row_packing packing;
    struct lot *lot;
};

static void clear(struct lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        buffer_free(&lot->changes[i].fragment);
    lot->count = lot->bytes = 0;
    memset(lot->kinds, 0, sizeof lot->kinds);
    arena_reset(lot->arena);
}

static status write_lot(struct repairing *repairing)
{
    struct lot *lot = repairing->lot;
    struct commit *first = &lot->commits[0];
    if (lot->count == 0)
        return status_ok();
    first->others = first + 1;
    first->other_count = lot->count - 1;
    first->least_us = repairing->packing.at_us;
    status s = commit_and_wait(repairing->repair->commits, first);
    for (size_t i = 0; i < DS_DAMAGE_KINDS && status_is_ok(s); i++)
        repairing->repair->repaired[i] += lot->kinds[i];
    clear(lot);
    return s;
}

/* Of the versions' clock, which follows no row that a former release wrote above the ceiling. */
static int64_t moment_of_lot(const struct repairing *repairing)
{
    int64_t now_us = commit_version_us(repairing->repair->commits);
    int64_t newest_us = repairing->repair->check.newest_us;
    return now_us > newest_us ? now_us : newest_us + 1;
}

/* A row that was missing is kept as what was, too: the entity of a moment says whether it is right.
 */
static struct ds_row_write write_of(const struct ds_index_damage *damage)
{
    bool is = damage->kind != DS_DAMAGE_TOO_MANY;
    bytes past = damage->kind == DS_DAMAGE_MISSING ? damage->is : damage->found;
    return (struct ds_row_write){
        .key = damage->row_key, .is = is, .now = damage->is, .was = true, .past = past};
}

static status add(struct repairing *repairing, const struct ds_index_damage *damage)
{
    struct lot *lot = repairing->lot;
    struct keyspace *keyspace = repairing->repair->check.keyspace;
    struct packed_change *change = &lot->changes[lot->count];
    struct ds_row_write row = write_of(damage);
    row.key = arena_copy(lot->arena, damage->row_key);
    if (row.key.data == NULL)
        return status_out_of_memory();
    if (lot->count == 0 || repairing->packing.at_us <= repairing->repair->check.newest_us)
        repairing->packing.at_us = moment_of_lot(repairing);
    TRY(ds_row_pack(&repairing->packing, &row, change));
    lot->commits[lot->count++] =
        (struct commit){.kind = COMMIT_ROWS,
                        .keyspace = keyspace,
                        .row_key = row.key,
                        .row_hash = row_lock_hash(keyspace_id(keyspace), row.key),
                        .change = change};
    lot->kinds[damage->kind]++;
    lot->bytes += row.key.size + packed_change_size(change);
    return status_ok();
}

static status heal(void *context, const struct ds_index_damage *damage)
{
    struct repairing *repairing = context;
    TRY(repairing->told.report(repairing->told.context, damage));
    if (damage->kind == DS_DAMAGE_OTHER)
        return status_ok();
    TRY(add(repairing, damage));
    bool is_full = repairing->lot->count == LOT_ROWS || repairing->lot->bytes >= LOT_BYTES;
    return is_full ? write_lot(repairing) : status_ok();
}

/* Where there are no such families the check finds nothing to repair. */
static void set_packing(struct repairing *repairing)
{
    const struct schema *schema = repairing->told.schema;
    const struct family *is = schema_family_named(schema, bytes_of(DS_FAMILY_IS));
    const struct family *was = schema_family_named(schema, bytes_of(DS_FAMILY_WAS));
    repairing->packing = (struct ds_row_packing){.arena = repairing->lot->arena,
                                                 .is = is == NULL ? 0 : is->id,
                                                 .was = was == NULL ? 0 : was->id,
                                                 .big_value = SIZE_MAX};
}

static status check_and_repair(struct repairing *repairing)
{
    struct ds_index_check *check = &repairing->repair->check;
    set_packing(repairing);
    check->context = repairing;
    check->report = heal;
    status s = ds_index_check_run(check);
    check->context = repairing->told.context;
    check->report = repairing->told.report;
    if (status_is_ok(s))
        s = write_lot(repairing);
    clear(repairing->lot);
    return s;
}

status ds_index_repair_run(struct ds_index_repair *repair)
{
    struct lot *lot = calloc(1, sizeof *lot);
    struct repairing repairing = {.repair = repair, .told = repair->check, .lot = lot};
    if (lot == NULL)
        return status_out_of_memory();
    lot->arena = arena_create(LOT_MEMORY);
    status s = lot->arena == NULL ? status_out_of_memory() : check_and_repair(&repairing);
    arena_destroy(lot->arena);
    free(lot);
    return s;
}
