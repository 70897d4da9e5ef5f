/* A query as it is run: checked, its filter a union of conjunctions, its order complete.
 *
 * The meaning of a query. A property has the values that are in its index. An entity is a result of
 * a conjunction if each equality is true of one of its values (of different ones, if the property
 * is an array), and each range, with the values that it excludes, holds one. It then has
 * *positions*: for each combination of its values of the ordered properties that lie in their
 * ranges, those values, each in its direction, and its path behind them. Where a conjunction has an
 * equality for an ordered property, the position has that value. Of all positions in all
 * conjunctions the first is where the result comes; of a projection, the first with these projected
 * values. A position's bytes order as results do.
 *
 * Of the order are, after what the query says (a query for one key, whose order says nothing, has
 * none): the first properties that are to be distinct, if
 * it does not say them; those with inequalities, by name; those projected; the key. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_CHECK_H
#define TRESTLE_DATASTORE_QUERY_QUERY_CHECK_H

#include "datastore/model/key.h"
#include "google/datastore/v1/datastore.pb-c.h"

/* Values are encoded, ascending. */
struct ds_equality {
    const char *property;
    bytes value;
};

/* Values, or paths of keys. */
struct ds_range {
    const char *property;
    bytes low; /* empty: none */
    bytes high;
    bool is_low_open; /* the bound itself is not in the range */
    bool is_high_open;
    const bytes *excluded;
    size_t excluded_count;
};

struct ds_conjunction {
    const struct ds_equality *equalities; /* sorted by property and value, no two the same */
    size_t equality_count;
    const struct ds_range *ranges; /* sorted by property, one for each; none with an equality */
    size_t range_count;
    struct ds_range keys; /* in terms of paths */
    bytes ancestor;       /* a path; empty: none. The same in all conjunctions */
};

struct ds_order {
    const char *property; /* not __key__ */
    enum ds_flip flip;
    bool is_projected;
};

/* Everything is an arena's, or the request's. */
struct ds_query {
    struct ds_database database;
    const char *name_space;
    const char *kind; /* NULL: all */
    const struct ds_conjunction *conjunctions;
    size_t conjunction_count; /* may be 0: nothing fits */
    const struct ds_order *orders;
    size_t order_count;
    size_t
        free_count; /* so many last orders are only projected: any index's order of them will do */
    enum ds_flip key_flip;
    size_t distinct_count; /* so many first orders; 0: all results */
    Ds__EntityResult__ResultType result_type;
    const char *const *projected; /* in the order in which results have them: by name */
    size_t projected_count;
    int64_t offset;
    int64_t limit; /* -1: none */
    bytes start;   /* positions: results come after this one; empty: from the first */
    bytes end;     /* … and up to this one; empty: to the last */
    bool has_end;  /* an empty end is before the first */
};

/* The filter of a query of this kind (NULL: all). INVALID_ARGUMENT in production's words where they
 * are known. `out` gets conjunctions, and has database, name_space and kind. */
status ds_filter_check(const Ds__Filter *filter, struct arena *arena, struct ds_query *out);

/* `partition` may be NULL. The query is changed: its values are normalised. INVALID_ARGUMENT for
 * what no query may say. The cursors come later: what they mean depends on the plan. find_nearest
 * is not looked at: query_nearest.h is for that. */
status ds_query_check(const Ds__Query *query, const Ds__PartitionId *partition,
                      const struct ds_database *database, struct arena *arena,
                      struct ds_query *out);

/* The property's range in the conjunction; NULL without one. */
const struct ds_range *ds_range_find(const struct ds_conjunction *conjunction,
                                     const char *property);

/* The one of the property's equalities whose value comes first in the direction; NULL without. */
const struct ds_equality *ds_equality_find(const struct ds_conjunction *conjunction,
                                           const char *property, enum ds_flip flip);

/* Whether what is compared lies below the range, in it (zero) or above it. Excluded values lie in
 * it. */
int ds_range_compare(const struct ds_range *range, bytes value);
bool ds_range_excludes(const struct ds_range *range, bytes value);

#endif
