/* See request_usage.h. */
#include "bigtable/request_usage.h"

enum { DEPTH = 8, KEYS_MOST = 16, COLUMNS_MOST = USAGE_COLUMNS_BYTES };

/* --- filters --- */

/* Whether a pattern is names alone, with bars between them. */
static bool is_names(bytes pattern)
{
    for (size_t i = 0; i < pattern.size; i++)
        if (strchr("\\.*+?()[]{}^$", pattern.data[i]) != NULL) /* and no zero byte */
            return false;
    return pattern.size > 0;
}

/* The name up to the first bar, which is taken off. */
static bytes next_name(bytes *names)
{
    const uint8_t *bar = memchr(names->data, '|', names->size);
    size_t size = bar == NULL ? names->size : (size_t)(bar - names->data);
    bytes name = bytes_make(names->data, size);
    *names = bytes_from(*names, bar == NULL ? size : size + 1);
    return name;
}

/* The names on the way down a filter: a chain's family goes for the columns behind it. */
struct looking {
    struct filter_look *out;
    bytes families; /* a pattern of names; empty: none */
};

static void add_families(struct looking *looking, bytes names)
{
    while (names.size > 0) {
        looking->out->family = next_name(&names);
        usage_columns_add(&looking->out->columns, looking->out->family, false, names);
    }
}

/* Adds qualifiers of the family that stands before them, if it is one. */
static void add_qualifiers(struct looking *looking, bytes names)
{
    bytes family = looking->families;
    if (family.size > 0 && memchr(family.data, '|', family.size) != NULL) {
        looking->out->is_plain = false;
        return;
    }
    while (names.size > 0) {
        looking->out->family = family;
        looking->out->qualifier = next_name(&names);
        usage_columns_add(&looking->out->columns, family, true, looking->out->qualifier);
    }
}

static void add_column_range(struct looking *looking, const Bt__ColumnRange *range)
{
    bytes family = bytes_of(range->family_name), start = {0}, end = {0};
    if (range->start_qualifier_case == BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED)
        start = proto_bytes(range->start_qualifier_closed);
    if (range->end_qualifier_case == BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED)
        end = proto_bytes(range->end_qualifier_closed);
    bool is_column = start.size > 0 && bytes_equal(start, end);
    looking->out->family = family;
    if (is_column)
        looking->out->qualifier = start;
    usage_columns_add(&looking->out->columns, family, is_column, start);
}

static void choose_by(struct looking *looking, enum usage_scan_kind kind)
{
    if (looking->out->kind < kind)
        looking->out->kind = kind;
}

static void look_at(struct looking looking, const Bt__RowFilter *filter, int depth);

/* Families at the head of a chain go for the qualifiers behind them, and are no columns of their
 * own then. */
static bool is_family_of_next(const Bt__RowFilter *filter, const Bt__RowFilter *next)
{
    return filter->filter_case == BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER &&
           next->filter_case == BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER;
}

static void look_at_chain(struct looking looking, const Bt__RowFilter__Chain *chain, int depth)
{
    for (size_t i = 0; i < chain->n_filters; i++) {
        const Bt__RowFilter *filter = chain->filters[i];
        if (i + 1 < chain->n_filters && is_family_of_next(filter, chain->filters[i + 1])) {
            looking.families = bytes_of(filter->family_name_regex_filter);
            looking.out->is_plain &= is_names(looking.families);
            continue;
        }
        look_at(looking, filter, depth - 1);
    }
}

static void look_at_names(struct looking *looking, bytes pattern,
                          void (*add)(struct looking *, bytes names))
{
    if (is_names(pattern))
        add(looking, pattern);
    else
        looking->out->is_plain = false;
}

static void look_at(struct looking looking, const Bt__RowFilter *filter, int depth)
{
    switch (depth == 0 ? BT__ROW_FILTER__FILTER__NOT_SET : filter->filter_case) {
    case BT__ROW_FILTER__FILTER_CHAIN:
        look_at_chain(looking, filter->chain, depth);
        break;
    case BT__ROW_FILTER__FILTER_INTERLEAVE:
        for (size_t i = 0; i < filter->interleave->n_filters; i++)
            look_at(looking, filter->interleave->filters[i], depth - 1);
        break;
    case BT__ROW_FILTER__FILTER_CONDITION:
        looking.out->is_plain = false;
        if (filter->condition->predicate_filter != NULL)
            look_at(looking, filter->condition->predicate_filter, depth - 1);
        break;
    case BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER:
        choose_by(&looking, USAGE_BY_KEY);
        break;
    case BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER:
    case BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER:
    case BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER:
        choose_by(&looking, USAGE_BY_VALUE);
        break;
    case BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER:
        look_at_names(&looking, bytes_of(filter->family_name_regex_filter), add_families);
        break;
    case BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER:
        look_at_names(&looking, proto_bytes(filter->column_qualifier_regex_filter), add_qualifiers);
        break;
    case BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER:
        add_column_range(&looking, filter->column_range_filter);
        break;
    case BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER:
    case BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER:
    case BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER:
    case BT__ROW_FILTER__FILTER_PASS_ALL_FILTER:
        break;
    default:
        looking.out->is_plain = false;
    }
}

void request_usage_look(const Bt__RowFilter *filter, struct filter_look *out)
{
    *out = (struct filter_look){.is_plain = true};
    if (filter != NULL)
        look_at((struct looking){.out = out}, filter, DEPTH);
    out->is_plain &= !out->columns.failed && out->columns.size <= COLUMNS_MOST;
}

/* --- reads --- */

static struct usage_request request_of(const struct data_call *data, uint32_t weight)
{
    return (struct usage_request){.weight = weight,
                                  .caller = grpc_call_connection(data->call),
                                  .began_us = data->started_us,
                                  .ended_us =
                                      clock_steady_us(cluster_clock(data->bigtable->cluster))};
}

static bool is_of_keys(const struct row_ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (!ranges->items[i].is_point)
            return false;
    return true;
}

static void note_scan(const struct data_call *data, const Bt__ReadRowsRequest *request,
                      const struct row_ranges *ranges, const struct filter_look *look,
                      uint64_t seen, uint64_t answered)
{
    const struct key_range *first = &ranges->items[0], *last = &ranges->items[ranges->count - 1];
    const struct usage_scan scan = {.kind = look->kind,
                                    .profile = bytes_of(data->profile == NULL ? "" : data->profile),
                                    .is_whole = first->from.size == 0 && last->to.size == 0 &&
                                                ranges->count == 1 && request->rows_limit == 0,
                                    .start = first->from,
                                    .end = last->to,
                                    .family = look->family,
                                    .qualifier = look->qualifier,
                                    .seen = seen,
                                    .answered = answered};
    usage_note_scan(data->table, &scan);
}

static void note_read(const struct data_call *data, const struct row_ranges *ranges,
                      const struct filter_look *look, uint32_t weight)
{
    bytes keys[KEYS_MOST];
    struct usage_read read = {.request = request_of(data, weight),
                              .keys = keys,
                              .knows_columns = look->is_plain,
                              .columns = buffer_bytes(&look->columns)};
    if (is_of_keys(ranges) && ranges->count <= KEYS_MOST)
        for (; read.key_count < ranges->count; read.key_count++)
            keys[read.key_count] = ranges->items[read.key_count].from;
    usage_note_read(data->table, &read);
}

void request_usage_read(const struct data_call *data, const Bt__ReadRowsRequest *request,
                        const struct row_ranges *ranges, uint64_t seen, uint64_t answered)
{
    struct filter_look look;
    uint32_t weight = usage_weight(data->table, data->started_us);
    bool is_scan = ranges->count > 0 && !is_of_keys(ranges);
    if (ranges->count == 0 || (weight == 0 && !is_scan))
        return;
    request_usage_look(request->filter, &look);
    if (is_scan)
        note_scan(data, request, ranges, &look, seen, answered);
    if (weight > 0)
        note_read(data, ranges, &look, weight);
    buffer_free(&look.columns);
}

/* --- writes --- */

void request_usage_write(const struct data_call *data, bytes row_key,
                         Bt__Mutation *const *mutations, size_t count)
{
    uint32_t weight = usage_weight(data->table, data->started_us);
    if (weight == 0)
        return;
    struct usage_request request = request_of(data, weight);
    bool is_cell = count == 1 && mutations[0]->mutation_case == BT__MUTATION__MUTATION_SET_CELL;
    usage_note_write(data->table, &request, row_key, is_cell);
}

void request_usage_update(const struct data_call *data, const Bt__ReadModifyWriteRowRequest *given)
{
    uint32_t weight = usage_weight(data->table, data->started_us);
    if (weight == 0)
        return;
    const Bt__ReadModifyWriteRule *rule = given->rules[0];
    struct usage_request request = request_of(data, weight);
    if (rule->rule_case == BT__READ_MODIFY_WRITE_RULE__RULE_INCREMENT_AMOUNT)
        usage_note_increment(data->table, &request, proto_bytes(given->row_key),
                             bytes_of(rule->family_name), proto_bytes(rule->column_qualifier));
}
