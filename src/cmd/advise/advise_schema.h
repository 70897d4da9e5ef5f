/* `trestle advise --schema FILE`: tables, and kinds of Datastore, that are not there yet. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_SCHEMA_H
#define TRESTLE_CMD_ADVISE_ADVISE_SCHEMA_H

#include "cmd/advise/advise_options.h"
#include "cmd/advise/advise_server.h"
#include "design/kind.h"
#include "design/load.h"

/* A table of the description, or a kind. */
struct advise_described {
    const struct design_table *table; /* NULL: it is a kind */
    const struct design_kind *kind;
    struct load load; /* of a table */
    struct advise_report report;
};

/* `take` gets each of them, in their order; nothing of it is there afterwards. INVALID_ARGUMENT in
 * words with the file, line and column of what makes no sense. */
status advise_look_at_schema(const struct advise_options *options,
                             status (*take)(void *context, struct advise_described *described),
                             void *context);

#endif
