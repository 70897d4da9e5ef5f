/* Ids that the server gives: see ids.h. */
#include "datastore/model/ids.h"

#include "base/check.h"

/* A reversed counter has its lowest bit here. */
enum { COUNTER_BITS = 51, UNUSED_BITS = 64 - COUNTER_BITS };

static uint64_t reverse_bits(uint64_t bits)
{
    uint64_t reversed = 0;
    for (int i = 0; i < 64; i++, bits >>= 1)
        reversed = reversed << 1 | (bits & 1);
    return reversed;
}

int64_t ds_scattered_id(uint64_t counter)
{
    CHECK(counter >= 1 && counter <= DS_LAST_COUNTER);
    return DS_LAST_SEQUENTIAL_ID + 1 + (int64_t)reverse_bits(counter << UNUSED_BITS);
}

uint64_t ds_counter_of_id(int64_t id)
{
    uint64_t offset = (uint64_t)id - (uint64_t)DS_LAST_SEQUENTIAL_ID - 1;
    return id > DS_LAST_SEQUENTIAL_ID && offset <= DS_LAST_COUNTER
               ? reverse_bits(offset) >> UNUSED_BITS
               : 0;
}
