/* HyperLogLog++ sketches, as Google's Zetasketch library writes, reads and merges them: a cell of
 * an `hllpp_unique_count` family is such a sketch, byte for byte.
 *
 * A sketch of precision p (4 to 24) has 2^p registers of one byte: the upper p bits of a value's
 * hash pick the register, and it keeps the greatest `rho` of the rest, one more than the number of
 * leading zeros. While few values are known, it is sparse instead: a sorted list of them at a finer
 * precision sp (p to 25), which becomes registers for good once it takes 3/4 of their room.
 *
 * Written, it is a protobuf message, an AggregatorStateProto of Zetasketch:
 *
 *     1 type = 112   2 num_values   3 encoding_version = 2   4 value_type   112 {
 *         2 sparse_size   3 precision   4 sparse_precision   5 data   6 sparse_data }
 *
 * `data` are the registers; `sparse_data` are the listed values, each as a varint of its difference
 * to the one before. A listed value is the upper sp bits of the hash, if those beyond the first p
 * have a bit set, since they give the register's rho; else
 *
 *     flag | the upper p bits << 6 | rho of what follows the sp bits      (flag: 2^max(sp, p + 6))
 *
 * Merging adds up num_values, goes down to the lesser of both precisions p and of both sp, and
 * keeps the union; so it does not matter in which order and grouping sketches are merged, with one
 * exception: a list may grow shorter by a byte when a rho in it grows, so that at the edge the
 * grouping decides whether it had been too long for a moment. Zetasketch is no different there.
 *
 * Everything here is a pure function of its arguments. */
#ifndef TRESTLE_ROW_HLL_H
#define TRESTLE_ROW_HLL_H

#include "base/bytes.h"
#include "base/status.h"

/* What was counted; numbers as in value_type. Values of different types never meet in a sketch. */
enum hll_value_type {
    HLL_UNKNOWN = 0, /* not written: merges with any */
    HLL_INT32 = 7,
    HLL_INT64 = 8,
    HLL_BYTES = 11, /* and strings */
};

/* Precisions of the sketches that begin here: the library's defaults. */
enum { HLL_PRECISION = 15, HLL_SPARSE_PRECISION = 20 };

/* --- hashing: Fingerprint2011 of Guava --- */

uint64_t hll_hash(bytes input);
uint64_t hll_hash_int64(int64_t input);

/* --- states: sketches as they are written --- */

/* Whether states of both types may be merged. */
static inline bool hll_types_match(enum hll_value_type a, enum hll_value_type b)
{
    return a == b || a == HLL_UNKNOWN || b == HLL_UNKNOWN;
}

struct hll_state {
    int64_t num_values; /* that were added, duplicates too */
    enum hll_value_type value_type;
    uint8_t precision;
    uint8_t sparse_precision; /* 0: the sketch is never sparse */
    bytes data;               /* registers; empty: sparse, or none is set */
    uint32_t sparse_size;     /* listed values */
    bytes sparse_data;
};

static inline bool hll_state_is_sparse(const struct hll_state *state)
{
    return state->data.size == 0 && state->sparse_precision != 0;
}

/* INVALID_ARGUMENT, in the library's words where it has some, for what it would not read, and for
 * what it would not have written: lists and registers that no values lead to. Slices point into
 * `wire`. */
status hll_state_parse(bytes wire, struct hll_state *out);

/* Appends the state as the library writes it. */
void hll_state_write(const struct hll_state *state, struct buffer *out);

/* The state of one value with this hash, of the precisions above. Returns its size. */
enum { HLL_ONE_MOST = 32 /* bytes */ };
size_t hll_state_write_one(enum hll_value_type value_type, uint64_t hash,
                           uint8_t out[HLL_ONE_MOST]);

/* INVALID_ARGUMENT, in the library's words, if a state of the one type does not merge into one of
 * the other. */
status hll_check_types(enum hll_value_type into, enum hll_value_type type);

/* How many different values were added, about. */
int64_t hll_estimate(const struct hll_state *state);

/* --- sketches that grow --- */

/* All zeroes is a fresh one, which takes its precisions and its type from the first state merged
 * into it, and its memory as it goes. */
struct hll_sketch {
    int64_t num_values;
    enum hll_value_type value_type;
    uint8_t precision; /* 0: fresh */
    uint8_t sparse_precision;
    bool is_sparse;
    struct buffer registers; /* when it is not sparse; empty: none is set */
    uint32_t sparse_size;
    struct buffer sparse_data;
    uint32_t *added; /* listed values that are not in sparse_data yet, in any order */
    size_t added_count;
    size_t added_capacity;
};

void hll_sketch_free(struct hll_sketch *sketch);
void hll_sketch_clear(struct hll_sketch *sketch); /* makes it fresh, keeps memory */

/* The state must be of a type that goes with the sketch's; its slices are copied. Precisions are no
 * obstacle, not even crossed ones (p less, sp greater), where the library gives up. False without
 * memory; the sketch is then good for nothing but to be cleared or freed. */
__attribute__((warn_unused_result)) bool hll_sketch_merge(struct hll_sketch *sketch,
                                                          const struct hll_state *state);

/* Adds a value, by its hash, to a sketch that is not fresh. False without memory. */
__attribute__((warn_unused_result)) bool hll_sketch_add(struct hll_sketch *sketch, uint64_t hash);

/* Makes a fresh sketch one of nothing, with these precisions: sparse, unless the second is 0. */
void hll_sketch_begin(struct hll_sketch *sketch, enum hll_value_type value_type, uint8_t precision,
                      uint8_t sparse_precision);

/* --- listed values ---
 *
 * What a sketch keeps of a value, as its list has it: who keeps these for each value can make the
 * sketch again without some of them. All of one sketch's precisions, the second not 0. */

uint32_t hll_listed_of(uint64_t hash, uint8_t precision, uint8_t sparse_precision);

/* Whether values of those precisions are listed as this number. */
bool hll_is_listed(uint32_t listed, uint8_t precision, uint8_t sparse_precision);

/* The register that it is for, and what it raises that to. */
struct hll_register {
    uint32_t index;
    uint8_t rho;
};
struct hll_register hll_register_of(uint32_t listed, uint8_t precision, uint8_t sparse_precision);

/* Adds what is listed, without counting it, to a sketch that is not fresh. False without memory. */
__attribute__((warn_unused_result)) bool hll_sketch_add_listed(struct hll_sketch *sketch,
                                                               uint32_t listed);

/* What the sketch came to, with slices that point into it. False without memory. */
__attribute__((warn_unused_result)) bool hll_sketch_state(struct hll_sketch *sketch,
                                                          struct hll_state *out);

/* Appends that in its written form. False without memory. */
__attribute__((warn_unused_result)) bool hll_sketch_write(struct hll_sketch *sketch,
                                                          struct buffer *out);

#endif
