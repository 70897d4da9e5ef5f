/* Comparisons that are all to be true, on their way from a filter to a conjunction. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_TERMS_H
#define TRESTLE_DATASTORE_QUERY_QUERY_TERMS_H

#include "datastore/query/query_check.h"

#define DS_KEY_PROPERTY "__key__"
#define DS_OP(name)     DS__PROPERTY_FILTER__OPERATOR__##name

/* A comparison; of IN, one of its values. */
struct ds_term {
    const char *property;
    Ds__PropertyFilter__Operator op;
    const Ds__Value *value; /* of NOT_IN the array */
};

/* Terms that are all to be true. */
struct ds_terms {
    const struct ds_term *terms;
    size_t count;
};

static inline bool ds_is_key(const char *property)
{
    return strcmp(property, DS_KEY_PROPERTY) == 0;
}

/* `*is_empty`: an equality contradicts a range, so that nothing fits. The terms are checked. */
status ds_terms_gather(struct arena *arena, struct ds_terms terms, struct ds_conjunction *out,
                       bool *is_empty);

#endif
