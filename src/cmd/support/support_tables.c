/* The tables of a stopped server, from its catalog: nothing of a table is read but its size, which
 * is without what was dropped, as that of a served one is (cluster/live_size.h). */
#include "cluster/catalog.h"
#include "cluster/live_size.h"
#include "cmd/support/support_private.h"
#include "row/fold.h"
#include "tablet/drop_records.h"
#include "tablet/key_bounds.h"

#include <inttypes.h>
#include <unistd.h>

enum { CACHE_BYTES = 16 << 20, OPEN_FILES = 64 };

struct listing {
    struct store *store;
    struct keyspace *catalog;
    struct buffer *out;
    /* What was dropped of the last tablet's keyspace. NULL: nothing was looked at, or it could not
     * be read. */
    struct row_drops *drops;
    uint64_t keyspace_id; /* which that is; 0: none */
};

static status list_table(void *context, const struct table_record *record)
{
    struct listing *listing = context;
    buffer_append_format(listing->out, "table %" PRIu64 " %s, families: %zu%s\n", record->id,
                         record->name, record->schema->family_count,
                         record->deleted_us > 0 ? ", deleted" : "");
    return status_ok();
}

static status load_drops(struct keyspace *catalog, uint64_t keyspace_id, struct row_drops **out)
{
    TRY(row_drops_create(out));
    status s = drop_records_load(catalog, keyspace_id, *out);
    if (status_is_ok(s))
        return s;
    row_drops_destroy(*out);
    *out = NULL;
    return s;
}

/* A table's tablets come one after the other, and most have one keyspace. */
static void look_at_drops(struct listing *listing, uint64_t keyspace_id)
{
    if (listing->keyspace_id == keyspace_id)
        return;
    row_drops_destroy(listing->drops);
    listing->keyspace_id = keyspace_id;
    status_ignore(load_drops(listing->catalog, keyspace_id, &listing->drops));
}

static void append_size(struct listing *listing, struct keyspace *keyspace, bytes from, bytes to)
{
    uint64_t id = keyspace_id(keyspace);
    look_at_drops(listing, id);
    buffer_append_format(listing->out, "keyspace %" PRIu64 " of about ", id);
    if (listing->drops != NULL)
        buffer_append_format(listing->out, "%" PRIu64 " bytes\n",
                             live_size(keyspace, listing->drops, from, to));
    else
        buffer_append_format(listing->out, "%" PRIu64 " bytes, with what was dropped\n",
                             rows_size(keyspace, from, to));
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
        append_size(listing, keyspace, record->start, record->end);
    return status_ok();
}

static status list(struct store *store, struct buffer *out)
{
    struct listing listing = {
        .store = store, .catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID), .out = out};
    const struct catalog_visitor visitor = {
        .context = &listing, .table = list_table, .tablet = list_tablet};
    if (listing.catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    status s = catalog_read(listing.catalog, &visitor);
    row_drops_destroy(listing.drops);
    return s;
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
