/* What the advisor would see of a kind that is described: up to MADE_ENTITIES entities, which are
 * made as the rows of tables are (made_table.h), and what an hour of its load comes to. */
#ifndef TRESTLE_DESIGN_MADE_KIND_H
#define TRESTLE_DESIGN_MADE_KIND_H

#include "advisor/database.h"
#include "advisor/report.h"
#include "design/kind.h"
#include "design/made_table.h"

enum { MADE_ENTITIES = 1000 };

struct made_kind {
    const struct design_kind *kind;
    struct arena *arena;
    uint64_t seed;
    int64_t now_us; /* since 1970 */
    struct advice_observations seen;
    struct advice_sample sample;
    struct advice_database database;
};

/* Fills in all fields but the first four, from these; they are the arena's. */
status made_kind_look(struct made_kind *made);

/* Adds to what was found what follows from the description alone, and sets file and line. */
status made_kind_place(const struct made_kind *made, const char *file, struct advice *advice);

#endif
