/* Files that keyspaces were made of, and that are to be archived: links to them in a directory of
 * the data's, `<keyspace>-<n>`, until the piece that names them has been put. */
#ifndef TRESTLE_ARCHIVE_KEPT_FILES_H
#define TRESTLE_ARCHIVE_KEPT_FILES_H

#include "store/files.h"
#include "tablet/change_log.h"

#include <stdatomic.h>

struct kept_files {
    struct files *files;   /* NULL: none are kept */
    const char *directory; /* is there */
    /* How many threads add files whose entry is not in the log yet: each counts itself, from before
     * kept_files_add until the entry is in the log, or never will be. */
    const atomic_uint *adding;
};

/* A string in `out`; NULL without memory. */
const char *kept_file_path(const struct kept_files *kept, uint64_t keyspace, uint64_t index,
                           struct buffer *out);

/* Links the files that the keyspace is about to be made of. Durable on return. */
status kept_files_add(const struct kept_files *kept, uint64_t keyspace, const char *const *paths,
                      size_t count);

/* Removes what no entry names that waits in the log: what was put, what a crash has left, or a gap.
 * While a thread adds files it does nothing, and `*done` is false. */
status kept_files_clear(const struct kept_files *kept, struct change_log *log, bool *done);

#endif
