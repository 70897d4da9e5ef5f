/* The place in all keys from where on they are looked at: their start, or behind a word that all of
 * them begin with. Shared by the rules about how keys begin. */
#ifndef TRESTLE_ADVISOR_KEY_START_H
#define TRESTLE_ADVISOR_KEY_START_H

#include "advisor/advice_private.h"

struct key_start {
    const struct advice_observations *seen;
    size_t start;
    bool is_one_of_several; /* of a few words: fewer numbers behind it say something */
};

/* The end of the word of letters with which all keys begin, and of the delimiters behind it; 0:
 * there is none. */
size_t key_start_behind_word(const struct advice_observations *seen);

/* The end of what all keys begin with, without the digits at its end, which belong to numbers. */
size_t key_start_behind_common(const struct advice_observations *seen);

/* The row's key from there on. */
bytes key_start_field(const struct key_start *keys, size_t row);

/* Whether so many of all keys are enough to say that this is how keys begin. */
bool key_start_fits(size_t found, size_t all);

/* For sentences: `begin with`, or `begin with "order#" and`. */
enum { KEY_START_OPENING = 360 };
void key_start_opening(const struct key_start *keys, char out[KEY_START_OPENING]);

/* The range that new rows go to: behind the newest of the sampled keys, or, with keys that fall,
 * before it. */
status key_start_set_range(struct advisor *advisor, const struct key_start *keys, bytes newest,
                           bool is_falling, struct advice_finding *finding);

/* The key with the first `size` bytes of its field at the end; empty if that is all of it. */
status key_start_promote(struct advisor *advisor, const struct key_start *keys, bytes key,
                         size_t size, bytes *out);

/* com, org, uk: those that are not endings of files as well. */
bool is_top_level_domain(bytes label);

bool is_one_of(uint8_t c, const char *characters);
bool is_one_of_delimiters(uint8_t c);

/* The rules, in the order in which they are tried. */
status look_for_times(struct advisor *advisor, const struct key_start *keys, bool *is_found);
status look_for_fronts_of_times(struct advisor *advisor, bool *is_found); /* behind any delimiter */
status look_for_numbers(struct advisor *advisor, const struct key_start *keys, bool *is_found);
status look_for_rising_keys(struct advisor *advisor,
                            bool *is_found); /* of any form: rising_rule.c */
status look_for_randomness(struct advisor *advisor, const struct key_start *keys);

#endif
