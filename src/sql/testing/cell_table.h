/* Tables in memory whose keys and values are any bytes: for tests of materialized views. */
#ifndef TRESTLE_SQL_TESTING_CELL_TABLE_H
#define TRESTLE_SQL_TESTING_CELL_TABLE_H

#include "sql/catalog.h"

struct table_cell {
    bytes key;
    const struct family *family;
    bytes qualifier;
    int64_t timestamp_us;
    bytes value;
};

/* Cells by key, family's name, qualifier, newest first. */
struct cell_table {
    struct arena *arena; /* its own: nothing is freed before the table is */
    struct family *families;
    size_t family_count;
    struct table_cell *cells;
    size_t count;
    size_t capacity;
};

void cell_table_init(struct cell_table *table, const char *const *families, size_t count);
void cell_table_free(struct cell_table *table);
struct family *cell_table_family(struct cell_table *table, const char *name);

/* Sets a cell; all of it is copied. */
void cell_table_put(struct cell_table *table, bytes key, const char *family, bytes qualifier,
                    int64_t timestamp_us, bytes value);
void cell_table_delete_row(struct cell_table *table, bytes key);
void cell_table_delete_version(struct cell_table *table, bytes key, int64_t timestamp_us);

/* As sql_catalog.scan; the spec stays. */
struct sql_scan *cell_table_scan(const struct cell_table *table, const struct sql_scan_spec *spec,
                                 struct arena *arena);

#endif
