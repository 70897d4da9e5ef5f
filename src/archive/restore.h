/* Restoring from an archive: which moments there are, and a data directory, which is a copy of one
 * as it was at some time, taken on to a later one.
 *
 * Invariants
 *  1. Pieces follow what the directory has without a hole: each is the next one, by number, by what
 *     it begins after, and by the digest of the one before.
 *  2. A moment that cannot be had is refused with the nearest that can: before anything is changed,
 *     but if only the content of a piece, or of a file that it names, shows that it is damaged.
 *  3. The directory becomes that of another server: its log of changes is gone, versions begin
 *     above all that the archive has, so that none is given twice.
 *
 * All of it blocks. */
#ifndef TRESTLE_ARCHIVE_RESTORE_H
#define TRESTLE_ARCHIVE_RESTORE_H

#include "archive/piece.h"
#include "base/clock.h"
#include "base/log.h"
#include "place/place.h"
#include "store/store.h"

/* --- looking --- */

/* The pieces of one stream, by rising number. */
struct piece_list {
    struct piece *pieces; /* kind, stream, number and last; see piece_name_parse */
    size_t count;
};

/* NOT_FOUND if the place has no such stream; a stream may have no pieces. */
status archive_list_pieces(struct place *place, uint64_t stream, struct piece_list *out);
void piece_list_free(struct piece_list *list);

/* Calls `visit` for each stream of the place, until it fails. NOT_FOUND without an archive. */
status archive_list_streams(struct place *place, status (*visit)(void *context, uint64_t stream),
                            void *context);

/* Gets and parses a piece of the list; `text` holds it. DATA_LOSS. */
status archive_get_piece(struct place *place, const struct piece *name, struct buffer *text,
                         struct piece *out);

/* --- moments --- */

/* The last sequence of a microsecond, since 1970; and the time of a sequence. */
uint64_t sequence_at(int64_t time_us);
int64_t sequence_time_us(uint64_t sequence);

enum { ARCHIVE_END = 0 }; /* for `until` */

/* A sequence, or a time as 2026-11-23T10:15:00Z. INVALID_ARGUMENT. */
status archive_parse_moment(const char *text, uint64_t *out);

/* From where to where an archive is to take a copy. */
struct archive_reach {
    uint64_t stream;
    uint64_t from;  /* a sequence: what the copy has */
    uint64_t until; /* as below */
    uint64_t next;  /* the first sequence after `until` at which there is another copy; 0: none */
};

/* Whether it does, by the names of pieces, and by what follows on those that are missing:
 * FAILED_PRECONDITION, or DATA_LOSS if a piece is missing, with the nearest moments that can be
 * had.
 */
status archive_check(struct place *place, const struct archive_reach *read_tier);

/* --- restoring --- */

struct archive_restore {
    struct store *store; /* a copy's, for this restore alone */
    struct keyspace *catalog;
    const char *scratch; /* a directory on its file system, made if missing, gone at the end */
    struct place *place;
    struct clock *clock;
    const struct log *log;
    const char *what; /* the copy is, in words: "the backup" */
    uint64_t until;   /* a sequence, or ARCHIVE_END: as far as the archive goes */
    /* Facts about the copy, as in archive_reach; 0: what it says itself, and none. */
    uint64_t from;
    uint64_t next;
    /* NULL: all rows. Else it says whose, once the catalog is what it was then: ids of keyspaces,
     * by malloc, rising. Rows of others stay as they are in the copy, or are not there. */
    status (*choose)(void *context, struct keyspace *catalog, uint64_t **keyspaces, size_t *count);
    void *context;
};

struct archive_restored {
    uint64_t from;  /* what the directory had, a sequence */
    uint64_t to;    /* the last event that was applied; `from` if none was */
    uint64_t until; /* what was asked for: there is no later event up to it */
    bool is_all;    /* that was the archive's end */
    uint64_t events;
    uint64_t pieces;
};

/* FAILED_PRECONDITION if the moment cannot be had; DATA_LOSS if the archive is damaged; what
 * `choose` fails with. */
status archive_restore(const struct archive_restore *restore, struct archive_restored *out);

#endif
