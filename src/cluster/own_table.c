/* See own_table.h. */
#include "cluster/own_table.h"

#include "cluster/row_group.h"
#include "cluster/rows.h"

static status hold_complete(const struct own_table *own, struct table **table)
{
    status s = own->complete == NULL ? status_ok() : own->complete(*table);
    if (!status_is_ok(s)) {
        table_release(*table);
        *table = NULL;
    }
    return s;
}

status own_table_hold(const struct own_table *own, struct cluster *cluster, bool make,
                      struct table **out)
{
    status s = cluster_table(cluster, bytes_of(own->name), out);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        *out = NULL;
        return make ? own->make(cluster, out) : status_ok();
    }
    return status_is_ok(s) && make ? hold_complete(own, out) : s;
}

/* --- writing --- */

status own_batch_add(struct own_batch *batch, bytes row_key, struct row_change *change)
{
    enum { BIG = 1 << 20 }; /* none is as large */
    struct grouped_row row = {.row_key = row_key};
    if (row_key.data == NULL)
        return status_out_of_memory();
    TRY(row_change_pack(change, BIG, &row.change));
    status s = vector_add(&batch->rows, batch->arena, &row, sizeof row);
    if (!status_is_ok(s))
        packed_change_free(&row.change);
    return s;
}

void own_batch_drop(struct own_batch *batch)
{
    struct grouped_row *rows = batch->rows.items;
    for (size_t i = 0; i < batch->rows.count; i++)
        packed_change_free(&rows[i].change);
    batch->rows.count = 0;
}

static status write_to(struct table *table, const struct own_table *own, struct own_batch *batch)
{
    struct row_group group = {.table = table,
                              .rows = batch->rows.items,
                              .count = batch->rows.count,
                              .arena = batch->arena,
                              .is_own = own->is_unseen};
    batch->rows.count = 0; /* the group ends the changes, whatever comes of it */
    return row_group_write(&group);
}

status own_batch_write(struct own_batch *batch, const struct own_table *own,
                       struct cluster *cluster)
{
    struct table *table = NULL;
    if (batch->rows.count == 0)
        return status_ok();
    status s = own_table_hold(own, cluster, true, &table);
    if (status_is_ok(s))
        s = write_to(table, own, batch);
    own_batch_drop(batch);
    if (table != NULL)
        table_release(table);
    return s;
}

/* --- reading --- */

static status read_rows(const struct own_reading *reading, struct scan *scan)
{
    enum row_outcome outcome = ROW_ABSENT;
    bool ends = false;
    while (outcome != ROW_END && !ends) {
        struct scan_row row;
        TRY(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_FOUND)
            TRY(reading->row(reading->context, &row, &ends));
    }
    return status_ok();
}

static status read_table(struct table *table, const struct own_reading *reading)
{
    struct key_range range = {.from = reading->from, .to = reading->to};
    struct arena *arena = arena_create(reading->memory);
    struct scan *scan = NULL;
    if (arena == NULL)
        return status_out_of_memory();
    status s = scan_create(&(struct scan_spec){.table = table,
                                               .ranges = &range,
                                               .range_count = 1,
                                               .reversed = reading->reversed,
                                               .schema = table_schema(table),
                                               .is_background = reading->is_background,
                                               .arena = arena},
                           &scan);
    if (status_is_ok(s))
        s = read_rows(reading, scan);
    scan_destroy(scan);
    arena_destroy(arena);
    return s;
}

status own_table_read(const struct own_table *own, struct cluster *cluster,
                      const struct own_reading *reading)
{
    struct table *table;
    TRY(own_table_hold(own, cluster, false, &table));
    if (table == NULL)
        return status_ok();
    bool is_any = bytes_compare(reading->from, reading->to) < 0;
    status s = is_any ? read_table(table, reading) : status_ok();
    table_release(table);
    return s;
}
