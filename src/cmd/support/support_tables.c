/* The tables of a stopped server, from its catalog: nothing of a table is read but its size. */
#include "cluster/catalog.h"
#include "cmd/support/support_private.h"
#include "row/fold.h"
#include "tablet/key_bounds.h"

#include <inttypes.h>
#include <unistd.h>

enum { CACHE_BYTES = 16 << 20, OPEN_FILES = 64 };

struct listing {
    struct store *store;
    struct buffer *out;
};

static status list_table(void *context, const struct table_record *record)
{
    struct listing *listing = context;
    buffer_append_format(listing->out, "table %" PRIu64 " %s, families: %zu%s\n", record->id,
                         record->name, record->schema->family_count,
                         record->deleted_us > 0 ? ", deleted" : "");
    return status_ok();
}

/* Without its borders, which are keys of rows. */
static status list_tablet(void *context, const struct tablet_record *record)
{
    struct listing *listing = context;
    struct keyspace *keyspace = store_keyspace_find(listing->store, record->keyspace_id);
    buffer_append_format(listing->out, "tablet %" PRIu64 " of table %" PRIu64 ": ", record->id,
                         record->table_id);
    if (keyspace == NULL)
        buffer_append_format(listing->out, "its keyspace %" PRIu64 " is missing\n",
                             record->keyspace_id);
    else
        buffer_append_format(listing->out, "keyspace %" PRIu64 " of about %" PRIu64 " bytes\n",
                             record->keyspace_id, rows_size(keyspace, record->start, record->end));
    return status_ok();
}

static status list(struct store *store, struct buffer *out)
{
    struct listing listing = {store, out};
    const struct catalog_visitor visitor = {
        .context = &listing, .table = list_table, .tablet = list_tablet};
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    return catalog_read(catalog, &visitor);
}

status support_write_stored_tables(const struct support *support, struct buffer *out)
{
    const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    const struct store_options options = {.directory = support->data_directory,
                                          .fold = &row_fold,
                                          .log = &log,
                                          .cache_bytes = CACHE_BYTES,
                                          .open_files = OPEN_FILES,
                                          .background_threads = 1,
                                          .read_only = true,
                                          .salvage = true};
    struct store *store;
    TRY(store_open(&options, &store));
    status s = list(store, out);
    store_close(store);
    return s;
}
