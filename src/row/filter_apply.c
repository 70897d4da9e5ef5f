/* Applies a compiled filter to a row's cells: see filter.h.
 *
 * A filter is a function from a list of cells to a list of cells. Most only drop or change cells,
 * so lists are changed in place; an interleave copies its input for each branch and merges what
 * comes out. What a sink takes bypasses every filter around it and is merged into the result at the
 * end.
 *
 * All lists are in the order of the API: by family, qualifier, newest first. Families lie in the
 * schema's array by name, so their addresses order them. */
#include "row/filter_private.h"

#include "base/check.h"

#include <math.h>

/* Interleaves in a chain double their cells each; a few hundred bytes of filter could ask for more
 * cells than there are atoms. */
enum { MOST_CELLS_ADDED = 2000000 };

struct application {
    struct arena *arena;
    bytes row_key;
    uint64_t random;
    struct value_source *left; /* NULL: all values are there */
    size_t most_cells;
    struct cell_list sunk;
};

static status run(struct application *application, const struct filter *filter,
                  struct cell_list *list);

/* --- lists --- */

static status copy_list(struct application *application, const struct cell_list *from,
                        struct cell_list *to)
{
    DCHECK(from->count <= from->capacity);
    *to = (struct cell_list){.arena = application->arena};
    if (from->count == 0)
        return status_ok();
    to->items = arena_alloc(to->arena, from->count * sizeof *to->items);
    if (to->items == NULL)
        return status_out_of_memory();
    memcpy(to->items, from->items, from->count * sizeof *to->items);
    to->count = to->capacity = from->count;
    return status_ok();
}

/* Negative, zero or positive as `a` comes before, with or after `b`. */
static int compare_cells(const struct cell *a, const struct cell *b)
{
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    int order = bytes_compare(a->qualifier, b->qualifier);
    if (order != 0)
        return order;
    return a->timestamp_us > b->timestamp_us ? -1 : a->timestamp_us < b->timestamp_us;
}

/* `out` may be one of the two. */
static status merge_lists(struct application *application, const struct cell_list *a,
                          const struct cell_list *b, struct cell_list *out)
{
    size_t count = a->count + b->count;
    if (a->count == 0 || b->count == 0) {
        *out = a->count == 0 ? *b : *a;
        return status_ok();
    }
    if (count > application->most_cells)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The filter makes more than %zu cells of a row",
                           application->most_cells);
    struct cell *merged = arena_alloc(application->arena, count * sizeof *merged);
    if (merged == NULL)
        return status_out_of_memory();
    struct cell *to = merged;
    size_t i = 0;
    size_t j = 0;
    while (i < a->count && j < b->count)
        *to++ = compare_cells(&a->items[i], &b->items[j]) <= 0 ? a->items[i++] : b->items[j++];
    while (i < a->count)
        *to++ = a->items[i++];
    while (j < b->count)
        *to++ = b->items[j++];
    *out = (struct cell_list){
        .arena = application->arena, .items = merged, .count = count, .capacity = count};
    return status_ok();
}

/* Merges adjacent pairs until one list is left, so that each cell moves log(count) times. */
static status merge_all(struct application *application, struct cell_list *lists, size_t count,
                        struct cell_list *out)
{
    for (; count > 1; count = (count + 1) / 2) {
        for (size_t i = 0; i + 1 < count; i += 2)
            TRY(merge_lists(application, &lists[i], &lists[i + 1], &lists[i / 2]));
        if (count % 2 == 1)
            lists[count / 2] = lists[count - 1];
    }
    *out = lists[0];
    return status_ok();
}

/* --- filters of filters --- */

static status run_chain(struct application *application, const struct filter *filter,
                        struct cell_list *list)
{
    for (size_t i = 0; i < filter->child_count && list->count > 0; i++)
        TRY(run(application, filter->children[i], list));
    return status_ok();
}

static status run_interleave(struct application *application, const struct filter *filter,
                             struct cell_list *list)
{
    struct cell_list *branches =
        arena_alloc(application->arena, filter->child_count * sizeof *branches);
    if (branches == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < filter->child_count; i++) {
        TRY(copy_list(application, list, &branches[i]));
        TRY(run(application, filter->children[i], &branches[i]));
    }
    return merge_all(application, branches, filter->child_count, list);
}

static status run_condition(struct application *application, const struct filter *filter,
                            struct cell_list *list)
{
    struct cell_list seen;
    TRY(copy_list(application, list, &seen));
    TRY(run(application, filter->children[CONDITION_PREDICATE], &seen));
    const struct filter *branch =
        filter->children[seen.count > 0 ? CONDITION_THEN : CONDITION_OTHERWISE];
    if (branch != NULL)
        return run(application, branch, list);
    list->count = 0;
    return status_ok();
}

static status run_sink(struct application *application, struct cell_list *list)
{
    struct cell_list taken;
    TRY(copy_list(application, list, &taken));
    list->count = 0;
    struct cell_list before = application->sunk;
    return merge_lists(application, &before, &taken, &application->sunk);
}

/* --- filters that look at one cell at a time --- */

static bool matches_mask(bytes value, bytes mask)
{
    bool matches = value.size == mask.size;
    for (size_t i = 0; i < mask.size && matches; i++)
        matches = (value.data[i] & mask.data[i]) == mask.data[i];
    return matches;
}

static bool passes(const struct filter *filter, const struct cell *cell)
{
    switch (filter->kind) {
    case FILTER_FAMILY_REGEX:
        return regex_matches(filter->regex, cell->family->name);
    case FILTER_QUALIFIER_REGEX:
        return regex_matches(filter->regex, cell->qualifier);
    case FILTER_VALUE_REGEX:
        return regex_matches(filter->regex, cell->value);
    case FILTER_COLUMN_RANGE:
        return bytes_equal(filter->family, cell->family->name) &&
               byte_range_contains(&filter->range, cell->qualifier);
    case FILTER_VALUE_RANGE:
        return byte_range_contains(&filter->range, cell->value);
    case FILTER_VALUE_BITMASK:
        return matches_mask(cell->value, filter->mask);
    case FILTER_TIMESTAMP_RANGE:
        return cell->timestamp_us >= filter->start_us && cell->timestamp_us < filter->end_us;
    default:
        return true;
    }
}

static void keep_passing(const struct filter *filter, struct cell_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (passes(filter, &list->items[i]))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

/* Whether a value says no by its size, which is known of those that were left in the store. */
static bool is_of_wrong_size(const struct filter *filter, bytes value)
{
    return filter->kind == FILTER_VALUE_BITMASK && value.size != filter->mask.size;
}

static status judge_value(struct application *application, const struct filter *filter,
                          const struct cell *cell, bool *has_passed)
{
    struct cell seen = *cell;
    *has_passed = false;
    if (is_of_wrong_size(filter, cell->value))
        return status_ok();
    if (cell_is_deferred(cell))
        TRY(application->left->get(application->left, cell, &seen.value));
    *has_passed = passes(filter, &seen);
    return status_ok();
}

/* Of a row of which values were left in the store: each is held no longer than it is judged. */
static status keep_by_values(struct application *application, const struct filter *filter,
                             struct cell_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool has_passed;
        TRY(judge_value(application, filter, &list->items[i], &has_passed));
        if (has_passed)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    return status_ok();
}

/* --- filters that count --- */

static bool same_column(const struct cell *a, const struct cell *b)
{
    return a->family == b->family && bytes_equal(a->qualifier, b->qualifier);
}

static void limit_columns(struct cell_list *list, size_t most)
{
    DCHECK(list->count <= list->capacity);
    size_t kept = 0;
    size_t in_column = 0;
    const struct cell *items = list->items;
    for (size_t i = 0; i < list->count; i++) {
        /* The cell kept last is of this column, or this is the column's first. */
        in_column = i > 0 && same_column(&items[i], &items[kept - 1]) ? in_column + 1 : 1;
        if (in_column <= most)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

static void skip_cells(struct cell_list *list, size_t count)
{
    DCHECK(list->count <= list->capacity);
    if (count > list->count)
        count = list->count;
    list->items += count;
    list->capacity -= count;
    list->count -= count;
}

static void limit_row(struct cell_list *list, size_t most)
{
    DCHECK(list->count <= list->capacity);
    if (list->count > most)
        list->count = most;
}

/* --- filters that change cells --- */

static void strip_values(struct cell_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->items[i].value = bytes_make(NULL, 0);
}

/* Labels of a cell are listed newest first while filters run, and turned round at the end. */
static status add_label(struct application *application, bytes text, struct cell_list *list)
{
    struct label *labels = arena_alloc(application->arena, list->count * sizeof *labels);
    if (labels == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < list->count; i++) {
        labels[i] = (struct label){.text = text, .next = list->items[i].labels};
        list->items[i].labels = &labels[i];
    }
    return status_ok();
}

static status turn_labels(struct arena *arena, struct cell *cell)
{
    const struct label *turned = NULL;
    for (const struct label *at = cell->labels; at != NULL; at = at->next) {
        struct label *copy = arena_alloc(arena, sizeof *copy);
        if (copy == NULL)
            return status_out_of_memory();
        *copy = (struct label){.text = at->text, .next = turned};
        turned = copy;
    }
    cell->labels = turned;
    return status_ok();
}

/* --- any filter --- */

static bool is_sampled(const struct application *application, double probability)
{
    return (double)application->random < ldexp(probability, 64);
}

static status run(struct application *application, const struct filter *filter,
                  struct cell_list *list)
{
    switch (filter->kind) {
    case FILTER_PASS:
        return status_ok();
    case FILTER_BLOCK:
        list->count = 0;
        return status_ok();
    case FILTER_CHAIN:
        return run_chain(application, filter, list);
    case FILTER_INTERLEAVE:
        return run_interleave(application, filter, list);
    case FILTER_CONDITION:
        return run_condition(application, filter, list);
    case FILTER_SINK:
        return run_sink(application, list);
    case FILTER_KEY_REGEX:
        if (!regex_matches(filter->regex, application->row_key))
            list->count = 0;
        return status_ok();
    case FILTER_ROW_SAMPLE:
        if (!is_sampled(application, filter->probability))
            list->count = 0;
        return status_ok();
    case FILTER_ROW_OFFSET:
        skip_cells(list, (size_t)filter->count);
        return status_ok();
    case FILTER_ROW_LIMIT:
        limit_row(list, (size_t)filter->count);
        return status_ok();
    case FILTER_COLUMN_LIMIT:
        limit_columns(list, (size_t)filter->count);
        return status_ok();
    case FILTER_STRIP_VALUE:
        strip_values(list);
        return status_ok();
    case FILTER_LABEL:
        return add_label(application, filter->label, list);
    default:
        if (application->left != NULL && filter_is_of_values(filter))
            return keep_by_values(application, filter, list);
        keep_passing(filter, list);
        return status_ok();
    }
}

status filter_apply(const struct filter *filter, bytes row_key, const struct cell_list *in,
                    uint64_t random, struct value_source *left, struct cell_list *out)
{
    struct application application = {.arena = out->arena,
                                      .row_key = row_key,
                                      .random = random,
                                      .left = left,
                                      .most_cells = in->count + MOST_CELLS_ADDED,
                                      .sunk = {.arena = out->arena}};
    TRY(copy_list(&application, in, out));
    if (filter == NULL || in->count == 0)
        return status_ok();
    TRY(run(&application, filter, out));
    if (application.sunk.count > 0) {
        struct cell_list passed = *out;
        TRY(merge_lists(&application, &application.sunk, &passed, out));
    }
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].labels != NULL && out->items[i].labels->next != NULL)
            TRY(turn_labels(out->arena, &out->items[i]));
    return status_ok();
}
