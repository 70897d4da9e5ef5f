/* See export_filter.h. */
#include "cmd/transfer/export_filter.h"

#include "wire/json.h"
#include "wire/proto.h"

enum { PARTS_MOST = 3 };

static status read_json(const char *json, struct arena *arena, Bt__RowFilter **out)
{
    struct buffer wire = {0};
    ProtobufCMessage *decoded;
    status s = json_decode(&bt__row_filter__descriptor, bytes_of(json), &wire);
    if (status_is_ok(s) && wire.failed)
        s = status_out_of_memory();
    bytes kept = status_is_ok(s) ? arena_copy(arena, buffer_bytes(&wire)) : bytes_of("");
    buffer_free(&wire);
    if (status_is_ok(s) && kept.data == NULL)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = proto_decode(&bt__row_filter__descriptor, kept, arena, &decoded);
    if (status_is_ok(s)) {
        *out = (void *)decoded;
        return s;
    }
    status named = status_make(s.code, "--filter: %s", status_message(s));
    status_free(s);
    return named;
}

/* All of a family, or the one column of it. */
static status make_range(const char *family, const bytes *qualifier, struct arena *arena,
                         Bt__RowFilter **out)
{
    Bt__ColumnRange *range;
    PROTO_NEW(arena, *out, BT__ROW_FILTER__INIT);
    PROTO_NEW(arena, range, BT__COLUMN_RANGE__INIT);
    (*out)->filter_case = BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER;
    (*out)->column_range_filter = range;
    range->family_name = family;
    if (qualifier == NULL)
        return status_ok();
    range->start_qualifier_case = BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED;
    range->start_qualifier_closed = proto_data(*qualifier);
    range->end_qualifier_case = BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED;
    range->end_qualifier_closed = proto_data(*qualifier);
    return status_ok();
}

static status make_columns(const struct field_layout *layout, struct arena *arena,
                           Bt__RowFilter **out)
{
    Bt__RowFilter__Interleave *all;
    PROTO_NEW(arena, all, BT__ROW_FILTER__INTERLEAVE__INIT);
    all->filters = arena_alloc(arena, layout->column_count * sizeof *all->filters);
    if (all->filters == NULL)
        return status_out_of_memory();
    for (; all->n_filters < layout->column_count; all->n_filters++) {
        const struct field_column *column = &layout->columns[all->n_filters];
        TRY(make_range(column->family, &column->qualifier, arena, &all->filters[all->n_filters]));
    }
    *out = all->filters[0]; /* of one there is no interleave */
    if (all->n_filters == 1)
        return status_ok();
    PROTO_NEW(arena, *out, BT__ROW_FILTER__INIT);
    (*out)->filter_case = BT__ROW_FILTER__FILTER_INTERLEAVE;
    (*out)->interleave = all;
    return status_ok();
}

static status make_versions(uint64_t versions, struct arena *arena, Bt__RowFilter **out)
{
    PROTO_NEW(arena, *out, BT__ROW_FILTER__INIT);
    (*out)->filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER;
    (*out)->cells_per_column_limit_filter = (int32_t)versions;
    return status_ok();
}

status export_filter_make(const char *json, const struct field_layout *layout, uint64_t versions,
                          struct arena *arena, const Bt__RowFilter **out)
{
    Bt__RowFilter *filter;
    Bt__RowFilter__Chain *chain;
    *out = NULL;
    PROTO_NEW(arena, filter, BT__ROW_FILTER__INIT);
    PROTO_NEW(arena, chain, BT__ROW_FILTER__CHAIN__INIT);
    chain->filters = arena_alloc(arena, PARTS_MOST * sizeof *chain->filters);
    if (chain->filters == NULL)
        return status_out_of_memory();
    if (json != NULL)
        TRY(read_json(json, arena, &chain->filters[chain->n_filters++]));
    if (layout->column_count > 0)
        TRY(make_columns(layout, arena, &chain->filters[chain->n_filters++]));
    else if (layout->family != NULL)
        TRY(make_range(layout->family, NULL, arena, &chain->filters[chain->n_filters++]));
    if (versions > 0)
        TRY(make_versions(versions, arena, &chain->filters[chain->n_filters++]));
    filter->filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    filter->chain = chain;
    if (chain->n_filters > 0) /* of one there is no chain */
        *out = chain->n_filters == 1 ? chain->filters[0] : filter;
    return status_ok();
}
