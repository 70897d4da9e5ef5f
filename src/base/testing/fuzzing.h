/* For the fuzzers, x_fuzz.c beside x.c: a function from an input to nothing, which holds what it
 * finds out about x against what must be so (CHECK). libFuzzer makes inputs up (`./dev fuzz`); the
 * tests replay those in tests/corpus/x (base/testing/fuzz_replay.c).
 *
 * Where a format is so strict that random bytes would not get far, an input is read as a list of
 * choices instead: each takes a byte or a few from the front, and when none are left, all that
 * follow are 0. So every input means something, a changed byte changes one choice, and what was cut
 * off ends what is being made. */
#ifndef TRESTLE_BASE_TESTING_FUZZING_H
#define TRESTLE_BASE_TESTING_FUZZING_H

#include "base/bytes.h"
#include "base/check.h"

/* The fuzzer. Returns 0. `data` ends where the input ends: a byte further is a sanitizer's report.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct choices {
    bytes left;
};

static inline struct choices choices_of(const uint8_t *data, size_t size)
{
    return (struct choices){.left = bytes_make(data, size)};
}

static inline uint8_t choose_byte(struct choices *choices)
{
    if (choices->left.size == 0)
        return 0;
    uint8_t byte = choices->left.data[0];
    choices->left = bytes_from(choices->left, 1);
    return byte;
}

/* 0 … count - 1; `count` is at most 256. */
static inline unsigned choose(struct choices *choices, unsigned count)
{
    return choose_byte(choices) % count;
}

static inline bool choose_bool(struct choices *choices)
{
    return choose_byte(choices) & 1;
}

/* A number of `size` bytes, at most 8. */
static inline uint64_t choose_number(struct choices *choices, size_t size)
{
    uint64_t number = 0;
    while (size-- > 0)
        number = number << 8 | choose_byte(choices);
    return number;
}

/* At most `most` bytes (and 255) of the input itself. */
static inline bytes choose_bytes(struct choices *choices, size_t most)
{
    size_t size = choose_byte(choices);
    size = size < most ? size : most;
    size = size < choices->left.size ? size : choices->left.size;
    bytes chosen = bytes_make(choices->left.data, size);
    choices->left = bytes_from(choices->left, size);
    return chosen;
}

#endif
