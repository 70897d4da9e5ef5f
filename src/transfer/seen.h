/* What has come already, so that of two records that would overwrite each other the second is
 * noticed: row keys, cells (row key, family, qualifier, timestamp), or versions of rows (row key
 * and timestamp), of which it is kept where they came.
 *
 * Of each a fingerprint of 128 bits is kept (base/siphash.h: a record that is refused really is the
 * second), 22 to 43 bytes of memory (of versions 32 to 64), of the first twelve million; of what
 * comes after those only their doubles are noticed. They go into a file, too, so that a transfer
 * that goes on knows what came before. One thread. */
#ifndef TRESTLE_TRANSFER_SEEN_H
#define TRESTLE_TRANSFER_SEEN_H

#include "transfer/source.h"

struct seen;

/* `path`: of the file, which is made by the first seen_save; copied. NULL: none. UNIQUE_NOTHING
 * notices nothing. */
status seen_create(enum transfer_unique unique, const char *path, struct seen **out);
void seen_destroy(struct seen *seen); /* NULL is fine; the file stays */

/* ALREADY_EXISTS, in words that name what it is the second of. Of versions: `*first` is the tag of
 * the record that came before it. Of UNIQUE_LAST it takes that one's place, and is OK. */
status seen_add(struct seen *seen, const struct move_change *change, uint64_t tag, uint64_t *first);

/* With UNIQUE_LAST: whether a record behind the one of this tag has taken its place. */
bool seen_is_outdone(const struct seen *seen, const struct move_change *change, uint64_t tag);

/* For UNIQUE_ROWS alone. The row may come as often as it likes. */
status seen_note_row(struct seen *seen, bytes row_key);
bool seen_has_row(const struct seen *seen, bytes row_key);

/* There may be some that are not kept. */
bool seen_is_full(const struct seen *seen);

/* The file has all of them, durably, and is so long. */
status seen_save(struct seen *seen, uint64_t *bytes);

/* Takes what the first so many bytes of the file have; what is behind them goes. DATA_LOSS. */
status seen_restore(struct seen *seen, uint64_t bytes);

void seen_remove_file(const struct seen *seen);

#endif
