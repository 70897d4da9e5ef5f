/* Keys that begin with consecutive numbers.
 *
 * A key's number is told from others of its size (a code, a number that was drawn) by its
 * neighbours in the table: they are one step away. Where rows have gone since, so that there are
 * gaps, the order in which rows were written must say it, too. */
#include "advisor/key_start.h"
#include "advisor/write_order.h"

#include <ctype.h>
#include <stdlib.h>

struct number {
    uint64_t value;
    size_t size; /* bytes; 0: the key begins with none */
    bool is_binary;
};

static struct number number_at(bytes key)
{
    enum { DIGITS_MOST = 18 };
    struct number number = {0};
    size_t digits = 0;
    for (; digits < key.size && isdigit(key.data[digits]) && digits < DIGITS_MOST; digits++)
        number.value = 10 * number.value + (uint64_t)(key.data[digits] - '0');
    if (digits > 0 && (digits == key.size || !isalnum(key.data[digits]))) {
        number.size = digits;
        return number;
    }
    number = (struct number){.size = sizeof number.value, .is_binary = true};
    if (key.size < number.size || key.data[0] != 0 || key.data[1] != 0)
        return (struct number){0};
    for (size_t i = 0; i < number.size; i++)
        number.value = number.value << 8 | key.data[i];
    return number;
}

struct numbers {
    const struct key_start *keys;
    struct number *all; /* of each row */
    size_t count;
    uint64_t least;
    uint64_t most;
    uint64_t *steps; /* between neighbours that differ, by size */
    size_t step_count;
    size_t same; /* neighbours that do not */
};

static int order_of_steps(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static void add_step(struct numbers *numbers, size_t row)
{
    const struct advice_row *rows = numbers->keys->seen->rows;
    const struct number *left = &numbers->all[row - 1], *right = &numbers->all[row];
    if (left->size == 0 || left->size != right->size || rows[row - 1].place != rows[row].place)
        return;
    if (left->value == right->value)
        numbers->same++;
    else /* numbers of one size are in order */
        numbers->steps[numbers->step_count++] = right->value - left->value;
}

/* Numbers are of one kind, digits or bytes; others do not count. */
static status find_numbers(struct advisor *advisor, const struct key_start *keys,
                           struct numbers *out)
{
    size_t rows = keys->seen->row_count, digits = 0;
    *out = (struct numbers){.keys = keys, .least = UINT64_MAX};
    out->all = arena_alloc(advisor->arena, rows * sizeof *out->all);
    out->steps = arena_alloc(advisor->arena, rows * sizeof *out->steps);
    if (out->all == NULL || out->steps == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rows; i++) {
        out->all[i] = number_at(key_start_field(keys, i));
        digits += out->all[i].size > 0 && !out->all[i].is_binary;
    }
    for (size_t i = 0; i < rows; i++) {
        struct number *number = &out->all[i];
        if (number->is_binary == (2 * digits > rows))
            number->size = 0;
        if (number->size == 0)
            continue;
        out->count++;
        out->least = number->value < out->least ? number->value : out->least;
        out->most = number->value > out->most ? number->value : out->most;
        if (i > 0)
            add_step(out, i);
    }
    qsort(out->steps, out->step_count, sizeof *out->steps, order_of_steps);
    return status_ok();
}

static size_t steps_upto(const struct numbers *numbers, uint64_t most)
{
    size_t count = 0;
    while (count < numbers->step_count && numbers->steps[count] <= most)
        count++;
    return count;
}

static status find_order(struct advisor *advisor, const struct numbers *numbers,
                         struct write_order *out)
{
    const struct advice_observations *seen = numbers->keys->seen;
    struct ranked *all = arena_alloc(advisor->arena, seen->row_count * sizeof *all);
    size_t count = 0;
    if (all == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i++)
        if (numbers->all[i].size > 0)
            all[count++] = (struct ranked){numbers->all[i].value, first_written(&seen->rows[i])};
    *out = write_order_of(all, count);
    return status_ok();
}

/* Whether higher numbers were written later, for longer than a load in the order of the keys, which
 * shows nothing, takes. */
static bool are_written_in_order(const struct write_order *order)
{
    return order->span_us >= RISING_US && write_order_rises(order, NUMBERS_IN_ORDER);
}

/* Whether several rows have the same number, and were written in no order of these: then they are
 * buckets, however many. */
static bool are_buckets(const struct numbers *numbers, const struct write_order *order)
{
    return 2 * numbers->same > numbers->step_count && order->span_us >= RISING_US &&
           write_order_is_known(order) && !write_order_rises(order, BUCKETS_IN_ORDER);
}

/* Whether they span enough to be no buckets, of which each has several rows. */
static bool are_many(const struct numbers *numbers)
{
    uint64_t span = numbers->most - numbers->least;
    uint64_t least = numbers->keys->is_one_of_several ? NUMBERS_ALONE : NUMBERS_SPAN_ALONE;
    return span >= NUMBERS_SPAN ||
           (span + 1 >= least && numbers->same == 0 && numbers->count >= NUMBERS_ALONE);
}

/* `*step`: between most neighbours. */
static status are_consecutive(struct advisor *advisor, const struct numbers *numbers,
                              uint64_t *step, bool *out)
{
    struct write_order order;
    *step = 0;
    *out = false;
    bool may_be = key_start_fits(numbers->count, numbers->keys->seen->row_count) &&
                  are_many(numbers) && numbers->step_count >= NUMBERS_PAIRS &&
                  numbers->same <= 2 * numbers->step_count;
    if (!may_be)
        return status_ok();
    *step = numbers->steps[numbers->step_count / 2];
    size_t same = steps_upto(numbers, *step) - steps_upto(numbers, *step - 1);
    bool are_even = *step <= NUMBERS_STEP && same * 100 >= numbers->step_count * NUMBERS_PERCENT;
    size_t near = steps_upto(numbers, NUMBERS_NEAR);
    if (!are_even && near * 100 < numbers->step_count * NUMBERS_PERCENT)
        return status_ok();
    TRY(find_order(advisor, numbers, &order));
    *out = are_even ? !are_buckets(numbers, &order) : are_written_in_order(&order);
    return status_ok();
}

/* Another field first, or else the number with its last digit, or byte, first. */
static status better_than_number(struct advisor *advisor, const struct key_start *keys, bytes key,
                                 bytes *out)
{
    bytes field = bytes_from(key, keys->start);
    size_t size = number_at(field).size;
    struct buffer text = {0};
    *out = bytes_make(NULL, 0);
    if (size == 0)
        return status_ok();
    TRY(key_start_promote(advisor, keys, key, size, out));
    if (out->size > 0)
        return status_ok();
    buffer_append(&text, key.data, keys->start);
    for (size_t i = size; i > 0; i--)
        buffer_append_byte(&text, field.data[i - 1]);
    return keep_text(advisor, &text, out);
}

/* Of the greatest number, which need not be the last key: 1000 comes before 999. */
static bytes newest_key(const struct numbers *numbers)
{
    const struct advice_observations *seen = numbers->keys->seen;
    bytes newest = seen->rows[seen->row_count - 1].key;
    for (size_t i = 0; i < seen->row_count; i++)
        if (numbers->all[i].size > 0 && numbers->all[i].value == numbers->most)
            newest = seen->rows[i].key;
    return newest;
}

status look_for_numbers(struct advisor *advisor, const struct key_start *keys, bool *is_found)
{
    struct advice_finding *finding;
    struct numbers numbers;
    uint64_t step;
    char opening[KEY_START_OPENING];
    TRY(find_numbers(advisor, keys, &numbers));
    TRY(are_consecutive(advisor, &numbers, &step, is_found));
    if (!*is_found)
        return status_ok();
    key_start_opening(keys, opening);
    TRY(advise(advisor, RULE_key_sequential, &finding,
               "%zu of %zu sampled keys %s a number, from %llu to %llu, and most neighbours are "
               "%llu apart.",
               numbers.count, keys->seen->row_count, opening, (unsigned long long)numbers.least,
               (unsigned long long)numbers.most, (unsigned long long)step));
    TRY(key_start_set_range(advisor, keys, newest_key(&numbers), false, finding));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        bytes key = row_to_show(keys->seen, i)->key, better;
        finding_add_key(finding, key);
        TRY(better_than_number(advisor, keys, key, &better));
        if (better.size > 0)
            finding_add_better(finding, key, better);
    }
    return status_ok();
}
