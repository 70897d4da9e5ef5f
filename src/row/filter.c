/* Checks and compiles filters: see filter.h. Limits and wording are production's, as far as they
 * are known. */
#include "row/filter.h"

#include "base/check.h"
#include "base/limits.h"
#include "row/filter_private.h"

#include <ctype.h>

static status compile(const struct filter_spec *spec, struct arena *arena, int depth,
                      struct filter *out);

static status field_error(const char *field, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Error in field '%s' : %s", field, what);
}

/* --- filters of filters --- */

status filter_check_depth(int depth)
{
    if (depth <= LIMIT_FILTER_DEPTH)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Row filters must not be nested deeper than %d",
                       LIMIT_FILTER_DEPTH);
}

static status compile_children(const struct filter_spec *spec, struct arena *arena, int depth,
                               struct filter *out)
{
    size_t count = spec->child_count;
    TRY(filter_check_depth(depth));
    struct filter *children = arena_zalloc(arena, count * sizeof *children);
    out->children = arena_zalloc(arena, count * sizeof(*out->children));
    if (children == NULL || out->children == NULL)
        return status_out_of_memory();
    out->child_count = count;
    for (size_t i = 0; i < count; i++) {
        if (spec->children[i] == NULL)
            continue;
        out->children[i] = &children[i];
        TRY(compile(spec->children[i], arena, depth + 1, &children[i]));
    }
    return status_ok();
}

static size_t count_labels(const struct filter *chain)
{
    size_t labels = 0;
    for (size_t i = 0; i < chain->child_count; i++)
        labels += chain->children[i]->kind == FILTER_LABEL;
    return labels;
}

static status compile_chain(const struct filter_spec *spec, struct arena *arena, int depth,
                            struct filter *out)
{
    if (spec->child_count < 2)
        return status_make(STATUS_INVALID_ARGUMENT, "Chain must contain at least two RowFilters");
    TRY(compile_children(spec, arena, depth, out));
    if (count_labels(out) > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A chain may contain at most one apply_label_transformer");
    return status_ok();
}

static status compile_interleave(const struct filter_spec *spec, struct arena *arena, int depth,
                                 struct filter *out)
{
    if (spec->child_count < 2)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Interleave must contain at least two RowFilters");
    return compile_children(spec, arena, depth, out);
}

static status compile_condition(const struct filter_spec *spec, struct arena *arena, int depth,
                                struct filter *out)
{
    static const char *const names[CONDITION_CHILDREN] = {"condition filter predicate",
                                                          "condition filter true_filter",
                                                          "condition filter false_filter"};
    CHECK(spec->child_count == CONDITION_CHILDREN);
    if (spec->children[CONDITION_PREDICATE] == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "Condition must have a predicate_filter");
    TRY(compile_children(spec, arena, depth, out));
    for (size_t i = 0; i < CONDITION_CHILDREN; i++)
        if (out->children[i] != NULL && filter_contains(out->children[i], FILTER_SINK))
            return field_error(names[i], "sink cannot be nested in a condition filter");
    return status_ok();
}

/* --- flags --- */

static status check_flag(const struct filter_spec *spec, const char *field)
{
    if (!spec->is_off)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "%s must be true if set", field);
}

/* --- regular expressions --- */

static status compile_regex(bytes pattern, const char *field, struct filter *out)
{
    status s = regex_compile(pattern, &out->regex);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status named = field_error(field, status_message(s));
    status_free(s);
    return named;
}

/* For names that are never empty. */
static status compile_name_regex(bytes pattern, const char *field, struct filter *out)
{
    if (pattern.size == 0)
        return field_error(field, "argument must not be empty");
    return compile_regex(pattern, field, out);
}

/* Of those that a family's name may have, a dot alone means something else in a pattern. */
static bool is_of_name(uint8_t c)
{
    return isalnum(c) || c == '-' || c == '_' || c == '.';
}

/* What the pattern says if it is a family's name, as clients quote it: its characters, with a
 * backslash before what is no letter or digit. One that comes to a single name by its meaning
 * (`^name$`) is a pattern all the same. `*out` is empty for such. */
static status read_literal(bytes pattern, struct arena *arena, bytes *out)
{
    uint8_t *name = arena_alloc(arena, pattern.size);
    size_t size = 0;
    *out = bytes_make(NULL, 0);
    if (name == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < pattern.size; i++) {
        bool is_quoted = pattern.data[i] == '\\';
        i += is_quoted;
        if (i == pattern.size || !is_of_name(pattern.data[i]) ||
            (pattern.data[i] == '.' && !is_quoted) || (isalnum(pattern.data[i]) && is_quoted))
            return status_ok();
        name[size++] = pattern.data[i];
    }
    *out = bytes_make(name, size);
    return status_ok();
}

static status compile_family_regex(bytes pattern, struct arena *arena, struct filter *out)
{
    static const char field[] = "family_name_regex_filter";
    if (pattern.size > 0 && memchr(pattern.data, ':', pattern.size) != NULL)
        return field_error(field, "argument must not contain ':'");
    TRY(compile_name_regex(pattern, field, out));
    return read_literal(pattern, arena, &out->family);
}

/* --- ranges --- */

static status check_order(const struct byte_range *range, const char *field)
{
    if (range->has_start && range->has_end && bytes_compare(range->start, range->end) > 0)
        return field_error(field, "the start of the range must not be after its end");
    return status_ok();
}

static status compile_column_range(const struct filter_spec *spec, struct filter *out)
{
    out->family = spec->family;
    out->range = spec->range;
    if (spec->family.size == 0)
        return field_error("column_range_filter",
                           "Invalid id for collection columnFamilies : Length "
                           "should be between [1,64], but found 0");
    return check_order(&out->range, "column_range_filter");
}

static status compile_value_range(const struct filter_spec *spec, struct filter *out)
{
    out->range = spec->range;
    return check_order(&out->range, "value_range_filter");
}

static status compile_timestamp_range(const struct filter_spec *spec, struct filter *out)
{
    out->start_us = spec->start_us;
    out->end_us = spec->end_us == 0 ? INT64_MAX : spec->end_us;
    if (out->start_us < 0 || out->end_us < 0 || out->start_us > out->end_us)
        return field_error("timestamp_range_filter", "inverted or invalid timestamp range");
    return status_ok();
}

/* --- numbers and names --- */

static status compile_limit(const struct filter_spec *spec, const char *field, struct filter *out)
{
    out->count = spec->count;
    return spec->count > 0 ? status_ok() : field_error(field, "argument must be > 0");
}

static status compile_offset(const struct filter_spec *spec, struct filter *out)
{
    out->count = spec->count;
    return spec->count >= 0 ? status_ok()
                            : field_error("cells_per_row_offset_filter", "argument must be >= 0");
}

static status compile_sample(const struct filter_spec *spec, struct filter *out)
{
    out->probability = spec->probability;
    if (spec->probability > 0.0 && spec->probability < 1.0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "row_sample_filter argument must be between 0.0 and 1.0");
}

static bool is_of_label(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_label(bytes label)
{
    enum { LONGEST_LABEL = 15 };
    bool is_one = label.size > 0 && label.size <= LONGEST_LABEL;
    for (size_t i = 0; i < label.size && is_one; i++)
        is_one = is_of_label(label.data[i]);
    return is_one;
}

static status compile_label(const struct filter_spec *spec, struct filter *out)
{
    out->label = spec->label;
    if (is_label(spec->label))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "apply_label_transformer must match RE2([a-z0-9\\-]+), but found %.*s",
                       (int)spec->label.size, (const char *)spec->label.data);
}

/* --- any filter --- */

static status compile(const struct filter_spec *spec, struct arena *arena, int depth,
                      struct filter *out)
{
    out->kind = spec->kind;
    switch (spec->kind) {
    case FILTER_CHAIN:
        return compile_chain(spec, arena, depth, out);
    case FILTER_INTERLEAVE:
        return compile_interleave(spec, arena, depth, out);
    case FILTER_CONDITION:
        return compile_condition(spec, arena, depth, out);
    case FILTER_SINK:
        return check_flag(spec, "sink");
    case FILTER_PASS:
        return check_flag(spec, "pass_all_filter");
    case FILTER_BLOCK:
        return check_flag(spec, "block_all_filter");
    case FILTER_STRIP_VALUE:
        return check_flag(spec, "strip_value_transformer");
    case FILTER_KEY_REGEX:
        return compile_name_regex(spec->pattern, "row_key_regex_filter", out);
    case FILTER_FAMILY_REGEX:
        return compile_family_regex(spec->pattern, arena, out);
    case FILTER_QUALIFIER_REGEX:
        return compile_regex(spec->pattern, "column_qualifier_regex_filter", out);
    case FILTER_VALUE_REGEX:
        return compile_regex(spec->pattern, "value_regex_filter", out);
    case FILTER_COLUMN_RANGE:
        return compile_column_range(spec, out);
    case FILTER_VALUE_RANGE:
        return compile_value_range(spec, out);
    case FILTER_VALUE_BITMASK:
        out->mask = spec->mask;
        return status_ok();
    case FILTER_TIMESTAMP_RANGE:
        return compile_timestamp_range(spec, out);
    case FILTER_ROW_OFFSET:
        return compile_offset(spec, out);
    case FILTER_ROW_LIMIT:
        return compile_limit(spec, "cells_per_row_limit_filter", out);
    case FILTER_COLUMN_LIMIT:
        return compile_limit(spec, "cells_per_column_limit_filter", out);
    case FILTER_ROW_SAMPLE:
        return compile_sample(spec, out);
    case FILTER_LABEL:
        return compile_label(spec, out);
    }
    check_failed(__FILE__, __LINE__, "a kind of filters");
}

status filter_compile(const struct filter_spec *spec, struct arena *arena, struct filter **out)
{
    *out = NULL;
    if (spec == NULL)
        return status_ok();
    struct filter *filter = arena_zalloc(arena, sizeof *filter);
    if (filter == NULL)
        return status_out_of_memory();
    status s = compile(spec, arena, 1, filter);
    if (status_is_ok(s))
        *out = filter;
    else
        filter_destroy(filter);
    return s;
}

/* Also for a filter that was compiled in part: what was not reached is zero. */
void filter_destroy(struct filter *filter)
{
    if (filter == NULL)
        return;
    for (size_t i = 0; i < filter->child_count; i++)
        filter_destroy(filter->children[i]);
    regex_destroy(filter->regex);
    filter->regex = NULL;
}

bool filter_contains(const struct filter *filter, enum filter_kind kind)
{
    if (filter == NULL)
        return false;
    bool contains = filter->kind == kind;
    for (size_t i = 0; i < filter->child_count && !contains; i++)
        contains = filter_contains(filter->children[i], kind);
    return contains;
}

bool filter_looks_at_values(const struct filter *filter)
{
    return filter_contains(filter, FILTER_VALUE_REGEX) ||
           filter_contains(filter, FILTER_VALUE_RANGE) ||
           filter_contains(filter, FILTER_VALUE_BITMASK);
}

bool filter_names_only(const struct filter *filter, bool (*has)(void *context, bytes family),
                       void *context)
{
    if (filter == NULL)
        return true;
    bool is_known = filter->family.size == 0 || has(context, filter->family);
    for (size_t i = 0; i < filter->child_count && is_known; i++)
        is_known = filter_names_only(filter->children[i], has, context);
    return is_known;
}

bool byte_range_contains(const struct byte_range *range, bytes b)
{
    if (range->has_start) {
        int order = bytes_compare(b, range->start);
        if (order < 0 || (order == 0 && range->start_is_open))
            return false;
    }
    if (range->has_end) {
        int order = bytes_compare(b, range->end);
        if (order > 0 || (order == 0 && range->end_is_open))
            return false;
    }
    return true;
}
