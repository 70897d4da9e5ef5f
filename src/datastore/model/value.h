/* Values as bytes whose order is that of the index, and their order without bytes.
 *
 * The order: null, integers and timestamps (as microseconds since 1970), booleans, strings and
 * blobs (by bytes), doubles (-0.0 is 0.0; NaN is one, and the greatest), geo points (latitude,
 * longitude), keys. Two values are equal, for filters too, if they have the same bytes: "abc" and
 * the blob abc are, 5 and 5.0 are not.
 *
 * Entities and arrays have no bytes of their own: what is in them is indexed. A value is encoded
 * whole, whatever its size: validate.h refuses those that are too long for an index. */
#ifndef TRESTLE_DATASTORE_MODEL_VALUE_H
#define TRESTLE_DATASTORE_MODEL_VALUE_H

#include "datastore/model/key.h"

/* The meaning that a projection gives to the integer that was a timestamp, and that of an array
 * that is a vector. */
enum { DS_MEANING_TIMESTAMP = 18, DS_MEANING_VECTOR = 31 };

/* Microseconds since 1970, rounded down; at the ends of int64_t if it lies beyond. */
int64_t ds_timestamp_us(const Pb__Timestamp *timestamp);

/* Whether ds_value_append takes it: it is set, neither an entity nor an array, and a key is
 * complete. */
bool ds_value_has_bytes(const Ds__Value *value);

/* Appends; failures show in out->failed. Only for what has bytes. */
void ds_value_append(struct buffer *out, const Ds__Value *value, enum ds_flip flip);

/* Bytes of the value at the start of `encoded`; 0 if there is none. */
size_t ds_value_size(bytes encoded, enum ds_flip flip);

/* The type of a value, for the cell of its index row: a Ds__Value__ValueTypeCase. */
uint8_t ds_value_type(const Ds__Value *value);

/* The value that is all of `encoded`, in the arena, for a projection. `type`, what its index row
 * says, tells a timestamp from an integer and a blob from a string; of a timestamp the result is an
 * integer with DS_MEANING_TIMESTAMP, as in production. INTERNAL if the bytes are none of our
 * writing, or not of that type. */
status ds_value_decode(bytes encoded, enum ds_flip flip, uint8_t type, struct arena *arena,
                       Ds__Value **out);

/* The same if it is a number, else NULL. The bytes count for more than `type`, which only tells
 * integers from timestamps here. */
status ds_number_decode(bytes encoded, enum ds_flip flip, uint8_t type, struct arena *arena,
                        Ds__Value **out);

/* Negative, zero or positive, as the bytes would be compared. Both must have bytes. */
int ds_value_compare(const Ds__Value *a, const Ds__Value *b);

static inline bool ds_value_equal(const Ds__Value *a, const Ds__Value *b)
{
    return ds_value_compare(a, b) == 0;
}

#endif
