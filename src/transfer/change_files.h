/* Changes in files of a directory, for who takes them from there: a file for each partition, which
 * is finished when it is large or old enough, and then another.
 *
 *     6d-20261129T031936.123456Z.jsonl.part    is written
 *     6d-20261129T031936.123456Z.jsonl         is finished, and never changes again
 *
 * A name has the first key of the partition (in hexadecimal; "first" for the empty one; of a long
 * one its start and a hash) and the commit time of the file's first change.
 *
 * Invariants
 *  1. Flushed is what has been synced, with its file's name.
 *  2. A finished file has whole lines, and at least one.
 *  3. One process at a time writes a directory: it has a lock. What another has left unfinished is
 *     finished when the directory is opened, without a line that was cut off. */
#ifndef TRESTLE_TRANSFER_CHANGE_FILES_H
#define TRESTLE_TRANSFER_CHANGE_FILES_H

#include "base/clock.h"
#include "transfer/change_sink.h"

struct change_files_options {
    const char *directory; /* made if it is not there; copied */
    uint64_t rotate_bytes; /* a file of so many is finished */
    int64_t rotate_us;     /* one that was begun so long ago is, too */
    struct clock *clock;
};

/* FAILED_PRECONDITION: another process writes the directory. */
status change_files_create(const struct change_files_options *options, struct change_sink *out);

#endif
