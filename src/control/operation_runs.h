/* Operations that run: their threads, their cancelling, the calls that wait for them. Private to
 * control/. */
#ifndef TRESTLE_CONTROL_OPERATION_RUNS_H
#define TRESTLE_CONTROL_OPERATION_RUNS_H

#include "control/control_private.h"
#include "control/operations.h"

enum { OPERATION_MEMORY = 64 << 20 }; /* one record's, while it is looked at or changed */

/* The changes in an operation's record; what is NULL stays. With neither response nor error it goes
 * on. */
struct operation_end {
    const ProtobufCMessage *metadata;
    const ProtobufCMessage *response;
    const status *error;
};
status operation_put_end(struct edit *edit, struct arena *arena, const char *name,
                         const struct operation_end *end);

/* Begins once the edit has happened. */
status runs_add(struct edit *edit, const char *name, const char *kind, bytes argument);

/* Asks the kind about an operation that was cut short (operation_kind.recover). */
status runs_recover(struct control *control, const char *name, const char *kind, bytes argument);

/* The kind leaves what one that is not to go on has made. */
status runs_abandon(struct control *control, const char *name, const char *kind, bytes argument);

void runs_set_kinds(struct control *control, const struct operation_kind *kinds, size_t count);

#endif
