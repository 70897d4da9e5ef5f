/* A table that is made of a description as a source of what the advisor looks at
 * (advisor/gather.h). */
#ifndef TRESTLE_DESIGN_MADE_SOURCE_H
#define TRESTLE_DESIGN_MADE_SOURCE_H

#include "advisor/gather.h"
#include "design/load.h"

struct made_source {
    const struct design *design; /* its other tables are siblings */
    const struct made_table *made;
    const struct load *load; /* that was played */
};

/* `made` and what it names outlive `*out`. */
void made_source_init(struct made_source *made, struct arena *arena, struct advice_source *out);

#endif
