/* See sql_print.h. CSV is that of RFC 4180; NULL is nothing there, an empty text is in quotes. */
#include "cmd/sql/sql_print.h"

#include "cmd/sql/sql_values.h"
#include "sql/functions/json_write.h"
#include "wire/proto.h"

static const char *visible_name(const char *name, struct arena *arena)
{
    struct buffer text = {0};
    shell_text_append(&text, bytes_of(name));
    const char *copy = text.failed ? NULL : arena_string(arena, buffer_bytes(&text));
    buffer_free(&text);
    return copy;
}

static status make_columns(struct shell_printer *printer, struct arena *arena)
{
    const Bt__ProtoSchema *schema = printer->schema;
    printer->columns = arena_zalloc(arena, schema->n_columns * sizeof *printer->columns);
    if (printer->columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->n_columns; i++) {
        struct text_column *column = &printer->columns[i];
        column->name = visible_name(schema->columns[i]->name, arena);
        if (column->name == NULL)
            return status_out_of_memory();
        column->to_the_right = shell_type_is_number(schema->columns[i]->type);
        size_t width = text_width(bytes_of(column->name));
        if (width > printer->name_width)
            printer->name_width = width;
    }
    return status_ok();
}

/* --- CSV --- */

static void append_csv_text(struct buffer *out, bytes text)
{
    static const char special[] = {',', '"', '\r', '\n'};
    bool is_plain = text.size > 0;
    for (size_t i = 0; i < text.size && is_plain; i++)
        is_plain = memchr(special, text.data[i], sizeof special) == NULL;
    if (is_plain) {
        buffer_append_bytes(out, text);
        return;
    }
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            buffer_append_byte(out, '"');
        buffer_append_byte(out, text.data[i]);
    }
    buffer_append_byte(out, '"');
}

static void end_csv_field(struct shell_printer *printer, size_t place)
{
    bool is_last = place + 1 == printer->schema->n_columns;
    buffer_append_format(printer->out, is_last ? "\r\n" : ",");
}

static void print_csv_header(struct shell_printer *printer)
{
    for (size_t i = 0; i < printer->schema->n_columns; i++) {
        append_csv_text(printer->out, bytes_of(printer->schema->columns[i]->name));
        end_csv_field(printer, i);
    }
}

static void print_csv(struct shell_printer *printer, const Bt__Value *const *values)
{
    for (size_t i = 0; i < printer->schema->n_columns; i++) {
        if (!shell_value_is_null(values[i])) {
            buffer_clear(&printer->cell);
            shell_value_append_text(&printer->cell, printer->schema->columns[i]->type, values[i],
                                    false);
            append_csv_text(printer->out, buffer_bytes(&printer->cell));
        }
        end_csv_field(printer, i);
    }
}

/* --- JSON --- */

static void print_json(struct shell_printer *printer, const Bt__Value *const *values)
{
    buffer_append_byte(printer->out, '{');
    for (size_t i = 0; i < printer->schema->n_columns; i++) {
        const Bt__ColumnMetadata *column = printer->schema->columns[i];
        buffer_append_format(printer->out, i == 0 ? "" : ", ");
        json_append_string(printer->out, bytes_of(column->name));
        buffer_append_format(printer->out, ": ");
        shell_value_append_json(printer->out, column->type, values[i]);
    }
    buffer_append_format(printer->out, "}\n");
}

/* --- tables --- */

/* The cell as a terminal may have it, in printer->cell. */
static bytes make_cell(struct shell_printer *printer, size_t place, const Bt__Value *value)
{
    buffer_clear(&printer->cell);
    if (shell_value_is_null(value))
        buffer_append_format(&printer->cell, "NULL");
    else
        shell_value_append_text(&printer->cell, printer->schema->columns[place]->type, value, true);
    printer->out->failed |= printer->cell.failed;
    return buffer_bytes(&printer->cell);
}

static void print_table(struct shell_printer *printer, const Bt__Value *const *values)
{
    for (size_t i = 0; i < printer->schema->n_columns; i++)
        text_table_add(&printer->table, make_cell(printer, i, values[i]));
}

static void print_expanded(struct shell_printer *printer, const Bt__Value *const *values)
{
    struct buffer *out = printer->out;
    buffer_append_format(out, "-[ RECORD %llu ]-\n", (unsigned long long)printer->rows);
    for (size_t i = 0; i < printer->schema->n_columns; i++) {
        const char *name = printer->columns[i].name;
        int blanks = (int)(printer->name_width - text_width(bytes_of(name)));
        buffer_append_format(out, "%s%*s | ", name, blanks, "");
        buffer_append_bytes(out, make_cell(printer, i, values[i]));
        buffer_append_byte(out, '\n');
    }
}

/* The first column alone, of type STRING, a row a line. */
static void print_plain(struct shell_printer *printer, const Bt__Value *const *values)
{
    if (!shell_value_is_null(values[0]))
        buffer_append_bytes(printer->out, bytes_of(values[0]->string_value));
    buffer_append_byte(printer->out, '\n');
}

/* --- a result --- */

status shell_printer_begin(struct shell_printer *printer, struct shell_style style,
                           const Bt__ProtoSchema *schema, struct arena *arena, struct buffer *out)
{
    *printer = (struct shell_printer){.style = style, .schema = schema, .out = out};
    TRY(make_columns(printer, arena));
    text_table_begin(&printer->table, printer->columns, schema->n_columns, !style.no_header, out);
    if (style.format == FORMAT_CSV && !style.no_header)
        print_csv_header(printer);
    return status_ok();
}

status shell_printer_row(void *context, const Bt__Value *const *values)
{
    struct shell_printer *printer = context;
    printer->rows++;
    switch (printer->style.format) {
    case FORMAT_TABLE:
        (printer->style.expanded ? print_expanded : print_table)(printer, values);
        break;
    case FORMAT_CSV:
        print_csv(printer, values);
        break;
    case FORMAT_JSON:
        print_json(printer, values);
        break;
    case FORMAT_PLAIN:
        print_plain(printer, values);
        break;
    }
    return printer->out->failed || printer->cell.failed ? status_out_of_memory() : status_ok();
}

void shell_printer_end(struct shell_printer *printer, bool is_whole)
{
    bool is_table = printer->style.format == FORMAT_TABLE;
    bool has_rows = printer->rows > 0;
    if (is_table && !printer->style.expanded && (is_whole || has_rows))
        text_table_end(&printer->table);
    if (is_table && is_whole && !printer->style.no_header)
        buffer_append_format(printer->out, "(%llu row%s)\n", (unsigned long long)printer->rows,
                             printer->rows == 1 ? "" : "s");
    buffer_free(&printer->table.kept);
    buffer_free(&printer->table.sizes);
    buffer_free(&printer->cell);
}
