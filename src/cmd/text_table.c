/* See text_table.h. */
#include "cmd/text_table.h"

#include "base/utf8.h"

#include <utf8proc.h>

size_t text_width(bytes text)
{
    size_t width = 0;
    for (size_t at = 0; at < text.size;) {
        int wide = utf8proc_charwidth((utf8proc_int32_t)utf8_next(text, &at));
        width += wide > 0 ? (size_t)wide : 0;
    }
    return width;
}

void text_table_begin(struct text_table *table, struct text_column *columns, size_t column_count,
                      bool has_header, struct buffer *out)
{
    *table = (struct text_table){
        .columns = columns, .column_count = column_count, .has_header = has_header, .out = out};
    for (size_t i = 0; i < column_count; i++)
        columns[i].width = has_header ? text_width(bytes_of(columns[i].name)) : 0;
}

static void append_times(struct buffer *out, char c, size_t count)
{
    uint8_t *to = buffer_reserve(out, count);
    if (to == NULL || count == 0)
        return;
    memset(to, c, count);
    out->size += count;
}

/* A cell with what separates it from those beside it. Nothing follows the last one. */
static void write_cell(struct text_table *table, size_t place, bytes cell, bool to_the_right)
{
    size_t width = text_width(cell), wanted = table->columns[place].width;
    size_t blanks = width < wanted ? wanted - width : 0;
    bool is_last = place + 1 == table->column_count;
    if (!is_last || width > 0)
        append_times(table->out, ' ', to_the_right ? blanks + 1 : 1);
    buffer_append_bytes(table->out, cell);
    if (is_last)
        buffer_append_byte(table->out, '\n');
    else
        append_times(table->out, ' ', to_the_right ? 1 : blanks + 1);
    if (!is_last)
        buffer_append_byte(table->out, '|');
}

static void write_header(struct text_table *table)
{
    for (size_t i = 0; i < table->column_count; i++)
        write_cell(table, i, bytes_of(table->columns[i].name), false);
    for (size_t i = 0; i < table->column_count; i++) {
        if (i > 0)
            buffer_append_byte(table->out, '+');
        append_times(table->out, '-', table->columns[i].width + 2);
    }
    buffer_append_byte(table->out, '\n');
}

static size_t size_of_kept(const struct text_table *table, size_t cell)
{
    size_t size;
    memcpy(&size, table->sizes.data + cell * sizeof size, sizeof size);
    return size;
}

/* The widths are known now. */
static void flow(struct text_table *table)
{
    size_t kept = table->sizes.size / sizeof(size_t), from = 0;
    table->is_flowing = true;
    if (table->has_header)
        write_header(table);
    for (size_t i = 0; i < kept; i++) {
        size_t place = i % table->column_count, size = size_of_kept(table, i);
        write_cell(table, place, bytes_make(table->kept.data + from, size),
                   table->columns[place].to_the_right);
        from += size;
    }
    table->out->failed |= table->kept.failed || table->sizes.failed;
    buffer_free(&table->kept);
    buffer_free(&table->sizes);
}

static void keep(struct text_table *table, size_t place, bytes cell)
{
    size_t width = text_width(cell);
    if (width > table->columns[place].width)
        table->columns[place].width = width;
    buffer_append_bytes(&table->kept, cell);
    buffer_append(&table->sizes, &cell.size, sizeof cell.size);
}

void text_table_add(struct text_table *table, bytes cell)
{
    size_t place = table->cell_count++ % table->column_count;
    if (table->is_flowing) {
        write_cell(table, place, cell, table->columns[place].to_the_right);
        return;
    }
    keep(table, place, cell);
    bool is_enough = table->cell_count / table->column_count >= TEXT_TABLE_ROWS_KEPT ||
                     table->kept.size >= TEXT_TABLE_BYTES_KEPT;
    if (is_enough)
        flow(table);
}

void text_table_end(struct text_table *table)
{
    if (!table->is_flowing)
        flow(table);
}
