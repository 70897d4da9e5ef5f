/* Which rows get so many changes, or so many bytes, that they want maintenance (row_maintenance.h).
 * A row that is only written is never read, so the commit queue is the place to see it.
 *
 * A sketch of fixed size: a slot for each group of rows, held by the row that asks for it most (a
 * majority vote, Boyer and Moore 1981). A row that gets more than half of its group's changes
 * always holds the slot; others may be overlooked, and are found when they are read. One thread at
 * a time.
 */
#ifndef TRESTLE_TABLET_HOT_ROWS_H
#define TRESTLE_TABLET_HOT_ROWS_H

#include "base/status.h"

struct hot_rows;

/* Operands on a row after which it wants maintenance: what they cost a reader is then about that of
 * reading a row of ten cells ten times. */
enum { HOT_ROW_OPERANDS = 100 };

/* `byte_limit`: bytes written to a row after which it wants maintenance. */
status hot_rows_create(uint64_t byte_limit, struct hot_rows **out);
void hot_rows_destroy(struct hot_rows *hot); /* NULL is fine */

/* A change of `bytes` bytes to a row; `is_operand` false: it went into the operand of another.
 * True if the row wants maintenance now; its counts begin again at 0. */
bool hot_rows_note(struct hot_rows *hot, uint64_t row_hash, uint64_t bytes, bool is_operand);

#endif
