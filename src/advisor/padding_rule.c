/* Numbers in keys that are not padded, so that 10 comes before 9.
 *
 * Looked for is a number at the same place of the same part of nearly all keys, behind the same
 * text, of different widths, and never with a zero in front. */
#include "advisor/key_parts.h"
#include "advisor/key_start.h"

#include <ctype.h>

enum { NUMBERS_MOST = 4, WIDTH_MOST = 15 };

/* A run of digits: a number within a part. */
struct run {
    size_t start;
    size_t size;
};

static size_t find_runs(bytes part, struct run runs[NUMBERS_MOST])
{
    size_t count = 0;
    for (size_t at = 0; at < part.size && count < NUMBERS_MOST;) {
        size_t start = at;
        while (at < part.size && isdigit(part.data[at]))
            at++;
        if (at > start)
            runs[count++] = (struct run){start, at - start};
        else
            at++;
    }
    return count;
}

/* Whether the text before each number, and behind the last, is what the first key has there. */
static bool is_alike(bytes part, const struct run *runs, bytes first, const struct run *of_first,
                     size_t count)
{
    size_t end = 0, end_of_first = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t next = i < count ? runs[i].start : part.size;
        size_t next_of_first = i < count ? of_first[i].start : first.size;
        bytes text = bytes_make(part.data + end, next - end);
        bytes of_other = bytes_make(first.data + end_of_first, next_of_first - end_of_first);
        if (!bytes_equal(text, of_other))
            return false;
        end = i < count ? next + runs[i].size : end;
        end_of_first = i < count ? next_of_first + of_first[i].size : end_of_first;
    }
    return true;
}

struct widths {
    size_t part;
    size_t number;
    size_t keys;  /* that have the number */
    size_t zeros; /* that have a zero in front of it */
    size_t of[WIDTH_MOST + 1];
    size_t most;
};

static void count_width(struct widths *out, bytes part, const struct run *run)
{
    size_t width = run->size < WIDTH_MOST ? run->size : WIDTH_MOST;
    out->keys++;
    out->zeros += run->size > 1 && part.data[run->start] == '0';
    out->of[width]++;
    out->most = width > out->most ? width : out->most;
}

static void count_widths(const struct key_parts *parts, size_t part,
                         struct widths out[NUMBERS_MOST], size_t *count)
{
    struct run of_first[NUMBERS_MOST], runs[NUMBERS_MOST];
    bytes first = {0};
    *count = 0;
    for (size_t i = 0; i < parts->seen->row_count; i++) {
        if (!key_parts_fit(parts, i))
            continue;
        bytes text = key_part(parts, parts->seen->rows[i].key, part);
        size_t found = find_runs(text, runs);
        if (first.data == NULL) {
            first = text;
            *count = find_runs(first, of_first);
        }
        if (found != *count || !is_alike(text, runs, first, of_first, found))
            continue;
        for (size_t number = 0; number < found; number++)
            count_width(&out[number], text, &runs[number]);
    }
}

/* Whether a twentieth or more have another width than most, and none begins with a zero. */
static bool are_unpadded(const struct key_parts *parts, const struct widths *widths)
{
    size_t usual = 0;
    for (size_t width = 1; width <= WIDTH_MOST; width++)
        usual = widths->of[width] > usual ? widths->of[width] : usual;
    return widths->zeros == 0 && widths->keys >= KEYS_PREFIX_LEAST &&
           key_start_fits(widths->keys, parts->seen->row_count) &&
           (widths->keys - usual) * 100 >= widths->keys * WIDTHS_PERCENT;
}

static bool find_unpadded(const struct key_parts *parts, struct widths *out)
{
    for (size_t part = 0; part < parts->count; part++) {
        struct widths widths[NUMBERS_MOST] = {{0}};
        size_t count;
        count_widths(parts, part, widths, &count);
        for (size_t number = 0; number < count; number++)
            if (are_unpadded(parts, &widths[number])) {
                *out = widths[number];
                out->part = part;
                out->number = number;
                return true;
            }
    }
    return false;
}

/* The key with zeroes before the number. */
static status pad(struct advisor *advisor, const struct key_parts *parts,
                  const struct widths *widths, bytes key, bytes *out)
{
    struct run runs[NUMBERS_MOST];
    struct buffer text = {0};
    bytes part = key_part(parts, key, widths->part);
    *out = bytes_make(NULL, 0);
    if (find_runs(part, runs) <= widths->number || runs[widths->number].size >= widths->most)
        return status_ok();
    size_t at = (size_t)(part.data - key.data) + runs[widths->number].start;
    buffer_append(&text, key.data, at);
    for (size_t i = runs[widths->number].size; i < widths->most; i++)
        buffer_append_byte(&text, '0');
    buffer_append_bytes(&text, bytes_from(key, at));
    return keep_text(advisor, &text, out);
}

/* Adds keys whose numbers are shorter than others. */
static status add_keys(struct advisor *advisor, const struct key_parts *parts,
                       const struct widths *widths, struct advice_finding *finding)
{
    const struct advice_observations *seen = parts->seen;
    for (size_t i = 0; i < seen->row_count && finding->key_count < ADVICE_KEYS_SHOWN; i++) {
        size_t row = (i * 37) % seen->row_count;
        bytes better;
        TRY(pad(advisor, parts, widths, seen->rows[row].key, &better));
        if (better.size == 0)
            continue;
        finding_add_key(finding, seen->rows[row].key);
        finding_add_better(finding, seen->rows[row].key, better);
    }
    return status_ok();
}

status advise_on_padding(struct advisor *advisor)
{
    struct advice_finding *finding;
    struct key_parts parts;
    struct widths widths;
    key_parts_find(advisor->seen, &parts);
    if (!key_start_fits(parts.fitting, advisor->seen->row_count) || !find_unpadded(&parts, &widths))
        return status_ok();
    TRY(advise(advisor, RULE_key_padding, &finding,
               "%zu of %zu sampled keys have a number in their part %zu, of up to %zu digits and "
               "never with a zero in front; %zu have one digit.",
               widths.keys, advisor->seen->row_count, widths.part + 1, widths.most, widths.of[1]));
    return add_keys(advisor, &parts, &widths, finding);
}
