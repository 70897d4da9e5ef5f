/* A result out of the messages of ExecuteQuery: no I/O, no printing.
 *
 *     parts of a batch ──checksum──► held back ──resume token──► rows to the taker
 *
 *  1. Nothing is handed on whose CRC32C was not right.
 *  2. Rows are held back until a resume token comes, because a `reset`, or a call made again with
 *     the last token, brings them once more. But no more than BATCHES_HELD_MOST bytes are: beyond
 *     that rows are handed on, and until the next token the result can neither be taken up again
 *     nor begin again. So memory does not grow with the result.
 *  3. A row is so many values in turn as there are columns, each of its column's type. */
#ifndef TRESTLE_CMD_SQL_SQL_BATCHES_H
#define TRESTLE_CMD_SQL_SQL_BATCHES_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/v2/data.pb-c.h"

enum { BATCHES_HELD_MOST = 8 << 20 };

/* Takes a row; the values live until it returns. */
typedef status sql_take_row(void *context, const Bt__Value *const *values);

struct sql_batches {
    const Bt__ColumnMetadata *const *columns;
    size_t column_count;
    sql_take_row *take_row;
    void *context;
    struct arena *arena;      /* of a row; owned */
    const Bt__Value **values; /* of a row; owned */
    struct buffer open;       /* parts of a batch that has not ended */
    struct buffer held;
    struct buffer token;
    bool is_ahead; /* rows were handed on that no token covers */
};

/* The columns must outlive it. It is to be freed after a failure, too. */
status sql_batches_create(const Bt__ProtoSchema *schema, sql_take_row *take_row, void *context,
                          struct sql_batches *out);
void sql_batches_free(struct sql_batches *batches); /* all zeroes is fine */

/* DATA_LOSS for a wrong checksum, ABORTED for a reset that comes too late, INTERNAL for what breaks
 * the protocol; else what the taker says. */
status sql_batches_add(struct sql_batches *batches, const Bt__PartialResultSet *part);

/* The answer is over: whether it was whole. */
status sql_batches_end(const struct sql_batches *batches);

/* Before the call is made again with `token`: forgets what came after it. False if that was handed
 * on already. */
bool sql_batches_rewind(struct sql_batches *batches);

#endif
