/* Values as cells: see cell.h, and row.h for the bytes. */
#include "sql/view/cell.h"

#include <math.h>

bool view_value_has_cell(const struct sql_type *type, const struct sql_value *value)
{
    return !value->is_null && (!sql_is_float(type) || isfinite(value->float64));
}

size_t view_value_size(const struct sql_type *type, const struct sql_value *value)
{
    if (sql_is_text(type))
        return value->text.size;
    return type->kind == SQL_BOOL ? 1 : VIEW_NUMBER_BYTES;
}

bytes view_value_cell(const struct sql_type *type, const struct sql_value *value,
                      uint8_t room[VIEW_NUMBER_BYTES])
{
    uint64_t bits = (uint64_t)value->int64;
    if (sql_is_text(type))
        return value->text;
    if (type->kind == SQL_BOOL) {
        room[0] = value->boolean;
        return bytes_make(room, 1);
    }
    if (sql_is_float(type))
        memcpy(&bits, &value->float64, sizeof bits);
    for (int i = 0; i < VIEW_NUMBER_BYTES; i++)
        room[i] = (uint8_t)(bits >> (56 - 8 * i));
    return bytes_make(room, VIEW_NUMBER_BYTES);
}
