/* Parameters of queries, @name, as a user gives them: `INT64:12`, `ARRAY<STRING>:["a", NULL]`. */
#ifndef TRESTLE_CMD_SQL_SQL_PARAMETERS_H
#define TRESTLE_CMD_SQL_SQL_PARAMETERS_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/v2/data.pb-c.h"

struct shell_parameter {
    struct shell_parameter *next;
    struct arena *arena; /* holds it and all that it points to */
    char *name;
    Bt__Type *type;
    Bt__Value *value; /* without a type; NULL is a value without a kind */
};

/* All zeroes is empty. Names differ. */
struct shell_parameters {
    struct shell_parameter *first;
    size_t count;
};

/* Sets the parameter, whatever it was. `value.data` NULL makes it NULL; else the value is what CAST
 * makes of it, in which BYTES may have \xHH and \\; arrays are elements in brackets, separated by
 * commas. INVALID_ARGUMENT; OUT_OF_RANGE for a value that is none of the type. */
status shell_parameters_set(struct shell_parameters *parameters, bytes name, bytes type,
                            bytes value);

/* The same from "name=TYPE:VALUE", or "name=TYPE" for NULL. */
status shell_parameters_set_from(struct shell_parameters *parameters, const char *text);

/* False if there is none of that name. */
bool shell_parameters_unset(struct shell_parameters *parameters, bytes name);

void shell_parameters_free(struct shell_parameters *parameters);

#endif
