/* Keys that rise, whatever they are made of: one counter for each of a few words in front, or rows
 * that were written in the order of their keys.
 *
 * A load writes in the order of keys, too, but not for half a day. */
#include "advisor/key_start.h"
#include "advisor/write_order.h"

#include <ctype.h>

/* Neighbouring rows that begin alike. */
struct group {
    size_t first;
    size_t count;
};

struct groups {
    struct group all[FRONTS];
    size_t count; /* FRONTS: there are too many */
};

/* The key's first word, up to its first delimiter: all of it if it has none, and nothing where it
 * is no word but a number, such as that of a bucket. */
static bytes first_word(bytes key)
{
    size_t size = 0;
    if (key.size > 0 && isdigit(key.data[0]))
        return bytes_make(key.data, 0);
    while (size < key.size && !is_one_of_delimiters(key.data[size]))
        size++;
    return bytes_make(key.data, size);
}

static void find_groups(const struct advice_observations *seen, struct groups *out)
{
    bytes last = {0};
    out->count = 0;
    for (size_t i = 0; i < seen->row_count && out->count < FRONTS; i++) {
        bytes word = first_word(seen->rows[i].key);
        if (out->count == 0 || !bytes_equal(word, last))
            out->all[out->count++] = (struct group){.first = i};
        out->all[out->count - 1].count++;
        last = word;
    }
}

/* --- a counter for each word --- */

static status counts(struct advisor *advisor, const struct group *group, bool *out)
{
    struct advice_observations some = *advisor->seen;
    struct advice ignored = {.count = 0};
    struct advisor inner = {.seen = &some, .arena = advisor->arena, .out = &ignored};
    some.rows += group->first;
    some.row_count = group->count;
    const struct key_start keys = {
        .seen = &some, .start = key_start_behind_common(&some), .is_one_of_several = true};
    return look_for_numbers(&inner, &keys, out);
}

static status count_counters(struct advisor *advisor, const struct groups *groups, size_t *counters,
                             size_t *rows)
{
    *counters = *rows = 0;
    for (size_t i = 0; i < groups->count; i++) {
        bool is_one = false;
        if (groups->all[i].count >= KEYS_LEAST)
            TRY(counts(advisor, &groups->all[i], &is_one));
        *counters += is_one;
        *rows += is_one ? groups->all[i].count : 0;
    }
    return status_ok();
}

/* The word and the number in the other order. */
static status better_than_counter(struct advisor *advisor, bytes key, bytes *out)
{
    bytes word = first_word(key), rest = bytes_from(key, word.size);
    struct buffer text = {0};
    *out = bytes_make(NULL, 0);
    if (rest.size < 2)
        return status_ok();
    buffer_append_bytes(&text, word);
    buffer_append_byte(&text, rest.data[0]);
    for (size_t i = rest.size; i > 1; i--)
        buffer_append_byte(&text, rest.data[i - 1]);
    return keep_text(advisor, &text, out);
}

static status add_keys(struct advisor *advisor, struct advice_finding *finding)
{
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(advisor->seen, i)->key, better;
        finding_add_key(finding, key);
        TRY(better_than_counter(advisor, key, &better));
        if (better.size > 0)
            finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status look_for_counters(struct advisor *advisor, bool *is_found)
{
    struct advice_finding *finding;
    struct groups groups;
    size_t counters = 0, rows = 0;
    find_groups(advisor->seen, &groups);
    if (groups.count > 1 && groups.count < FRONTS)
        TRY(count_counters(advisor, &groups, &counters, &rows));
    *is_found = counters > 0 && key_start_fits(rows, advisor->seen->row_count);
    if (!*is_found)
        return status_ok();
    TRY(advise(advisor, RULE_key_sequential, &finding,
               "%zu of %zu sampled keys begin with one of %zu words, each with consecutive numbers "
               "behind it.",
               rows, advisor->seen->row_count, counters));
    return add_keys(advisor, finding);
}

/* --- rows that were written in the order of their keys --- */

static status order_of_keys(struct advisor *advisor, struct write_order *out)
{
    const struct advice_observations *seen = advisor->seen;
    struct ranked *all = arena_alloc(advisor->arena, seen->row_count * sizeof *all);
    if (all == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i++)
        all[i] = (struct ranked){.rank = i, .written_us = first_written(&seen->rows[i])};
    *out = write_order_of(all, seen->row_count);
    return status_ok();
}

static status look_for_order_of_writing(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    const struct key_start keys = {.seen = seen};
    struct advice_finding *finding;
    struct write_order order;
    TRY(order_of_keys(advisor, &order));
    bool falls = write_order_falls(&order, RISING_PERCENT);
    *is_found = seen->row_count >= RISING_LEAST && order.span_us >= RISING_US &&
                (falls || write_order_rises(&order, RISING_PERCENT));
    if (!*is_found)
        return status_ok();
    TRY(advise(advisor, RULE_key_sequential, &finding,
               "Of %zu pairs of sampled keys, in %zu the later written is the %s, over %lld hours: "
               "they rise with the time of writing.",
               order.pairs, falls ? order.pairs - order.rising : order.rising,
               falls ? "lower" : "higher", (long long)(order.span_us / HOUR_US)));
    bytes newest = seen->rows[falls ? 0 : seen->row_count - 1].key;
    TRY(key_start_set_range(advisor, &keys, newest, falls, finding));
    return add_keys(advisor, finding);
}

status look_for_rising_keys(struct advisor *advisor, bool *is_found)
{
    TRY(look_for_counters(advisor, is_found));
    return *is_found ? status_ok() : look_for_order_of_writing(advisor, is_found);
}
