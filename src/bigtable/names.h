/* Names of resources: their form, and their parts.
 *
 * All checks answer INVALID_ARGUMENT with the name that was given and the form that was expected.
 * Any project is accepted, and, as a name, any instance, as clients of an emulator expect. */
#ifndef TRESTLE_BIGTABLE_NAMES_H
#define TRESTLE_BIGTABLE_NAMES_H

#include "base/arena.h"
#include "base/status.h"

status name_check_instance(const char *name); /* projects/P/instances/I */
status name_check_table(const char *name);    /* projects/P/instances/I/tables/T */
status name_check_table_id(const char *id);   /* [_a-zA-Z0-9][-_.a-zA-Z0-9]*, at most 50 */
/* The same form, at most so many; `label`: as the error says what it is of. */
status name_check_resource_id(const char *label, const char *id, size_t most);
/* [a-z]([-a-z0-9]*[a-z0-9])?, at most so many: an instance's, a cluster's. (Production wants six
 * characters of them, too.) */
status name_check_zonal_id(const char *collection, const char *id, size_t most);
status name_check_family(const char *id); /* [-_.a-zA-Z0-9]+, at most 64 */

/* Whether the name has the form: segments, of which those in braces stand for any that are not
 * empty: "projects/{project}/instances/{instance}". */
status name_check_form(const char *label, const char *name, const char *form);

/* <parent>/<collection>/<id> in the arena; NULL without memory. */
char *name_join(struct arena *arena, const char *parent, const char *collection, const char *id);

/* <parent>/<name> in the arena; NULL without memory. */
char *name_under(struct arena *arena, const char *parent, const char *name);

/* The parent: a checked name without its last two segments; NULL without memory. */
char *name_parent(struct arena *arena, const char *name);

/* <instance>/tables/<id> in the arena; NULL without memory. */
char *name_of_table(struct arena *arena, const char *instance, const char *table_id);

/* The id: what follows the last slash of its checked name. */
const char *name_id(const char *name);

#endif
