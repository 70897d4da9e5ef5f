/* Errors in a query, with the place where they are: see error.h. */
#include "sql/syntax/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAB_WIDTH = 8 };

static bool ends_line(bytes query, uint32_t at)
{
    bool is_half = query.data[at] == '\r' && at + 1 < query.size && query.data[at + 1] == '\n';
    return (query.data[at] == '\n' || query.data[at] == '\r') && !is_half;
}

static bool continues_code_point(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

struct sql_position sql_position_of(bytes query, uint32_t at)
{
    struct sql_position position = {1, 1};
    for (uint32_t i = 0; i < at && i < query.size; i++) {
        if (ends_line(query, i))
            position = (struct sql_position){position.line + 1, 1};
        else if (query.data[i] == '\t')
            position.column += TAB_WIDTH - (position.column - 1) % TAB_WIDTH;
        else if (query.data[i] != '\r' && !continues_code_point(query.data[i]))
            position.column++;
    }
    return position;
}

struct status_detail *sql_error_detail(bytes query, uint32_t at, const char *format, ...)
{
    struct sql_position position = sql_position_of(query, at);
    char *words = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&words, format, arguments);
    va_end(arguments);
    if (size < 0)
        return NULL;
    struct status_detail *detail =
        status_detail_make("%s [at %u:%u]", words, position.line, position.column);
    free(words);
    return detail;
}
