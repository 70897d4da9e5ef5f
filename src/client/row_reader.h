/* Rows read from a Bigtable endpoint, for commands: ReadRows, its chunks put together. */
#ifndef TRESTLE_CLIENT_ROW_READER_H
#define TRESTLE_CLIENT_ROW_READER_H

#include "client/client_session.h"
#include "formats/change.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct row_reading {
    struct client_session *session;
    const char *table;
    const char *app_profile;     /* "": none */
    const Bt__RowSet *rows;      /* NULL: all */
    const Bt__RowFilter *filter; /* NULL: none */
    void *context;
    /* For each row, in the order of keys; what it is given lives until it returns. A failure ends
     * the reading, and is what it ends with. */
    status (*on_row)(void *context, const struct move_change *row);
};

/* Reads to the end; goes on after the last row where the connection breaks. DATA_LOSS if the server
 * sends chunks that make no rows. */
status rows_read(const struct row_reading *reading);

#endif
