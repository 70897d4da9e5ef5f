/* Cells of a materialized view's rows as values: what sql/view/cell.h writes. */
#ifndef TRESTLE_SQL_RUN_VIEW_CELL_H
#define TRESTLE_SQL_RUN_VIEW_CELL_H

#include "sql/value.h"

/* BOOL, INT64, FLOAT64, TIMESTAMP, STRING or BYTES. NULL for bytes that are none, which a view does
 * not write. */
struct sql_value view_cell_value(const struct sql_type *type, bytes cell);

#endif
