/* Values as cells of a view's row, and back. */
#ifndef TRESTLE_SQL_VIEW_CELL_H
#define TRESTLE_SQL_VIEW_CELL_H

#include "sql/value.h"

/* Whether the value has a cell: not NULL, nor NaN, nor infinite. */
bool view_value_has_cell(const struct sql_type *type, const struct sql_value *value);

/* The size of a cell of a value that has one. */
size_t view_value_size(const struct sql_type *type, const struct sql_value *value);

enum { VIEW_NUMBER_BYTES = 8 };

/* The bytes of the cell: of a text its own, of others written into `room`. */
bytes view_value_cell(const struct sql_type *type, const struct sql_value *value,
                      uint8_t room[VIEW_NUMBER_BYTES]);

#endif
