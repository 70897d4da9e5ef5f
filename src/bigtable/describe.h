/* A description of what a request of the data API asks for, for people who wonder why it was slow.
 *
 * Keys, columns and patterns are shown, cut off and as readable bytes; values that are written or
 * compared are not. However large the request, the words are few. */
#ifndef TRESTLE_BIGTABLE_DESCRIBE_H
#define TRESTLE_BIGTABLE_DESCRIBE_H

#include "base/arena.h"
#include "google/bigtable/v2/data.pb-c.h"

/* Appends lines, each ended by '\n', on a request of google.bigtable.v2.Bigtable, and sets
 * `*app_profile`, in the arena or static: nothing and "" for other methods, for what cannot be
 * decoded, and without memory in the arena. */
void bigtable_describe(const char *method, bytes request, struct arena *arena, struct buffer *out,
                       const char **app_profile);

/* Appends a filter in one line; NULL: nothing. */
void describe_filter(const Bt__RowFilter *filter, struct buffer *out);

/* Bytes that are shown of a key, a qualifier or a pattern. */
enum { DESCRIBE_BYTES_MOST = 60 };

#endif
