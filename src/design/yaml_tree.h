/* A YAML text as a tree of texts, lists and maps, each of which knows where it stands.
 *
 * libyaml reads; nothing of it is seen outside yaml_tree.c. Tags are ignored, an alias is what its
 * anchor is. What always holds
 *  1. The keys of a map are texts, and no two of them the same.
 *  2. A tree is no deeper than YAML_DEPTH_MOST, has YAML_VALUES_MOST values at most, the text
 * YAML_ANCHORS_MOST anchors, and a map of it YAML_FIELDS_MOST fields, each of which is held against
 * those before: neither an alias within its own anchor nor one of aliases of aliases makes it grow
 * without bounds. */
#ifndef TRESTLE_DESIGN_YAML_TREE_H
#define TRESTLE_DESIGN_YAML_TREE_H

#include "base/arena.h"
#include "base/status.h"

enum {
    YAML_DEPTH_MOST = 16,
    YAML_VALUES_MOST = 100 * 1000,
    YAML_FIELDS_MOST = 1000,
    YAML_ANCHORS_MOST = 1000
};

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_value {
    enum yaml_kind kind;
    size_t line; /* from 1 on, as columns are */
    size_t column;
    const char *text; /* of a text; without a NUL in it */
    size_t count;     /* of a list, or a map: */
    const struct yaml_value *const *items;
    const struct yaml_value *const *keys; /* of a map */
};

/* The only document of the text; all of it is the arena's. INVALID_ARGUMENT in words that begin
 * with line and column, as yaml_error makes them. */
status yaml_tree_read(bytes text, struct arena *arena, const struct yaml_value **out);

/* INVALID_ARGUMENT: "LINE:COLUMN: WORDS". */
__attribute__((format(printf, 2, 3))) status yaml_error(const struct yaml_value *at,
                                                        const char *format, ...);

#endif
