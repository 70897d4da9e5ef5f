/* What reads each kind of file of rows, for row_file.c. */
#ifndef TRESTLE_FORMATS_ROW_FILE_PRIVATE_H
#define TRESTLE_FORMATS_ROW_FILE_PRIVATE_H

#include "formats/avro.h"
#include "formats/csv.h"
#include "formats/row_file.h"

/* --- csv_rows.c --- */

struct csv_rows;

status csv_rows_create(struct input *input, const struct row_format *format, struct csv_rows **out);
void csv_rows_destroy(struct csv_rows *rows); /* NULL is fine */
status csv_rows_next(struct csv_rows *rows, struct arena *arena, struct row_record *out,
                     bool *is_end);
/* The number of the line that is read. */
uint64_t csv_rows_line(const struct csv_rows *rows);

/* The header of the form cells. */
extern const char *const csv_cell_names[6];

/* --- avro_rows.c --- */

/* Makes a row of a record. INVALID_ARGUMENT: it is none. */
status avro_row(const struct avro_value *record, const struct row_format *format,
                struct arena *arena, struct move_change *out);

#endif
