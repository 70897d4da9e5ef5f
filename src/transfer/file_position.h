/* Where a source of several files is, which are read one behind the other: its tags and its
 * checkpoints. */
#ifndef TRESTLE_TRANSFER_FILE_POSITION_H
#define TRESTLE_TRANSFER_FILE_POSITION_H

#include "base/status.h"

#include <jansson.h>

struct file_position {
    uint64_t file;        /* that is being read, from 0; behind the last, how many there are */
    uint64_t line;        /* of it, up to which all is given out, below 2^40; of what has no
                             lines, the number of the record */
    int64_t timestamp_us; /* of cells that have none of their own, the same after a kill */
};

/* The tag of the record that came last. Tags never fall. */
uint64_t file_position_tag(const struct file_position *position);
uint64_t file_of_tag(uint64_t tag);
uint64_t line_of_tag(uint64_t tag);

/* A new reference; NULL: no memory. */
json_t *file_position_save(const struct file_position *position);

/* DATA_LOSS if it is no position in so many files. */
status file_position_restore(const json_t *saved, uint64_t files, struct file_position *out);

/* Bytes; 0 if it is none, or cannot be looked at. */
uint64_t file_size(const char *path);

#endif
