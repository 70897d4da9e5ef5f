/* See repair_strays.h. The directory is opened for writing only if there is something to remove. */
#include "cmd/repair/repair_strays.h"

#include "base/arena.h"
#include "cluster/catalog.h"
#include "cmd/plural.h"
#include "cmd/repair/stray_cells.h"
#include "server/offline_cluster.h"

#include <inttypes.h>
#include <stdio.h>

enum { MEMORY = 1 << 30 };

struct known_table {
    struct known_table *next;
    uint64_t id;
    const char *name;
    uint64_t keyspace_id; /* all tablets of a table are in one */
};

struct strays {
    struct arena *arena;
    struct store *store;
    struct keyspace *catalog;
    struct known_table *tables;
    bool removes;
    uint64_t rows;
};

/* --- what there is --- */

static status know_table(void *context, const struct table_record *record)
{
    struct strays *strays = context;
    struct known_table *table = arena_zalloc(strays->arena, sizeof *table);
    if (table == NULL)
        return status_out_of_memory();
    *table = (struct known_table){.next = strays->tables, .id = record->id};
    table->name = arena_string(strays->arena, bytes_of(record->name));
    strays->tables = table;
    return table->name == NULL ? status_out_of_memory() : status_ok();
}

static status know_tablet(void *context, const struct tablet_record *record)
{
    const struct strays *strays = context;
    for (struct known_table *table = strays->tables; table != NULL; table = table->next)
        if (table->id == record->table_id)
            table->keyspace_id = record->keyspace_id;
    return status_ok();
}

static status open_store(struct strays *strays, const char *directory, const struct log *log)
{
    struct store_options options = offline_store_options(directory, log);
    options.read_only = !strays->removes;
    TRY(store_open(&options, &strays->store));
    strays->catalog = store_keyspace_find(strays->store, CATALOG_KEYSPACE_ID);
    return strays->catalog == NULL ? status_make(STATUS_DATA_LOSS, "there is no catalog")
                                   : status_ok();
}

static status read_catalog(struct strays *strays)
{
    const struct catalog_visitor visitor = {
        .context = strays, .table = know_table, .tablet = know_tablet};
    return catalog_read(strays->catalog, &visitor);
}

static void close_store(struct strays *strays)
{
    if (strays->store != NULL)
        store_close(strays->store);
    strays->store = NULL;
}

/* --- a table --- */

static void tell(const struct strays *strays, const struct known_table *table, uint64_t rows)
{
    printf("%s: %s large cells that their rows do not name, of %" PRIu64 " row%s\n", table->name,
           strays->removes ? "removed" : "would remove", rows, plural(rows));
}

static status look_at(struct strays *strays, const struct known_table *table)
{
    struct keyspace *keyspace = store_keyspace_find(strays->store, table->keyspace_id);
    uint64_t rows = 0;
    if (keyspace == NULL)
        return status_make(STATUS_DATA_LOSS, "the keyspace of a tablet is missing");
    status s = strays->removes ? stray_cells_remove(strays->store, keyspace, strays->catalog, &rows)
                               : stray_cells_count(keyspace, strays->catalog, &rows);
    strays->rows += rows;
    if (rows > 0 && (strays->removes || status_is_ok(s)))
        tell(strays, table, rows);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s); /* damage, which is told by who looks for it */
    return status_ok();
}

static status look_at_all(struct strays *strays)
{
    strays->rows = 0;
    for (const struct known_table *table = strays->tables; table != NULL; table = table->next)
        TRY(look_at(strays, table));
    return status_ok();
}

/* --- the directory --- */

static status look_and_remove(struct strays *strays, const char *directory, const struct log *log,
                              bool in_place)
{
    TRY(open_store(strays, directory, log));
    TRY(read_catalog(strays));
    TRY(look_at_all(strays));
    if (strays->rows == 0 || !in_place)
        return status_ok();
    close_store(strays);
    strays->removes = true;
    TRY(open_store(strays, directory, log));
    return look_at_all(strays);
}

status repair_strays(const char *directory, const struct log *log, bool in_place, uint64_t *rows)
{
    struct strays strays = {.arena = arena_create(MEMORY)};
    if (strays.arena == NULL)
        return status_out_of_memory();
    status s = look_and_remove(&strays, directory, log, in_place);
    *rows = strays.rows;
    close_store(&strays);
    arena_destroy(strays.arena);
    return s;
}
