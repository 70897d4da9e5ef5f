/* How keys begin.
 *
 * Looked at is the start of the keys, and what stands behind a word that all of them begin with
 * ("order#"), since that word sorts nothing; then for times and numbers further on. The first form
 * that fits is told. */
#include "advisor/key_start.h"

static status look_for_order(struct advisor *advisor, const struct key_start *keys, bool *is_found)
{
    TRY(look_for_times(advisor, keys, is_found));
    return *is_found ? status_ok() : look_for_numbers(advisor, keys, is_found);
}

static status look_from(struct advisor *advisor, size_t start, bool only_order, bool *is_found)
{
    const struct key_start keys = {.seen = advisor->seen, .start = start};
    size_t found = advisor->out->count;
    TRY(look_for_order(advisor, &keys, is_found));
    if (*is_found || only_order)
        return status_ok();
    TRY(look_for_randomness(advisor, &keys));
    *is_found = advisor->out->count > found;
    return status_ok();
}

/* Where the start says nothing: times behind a few values, numbers behind anything that all keys
 * have, and keys of no known form that rise. */
static status look_further(struct advisor *advisor, bool *is_found)
{
    const struct key_start common = {.seen = advisor->seen,
                                     .start = key_start_behind_common(advisor->seen)};
    TRY(look_for_fronts_of_times(advisor, is_found));
    if (!*is_found)
        TRY(look_for_numbers(advisor, &common, is_found));
    return *is_found ? status_ok() : look_for_rising_keys(advisor, is_found);
}

static status look(struct advisor *advisor, bool only_order)
{
    const struct advice_observations *seen = advisor->seen;
    bool is_found;
    if (seen->row_count < KEYS_LEAST)
        return status_ok();
    size_t start = key_start_behind_word(seen);
    TRY(look_from(advisor, 0, only_order, &is_found));
    if (is_found || seen->row_count < KEYS_PREFIX_LEAST)
        return status_ok();
    if (start > 0)
        TRY(look_from(advisor, start, only_order, &is_found));
    return is_found ? status_ok() : look_further(advisor, &is_found);
}

static bool rises(const struct advice *found)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->findings[i].rule != &advice_rules[RULE_key_hashed])
            return true;
    return false;
}

/* Keys that rise are told for that, whatever else they are. */
status advise_on_keys(struct advisor *advisor)
{
    TRY(look(advisor, false));
    if (rises(advisor->out))
        return status_ok();
    size_t found = advisor->out->count;
    if (found == 0)
        TRY(advise_on_binary(advisor));
    if (advisor->out->count > found)
        return status_ok();
    TRY(advise_on_padding(advisor));
    TRY(advise_on_grouping(advisor));
    return advise_on_delimiters(advisor);
}

status advise_on_rising_keys(struct advisor *advisor)
{
    return look(advisor, true);
}
