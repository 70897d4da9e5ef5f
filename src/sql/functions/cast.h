/* CAST: how a value of one type becomes one of another. */
#ifndef TRESTLE_SQL_FUNCTIONS_CAST_H
#define TRESTLE_SQL_FUNCTIONS_CAST_H

#include "sql/function.h"

/* Whether there is a way, for some values at least. */
bool sql_can_cast(const struct sql_type *from, const struct sql_type *to);

/* NULL stays NULL. OUT_OF_RANGE for a value that has no counterpart. What `out` points to is in the
 * call's arena, or was the value's. */
status sql_cast_value(const struct sql_call *call, const struct sql_type *from,
                      const struct sql_type *to, const struct sql_value *value,
                      struct sql_value *out);

/* CAST as a function: from call->types[0] to call->type. */
extern const struct sql_function sql_cast_function;

#endif
