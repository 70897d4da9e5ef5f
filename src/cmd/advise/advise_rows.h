/* The rows that the advisor looks at, read by gRPC: see advisor/gather.h for what the functions do.
 */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_ROWS_H
#define TRESTLE_CMD_ADVISE_ADVISE_ROWS_H

#include "cmd/advise/advise_source.h"

status client_read_rows(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole);

/* The number of its cells times the size of some of them. */
status client_estimate_row(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row);

status client_is_one_row(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one);

/* The key that a server shows as text, in which bytes may be \xNN; NULL bytes without memory. */
bytes client_key_of_text(bytes text, struct arena *arena);

#endif
