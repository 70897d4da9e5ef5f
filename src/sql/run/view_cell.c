/* Cells as values: see view_cell.h. */
#include "sql/run/view_cell.h"

static uint64_t read_number(bytes cell)
{
    uint64_t number = 0;
    for (size_t i = 0; i < cell.size; i++)
        number = number << 8 | cell.data[i];
    return number;
}

struct sql_value view_cell_value(const struct sql_type *type, bytes cell)
{
    double float64;
    if (sql_is_text(type))
        return sql_of_text(cell);
    if (cell.size != (type->kind == SQL_BOOL ? 1 : sizeof(uint64_t)))
        return sql_null();
    uint64_t number = read_number(cell);
    if (type->kind == SQL_BOOL)
        return sql_of_bool(number != 0);
    if (type->kind != SQL_FLOAT64)
        return sql_of_int64((int64_t)number);
    memcpy(&float64, &number, sizeof float64);
    return sql_of_float64(float64);
}
