/* See repair_catalog.h.
 *
 * The directory is first opened for reading alone. Lost records are named, in the file, too, before
 * they are given up. */
#include "cmd/repair/repair_catalog.h"

#include "cluster/catalog.h"
#include "cluster/lost_records.h"
#include "server/offline_cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the look --- */

static status open_to_read(const struct repair_catalog_options *options, struct store **store)
{
    struct store_options how = offline_store_options(options->directory, options->log);
    how.read_only = true;
    return store_open(&how, store);
}

static status name_range(void *context, const struct lost_records *lost)
{
    struct lost_rows_report *report = context;
    const struct lost_range range = {"the catalog", lost->from, lost->to, lost->words};
    TRY(lost_rows_name(report, &range));
    lost_rows_print(report, &range);
    return status_ok();
}

/* Ranges that were given up before were named then. `*is_needed`: there is something to give up, or
 * to put right. */
static status find_lost(const struct repair_catalog_options *options, struct store *store,
                        bool *is_needed)
{
    char *words = NULL;
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    TRY(lost_records_find(catalog, name_range, options->report));
    if (!keyspace_has_damage(catalog))
        TRY(lost_records_read(catalog, &words));
    *is_needed = keyspace_has_damage(catalog) || words != NULL;
    free(words);
    return status_ok();
}

static status look(const struct repair_catalog_options *options, bool *is_needed)
{
    struct store *store;
    TRY(open_to_read(options, &store));
    status s = options->look(options->context, store);
    if (status_is_ok(s))
        s = find_lost(options, store, is_needed);
    store_close(store);
    return s;
}

/* --- what is left --- */

static status name_keyspace(void *context, uint64_t id, int64_t found_us)
{
    (void)found_us;
    printf("kept: keyspace %" PRIu64 ", whose table is not known any more: see trestle repair %s "
           "--claim\n",
           id, (const char *)context);
    return status_ok();
}

static status name_keyspaces(const struct repair_catalog_options *options)
{
    char *directory = bytes_to_string(bytes_of(options->directory));
    struct store *store;
    if (directory == NULL)
        return status_out_of_memory();
    status s = open_to_read(options, &store);
    if (status_is_ok(s)) {
        const struct catalog_visitor visitor = {.context = directory, .unclaimed = name_keyspace};
        s = catalog_read(store_keyspace_find(store, CATALOG_KEYSPACE_ID), &visitor);
        store_close(store);
    }
    free(directory);
    return s;
}

/* --- what others call --- */

status repair_catalog(const struct repair_catalog_options *options, bool *is_left)
{
    bool is_needed = false;
    *is_left = false;
    options->report->is_trial = !options->in_place;
    TRY(look(options, &is_needed));
    *is_left = is_needed && !options->in_place;
    if (!is_needed || *is_left)
        return status_ok();
    TRY(offline_cluster_put_right(options->directory, "repair", clock_system(), options->log));
    return name_keyspaces(options);
}

struct telling {
    void (*tell)(void *context, const char *words);
    void *context;
};

static status tell_range(void *context, const struct lost_records *lost)
{
    const struct telling *telling = context;
    telling->tell(telling->context, lost->words);
    return status_ok();
}

status repair_catalog_look(struct store *store, void (*tell)(void *context, const char *words),
                           void *context)
{
    struct telling telling = {tell, context};
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    char *words = NULL;
    TRY(lost_records_find(catalog, tell_range, &telling));
    if (keyspace_has_damage(catalog))
        return status_ok();
    TRY(lost_records_read(catalog, &words));
    if (words != NULL)
        tell(context, words);
    free(words);
    return status_ok();
}
