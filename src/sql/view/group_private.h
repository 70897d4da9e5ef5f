/* A group in memory: for group.c and row.c. */
#ifndef TRESTLE_SQL_VIEW_GROUP_PRIVATE_H
#define TRESTLE_SQL_VIEW_GROUP_PRIVATE_H

#include "sql/view/program_private.h"

struct view_group {
    const struct view_program *program;
    struct arena *arena;
    uint64_t rows;  /* source rows in it */
    void **tallies; /* of each aggregate */
};

#endif
