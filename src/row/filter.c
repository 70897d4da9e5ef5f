/* Checks and compiles filters: see filter.h. Limits and wording are production's, as far as they
 * are known. */
#include "row/filter.h"

#include "base/limits.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "row/filter_private.h"
#include "wire/proto.h"

#include <ctype.h>

static status compile(const Bt__RowFilter *message, struct arena *arena, int depth,
                      struct filter *out);

static status field_error(const char *field, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Error in field '%s' : %s", field, what);
}

/* --- filters of filters --- */

static bool is_too_deep(int depth)
{
    return depth > LIMIT_FILTER_DEPTH;
}

static status compile_children(Bt__RowFilter *const *messages, size_t count, struct arena *arena,
                               int depth, struct filter *out)
{
    if (is_too_deep(depth))
        return status_make(STATUS_INVALID_ARGUMENT, "Row filters must not be nested deeper than %d",
                           LIMIT_FILTER_DEPTH);
    struct filter *children = arena_zalloc(arena, count * sizeof *children);
    out->children = arena_zalloc(arena, count * sizeof(*out->children));
    if (children == NULL || out->children == NULL)
        return status_out_of_memory();
    out->child_count = count;
    for (size_t i = 0; i < count; i++) {
        if (messages[i] == NULL)
            continue;
        out->children[i] = &children[i];
        TRY(compile(messages[i], arena, depth + 1, &children[i]));
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

static status compile_chain(const Bt__RowFilter__Chain *message, struct arena *arena, int depth,
                            struct filter *out)
{
    out->kind = FILTER_CHAIN;
    if (message->n_filters < 2)
        return status_make(STATUS_INVALID_ARGUMENT, "Chain must contain at least two RowFilters");
    TRY(compile_children(message->filters, message->n_filters, arena, depth, out));
    if (count_labels(out) > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A chain may contain at most one apply_label_transformer");
    return status_ok();
}

static status compile_interleave(const Bt__RowFilter__Interleave *message, struct arena *arena,
                                 int depth, struct filter *out)
{
    out->kind = FILTER_INTERLEAVE;
    if (message->n_filters < 2)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Interleave must contain at least two RowFilters");
    return compile_children(message->filters, message->n_filters, arena, depth, out);
}

static status compile_condition(const Bt__RowFilter__Condition *message, struct arena *arena,
                                int depth, struct filter *out)
{
    Bt__RowFilter *const children[CONDITION_CHILDREN] = {
        message->predicate_filter, message->true_filter, message->false_filter};
    static const char *const names[CONDITION_CHILDREN] = {"condition filter predicate",
                                                          "condition filter true_filter",
                                                          "condition filter false_filter"};
    out->kind = FILTER_CONDITION;
    if (message->predicate_filter == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "Condition must have a predicate_filter");
    TRY(compile_children(children, CONDITION_CHILDREN, arena, depth, out));
    for (size_t i = 0; i < CONDITION_CHILDREN; i++)
        if (out->children[i] != NULL && filter_contains(out->children[i], FILTER_SINK))
            return field_error(names[i], "sink cannot be nested in a condition filter");
    return status_ok();
}

/* --- flags --- */

static status compile_flag(bool is_set, const char *field, enum filter_kind kind,
                           struct filter *out)
{
    out->kind = kind;
    if (is_set)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "%s must be true if set", field);
}

/* --- regular expressions --- */

static status compile_regex(bytes pattern, const char *field, enum filter_kind kind,
                            struct filter *out)
{
    out->kind = kind;
    status s = regex_compile(pattern, &out->regex);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status named = field_error(field, status_message(s));
    status_free(s);
    return named;
}

/* For names that are never empty. */
static status compile_name_regex(bytes pattern, const char *field, enum filter_kind kind,
                                 struct filter *out)
{
    if (pattern.size == 0)
        return field_error(field, "argument must not be empty");
    return compile_regex(pattern, field, kind, out);
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
    TRY(compile_name_regex(pattern, field, FILTER_FAMILY_REGEX, out));
    return read_literal(pattern, arena, &out->family);
}

/* --- ranges --- */

static status check_order(const struct byte_range *range, const char *field)
{
    if (range->has_start && range->has_end && bytes_compare(range->start, range->end) > 0)
        return field_error(field, "the start of the range must not be after its end");
    return status_ok();
}

static status compile_column_range(const Bt__ColumnRange *message, struct filter *out)
{
    out->kind = FILTER_COLUMN_RANGE;
    out->family = bytes_of(message->family_name);
    struct byte_range *range = &out->range;
    range->has_start = message->start_qualifier_case != BT__COLUMN_RANGE__START_QUALIFIER__NOT_SET;
    range->start_is_open =
        message->start_qualifier_case == BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_OPEN;
    range->has_end = message->end_qualifier_case != BT__COLUMN_RANGE__END_QUALIFIER__NOT_SET;
    range->end_is_open =
        message->end_qualifier_case == BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_OPEN;
    if (range->has_start)
        range->start = proto_bytes(range->start_is_open ? message->start_qualifier_open
                                                        : message->start_qualifier_closed);
    if (range->has_end)
        range->end = proto_bytes(range->end_is_open ? message->end_qualifier_open
                                                    : message->end_qualifier_closed);
    if (message->family_name[0] == '\0')
        return field_error("column_range_filter",
                           "Invalid id for collection columnFamilies : Length "
                           "should be between [1,64], but found 0");
    return check_order(range, "column_range_filter");
}

static status compile_value_range(const Bt__ValueRange *message, struct filter *out)
{
    out->kind = FILTER_VALUE_RANGE;
    struct byte_range *range = &out->range;
    range->has_start = message->start_value_case != BT__VALUE_RANGE__START_VALUE__NOT_SET;
    range->start_is_open =
        message->start_value_case == BT__VALUE_RANGE__START_VALUE_START_VALUE_OPEN;
    range->has_end = message->end_value_case != BT__VALUE_RANGE__END_VALUE__NOT_SET;
    range->end_is_open = message->end_value_case == BT__VALUE_RANGE__END_VALUE_END_VALUE_OPEN;
    if (range->has_start)
        range->start = proto_bytes(range->start_is_open ? message->start_value_open
                                                        : message->start_value_closed);
    if (range->has_end)
        range->end =
            proto_bytes(range->end_is_open ? message->end_value_open : message->end_value_closed);
    return check_order(range, "value_range_filter");
}

static status compile_timestamp_range(const Bt__TimestampRange *message, struct filter *out)
{
    out->kind = FILTER_TIMESTAMP_RANGE;
    out->start_us = message->start_timestamp_micros;
    out->end_us = message->end_timestamp_micros == 0 ? INT64_MAX : message->end_timestamp_micros;
    if (out->start_us < 0 || out->end_us < 0 || out->start_us > out->end_us)
        return field_error("timestamp_range_filter", "inverted or invalid timestamp range");
    return status_ok();
}

/* --- numbers and names --- */

static status compile_limit(int32_t count, const char *field, enum filter_kind kind,
                            struct filter *out)
{
    out->kind = kind;
    out->count = count;
    return count > 0 ? status_ok() : field_error(field, "argument must be > 0");
}

static status compile_offset(int32_t count, struct filter *out)
{
    out->kind = FILTER_ROW_OFFSET;
    out->count = count;
    return count >= 0 ? status_ok()
                      : field_error("cells_per_row_offset_filter", "argument must be >= 0");
}

static status compile_sample(double probability, struct filter *out)
{
    out->kind = FILTER_ROW_SAMPLE;
    out->probability = probability;
    if (probability > 0.0 && probability < 1.0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "row_sample_filter argument must be between 0.0 and 1.0");
}

static bool is_label(const char *label)
{
    enum { LONGEST_LABEL = 15 };
    size_t length = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && length <= LONGEST_LABEL && label[length] == '\0';
}

static status compile_label(const char *label, struct filter *out)
{
    out->kind = FILTER_LABEL;
    out->label = bytes_of(label);
    if (is_label(label))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "apply_label_transformer must match RE2([a-z0-9\\-]+), but found %s", label);
}

/* --- any filter --- */

static status compile(const Bt__RowFilter *message, struct arena *arena, int depth,
                      struct filter *out)
{
    switch (message->filter_case) {
    case BT__ROW_FILTER__FILTER_CHAIN:
        return compile_chain(message->chain, arena, depth, out);
    case BT__ROW_FILTER__FILTER_INTERLEAVE:
        return compile_interleave(message->interleave, arena, depth, out);
    case BT__ROW_FILTER__FILTER_CONDITION:
        return compile_condition(message->condition, arena, depth, out);
    case BT__ROW_FILTER__FILTER_SINK:
        return compile_flag(message->sink, "sink", FILTER_SINK, out);
    case BT__ROW_FILTER__FILTER_PASS_ALL_FILTER:
        return compile_flag(message->pass_all_filter, "pass_all_filter", FILTER_PASS, out);
    case BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER:
        return compile_flag(message->block_all_filter, "block_all_filter", FILTER_BLOCK, out);
    case BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER:
        return compile_flag(message->strip_value_transformer, "strip_value_transformer",
                            FILTER_STRIP_VALUE, out);
    case BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER:
        return compile_name_regex(proto_bytes(message->row_key_regex_filter),
                                  "row_key_regex_filter", FILTER_KEY_REGEX, out);
    case BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER:
        return compile_family_regex(bytes_of(message->family_name_regex_filter), arena, out);
    case BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER:
        return compile_regex(proto_bytes(message->column_qualifier_regex_filter),
                             "column_qualifier_regex_filter", FILTER_QUALIFIER_REGEX, out);
    case BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER:
        return compile_regex(proto_bytes(message->value_regex_filter), "value_regex_filter",
                             FILTER_VALUE_REGEX, out);
    case BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER:
        return compile_column_range(message->column_range_filter, out);
    case BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER:
        return compile_value_range(message->value_range_filter, out);
    case BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER:
        out->kind = FILTER_VALUE_BITMASK;
        out->mask = proto_bytes(message->value_bitmask_filter->mask);
        return status_ok();
    case BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER:
        return compile_timestamp_range(message->timestamp_range_filter, out);
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER:
        return compile_offset(message->cells_per_row_offset_filter, out);
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER:
        return compile_limit(message->cells_per_row_limit_filter, "cells_per_row_limit_filter",
                             FILTER_ROW_LIMIT, out);
    case BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER:
        return compile_limit(message->cells_per_column_limit_filter,
                             "cells_per_column_limit_filter", FILTER_COLUMN_LIMIT, out);
    case BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER:
        return compile_sample(message->row_sample_filter, out);
    case BT__ROW_FILTER__FILTER_APPLY_LABEL_TRANSFORMER:
        return compile_label(message->apply_label_transformer, out);
    default: /* none set, or one that is newer than we are */
        out->kind = FILTER_PASS;
        return status_ok();
    }
}

status filter_compile(const Bt__RowFilter *message, struct arena *arena, struct filter **out)
{
    *out = NULL;
    if (message == NULL)
        return status_ok();
    if (protobuf_c_message_get_packed_size(&message->base) > LIMIT_FILTER_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT, "Row filter exceeds maximum size of %d bytes",
                           LIMIT_FILTER_BYTES);
    struct filter *filter = arena_zalloc(arena, sizeof *filter);
    if (filter == NULL)
        return status_out_of_memory();
    status s = compile(message, arena, 1, filter);
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
