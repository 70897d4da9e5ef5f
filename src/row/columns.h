/* Which columns a reader may see, as an authorized view says it: of some families, some qualifiers.
 * Other columns are to it as if they were not there. */
#ifndef TRESTLE_ROW_COLUMNS_H
#define TRESTLE_ROW_COLUMNS_H

#include "row/resolve.h"
#include "row/string_set.h"

struct family_columns {
    bytes family; /* its name: the view stays when a family is dropped and made again */
    struct string_set qualifiers;
};

/* All zeroes: none. */
struct columns {
    const struct family_columns *families;
    size_t count;
};

/* The qualifiers of a family; NULL if it is not there at all. */
const struct string_set *columns_of_family(const struct columns *columns, bytes family);

/* Narrows a scope of this schema to the columns, which must outlive it. Memory from the arena. */
status columns_restrict(const struct columns *columns, const struct schema *schema,
                        struct arena *arena, struct read_scope *scope);

#endif
