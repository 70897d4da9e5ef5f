/* Files of records in LevelDB's log format, as exports are made of.
 *
 * A file is blocks of 32 KiB. A record is cut into pieces that do not pass the end of a block, each
 * behind a header:
 *
 *     checksum (4, little-endian) | size of the piece (2, little-endian) | type (1) | piece
 *
 * Types are 1 for a record in one piece, else 2, 3 … 3, 4. The checksum is the CRC-32C of type and
 * piece, masked. Where less than a header has room before the end of a block, zeroes fill it.
 *
 * Bytes in, bytes out: files are the caller's. */
#ifndef TRESTLE_DATASTORE_ADMIN_LOG_FILE_H
#define TRESTLE_DATASTORE_ADMIN_LOG_FILE_H

#include "base/status.h"

enum { LOG_BLOCK_BYTES = 32 << 10, LOG_HEADER_BYTES = 7 };

/* --- writing --- */

/* All zeroes is the beginning of a file. */
struct log_writer {
    size_t used; /* of the block */
};

/* Appends what follows in the file. Failed appends show in out->failed. */
status log_append(struct log_writer *writer, bytes record, struct buffer *out);

/* --- reading --- */

/* Reads up to `size` bytes from where it stopped; 0 of them at the end of the file only. */
typedef status log_source(void *context, uint8_t *to, size_t size, size_t *got);

struct log_reader {
    log_source *source;
    void *context;
    size_t most; /* bytes of a record */
    /* Private: all zeroes at the beginning. */
    uint64_t blocks; /* before this one, for the words of errors */
    size_t size;     /* of the block as far as the file has it */
    size_t at;
    struct buffer record;
    uint8_t block[LOG_BLOCK_BYTES];
};

/* The next record, valid until the next call; `*found` false at the end of the file, which is
 * behind a whole record. DATA_LOSS, with the place, if what is there is torn, damaged, or larger
 * than `most`. */
status log_read(struct log_reader *reader, bytes *record, bool *found);
void log_reader_free(struct log_reader *reader); /* its memory; the source is the caller's */

#endif
