/* Pending rows are being written, and what must come behind them waits: a hash table of links that
 * their owners keep. Two rows whose 64-bit hashes are the same count as one. */
#ifndef TRESTLE_CLIENT_PENDING_ROWS_H
#define TRESTLE_CLIENT_PENDING_ROWS_H

#include "formats/change.h"

struct pending_row {
    struct pending_row *next;
    uint64_t hash;
    bool has_turn; /* it replaces the row, or is in order */
};

enum { PENDING_BUCKETS = 4096 };

/* All zeroes is empty. */
struct pending_rows {
    struct pending_row *buckets[PENDING_BUCKETS];
    size_t with_turn; /* of them */
};

/* Whether the change has to wait: its row is being written, and one of the two replaces it or is in
 * order. */
bool pending_rows_blocks(const struct pending_rows *rows, const struct move_change *change);

/* `row` is not moved until it is removed. */
void pending_rows_add(struct pending_rows *rows, const struct move_change *change,
                      struct pending_row *row);
void pending_rows_remove(struct pending_rows *rows, struct pending_row *row);

#endif
