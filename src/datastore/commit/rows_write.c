/* See rows_write.h. */
#include "datastore/commit/rows_write.h"

#include "cluster/rows.h"
#include "datastore/database.h"

/* --- packing --- */

status ds_row_pack(const struct ds_row_packing *packing, const struct ds_row_write *row,
                   struct packed_change *out)
{
    bytes column = bytes_make(NULL, 0);
    struct row_change *change = row_change_create(packing->arena);
    if (change == NULL)
        return status_out_of_memory();
    row_change_reserve(change, row->was ? 2 : 1);
    if (row->is)
        row_change_set(change, packing->is, column, packing->at_us, row->now);
    else
        row_change_delete_family(change, packing->is);
    if (row->was)
        row_change_set(change, packing->was, column, packing->at_us, row->past);
    return row_change_pack(change, packing->big_value, out);
}

static status pack_all(struct table *table, const struct ds_row_write *rows, size_t count,
                       int64_t at_us, struct arena *arena, struct grouped_row **out)
{
    const struct schema *schema = table_schema(table);
    const struct ds_row_packing packing = {
        .arena = arena,
        .is = schema_family_named(schema, bytes_of(DS_FAMILY_IS))->id,
        .was = schema_family_named(schema, bytes_of(DS_FAMILY_WAS))->id,
        .at_us = at_us,
        .big_value = rows_big_value(table)};
    *out = arena_zalloc(arena, count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        (*out)[i].row_key = rows[i].key;
        status s = ds_row_pack(&packing, &rows[i], &(*out)[i].change);
        if (status_is_ok(s))
            continue;
        while (i-- > 0)
            packed_change_free(&(*out)[i].change);
        return s;
    }
    return status_ok();
}

/* --- without a moment --- */

status ds_rows_write(struct table *table, const struct ds_row_write *rows, size_t count,
                     int64_t at_us, struct arena *arena)
{
    struct row_group group = {.table = table, .count = count, .arena = arena, .at_us = at_us};
    TRY(pack_all(table, rows, count, at_us, arena, &group.rows));
    return row_group_write(&group);
}

/* --- at a moment --- */

static void applied(struct row_group *group, status result)
{
    struct ds_rows_writing *writing = LIST_ENTRY(group, struct ds_rows_writing, group);
    writing->result = result;
    ds_sequencer_applied(writing->sequencer, &writing->moment);
}

static void enter(struct ds_turn *moment)
{
    struct ds_rows_writing *writing = LIST_ENTRY(moment, struct ds_rows_writing, moment);
    status s = row_group_submit(&writing->group);
    if (status_is_ok(s))
        return;
    writing->result = s;
    ds_sequencer_applied(writing->sequencer, moment);
}

void ds_rows_submit(struct ds_rows_writing *writing, const struct ds_row_write *rows, size_t count)
{
    writing->moment.enter = enter;
    writing->group = (struct row_group){.table = writing->table,
                                        .count = count,
                                        .arena = writing->arena,
                                        .at_us = writing->moment.at_us,
                                        .is_repair = writing->is_repair,
                                        .done = applied};
    writing->result = pack_all(writing->table, rows, count, writing->moment.at_us, writing->arena,
                               &writing->group.rows);
    if (status_is_ok(writing->result))
        ds_sequencer_ready(writing->sequencer, &writing->moment);
    else
        ds_sequencer_give_up(writing->sequencer, &writing->moment);
}

static status write_in_order(struct ds_rows_writing *writing, const struct ds_row_write *rows,
                             size_t count, int64_t now_us)
{
    ds_sequencer_draw(writing->sequencer, now_us, &writing->moment);
    ds_rows_submit(writing, rows, count);
    ds_sequencer_end(writing->sequencer, &writing->moment);
    return writing->result;
}

status ds_rows_write_in_order(struct table *table, const struct ds_row_write *rows, size_t count,
                              struct ds_sequencer *sequencer, int64_t now_us, struct arena *arena)
{
    struct ds_rows_writing writing = {.table = table, .sequencer = sequencer, .arena = arena};
    return write_in_order(&writing, rows, count, now_us);
}

status ds_rows_write_repair(struct table *table, const struct ds_row_write *rows, size_t count,
                            struct ds_sequencer *sequencer, int64_t now_us, struct arena *arena)
{
    struct ds_rows_writing writing = {
        .table = table, .sequencer = sequencer, .arena = arena, .is_repair = true};
    struct row_group group = {
        .table = table, .count = count, .arena = arena, .at_us = now_us, .is_repair = true};
    if (sequencer != NULL)
        return write_in_order(&writing, rows, count, now_us);
    TRY(pack_all(table, rows, count, now_us, arena, &group.rows));
    return row_group_write(&group);
}
