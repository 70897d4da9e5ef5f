/* A column family as an import needs it, with the rule that ends its cells. */
#ifndef TRESTLE_FORMATS_FAMILY_H
#define TRESTLE_FORMATS_FAMILY_H

#include "base/status.h"

struct move_family {
    const char *name;
    uint32_t versions; /* of a cell that are kept; 0: all */
    int64_t age_us;    /* cells that are older go; 0: none does */
};

/* "30d", "12h", "90m", "45s": at least a second, at most a hundred years. INVALID_ARGUMENT. */
status move_age_parse(const char *text, int64_t *us);

#endif
