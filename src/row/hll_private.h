/* What the parts of hll.h share: values as a sketch sees them. */
#ifndef TRESTLE_ROW_HLL_PRIVATE_H
#define TRESTLE_ROW_HLL_PRIVATE_H

#include "row/hll.h"

enum {
    HLL_LEAST_PRECISION = 4,
    HLL_MOST_PRECISION = 24,
    HLL_MOST_SPARSE_PRECISION = 25,
    HLL_RHO_BITS = 6,
    HLL_RHO_MASK = (1 << HLL_RHO_BITS) - 1,
    HLL_HASH_BITS = 64,
};

/* A value at some precision: the bits of its hash that index a register, and rho of the others.
 * Where the index was listed without it, rho is 0: not known, and not needed, since the index's own
 * lower bits will decide at any precision that is asked for. */
struct hll_point {
    uint32_t index;
    uint8_t rho;
};

/* One more than the number of leading zeros among the lower `width` bits. */
static inline uint8_t hll_rho(uint64_t bits, unsigned width)
{
    uint64_t kept = width == 0 ? 0 : bits << (HLL_HASH_BITS - width);
    return (uint8_t)(kept == 0 ? width + 1 : (unsigned)__builtin_clzll(kept) + 1);
}

static inline struct hll_point hll_point_of(uint64_t hash, unsigned precision)
{
    return (struct hll_point){.index = (uint32_t)(hash >> (HLL_HASH_BITS - precision)),
                              .rho = hll_rho(hash, HLL_HASH_BITS - precision)};
}

/* The same value at a lesser precision. */
static inline struct hll_point hll_point_lower(struct hll_point point, unsigned from, unsigned to)
{
    unsigned dropped = from - to;
    uint32_t bits = point.index & (uint32_t)((1ULL << dropped) - 1);
    return (struct hll_point){.index = point.index >> dropped,
                              .rho = bits == 0 ? (uint8_t)(point.rho + dropped)
                                               : hll_rho(bits, dropped)};
}

/* --- listed values --- */

struct hll_precisions {
    unsigned precision;
    unsigned sparse_precision; /* not 0 */
};

static inline uint32_t hll_flag(struct hll_precisions at)
{
    unsigned with_rho = at.precision + HLL_RHO_BITS;
    return 1U << (at.sparse_precision > with_rho ? at.sparse_precision : with_rho);
}

static inline uint32_t hll_list(struct hll_point point, struct hll_precisions at)
{
    unsigned beyond = at.sparse_precision - at.precision;
    if ((point.index & ((1U << beyond) - 1)) != 0)
        return point.index;
    return hll_flag(at) | point.index >> beyond << HLL_RHO_BITS | point.rho;
}

/* The point at the sparse precision. */
static inline struct hll_point hll_listed(uint32_t value, struct hll_precisions at)
{
    uint32_t flag = hll_flag(at);
    if ((value & flag) == 0)
        return (struct hll_point){.index = value};
    return (struct hll_point){.index = (value ^ flag) >>
                                       HLL_RHO_BITS << (at.sparse_precision - at.precision),
                              .rho = value & HLL_RHO_MASK};
}

/* Whether two values are for one index of the sparse precision, of which the greater counts. */
static inline bool hll_is_same_index(uint32_t a, uint32_t b, struct hll_precisions at)
{
    return a == b || ((a & b & hll_flag(at)) != 0 && (a ^ b) >> HLL_RHO_BITS == 0);
}

/* A list that takes this much room or more becomes registers. */
static inline size_t hll_list_limit(unsigned precision)
{
    return ((size_t)3 << precision) / 4;
}

/* Reads a list that hll_state_parse has found good. */
struct hll_list_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t value;
};

static inline struct hll_list_reader hll_list_read(bytes list)
{
    return (struct hll_list_reader){.at = list.data,
                                    .end = list.size == 0 ? list.data : list.data + list.size};
}

/* False at the end, or where it does not parse. */
bool hll_list_next(struct hll_list_reader *reader);

#endif
