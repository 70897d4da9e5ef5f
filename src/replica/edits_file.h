/* What was administered at a server while it led, and another one leads with something else now: a
 * file in the data directory, `edits-of-epoch-N.json` of the epoch in which it led, for people. It
 * is written before what it tells of is changed to what the other one has.
 *
 *     {"epoch": "1", "follows": 2,
 *      "differences": [
 *        {"kind": "table", "name": …, "here": {…}},             only here: deleted, see below
 *        {"kind": "App profile", "name": …, "here": {…}, "there": {…}},
 *        {"kind": …, "name": …, "there": {…}}]}                 only there
 *
 * `here` is what this server had. Of a table `here` and `there` are its record
 * (trestle.catalog.Table), and its `uid` stands beside them. */
#ifndef TRESTLE_REPLICA_EDITS_FILE_H
#define TRESTLE_REPLICA_EDITS_FILE_H

#include "replica/schema_snapshot.h"

/* What it was about. */
struct edits_file {
    const char *directory;
    uint64_t epoch;
    unsigned follows; /* the number of who leads */
};

/* Durably, unless there is no difference, or the file is there: then what is here is on its way
 * already, and `*count` is 0. Else so many differences are in it. Blocks. */
status edits_file_write(const struct edits_file *file, const struct schema_snapshot *here,
                        const struct schema_snapshot *there, size_t *count);

/* Appends the differences as JSON, and counts them. */
status edits_append_differences(const struct schema_snapshot *here,
                                const struct schema_snapshot *there, struct buffer *out,
                                size_t *count);

#endif
