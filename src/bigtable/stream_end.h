/* How a change stream tells its reader that its range is no partition any more. */
#ifndef TRESTLE_BIGTABLE_STREAM_END_H
#define TRESTLE_BIGTABLE_STREAM_END_H

#include "bigtable/stream_request.h"

/* Appends a CloseStream with the partitions that there are now of the request's range, and for each
 * a token of the part of the range that lies in it: of `token`, or, if that is NULL, of the
 * request's start time. Blocks. */
status stream_end_misaligned(struct table *table, const struct stream_request *request,
                             const struct stream_token *token, struct arena *arena,
                             struct buffer *out);

#endif
