/* google.bigtable.v2.Mutation: checked, and packed into the change of one row.
 *
 * As production does, checks come in two steps: what can be said of the mutations by themselves
 * fails the whole call, with the kinds of what is added, and what depends on the table fails the
 * row. */
#ifndef TRESTLE_BIGTABLE_MUTATIONS_H
#define TRESTLE_BIGTABLE_MUTATIONS_H

#include "google/bigtable/v2/data.pb-c.h"
#include "row/fragment.h"
#include "row/schema.h"

/* Production's name, in its errors, of the mutations of a request, or of an entry of one. */
#define MUTATION_LIST "Mutation list"

/* INVALID_ARGUMENT for more than a request may have, for a mutation of no kind, for names that no
 * family can have, and for values of the wrong kind in aggregate mutations, except what is added;
 * `list` and the mutation's place in it are said (error_place.h). */
status mutations_check(const char *list, Bt__Mutation *const *mutations, size_t count);

/* INVALID_ARGUMENT if what is added is of another kind than its family's adds; the same. */
status mutations_check_inputs(const struct schema *schema, const char *list,
                              Bt__Mutation *const *mutations, size_t count);

struct mutation_context {
    const struct schema *schema;
    const char *table_name; /* for the words of errors */
    int64_t now_us;         /* for cells that want the server's time: one for the whole request */
    size_t big_value;       /* see row_change_pack */
    struct arena *arena;
    struct arena *home; /* where the packed change lies; NULL: in memory of its own */
    bool wants_list;    /* a change stream tells what is asked for: see row/change_list.h */
};

/* Whether all mutations that are for a known family are of its type: for mutations that
 * mutations_check has passed. */
bool mutations_fit(const struct schema *schema, Bt__Mutation *const *mutations, size_t count);

/* For mutations that both checks have passed. NOT_FOUND for an unknown family, INVALID_ARGUMENT
 * for sizes, timestamps and types. Big cells are listed in the arena and point into the message, as
 * do large values of the list. */
status mutations_pack(const struct mutation_context *context, bytes row_key,
                      Bt__Mutation *const *mutations, size_t count, struct packed_change *out);

/* A time as the table keeps it. */
int64_t truncate_timestamp(const struct schema *schema, int64_t timestamp_us);

#endif
