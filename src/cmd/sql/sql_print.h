/* Results as tables, CSV, JSON, or one column a line. */
#ifndef TRESTLE_CMD_SQL_SQL_PRINT_H
#define TRESTLE_CMD_SQL_SQL_PRINT_H

#include "base/arena.h"
#include "cmd/text_table.h"
#include "google/bigtable/v2/data.pb-c.h"

enum shell_format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_PLAIN };

struct shell_style {
    enum shell_format format;
    bool expanded; /* of tables: a line for each column */
    bool no_header;
};

/* Prints one result into a buffer, which may be emptied between calls. */
struct shell_printer {
    struct shell_style style;
    const Bt__ProtoSchema *schema;
    struct text_column *columns; /* in the arena */
    struct text_table table;
    size_t name_width; /* of the widest column's name */
    uint64_t rows;
    struct buffer cell;
    struct buffer *out;
};

/* The schema, each of whose columns has a type, must outlive the printer; the arena is for what it
 * needs itself. To be ended in any case. */
status shell_printer_begin(struct shell_printer *printer, struct shell_style style,
                           const Bt__ProtoSchema *schema, struct arena *arena, struct buffer *out);

/* A row of values that shell_value_check found right: sql_take_row, whose context is the printer.
 * RESOURCE_EXHAUSTED. */
status shell_printer_row(void *printer, const Bt__Value *const *values);

/* Prints the rest, and how many rows there were. `is_whole`: the result did not break off; if it
 * did, only what came is printed. */
void shell_printer_end(struct shell_printer *printer, bool is_whole);

#endif
