/* Inputs of aggregate families, which are added to and merged into their cells: values of the API
 * as states, of which row/ makes entries. */
#ifndef TRESTLE_BIGTABLE_AGGREGATES_H
#define TRESTLE_BIGTABLE_AGGREGATES_H

#include "base/arena.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "row/fragment.h"
#include "row/schema.h"

/* INVALID_ARGUMENT if the value is not of the kind that is added to the aggregate family. NULL and
 * a value of no kind stand for 0, or for what is empty. */
status aggregate_check_input(const struct family *family, const Bt__Value *input);

/* The state that one such value makes: `*state` is in the arena. */
status aggregate_add(const struct family *family, const Bt__Value *input, struct arena *arena,
                     enum entry_kind *kind, bytes *state);

/* The state that is merged: as given, or the same as we would have written it, in the arena.
 * INVALID_ARGUMENT if it is none of the family. An empty one, which changes nothing, is fine. */
status aggregate_merge(const struct family *family, bytes given, struct arena *arena,
                       enum entry_kind *kind, bytes *state);

/* Whether it may be merged into the family's cells. */
bool aggregate_takes_state(const struct family *family, bytes given);

#endif
