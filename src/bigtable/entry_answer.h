/* The answer to one entry of a MutateRows, as a google.bigtable.v2.MutateRowsResponse of its own:
 * repeated fields of messages that stand one behind the other add up.
 *
 * Pure: a result in, bytes out. */
#ifndef TRESTLE_BIGTABLE_ENTRY_ANSWER_H
#define TRESTLE_BIGTABLE_ENTRY_ANSWER_H

#include "base/bytes.h"
#include "base/status.h"

/* Appends what became of the entry at `index`, from 0. The result stays the caller's. */
void entry_answer_append(struct buffer *message, size_t index, const status *result);

#endif
