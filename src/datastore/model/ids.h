/* Ids that the server gives to keys without one.
 *
 * Numbers are drawn from a counter and scattered, so that entities made one after the other do not
 * lie side by side: 2^52 plus the counter with its bits reversed. From 1 on each counter gives
 * another id, of 16 digits and exact as a double. Ids up to 2^52 - 1 are never given. */
#ifndef TRESTLE_DATASTORE_MODEL_IDS_H
#define TRESTLE_DATASTORE_MODEL_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define DS_LAST_SEQUENTIAL_ID ((INT64_C(1) << 52) - 1)

/* The last counter: there are so many ids. */
#define DS_LAST_COUNTER ((UINT64_C(1) << 51) - 1)

/* `counter`: 1 … DS_LAST_COUNTER. */
int64_t ds_scattered_id(uint64_t counter);

/* The counter that gives this id; 0 if none does. An id that a client has chosen, or reserves, is
 * kept from being given by never drawing that counter. */
uint64_t ds_counter_of_id(int64_t id);

#endif
