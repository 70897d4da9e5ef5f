/* How keys begin.
 *
 * Looked at is the start of the keys, and what stands behind a word that all of them begin with
 * ("order#"), since that word sorts nothing. The first form that fits is told. */
#include "advice/key_start.h"

static status look_from(struct advisor *advisor, size_t start)
{
    const struct key_start keys = {.seen = advisor->seen, .start = start};
    bool is_found;
    TRY(look_for_times(advisor, &keys, &is_found));
    if (is_found)
        return status_ok();
    TRY(look_for_numbers(advisor, &keys, &is_found));
    return is_found ? status_ok() : look_for_randomness(advisor, &keys);
}

status advise_on_keys(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    if (seen->row_count < KEYS_LEAST)
        return status_ok();
    size_t found = advisor->out->count, start = key_start_behind_word(seen);
    TRY(look_from(advisor, 0));
    bool is_done = advisor->out->count > found || start == 0;
    return is_done || seen->row_count < KEYS_PREFIX_LEAST ? status_ok() : look_from(advisor, start);
}
