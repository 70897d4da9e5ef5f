/* How an aggregate of a view is kept: what a source row gives to it, added to a group and taken
 * back.
 *
 * Of one source row its pieces in a group are *gathered* and written into the contribution's body.
 * A group's *tally* folds such bodies. Each kind of aggregate is a row of functions: tallies.c
 * (numbers that are their own inverse), extremes.c (MIN, MAX), sketches.c and unions.c (HLL_COUNT).
 */
#ifndef TRESTLE_SQL_VIEW_AGGREGATE_H
#define TRESTLE_SQL_VIEW_AGGREGATE_H

#include "sql/plan/plan.h"
#include "sql/view/group.h"

struct view_aggregate;

/* Where a body is folded. */
struct view_folding {
    bytes source_key;
    bool is_removal;
    const struct view_entries *entries;
    struct arena *arena; /* the group's */
};

struct view_aggregate_kind {
    const char *function;  /* "SUM" */
    enum sql_kind of_kind; /* of the argument, if `is_of_kind` */
    bool is_of_kind;

    /* --- of one source row: no argument is NULL; the state is zeroed at first --- */
    size_t gathered_size;
    /* OUT_OF_RANGE: the source row is excluded. What the state points to is in the arena; what an
     * argument points to stays until the body is written. */
    status (*gather)(const struct view_aggregate *aggregate, void *gathered,
                     const struct sql_value *argument, struct arena *arena);
    status (*write_body)(const struct view_aggregate *aggregate, void *gathered,
                         struct buffer *body);

    /* --- of a group: zeroed at first --- */
    size_t tally_size;
    /* Takes what it wrote off the front of a record. */
    bool (*read)(const struct view_aggregate *aggregate, void *tally, bytes *record);
    /* Takes its part off the front of a body. DATA_LOSS. */
    status (*fold)(const struct view_aggregate *aggregate, void *tally, bytes *body,
                   const struct view_folding *folding);
    /* Optional. */
    status (*settle)(const struct view_aggregate *aggregate, void *tally,
                     const struct view_entries *entries, struct arena *arena);
    void (*write)(const struct view_aggregate *aggregate, const void *tally, struct buffer *record);
    /* OUT_OF_RANGE: the group has no row. */
    status (*value)(const struct view_aggregate *aggregate, const void *tally, struct arena *arena,
                    struct sql_value *out);
};

struct view_aggregate {
    const struct view_aggregate_kind *kind;
    const struct sql_type *type; /* of the argument; NULL: there is none */
    size_t column;               /* the argument's, of the pieces */
    uint8_t index;               /* among the view's aggregates: begins its entries */
    uint8_t precision;           /* of a sketch that begins here */
};

/* Each table ends with a row without a function. */
extern const struct view_aggregate_kind view_tallies[];
extern const struct view_aggregate_kind view_extremes[];
extern const struct view_aggregate_kind view_sketches[];
extern const struct view_aggregate_kind view_unions[];

/* --- what their files share: code.c --- */

status view_bad_record(void);

__extension__ typedef __int128 view_wide;
__extension__ typedef unsigned __int128 view_unsigned_wide;

/* Numbers as varints; signed ones zigzag. */
void view_append_wide(struct buffer *out, view_wide value);
bool view_take_number(bytes *rest, uint64_t *out);
bool view_take_wide(bytes *rest, view_wide *out);
/* A varint of its size, and a text. */
void view_append_text(struct buffer *out, bytes text);
bool view_take_text(bytes *rest, bytes *out);

/* A value of MIN or MAX in bytes whose order is that of the values, none the beginning of another;
 * NaN before all, or behind. A text that is longer than VIEW_MOST_ORDERED stands for itself up to
 * there, and `*is_cut` says so. */
enum { VIEW_MOST_ORDERED = 512 };
void view_append_ordered(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, bool nan_first, bool *is_cut);

#endif
