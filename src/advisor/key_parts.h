/* Keys as values with a delimiter between them. */
#ifndef TRESTLE_ADVISOR_KEY_PARTS_H
#define TRESTLE_ADVISOR_KEY_PARTS_H

#include "advisor/advice_private.h"

/* Delimiters of values; "-", "_" and "." are none, as they stand within values as well. */
#define KEY_DELIMITERS "#|~/;,:"

struct key_parts {
    const struct advice_observations *seen;
    uint8_t delimiter; /* 0: most keys have none, and each is one part */
    size_t count;      /* parts of most keys */
    size_t fitting;    /* keys that have so many */
};

void key_parts_find(const struct advice_observations *seen, struct key_parts *out);

size_t key_parts_of(const struct key_parts *parts, bytes key);
bool key_parts_fit(const struct key_parts *parts, size_t row);

/* Empty if there are not so many. */
bytes key_part(const struct key_parts *parts, bytes key, size_t part);

/* The keys that fit: how many different values they have there. The array is theirs, in order. */
status key_part_values(struct advisor *advisor, const struct key_parts *parts, size_t part,
                       bytes **out, size_t *distinct);

#endif
