/* Queries made up at random, and what they mean by a plain evaluation: for query_random_test.c. */
#ifndef TRESTLE_DATASTORE_TESTING_QUERY_RANDOM_H
#define TRESTLE_DATASTORE_TESTING_QUERY_RANDOM_H

#include "datastore/testing/query_fake.h"

enum { PROPERTIES = 4, MOST_VALUES = 3, MOST_TERMS = 5 };
enum { MOST_PARTS = 40, MOST_ORDERS = 12, MOST_POSITIONS = 20000 };

extern const char *const random_names[PROPERTIES];

#define OP(name) DS__PROPERTY_FILTER__OPERATOR__##name

/* --- a query --- */

struct term {
    int property; /* -1: the key */
    Ds__PropertyFilter__Operator op;
    const Ds__Value *values[3]; /* of IN and NOT_IN; else one */
    int count;
};

struct part {
    struct term terms[MOST_TERMS];
    int count;
};

struct order {
    int property; /* -1: the key */
    bool is_down;
    bool is_projected;
};

struct asked {
    const char *kind;
    struct part parts[3];
    int part_count;
    const Ds__Key *ancestor;
    struct order orders[MOST_ORDERS];
    int order_count;
    int projected[PROPERTIES];
    int projected_count;
    int distinct_count;
    bool is_keys_only;
};

/* --- what a query means --- */

struct position {
    const Ds__Entity *entity;
    const Ds__Value *values[MOST_ORDERS];
};

struct evaluation {
    const struct asked *asked;
    struct order orders[MOST_ORDERS];
    int order_count; /* without the key */
    bool is_key_down;
    struct position *positions;
    int count;
};

/* --- what there is --- */

/* A number below the bound, from a sequence that the seed begins. */
void random_seed(uint64_t seed);
unsigned random_below(unsigned bound);

/* Entities; in one of four databases also rows of a later time, so that it is a past. */
void random_fill(struct fake *fake);

/* Composite indexes, for whatever query they fit. */
void random_indexes(struct fake *fake);

struct asked random_query(struct arena *arena);
Ds__Query *random_request(struct arena *arena, const struct asked *asked);

bool random_is_projected(const struct asked *asked, int property);

/* The indexed values of a property; an array's may be there more than once. */
int random_values(const Ds__Entity *entity, int property, const Ds__Value **out);

/* The results in order. */
void evaluate(const struct fake *fake, const struct asked *asked, struct evaluation *out);

#endif
