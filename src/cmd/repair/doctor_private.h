/* What the doctor's files share: what was found in the catalog, and the count of damages. */
#ifndef TRESTLE_CMD_REPAIR_DOCTOR_PRIVATE_H
#define TRESTLE_CMD_REPAIR_DOCTOR_PRIVATE_H

#include "base/arena.h"
#include "cluster/catalog.h"
#include "cmd/repair/doctor_clock.h"
#include "cmd/repair/repair_tables.h"

struct found_tablet {
    struct found_tablet *next; /* of the same table, by start */
    struct tablet_record record;
};

struct found_table {
    struct found_table *next;
    uint64_t id;
    const char *name;
    bool is_deleted; /* and kept, to be undeleted */
    struct schema *schema;
    struct found_tablet *first;
    struct found_tablet *last;
    size_t tablet_count;
    uint64_t rows;
    uint64_t cells;
    uint64_t overflow_cells;
    uint64_t bytes;
    bool is_database;
    uint64_t later_types; /* cells of what index rows were that hold what they became */
    struct doctor_ahead ahead;
};

struct doctor {
    struct store *store;
    struct doctor_clock clock;
    struct arena *arena; /* what was found in the catalog */
    struct found_table *tables;
    struct found_table **last_table;
    uint64_t damages;
    uint64_t index_damages; /* those of them that `trestle repair` repairs */
    bool log_is_torn;
    struct damage_look *look; /* at the table files */
};

/* Damage of a table, on standard error, unless there was much before; counts. */
void doctor_report(struct doctor *doctor, const struct found_table *table, const char *what);
/* The same of one key, in the words of its tablet. */
void doctor_report_key(struct doctor *doctor, const struct found_table *table, bytes row_key,
                       const char *what);

/* Reads all keys of one of the table's keyspaces, but for what was dropped and what is out of
 * service; reports what is damaged, and counts rows and cells. Fails if the rest cannot be read. */
status doctor_read_rows(struct doctor *doctor, struct found_table *table,
                        struct keyspace *keyspace);

#endif
