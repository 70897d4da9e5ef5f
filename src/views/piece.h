/* A piece of a view's upkeep: some source rows, evaluated as they are now, held against what is
 * recorded of them, and one commit of what follows.
 *
 *     source rows ──► contributions ──┬─ equal to the recorded one: nothing
 *                                     ├─ index: rows go and come
 *                                     └─ groups: what is taken back and what is added, by group;
 *                                        each group is read, folded, settled and written once
 *
 * A piece is bounded in rows, and in memory: one that needs too much is given up, and done with
 * half of its rows. The more it has, the more of them go to one group, and lie together in the
 * store. So it may take long, and its thread rests in the midst of it. */
#ifndef TRESTLE_VIEWS_PIECE_H
#define TRESTLE_VIEWS_PIECE_H

#include "base/vector.h"
#include "views/upkeep.h"

enum {
    VIEW_PIECE_ROWS_MOST = 32768,
    VIEW_PIECE_ROWS_FIRST = 256,
    VIEW_PIECE_MEMORY = 64 << 20, /* that evaluation and folding may keep */
    VIEW_PIECE_KEPT = 16 << 20,   /* of that from piece to piece, while there is more to do */
    VIEW_PIECE_COMMIT = 16 << 20, /* bytes that are written at once */
    VIEW_PIECE_STEPS = 256,       /* rows that are evaluated, or groups folded, without a rest */
};

/* A source row. Contributions with their tags (keys.h); empty: none. */
struct view_item {
    bytes key;
    bytes fresh;
    bytes kept;
};

struct view_piece {
    struct view_upkeep *upkeep;
    struct arena *arena; /* the upkeep's */
    struct vector items; /* of struct view_item, by key */
    bool is_full;        /* evaluation ended early: there may be more rows */
    size_t at;           /* of the items: what is evaluated next */
    bool is_range;       /* rows come as they are found; else they are given */
    size_t most_rows;
    struct view_commit *commit;
    struct view_cursor *cursor; /* over the records; NULL: not made yet */
    struct buffer found;
    struct vector folds; /* of struct view_fold */
    size_t steps;        /* since the last rest */
    bool shares_groups;  /* many rows of it are of one group: so they are of each piece */
    /* What it adds to the counts. */
    uint64_t user_errors;
    int64_t excluded_rows;
    int64_t excluded_groups;
};

/* What a row adds to a group, or takes back. */
struct view_fold {
    bytes id;
    bytes body;
    bytes source_key;
    bool is_removal;
    size_t next; /* place and one of the next of its group; 0: there is none (groups.c) */
};

status view_piece_begin(struct view_upkeep *upkeep, size_t most_rows, struct view_piece *piece);
void view_piece_end(struct view_piece *piece);

/* Looks at these rows, sorted. */
status view_piece_take_keys(struct view_piece *piece, const bytes *keys, size_t count);
/* Looks at rows from `from` to `to` (empty: no bound), and at what is recorded of any there; at
 * most `most_rows` of each. `*end`: all before was looked at; empty with `to`: all. */
status view_piece_take_range(struct view_piece *piece, bytes from, bytes to, bytes *end);
/* The same, of the rows of which something is recorded. */
status view_piece_take_recorded(struct view_piece *piece, bytes from, bytes to, bytes *end);

/* Stages what follows from the items. */
status view_piece_apply(struct view_piece *piece);

/* --- for the files of a piece --- */

/* A row was evaluated, or a group folded: rests if it is time for that. */
void view_piece_step(struct view_piece *piece);

/* Folds, group by group (groups.c). */
status view_piece_fold_groups(struct view_piece *piece);

/* Stages view rows (emit.c); several versions of a row become one change. */
struct view_emitter {
    struct view_piece *piece;
    struct arena *scratch;     /* emptied when a row is done */
    struct row_change *change; /* NULL: none is begun */
    bytes key;
    bool is_whole; /* what is set is all that there is of a row: nothing needs to be removed */
};
void view_emitter_init(struct view_emitter *emitter, struct view_piece *piece,
                       struct arena *scratch);
/* The row at the place is the next to be changed; one that is another is done. */
status view_emit_begin(struct view_emitter *emitter, const struct view_place *place);
/* Its cells; `replaces`: nothing else is to be left of it (of that version of it). */
status view_emit_row(struct view_emitter *emitter, const struct view_row *row, bool replaces);
/* It goes: the row, or that version of it. `was`: what it had, if that is known; NULL: the columns
 * of a group. */
status view_emit_removal(struct view_emitter *emitter, const struct view_place *place,
                         const struct view_row *was);
void view_emit_end(struct view_emitter *emitter);

#endif
