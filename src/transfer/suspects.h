/* Rows that were found to differ from a record, until a later record of the same row says
 * otherwise: what a full export says of an item is not what the row is, once an incremental export
 * has changed it. Rows count as the same if the 64-bit hashes of their keys are. One thread. */
#ifndef TRESTLE_TRANSFER_SUSPECTS_H
#define TRESTLE_TRANSFER_SUSPECTS_H

#include "transfer/source.h"

struct suspect {
    uint64_t hash;
    struct transfer_place place; /* of the record that says so */
    bool is_cleared;
};

/* Suspects; all zeroes: none. */
struct suspects {
    struct suspect *all; /* in the order in which they were found */
    size_t count;
    size_t capacity;
    uint32_t *index; /* from hashes: a place in `all`, plus 1; 0: free */
    size_t index_size;
    uint64_t standing; /* that are not cleared, and those beyond what is remembered */
};

void suspects_free(struct suspects *suspects);

/* After SUSPECTS_MOST they are only counted, and cannot be cleared. */
enum { SUSPECTS_MOST = 4 << 20 };
status suspects_add(struct suspects *suspects, bytes row_key, const struct transfer_place *place);

/* Does nothing if it is none. */
void suspects_clear(struct suspects *suspects, bytes row_key);

#endif
