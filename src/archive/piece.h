/* Pieces: the objects that an archive is made of. A piece is a segment, entries of events
 * (tablet/event.h) of the change log, or says that there is a gap. Byte format:
 * docs/internals/format.md, "Archive".
 *
 *     archive/<stream>/<number>-<last>          a segment
 *     archive/<stream>/<number>-<last>-gap      a gap
 *     archive/<stream>/files/<keyspace>-<n>     a table that a keyspace was made of
 *
 * Invariants
 *  1. The pieces of a stream are numbered from 1 on without a hole, and each has the digest of the
 *     one before: what was lost, or changed, or is of another stream, is seen.
 *  2. A piece says which events are in it or missing: those after `after`, up to `last`. It begins
 *     where the one before ended.
 *  3. A piece that does not parse is DATA_LOSS. Slices of one that does point into the piece. */
#ifndef TRESTLE_ARCHIVE_PIECE_H
#define TRESTLE_ARCHIVE_PIECE_H

#include "base/bytes.h"
#include "base/status.h"

enum { PIECE_DIGEST_BYTES = 32 };

/* Letters as stored. */
enum piece_kind { PIECE_SEGMENT = 'S', PIECE_GAP = 'G' };

struct piece {
    enum piece_kind kind;
    uint64_t stream;
    uint64_t number;
    uint64_t after; /* a sequence */
    uint64_t last;
    int64_t made_us;                    /* by the wall clock of its maker: for people */
    uint8_t chain[PIECE_DIGEST_BYTES];  /* digest of the piece before; zeroes for the first */
    uint8_t digest[PIECE_DIGEST_BYTES]; /* SHA-256 of all before it */
    bytes entries;                      /* for piece_next_entry */
};

/* --- writing; failures show in out->failed, or are returned --- */

/* Into an empty buffer. `last` and `digest` are filled in by piece_finish. */
void piece_start(struct buffer *out, const struct piece *piece);
void piece_add(struct buffer *out, bytes entry);
status piece_finish(struct buffer *out, uint64_t last, uint8_t digest[PIECE_DIGEST_BYTES]);

/* --- reading --- */

status piece_parse(bytes b, struct piece *out);
/* Takes the first entry off; false if there is none. */
bool piece_next_entry(bytes *entries, bytes *entry);

/* --- names --- */

enum { PIECE_NAME_SIZE = 128 };

void stream_folder(uint64_t stream, char out[PIECE_NAME_SIZE]);
void stream_files_folder(uint64_t stream, char out[PIECE_NAME_SIZE]);
void stream_file_name(uint64_t stream, uint64_t keyspace, uint64_t index,
                      char out[PIECE_NAME_SIZE]);
void piece_name(const struct piece *piece, char out[PIECE_NAME_SIZE]);
/* From the last part of a piece's name: kind, number and last. False if it is none. */
bool piece_name_parse(const char *name, struct piece *out);
/* "piece 3 is missing", "pieces 3 to 5 are missing": between the numbers of two that are there. */
enum { PIECE_RANGE_SIZE = 96 };
const char *piece_missing(uint64_t before, uint64_t number, char out[PIECE_RANGE_SIZE]);
/* The number of a stream from its folder's last part. */
bool stream_name_parse(const char *name, uint64_t *stream);

#endif
