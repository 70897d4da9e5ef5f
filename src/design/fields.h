/* The fields of a map of YAML, and what their texts stand for. What is unknown, missing, or no such
 * value is INVALID_ARGUMENT in words with line and column (yaml_tree.h). */
#ifndef TRESTLE_DESIGN_FIELDS_H
#define TRESTLE_DESIGN_FIELDS_H

#include "design/yaml_tree.h"

struct field {
    const char *name;
    bool is_required;
    const struct yaml_value *value; /* once it was taken; NULL: it is not there */
    size_t line;                    /* of the name */
};

/* Takes those of the map, of which `what` are the words: "a table". */
status fields_take(const struct yaml_value *map, const char *what, struct field *fields,
                   size_t count);

/* Checks that it is a list of `least` items or more. */
status field_is_list(const struct yaml_value *value, size_t least);

/* All leave `*out` as it is where the value is NULL. Bounds are both allowed. */
status field_text(const struct yaml_value *value, const char **out);
status field_number(const struct yaml_value *value, uint64_t least, uint64_t most, uint64_t *out);
status field_size(const struct yaml_value *value, uint64_t most, uint64_t *out); /* "4KB", bytes */
status field_duration(const struct yaml_value *value, int64_t *out_us);          /* "30d" */
status field_percent(const struct yaml_value *value, double *out);               /* "5%": 0.05 */
status field_rate(const struct yaml_value *value, double *out); /* "5/m", a second */
status field_flag(const struct yaml_value *value, bool *out);   /* true, false */

/* The place of the text among the names, which end with NULL. */
status field_choice(const struct yaml_value *value, const char *const *names, int *out);

#endif
