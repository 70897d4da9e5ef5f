/* One view's upkeep, a piece at a time. A piece is some source rows, looked at as they are now, and
 * one commit (piece.h); this file says which rows come next, and what is known when they are done.
 *
 * Threads: one at a time; what is atomic may be looked at by others. */
#ifndef TRESTLE_VIEWS_UPKEEP_H
#define TRESTLE_VIEWS_UPKEEP_H

#include "cluster/view/view_commit.h"
#include "cluster/view/view_feed.h"
#include "cluster/view/view_records.h"
#include "cluster/view/view_table.h"
#include "sql/view/row.h"
#include "views/state.h"

#include <stdatomic.h>

/* What others see of it. */
struct view_counts {
    _Atomic uint64_t user_errors;
    _Atomic uint64_t excluded_rows;
    _Atomic uint64_t excluded_groups;
    _Atomic uint64_t changes;   /* source rows that were looked at */
    _Atomic uint64_t rows_done; /* by the pass over the whole source */
    _Atomic uint64_t next_size; /* bytes of the source that it has passed, about */
    _Atomic uint64_t source_size;
    _Atomic int64_t pass_since_us; /* the oldest pass's; INT64_MAX: there is none */
    _Atomic uint64_t sequence;     /* the feed was followed up to here */
    _Atomic uint32_t ordinal;
    atomic_bool was_ready;
    atomic_bool has_whole_pass;
};

struct view_upkeep {
    struct table *table;  /* the view's; held */
    struct table *source; /* held */
    const struct view_program *program;
    struct view_runner *runner;
    struct fingerprint print;
    struct view_progress_state state;
    bool is_loaded; /* the state is that of the records */
    /* The feed had to be followed up to here, when the first pass was over, before the view is
     * READY. */
    bool has_goal;
    struct stream_position goal;
    size_t piece_rows;      /* that the next piece may have */
    size_t most_piece_rows; /* 0: VIEW_PIECE_ROWS_MOST */
    atomic_bool *gives_up;  /* it is to end in the midst */
    /* Called in the midst of a piece, after some milliseconds of work each: may wait. NULL: never.
     */
    void (*rest)(void *context);
    void *rest_context;
    struct arena *arena; /* what a piece has, with VIEW_PIECE_MEMORY as its limit; the caller's */
    struct view_commit_memory *commit_memory; /* what a commit has; the caller's; NULL: none */
    struct view_counts counts;
};

/* Changes of a source behind a position, read once for all of its views. */
struct view_changes {
    bool is_set;
    struct stream_position after;
    struct stream_position reached;
    bool is_end; /* that was all */
    struct arena *arena;
    bytes *keys; /* sorted, none twice */
    size_t key_count;
    struct view_range_change *ranges;
    size_t range_count;
};
struct view_range_change {
    bytes from;
    bytes to;
    bool is_drop;
    int64_t since_us;
};

/* Reads the next; what there was is forgotten. Errors as view_feed_read's. */
status view_changes_read(struct view_changes *changes, struct table *source,
                         struct stream_position after);
void view_changes_forget(struct view_changes *changes);

/* Begins: reads the state, or makes one that is to be populated. Again after a failure. */
status view_upkeep_load(struct view_upkeep *upkeep);
void view_upkeep_free(struct view_upkeep *upkeep);

/* Applies what is behind the position, of `changes`, which are read if they are of another one. The
 * position moves with the last piece. `*has_more`: there may be more behind it. */
status view_upkeep_follow(struct view_upkeep *upkeep, struct view_changes *changes, bool *has_more);

/* A piece of the first pass, if there is one. */
status view_upkeep_pass(struct view_upkeep *upkeep, bool *has_more);

#endif
