/* Names of resources: their form, and their parts.
 *
 * All checks answer INVALID_ARGUMENT with the name that was given and the form that was expected.
 * Any project and any instance is accepted, as clients of an emulator expect. */
#ifndef TRESTLE_BIGTABLE_NAMES_H
#define TRESTLE_BIGTABLE_NAMES_H

#include "base/arena.h"
#include "base/status.h"

status name_check_instance(const char *name); /* projects/P/instances/I */
status name_check_table(const char *name);    /* projects/P/instances/I/tables/T */
status name_check_table_id(const char *id);   /* [_a-zA-Z0-9][-_.a-zA-Z0-9]*, at most 50 */
status name_check_family(const char *id);     /* [-_.a-zA-Z0-9]+, at most 64 */

/* <instance>/tables/<id> in the arena; NULL without memory. */
char *name_of_table(struct arena *arena, const char *instance, const char *table_id);

/* The table's id: what follows the last slash of its checked name. */
const char *name_table_id(const char *table_name);

#endif
