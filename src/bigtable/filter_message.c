/* See filter_message.h. */
#include "bigtable/filter_message.h"

#include "base/limits.h"
#include "wire/proto.h"

static status describe(const Bt__RowFilter *message, struct arena *arena, int depth,
                       struct filter_spec *out);

/* --- filters of filters --- */

/* A child that is not there (NULL) stays so. */
static status describe_children(Bt__RowFilter *const *messages, size_t count, struct arena *arena,
                                int depth, struct filter_spec *out)
{
    struct filter_spec *children = arena_zalloc(arena, count * sizeof *children);
    const struct filter_spec **list = arena_zalloc(arena, count * sizeof *list);
    TRY(filter_check_depth(depth));
    if (children == NULL || list == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        if (messages[i] == NULL)
            continue;
        list[i] = &children[i];
        TRY(describe(messages[i], arena, depth + 1, &children[i]));
    }
    out->children = list;
    out->child_count = count;
    return status_ok();
}

/* Describes a list; of fewer than two only their number. */
static status describe_list(enum filter_kind kind, Bt__RowFilter *const *messages, size_t count,
                            struct arena *arena, int depth, struct filter_spec *out)
{
    out->kind = kind;
    return count < 2 ? status_ok() : describe_children(messages, count, arena, depth, out);
}

static status describe_condition(const Bt__RowFilter__Condition *message, struct arena *arena,
                                 int depth, struct filter_spec *out)
{
    Bt__RowFilter *const children[CONDITION_CHILDREN] = {
        [CONDITION_PREDICATE] = message->predicate_filter,
        [CONDITION_THEN] = message->true_filter,
        [CONDITION_OTHERWISE] = message->false_filter,
    };
    out->kind = FILTER_CONDITION;
    return describe_children(children, CONDITION_CHILDREN, arena, depth, out);
}

/* --- ranges --- */

static void describe_column_range(const Bt__ColumnRange *message, struct filter_spec *out)
{
    struct byte_range *range = &out->range;
    out->kind = FILTER_COLUMN_RANGE;
    out->family = bytes_of(message->family_name);
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
}

static void describe_value_range(const Bt__ValueRange *message, struct filter_spec *out)
{
    struct byte_range *range = &out->range;
    out->kind = FILTER_VALUE_RANGE;
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
}

static void describe_times(const Bt__TimestampRange *message, struct filter_spec *out)
{
    out->kind = FILTER_TIMESTAMP_RANGE;
    out->start_us = message->start_timestamp_micros;
    out->end_us = message->end_timestamp_micros;
}

/* --- what has one argument, or none --- */

static void set_flag(enum filter_kind kind, bool is_set, struct filter_spec *out)
{
    out->kind = kind;
    out->is_off = !is_set;
}

static void set_pattern(enum filter_kind kind, bytes pattern, struct filter_spec *out)
{
    out->kind = kind;
    out->pattern = pattern;
}

static void set_count(enum filter_kind kind, int32_t count, struct filter_spec *out)
{
    out->kind = kind;
    out->count = count;
}

static void describe_simple(const Bt__RowFilter *message, struct filter_spec *out)
{
    switch (message->filter_case) {
    case BT__ROW_FILTER__FILTER_SINK:
        set_flag(FILTER_SINK, message->sink, out);
        break;
    case BT__ROW_FILTER__FILTER_PASS_ALL_FILTER:
        set_flag(FILTER_PASS, message->pass_all_filter, out);
        break;
    case BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER:
        set_flag(FILTER_BLOCK, message->block_all_filter, out);
        break;
    case BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER:
        set_flag(FILTER_STRIP_VALUE, message->strip_value_transformer, out);
        break;
    case BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER:
        set_pattern(FILTER_KEY_REGEX, proto_bytes(message->row_key_regex_filter), out);
        break;
    case BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER:
        set_pattern(FILTER_FAMILY_REGEX, bytes_of(message->family_name_regex_filter), out);
        break;
    case BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER:
        set_pattern(FILTER_QUALIFIER_REGEX, proto_bytes(message->column_qualifier_regex_filter),
                    out);
        break;
    case BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER:
        set_pattern(FILTER_VALUE_REGEX, proto_bytes(message->value_regex_filter), out);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER:
        set_count(FILTER_ROW_OFFSET, message->cells_per_row_offset_filter, out);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER:
        set_count(FILTER_ROW_LIMIT, message->cells_per_row_limit_filter, out);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER:
        set_count(FILTER_COLUMN_LIMIT, message->cells_per_column_limit_filter, out);
        break;
    default: /* none set, or one that is newer than we are */
        out->kind = FILTER_PASS;
    }
}

/* --- any filter --- */

static status describe(const Bt__RowFilter *message, struct arena *arena, int depth,
                       struct filter_spec *out)
{
    switch (message->filter_case) {
    case BT__ROW_FILTER__FILTER_CHAIN:
        return describe_list(FILTER_CHAIN, message->chain->filters, message->chain->n_filters,
                             arena, depth, out);
    case BT__ROW_FILTER__FILTER_INTERLEAVE:
        return describe_list(FILTER_INTERLEAVE, message->interleave->filters,
                             message->interleave->n_filters, arena, depth, out);
    case BT__ROW_FILTER__FILTER_CONDITION:
        return describe_condition(message->condition, arena, depth, out);
    case BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER:
        describe_column_range(message->column_range_filter, out);
        return status_ok();
    case BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER:
        describe_value_range(message->value_range_filter, out);
        return status_ok();
    case BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER:
        out->kind = FILTER_VALUE_BITMASK;
        out->mask = proto_bytes(message->value_bitmask_filter->mask);
        return status_ok();
    case BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER:
        describe_times(message->timestamp_range_filter, out);
        return status_ok();
    case BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER:
        out->kind = FILTER_ROW_SAMPLE;
        out->probability = message->row_sample_filter;
        return status_ok();
    case BT__ROW_FILTER__FILTER_APPLY_LABEL_TRANSFORMER:
        out->kind = FILTER_LABEL;
        out->label = bytes_of(message->apply_label_transformer);
        return status_ok();
    default:
        describe_simple(message, out);
        return status_ok();
    }
}

status filter_message_compile(const Bt__RowFilter *message, struct arena *arena,
                              struct filter **out)
{
    struct filter_spec spec = {0};
    *out = NULL;
    if (message == NULL)
        return status_ok();
    if (protobuf_c_message_get_packed_size(&message->base) > LIMIT_FILTER_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT, "Row filter exceeds maximum size of %d bytes",
                           LIMIT_FILTER_BYTES);
    TRY(describe(message, arena, 1, &spec));
    return filter_compile(&spec, arena, out);
}
