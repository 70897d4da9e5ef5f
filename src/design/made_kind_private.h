/* Shared by made_kind.c and made_calls.c. */
#ifndef TRESTLE_DESIGN_MADE_KIND_PRIVATE_H
#define TRESTLE_DESIGN_MADE_KIND_PRIVATE_H

#include "design/made_kind.h"

/* Makes the calls of an hour of the load. Needs the entities. */
status made_calls(struct made_kind *made);

/* The entity as a person sees it, with its parent. */
status made_kind_words(const struct made_kind *made, uint64_t number, bytes key, bytes *out);

/* Rows of an entity in a composite index. */
double made_kind_index_rows(const struct design_kind *kind, const struct design_index *index);

#endif
