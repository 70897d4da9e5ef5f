/* Damage in the table files of a stopped server's data directory, and its repair. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_TABLES_H
#define TRESTLE_CMD_REPAIR_REPAIR_TABLES_H

#include "base/bytes.h"
#include "base/log.h"
#include "cmd/repair/lost_rows.h"

/* Whole backups that rows come from, instead of being given up; or a data directory, restored from
 * one. */
struct repair_backup {
    const char *place;   /* NULL: none; they are given up */
    const char *name;    /* NULL: the newest that will do, of those that the server has made */
    const char *key;     /* a file; NULL: the place is not encrypted */
    const char *scratch; /* a directory for files of the backup, made and removed again */
};

struct repair_tables_options {
    const char *directory;
    const struct log *log;
    bool in_place;
    bool accepts_old_data; /* table_repair_options; not with a backup */
    struct repair_backup backup;
    struct lost_rows_report *report;
};

struct repair_tables_outcome {
    uint64_t left;  /* ranges that are, or would be, out of service afterwards: each is told, too */
    uint64_t named; /* tables that were claimed, and get names and rules from a backup: likewise */
};

/* Reads all table files. Without in_place, tells what would be lost and changes nothing. */
status repair_tables(const struct repair_tables_options *options,
                     struct repair_tables_outcome *out);

/* --- the same look for commands that only tell of it --- */

struct damage_look;
struct damage_record;
struct lost_rows;
struct store;
struct store_options;

status damage_look_create(struct damage_look **out);
void damage_look_destroy(struct damage_look *look); /* after the store is closed; NULL is fine */
/* Watches a store that is to be opened for reading only, with these options. */
void damage_look_watch(struct damage_look *look, struct store_options *options);
/* Learns what the catalog knows. Before anything else. */
status damage_look_read_catalog(struct damage_look *look, struct store *store);
/* Reads all table files, and tells of each damaged range in the words that refuse its rows. */
status damage_look_run(struct damage_look *look,
                       status (*tell)(void *context, const struct lost_rows *lost), void *context);
/* The first range that ends behind the key: the store gives what comes after it; NULL: none. */
const struct damage_record *damage_look_behind(const struct damage_look *look, uint64_t keyspace_id,
                                               bytes key);

#endif
