/* google.bigtable.v2.RowFilter as row/filter.h wants it. */
#ifndef TRESTLE_BIGTABLE_FILTER_MESSAGE_H
#define TRESTLE_BIGTABLE_FILTER_MESSAGE_H

#include "google/bigtable/v2/data.pb-c.h"
#include "row/filter.h"

/* Checks and compiles the message's filter: see filter_compile. NULL passes all. Slices of the
 * message are kept: it must outlive the filter. INVALID_ARGUMENT with production's words, also for
 * a message that is too large. */
status filter_message_compile(const Bt__RowFilter *message, struct arena *arena,
                              struct filter **out);

#endif
