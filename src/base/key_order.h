/* Puts many keys in order. Those of one table begin alike, and lie scattered in memory: so what
 * comes behind the common beginning is compared as a number, which stands with the key, and few
 * comparisons look at keys themselves. */
#ifndef TRESTLE_BASE_KEY_ORDER_H
#define TRESTLE_BASE_KEY_ORDER_H

#include "base/bytes.h"

struct key_order {
    bytes key;     /* not copied */
    size_t place;  /* the caller's: what the key is of */
    uint64_t head; /* key_order_sort's */
};

/* By key as bytes_compare has it, and of equal keys by place. */
void key_order_sort(struct key_order *keys, size_t count);

#endif
