/* See table_usage.h. */
#include "introspect/table_usage.h"

#include "cluster/usage_counts.h"

/* What is returned points into the state. */
static bytes example(const struct usage_state *state, enum usage_example which)
{
    return usage_text_get(&state->examples[which]);
}

static status take_scans(const struct usage_state *state, struct arena *arena,
                         struct advice_usage *out)
{
    static const enum advice_scan_kind kinds[USAGE_SCAN_KINDS] = {
        [USAGE_ALL_ROWS] = ADVICE_ALL_ROWS,
        [USAGE_BY_KEY] = ADVICE_BY_KEY,
        [USAGE_BY_VALUE] = ADVICE_BY_VALUE,
    };
    struct advice_scans *scans = arena_alloc(arena, state->scan_count * sizeof *scans);
    if (scans == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < state->scan_count; i++) {
        const struct usage_scans *from = &state->scans[i];
        scans[i] = (struct advice_scans){.kind = kinds[from->kind],
                                         .profile = usage_text_get(&from->profile),
                                         .scans = from->scans,
                                         .whole = from->whole,
                                         .seen = from->seen,
                                         .whole_seen = from->whole_seen,
                                         .answered = from->answered,
                                         .start = usage_text_get(&from->start),
                                         .end = usage_text_get(&from->end),
                                         .family = usage_text_get(&from->family),
                                         .qualifier = usage_text_get(&from->qualifier)};
    }
    out->scans = scans;
    out->scan_count = state->scan_count;
    return status_ok();
}

static status take_set(const struct usage_column_set *set, struct arena *arena,
                       struct advice_asked *out)
{
    struct advice_asked_column column = {0};
    bytes left = bytes_make(set->data, set->size);
    size_t count = 0;
    while (usage_columns_next(&left, &column.family, &column.has_qualifier, &column.qualifier))
        count++;
    struct advice_asked_column *columns = arena_alloc(arena, count * sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    left = bytes_make(set->data, set->size);
    for (size_t i = 0; i < count; i++)
        (void)usage_columns_next(&left, &columns[i].family, &columns[i].has_qualifier,
                                 &columns[i].qualifier);
    *out = (struct advice_asked){.reads = set->count, .columns = columns, .count = count};
    return status_ok();
}

static status take_columns(const struct usage_state *state, struct arena *arena,
                           struct advice_usage *out)
{
    struct advice_asked *asked = arena_alloc(arena, state->column_count * sizeof *asked);
    if (asked == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < state->column_count; i++)
        TRY(take_set(&state->columns[i], arena, &asked[i]));
    out->asked = asked;
    out->asked_count = state->column_count;
    return status_ok();
}

static void take_examples(const struct usage_state *state, struct advice_usage *out)
{
    out->rising_read_key = example(state, USAGE_RISING_READ_KEY);
    out->scattered_keys[0] = example(state, USAGE_SCATTERED_KEY);
    out->scattered_keys[1] = example(state, USAGE_OTHER_SCATTERED_KEY);
    out->rising_write_key = example(state, USAGE_RISING_WRITE_KEY);
    out->rewritten_key = example(state, USAGE_REWRITTEN_KEY);
    out->incremented_key = example(state, USAGE_INCREMENTED_KEY);
    out->incremented_family = example(state, USAGE_INCREMENTED_FAMILY);
    out->incremented_qualifier = example(state, USAGE_INCREMENTED_QUALIFIER);
}

static uint64_t votes_of(const struct usage_state *state)
{
    uint64_t votes = 0;
    for (size_t i = 0; i < USAGE_FAVOURITES; i++)
        votes += state->favourites[i].votes;
    return votes;
}

static void take_numbers(const struct usage_state *state, struct advice_usage *out)
{
    const uint64_t *numbers = state->numbers;
    out->from_us = state->from_us;
    out->reads = numbers[USAGE_READS];
    out->single_reads = numbers[USAGE_SINGLE_READS];
    out->rising_reads = numbers[USAGE_RISING_READS];
    out->several_reads = numbers[USAGE_SEVERAL_READS];
    out->scattered_reads = numbers[USAGE_SCATTERED_READS];
    out->single_writes = numbers[USAGE_SINGLE_WRITES];
    out->rising_writes = numbers[USAGE_RISING_WRITES];
    out->rewrites = numbers[USAGE_REWRITES];
    out->few_rewrites = votes_of(state);
    out->increments = numbers[USAGE_INCREMENTS];
}

status table_read_usage(struct table *table, int64_t since_us, struct arena *arena,
                        struct advice_usage *out)
{
    struct usage_state *state = arena_alloc(arena, sizeof *state);
    *out = (struct advice_usage){.from_us = 0};
    if (state == NULL)
        return status_out_of_memory();
    TRY(usage_look(table, since_us, state));
    take_numbers(state, out);
    take_examples(state, out);
    TRY(take_scans(state, arena, out));
    return take_columns(state, arena, out);
}
