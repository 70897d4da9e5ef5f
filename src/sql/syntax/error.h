/* Errors in a query, with the place where they are: "… [at 1:8]". */
#ifndef TRESTLE_SQL_SYNTAX_ERROR_H
#define TRESTLE_SQL_SYNTAX_ERROR_H

#include "base/status.h"

/* Lines and columns, from 1, of an offset into the query. A column is a code point; a tab goes on
 * to the next column of the form 8n + 1; "\r\n" is one end of a line. */
struct sql_position {
    uint32_t line;
    uint32_t column;
};
struct sql_position sql_position_of(bytes query, uint32_t at);

/* INVALID_ARGUMENT: what is wrong, as printf, and " [at line:column]". A macro, so that the code is
 * set in sight of the compiler and of clang's analyser. */
#define sql_error(query, at, ...)                                                                  \
    status_with(STATUS_INVALID_ARGUMENT, sql_error_detail(query, at, __VA_ARGS__))

/* NULL without memory. */
__attribute__((format(printf, 3, 4), warn_unused_result)) struct status_detail *
sql_error_detail(bytes query, uint32_t at, const char *format, ...);

#endif
