/* `trestle repair` of a directory whose catalog is damaged: cluster/lost_records.h. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_CATALOG_H
#define TRESTLE_CMD_REPAIR_REPAIR_CATALOG_H

#include "base/log.h"
#include "cmd/repair/lost_rows.h"

struct store;

struct repair_catalog_options {
    const char *directory;
    const struct log *log;
    bool in_place;
    struct lost_rows_report *report;
    /* Called with the store, open for reading alone, before anything is changed. */
    status (*look)(void *context, struct store *store);
    void *context;
};

/* Names the ranges of the catalog that are damaged. With in_place gives them up, and puts the rest
 * right: then `report` has some, and else, since nothing else can be looked at, `*is_left`. Nothing
 * of others. */
status repair_catalog(const struct repair_catalog_options *options, bool *is_left);

/* For commands that only tell: calls `tell` with the words for each range of the catalog that is
 * damaged, or that was given up by a repair that has not ended. The store is open for reading
 * alone. */
status repair_catalog_look(struct store *store, void (*tell)(void *context, const char *words),
                           void *context);

#endif
