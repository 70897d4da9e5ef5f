/* How large values are by the size of the message that they would have come in. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_SIZES_H
#define TRESTLE_CMD_ADVISE_ADVISE_SIZES_H

#include "advisor/sample_rows.h"

/* Bytes of the values of the row's cells [from, to), which come in one message of so many bytes
 * with the row's key and the names of the cells. Of one cell it is exact; of several it is about
 * so, within some bytes each. Another server's message, written otherwise, has some bytes more or
 * less, too. `row` has one cell there at least; its memory is the arena's of the rows. */
status advise_values_of_message(const struct sample_rows *rows, const struct advice_row *row,
                                size_t from, size_t to, uint64_t message, uint64_t *out);

#endif
