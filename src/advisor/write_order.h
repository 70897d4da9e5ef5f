/* When rows were first written, held against an order that something in their keys has. */
#ifndef TRESTLE_ADVISOR_WRITE_ORDER_H
#define TRESTLE_ADVISOR_WRITE_ORDER_H

#include "advisor/advice.h"

/* The moment at which the row was first written, as far as its cells show; 0: they do not. */
int64_t first_written(const struct advice_row *row);

struct ranked {
    uint64_t rank;
    int64_t written_us; /* 0: unknown */
};

/* Counts of pairs that differ in both. */
struct write_order {
    size_t pairs;
    size_t rising;   /* the higher rank was written later */
    int64_t span_us; /* from the first to the last that was written */
};

/* At most a thousand of them are looked at, from all over the list. */
struct write_order write_order_of(const struct ranked *all, size_t count);

/* Whether enough of the pairs, so many in a hundred, rise; what fell so often was FALLING. */
bool write_order_rises(const struct write_order *order, unsigned percent);
bool write_order_falls(const struct write_order *order, unsigned percent);

/* Whether there are enough pairs to say that there is, or is no such order. */
bool write_order_is_known(const struct write_order *order);

#endif
