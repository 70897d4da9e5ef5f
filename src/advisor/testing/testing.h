/* Samples that tests make up: rows whose keys are printed, ten neighbours a place. */
#ifndef TRESTLE_ADVISOR_TESTING_TESTING_H
#define TRESTLE_ADVISOR_TESTING_TESTING_H

#include <stdio.h>
#include <stdlib.h>

#include "advisor/advice.h"
#include "advisor/thresholds.h"
#include "base/testing/testing.h"
#include "base/utf8.h"

enum { SAMPLE_ROWS = 1000, SAMPLE_KEY = 80, SAMPLE_PLACE = 10 };

#define SAMPLE_NOW_US (1760000000 * SECOND_US) /* October 2025 */

struct made_sample {
    struct arena *arena;
    struct advice_row rows[SAMPLE_ROWS];
    struct advice_family families[FAMILIES + 1];
    struct advice_observations seen;
    struct advice advice;
};

static inline int sample_setup(void **state)
{
    struct made_sample *sample = *state = calloc(1, sizeof *sample);
    assert_non_null(sample);
    sample->arena = arena_create(256 << 20);
    assert_non_null(sample->arena);
    sample->families[0] =
        (struct advice_family){.name = "f", .has_rule = true, .most_age_us = INT64_MAX};
    sample->seen = (struct advice_observations){.table_id = "t",
                                                .now_us = SAMPLE_NOW_US,
                                                .rows = sample->rows,
                                                .families = sample->families,
                                                .family_count = 1};
    return 0;
}

static inline int sample_teardown(void **state)
{
    struct made_sample *sample = *state;
    arena_destroy(sample->arena);
    free(sample);
    return 0;
}

static inline int order_of_sample(const void *a, const void *b)
{
    const struct advice_row *left = a, *right = b;
    return bytes_compare(left->key, right->key);
}

/* A row with one cell. */
static inline void sample_add(struct made_sample *sample, bytes key)
{
    struct advice_row *row = &sample->rows[sample->seen.row_count++];
    assert_true(sample->seen.row_count <= SAMPLE_ROWS);
    *row = (struct advice_row){.key = arena_copy(sample->arena, key), .size = key.size + 1};
    row->cells = arena_zalloc(sample->arena, sizeof *row->cells);
    assert_non_null(row->cells);
    row->cell_count = 1;
    row->cells[0] = (struct advice_cell){.qualifier = bytes_of("q"), .size = 1};
}

/* In the order of keys; each ten are of one place. */
static inline void sample_sort(struct made_sample *sample)
{
    qsort(sample->rows, sample->seen.row_count, sizeof *sample->rows, order_of_sample);
    for (size_t i = 0; i < sample->seen.row_count; i++)
        sample->rows[i].place = (uint32_t)(i / SAMPLE_PLACE);
}

/* Whatever keys and names have in them, what is said is text that changes nothing on a terminal. */
static inline void sample_check_words(const struct made_sample *sample)
{
    for (size_t i = 0; i < sample->advice.count; i++) {
        bytes words = bytes_of(sample->advice.findings[i].evidence);
        assert_true(utf8_is_valid(words));
        for (size_t at = 0; at < words.size; at++)
            assert_true(words.data[at] >= ' ' && words.data[at] != 0x7f);
    }
}

static inline void sample_look(struct made_sample *sample)
{
    sample_sort(sample);
    assert_ok(advice_find(&sample->seen, sample->arena, &sample->advice));
    sample_check_words(sample);
}

static inline const struct advice_finding *sample_finding(const struct made_sample *sample,
                                                          const char *rule)
{
    for (size_t i = 0; i < sample->advice.count; i++)
        if (strcmp(sample->advice.findings[i].rule->id, rule) == 0)
            return &sample->advice.findings[i];
    return NULL;
}

/* Asserts that this rule is all that is found; NULL: nothing is. */
static inline void sample_expect(struct made_sample *sample, const char *rule)
{
    sample_look(sample);
    for (size_t i = 0; i < sample->advice.count; i++)
        if (rule == NULL || strcmp(sample->advice.findings[i].rule->id, rule) != 0)
            fail_msg("found %s: %s", sample->advice.findings[i].rule->id,
                     sample->advice.findings[i].evidence);
    if (rule != NULL && sample_finding(sample, rule) == NULL)
        fail_msg("%s was not found", rule);
}

#endif
