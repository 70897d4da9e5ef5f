/* A file that was written, read again: is it what was read from the table? */
#ifndef TRESTLE_TRANSFER_FILE_CHECK_H
#define TRESTLE_TRANSFER_FILE_CHECK_H

#include "formats/row_sum.h"
#include "transfer/source.h"
#include "transfer/verification.h"

struct file_check {
    struct row_sum sum; /* of the rows that the file has */
    uint64_t mistakes;  /* records that are none */
    uint64_t compared;  /* rows, with the table */
    uint64_t different;
};

/* Reads the source to its end; tells of records that are no rows on stderr. `verification` NULL: no
 * row is held against the table. Fails as the source and the verification do. */
status file_check_run(const struct transfer_source *source, struct verification *verification,
                      bool has_timestamps, struct file_check *out);

#endif
