/* Shared by the files that read a description: design.c, read_key.c, read_columns.c, read_access.c,
 * read_kind.c.
 */
#ifndef TRESTLE_DESIGN_READ_PRIVATE_H
#define TRESTLE_DESIGN_READ_PRIVATE_H

#include "design/design.h"
#include "design/fields.h"

status read_key(const struct yaml_value *value, struct arena *arena, struct design_key *out);

/* Bytes of the longest key; of what is made up about so many. */
uint64_t key_size(const struct design_key *key);

/* Whether all of it is looked at within seconds. */
status check_work(const struct yaml_value *root, const struct design *design);

/* A text is a constant. `what` are the words for it. */
status read_part(const struct yaml_value *value, const char *what, struct arena *arena,
                 struct design_part *out);

/* Families of a table. */
status read_families(const struct yaml_value *value, struct arena *arena, struct design_table *out);

/* Needs the families. */
status read_columns(const struct yaml_value *value, struct arena *arena, struct design_table *out);

/* How many rows there are, or entities, and since when. */
status read_amount(const struct yaml_value *rows, const struct yaml_value *history, uint64_t *count,
                   int64_t *history_us);

/* Rows that are asked for more than others; nothing without a value. */
status read_hot(const struct yaml_value *value, struct design_hot *out);

status read_kinds(const struct yaml_value *value, struct arena *arena, struct design *out);

/* Needs the key and the columns, and does nothing without a value. */
status read_accesses(const struct yaml_value *value, struct arena *arena, struct design_table *out);

#endif
