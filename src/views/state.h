/* How far a view is: the record that each of its commits has in it.
 *
 * A view follows its source's feed from `position` on. Beside that it may have *passes* to make:
 * ranges of source keys that are looked at as a whole, from `next` on. The first, over everything,
 * populates it; others are there because the log has lost what came behind the position, or since
 * a range of rows was dropped, or may have changed, at once.
 *
 * Changes of the feed are applied while passes are made: each looks at rows as they are, so it does
 * not matter which comes first, nor how often. */
#ifndef TRESTLE_VIEWS_STATE_H
#define TRESTLE_VIEWS_STATE_H

#include "base/siphash.h"
#include "base/status.h"
#include "stream/position.h"

enum view_pass_kind {
    VIEW_PASS_ALL,     /* rows, and what is recorded of rows: of the whole source */
    VIEW_PASS_RANGE,   /* the same of a range */
    VIEW_PASS_DROPPED, /* what is recorded of rows of a range that was dropped, alone */
};

struct view_pass {
    enum view_pass_kind kind;
    int64_t since_us;   /* when what it looks for was committed, by the versions' clock */
    uint64_t rows;      /* that it has looked at */
    struct buffer next; /* all before is done */
    struct buffer to;   /* exclusive; empty: no bound */
};

enum { VIEW_MOST_PASSES = 16 };

struct view_progress_state {
    struct fingerprint print; /* of the query, and of the form of the records */
    struct stream_position position;
    bool was_ready;
    uint64_t user_errors;   /* source rows and groups that were left out, each time that one was */
    uint64_t excluded_rows; /* those that are, now */
    uint64_t excluded_groups; /* the same */
    struct view_pass passes[VIEW_MOST_PASSES];
    size_t pass_count;
};

void view_state_free(struct view_progress_state *state); /* all zeroes are fine; leaves it so */

/* Adds a pass over [from, to). Where there are too many already, one over all takes their place.
 * RESOURCE_EXHAUSTED without memory: nothing is added. */
status view_state_add_pass(struct view_progress_state *state, enum view_pass_kind kind, bytes from,
                           bytes to, int64_t since_us);
/* The first pass has done all before `next`; or all. */
status view_state_advance(struct view_progress_state *state, bytes next);
void view_state_end_pass(struct view_progress_state *state);

/* Whether a pass over the whole source is under way; `*next`: how far. */
bool view_state_has_whole_pass(const struct view_progress_state *state, bytes *next);

/* Appends the record's value. */
void view_state_write(const struct view_progress_state *state, struct buffer *out);
/* `*out` is to be freed, and is all zeroes if it fails. DATA_LOSS. */
status view_state_read(bytes value, struct view_progress_state *out);

#endif
