/* A row filter in words: see describe.h. */
#include "bigtable/describe.h"
#include "wire/proto.h"

#include <inttypes.h>

enum {
    WORDS_MOST = 1500, /* bytes, after which no further part begins */
};

static void append(struct buffer *out, const char *words)
{
    buffer_append_bytes(out, bytes_of(words));
}

static void append_quoted(struct buffer *out, bytes b)
{
    buffer_append_quoted(out, b, DESCRIBE_BYTES_MOST);
}

static void append_pattern(struct buffer *out, const char *what, bytes pattern)
{
    append(out, what);
    append(out, " matches ");
    append_quoted(out, pattern);
}

/* --- ranges --- */

static void append_column_range(struct buffer *out, const Bt__ColumnRange *range)
{
    append(out, "columns of ");
    append_quoted(out, bytes_of(range->family_name));
    switch (range->start_qualifier_case) {
    case BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED:
        append(out, " from ");
        append_quoted(out, proto_bytes(range->start_qualifier_closed));
        break;
    case BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_OPEN:
        append(out, " behind ");
        append_quoted(out, proto_bytes(range->start_qualifier_open));
        break;
    default:
        break;
    }
    switch (range->end_qualifier_case) {
    case BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED:
        append(out, " up to ");
        append_quoted(out, proto_bytes(range->end_qualifier_closed));
        break;
    case BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_OPEN:
        append(out, " before ");
        append_quoted(out, proto_bytes(range->end_qualifier_open));
        break;
    default:
        break;
    }
}

static void append_timestamps(struct buffer *out, const Bt__TimestampRange *range)
{
    append(out, "timestamps");
    if (range->start_timestamp_micros != 0)
        buffer_append_format(out, " from %" PRId64, range->start_timestamp_micros);
    if (range->end_timestamp_micros != 0)
        buffer_append_format(out, " before %" PRId64, range->end_timestamp_micros);
}

/* --- filters of filters --- */

static bool is_long(const struct buffer *out, size_t start)
{
    return out->size - start > WORDS_MOST || out->failed;
}

static void append_filter(const Bt__RowFilter *filter, size_t start, struct buffer *out);

static void append_list(Bt__RowFilter *const *filters, size_t count, const char *between,
                        size_t start, struct buffer *out)
{
    append(out, "(");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            append(out, between);
        if (is_long(out, start)) {
            buffer_append_format(out, "%zu more", count - i);
            break;
        }
        append_filter(filters[i], start, out);
    }
    append(out, ")");
}

static void append_condition(const Bt__RowFilter__Condition *condition, size_t start,
                             struct buffer *out)
{
    append(out, "(if ");
    append_filter(condition->predicate_filter, start, out);
    append(out, " then ");
    append_filter(condition->true_filter, start, out);
    append(out, " else ");
    append_filter(condition->false_filter, start, out);
    append(out, ")");
}

/* --- one --- */

static void append_patterns(const Bt__RowFilter *filter, struct buffer *out)
{
    switch (filter->filter_case) {
    case BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER:
        append_pattern(out, "key", proto_bytes(filter->row_key_regex_filter));
        break;
    case BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER:
        append_pattern(out, "family", bytes_of(filter->family_name_regex_filter));
        break;
    case BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER:
        append_pattern(out, "column", proto_bytes(filter->column_qualifier_regex_filter));
        break;
    case BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER:
        append(out, "value matches a pattern");
        break;
    case BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER:
        append(out, "value in a range");
        break;
    case BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER:
        append(out, "value has bits of a mask");
        break;
    default:
        append(out, "everything");
        break;
    }
}

static void append_simple(const Bt__RowFilter *filter, struct buffer *out)
{
    switch (filter->filter_case) {
    case BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER:
        append_column_range(out, filter->column_range_filter);
        break;
    case BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER:
        append_timestamps(out, filter->timestamp_range_filter);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER:
        buffer_append_format(out, "without the first %d cells",
                             filter->cells_per_row_offset_filter);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER:
        buffer_append_format(out, "%d cells a row", filter->cells_per_row_limit_filter);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER:
        buffer_append_format(out, "%d cells a column", filter->cells_per_column_limit_filter);
        break;
    case BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER:
        append(out, "values stripped");
        break;
    case BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER:
        buffer_append_format(out, "a sample of %g of the rows", filter->row_sample_filter);
        break;
    case BT__ROW_FILTER__FILTER_SINK:
        append(out, "sink");
        break;
    case BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER:
        append(out, "nothing");
        break;
    case BT__ROW_FILTER__FILTER_APPLY_LABEL_TRANSFORMER:
        append_pattern(out, "label", bytes_of(filter->apply_label_transformer));
        break;
    default:
        append_patterns(filter, out);
        break;
    }
}

/* No deeper than a message is decoded. */
static void append_filter(const Bt__RowFilter *filter, size_t start, struct buffer *out)
{
    if (filter == NULL)
        append(out, "nothing");
    else if (filter->filter_case == BT__ROW_FILTER__FILTER_CHAIN)
        append_list(filter->chain->filters, filter->chain->n_filters, ", then ", start, out);
    else if (filter->filter_case == BT__ROW_FILTER__FILTER_INTERLEAVE)
        append_list(filter->interleave->filters, filter->interleave->n_filters, " and besides ",
                    start, out);
    else if (filter->filter_case == BT__ROW_FILTER__FILTER_CONDITION)
        append_condition(filter->condition, start, out);
    else
        append_simple(filter, out);
}

void describe_filter(const Bt__RowFilter *filter, struct buffer *out)
{
    if (filter == NULL)
        return;
    append(out, "filter: ");
    append_filter(filter, out->size, out);
    append(out, "\n");
}
