/* Resolves marks: reads what the source's rows have in their aggregates, and writes it. */
#ifndef TRESTLE_TRANSFER_MARK_RESOLVER_H
#define TRESTLE_TRANSFER_MARK_RESOLVER_H

#include "client/change_writer.h"
#include "client/client_session.h"
#include "transfer/cell_marks.h"

struct mark_resolver {
    struct client_session *source;
    const char *table;      /* its full name */
    const char *aggregates; /* a regular expression of the families that are read */
    struct change_writer *target;
    struct cell_marks *marks;
};

/* All marks, which are clear then; the writer has what they come to. The source is asked again
 * while it may answer yet, for a minute. */
status marks_resolve(const struct mark_resolver *resolver);

#endif
