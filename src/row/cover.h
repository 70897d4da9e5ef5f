/* The column tombstones of one column, added up: which version covers which timestamps.
 *
 * Ranges may overlap in any way; built, they are disjoint parts by rising start, each with the
 * greatest version given for it: n ranges make less than 2n parts, in O(n log n). */
#ifndef TRESTLE_ROW_COVER_H
#define TRESTLE_ROW_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    int64_t start_us; /* inclusive */
    int64_t end_us;   /* exclusive; INT64_MAX: none */
    uint64_t version;
};

/* All zeroes is an empty cover. */
struct cover {
    struct span *given; /* by rising start */
    size_t given_count;
    struct span *parts;
    size_t part_count;
    size_t capacity; /* of `given`; `parts` has twice as many */
    size_t at;       /* parts from here on lie after the last time asked for */
};

void cover_free(struct cover *cover);
void cover_clear(struct cover *cover);

/* Starts must rise, or stay, from call to call; end > start. False without memory. */
bool cover_add(struct cover *cover, const struct span *span);

/* Makes `parts` of what was given, before cover_version. False without memory. */
bool cover_build(struct cover *cover);

/* The version of the tombstone over this time, 0 if there is none. Times must fall, or stay, from
 * call to call. */
uint64_t cover_version(struct cover *cover, int64_t timestamp_us);

#endif
