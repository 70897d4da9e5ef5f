/* Keys that begin with a time. */
#include "advice/key_start.h"
#include "advice/key_time.h"

#include <ctype.h>

/* Of the time at the front and what a time of day has behind it. */
static size_t whole_time(bytes key, enum key_time form, size_t size)
{
    if (form != KEY_TIME_DATE || size == key.size || !is_one_of(key.data[size], "T _:"))
        return size;
    size_t end = size + 1;
    while (end < key.size && (isdigit(key.data[end]) || is_one_of(key.data[end], ":.Z+")))
        end++;
    return end > size + 2 ? end : size;
}

struct times {
    enum key_time form; /* of most keys */
    size_t count;       /* of the keys that have it */
    size_t changes;     /* from one such key to the next */
};

static void find_times(const struct key_start *keys, struct times *out)
{
    size_t counts[KEY_TIME_OBJECT_ID + 1] = {0}, size;
    int64_t now_us = keys->seen->now_us;
    *out = (struct times){0};
    for (size_t i = 0; i < keys->seen->row_count; i++)
        counts[key_time_at(key_start_field(keys, i), now_us, &size)]++;
    for (size_t form = KEY_TIME_NONE + 1; form <= KEY_TIME_OBJECT_ID; form++)
        if (counts[form] > out->count)
            *out = (struct times){.form = (enum key_time)form, .count = counts[form]};
    bytes last = {0};
    for (size_t i = 0; i < keys->seen->row_count && out->count > 0; i++) {
        bytes key = key_start_field(keys, i);
        if (key_time_at(key, now_us, &size) != out->form)
            continue;
        size = whole_time(key, out->form, size);
        out->changes += last.size > 0 && !bytes_equal(last, bytes_make(key.data, size));
        last = bytes_make(key.data, size);
    }
}

/* Another field first, or else one of 16 prefixes, which follows from the key. */
static status better_than_time(struct advisor *advisor, const struct key_start *keys, bytes key,
                               enum key_time form, bytes *out)
{
    enum { BUCKETS = 16 };
    size_t size;
    bytes field = bytes_from(key, keys->start);
    struct buffer text = {0};
    *out = bytes_make(NULL, 0);
    if (key_time_at(field, advisor->seen->now_us, &size) != form)
        return status_ok();
    size = whole_time(field, form, size);
    TRY(key_start_promote(advisor, keys, key, size, out));
    if (out->size > 0)
        return status_ok();
    buffer_append_format(&text, "%02u#", (unsigned)(bytes_hash(key) % BUCKETS));
    buffer_append_bytes(&text, key);
    return keep_text(advisor, &text, out);
}

status look_for_times(struct advisor *advisor, const struct key_start *keys, bool *is_found)
{
    enum { CHANGES_LEAST = 2 };
    struct advice_finding *finding;
    struct times times;
    char opening[KEY_START_OPENING];
    find_times(keys, &times);
    *is_found = times.count > 0 && key_start_fits(times.count, keys->seen->row_count) &&
                times.changes >= CHANGES_LEAST;
    if (!*is_found)
        return status_ok();
    key_start_opening(keys, opening);
    TRY(advise(advisor, RULE_key_time_first, &finding, "%zu of %zu sampled keys %s %s.",
               times.count, keys->seen->row_count, opening, key_time_name(times.form)));
    TRY(key_start_set_range(advisor, keys, times.form == KEY_TIME_REVERSED, finding));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(keys->seen, i)->key, better;
        finding_add_key(finding, key);
        TRY(better_than_time(advisor, keys, key, times.form, &better));
        if (better.size > 0)
            finding_add_better(finding, key, better);
    }
    return status_ok();
}
