/* See advise_sizes.h. The message is measured as a server of ours would write it, with values of a
 * size that is guessed: the greatest that is no larger than the message. A guess corrected by its
 * own error would go to and fro where one chunk more begins. */
#include "cmd/advise/advise_sizes.h"

#include "bigtable/read_chunks.h"

/* The cells with values of so many bytes in all, of which nothing is there. */
static void share_out(const struct cell_list *cells, uint64_t values)
{
    for (size_t i = 0; i < cells->count; i++) {
        uint64_t size = values / (cells->count - i);
        cells->items[i].value = bytes_make(NULL, (size_t)size);
        values -= size;
    }
}

static uint64_t size_of_message(const struct cell_list *cells, bytes key, uint64_t values)
{
    struct row_writer writer;
    share_out(cells, values);
    row_writer_start(&writer, key, cells);
    return row_writer_size(&writer);
}

/* Neighbours are of one family only if that is the same. */
static struct family *make_families(const struct sample_rows *rows)
{
    struct family *families = arena_zalloc(rows->arena, rows->family_count * sizeof *families);
    for (size_t i = 0; families != NULL && i < rows->family_count; i++)
        families[i].name = bytes_of(rows->families[i].name);
    return families;
}

static status name_cells(const struct sample_rows *rows, const struct advice_row *row, size_t from,
                         size_t to, struct cell_list *out)
{
    const struct family *families = make_families(rows);
    *out = (struct cell_list){.count = to - from,
                              .items = arena_zalloc(rows->arena, (to - from) * sizeof *out->items)};
    if (families == NULL || out->items == NULL)
        return status_out_of_memory();
    for (size_t i = from; i < to; i++) {
        struct cell *cell = &out->items[i - from];
        cell->family = &families[row->cells[i].family];
        cell->qualifier = row->cells[i].qualifier;
        cell->timestamp_us = row->cells[i].timestamp_us;
    }
    return status_ok();
}

status advise_values_of_message(const struct sample_rows *rows, const struct advice_row *row,
                                size_t from, size_t to, uint64_t message, uint64_t *out)
{
    struct cell_list cells;
    uint64_t least = 0, most = message;
    *out = 0;
    TRY(name_cells(rows, row, from, to, &cells));
    while (least < most) {
        uint64_t guess = most - (most - least) / 2;
        if (size_of_message(&cells, row->key, guess) > message)
            most = guess - 1;
        else
            least = guess;
    }
    *out = least;
    return status_ok();
}
