/* Counts by what is counted: a table that grows up to a bound. */
#ifndef TRESTLE_DATASTORE_ADMIN_TALLIES_H
#define TRESTLE_DATASTORE_ADMIN_TALLIES_H

#include "base/arena.h"
#include "base/siphash.h"
#include "base/status.h"

/* The name of a tally: strings that do not say anything are empty, none is NULL. */
struct ds_tally_name {
    int what; /* the caller's: which of its counts */
    const char *name_space;
    const char *kind;
    const char *property;
    const char *type;
    uint64_t index;
};

struct ds_amount {
    int64_t count;
    int64_t bytes;
};

enum ds_amount_kind {
    DS_ROOTS, /* entities without a parent */
    DS_CHILDREN,
    DS_VALUES,
    DS_BUILT_IN, /* rows of indexes */
    DS_COMPOSITE,
    DS_AMOUNTS,
};

struct ds_tally {
    struct ds_tally *next;
    struct fingerprint print;
    struct ds_tally_name name; /* in the table's arena */
    struct ds_amount amounts[DS_AMOUNTS];
};

struct ds_tallies {
    struct arena *arena;
    struct ds_tally **slots;
    size_t capacity; /* a power of two */
    size_t count;
    struct ds_tally *first; /* of all */
};

/* `memory`: bytes that it may take. */
status ds_tallies_init(struct ds_tallies *tallies, size_t memory);
void ds_tallies_free(struct ds_tallies *tallies);

/* The one of the name, which is made if it is not there. RESOURCE_EXHAUSTED beyond the bound. */
status ds_tally_find(struct ds_tallies *tallies, const struct ds_tally_name *name,
                     struct ds_tally **out);

#endif
