/* The tables and views of an instance, as SQL sees them: see query_catalog.h. */
#include "bigtable/query_catalog.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/query_messages.h"
#include "bigtable/row_error.h"
#include "cluster/rows.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "sql/key_schema.h"
#include "wire/proto.h"

status query_expired(void)
{
    struct buffer detail = {0};
    Rpc__PreconditionFailure__Violation violation = RPC__PRECONDITION_FAILURE__VIOLATION__INIT;
    Rpc__PreconditionFailure__Violation *violations[] = {&violation};
    Rpc__PreconditionFailure failure = RPC__PRECONDITION_FAILURE__INIT;
    violation.type = "PREPARED_QUERY_EXPIRED";
    failure.violations = violations;
    failure.n_violations = 1;
    status s = status_make(STATUS_FAILED_PRECONDITION,
                           "The prepared query has expired. Please re-issue the ExecuteQuery with "
                           "a valid prepared query.");
    proto_encode(&failure.base, &detail);
    if (!detail.failed)
        status_add_detail(&s, "google.rpc.PreconditionFailure", buffer_bytes(&detail));
    buffer_free(&detail);
    return s;
}

/* --- columns --- */

static status add_column(struct vector *columns, struct arena *arena, const char *name,
                         enum sql_column_kind kind, const struct sql_type *type, bool is_hidden)
{
    struct sql_table_column column = {name, kind, type, is_hidden};
    return name == NULL || type == NULL ? status_out_of_memory()
                                        : vector_add(columns, arena, &column, sizeof column);
}

static status add_key(struct vector *columns, struct arena *arena, bytes row_key_schema,
                      struct sql_relation *relation)
{
    bool has_parts = row_key_schema.size > 0;
    TRY(add_column(columns, arena, "_key", SQL_COLUMN_KEY, &sql_bytes, has_parts));
    if (!has_parts)
        return status_ok();
    TRY(sql_key_schema_read(row_key_schema, arena, &relation->key_schema));
    for (size_t i = 0; i < sql_key_schema_count(relation->key_schema); i++) {
        struct sql_field part = sql_key_schema_part(relation->key_schema, i);
        TRY(add_column(columns, arena, part.name, SQL_COLUMN_KEY_PART, part.type, false));
    }
    return status_ok();
}

/* Sums, minima and maxima are numbers; sketches, and all else, are bytes. */
static const struct sql_type *family_type(const struct family *family, struct arena *arena)
{
    bool is_number = family->aggregate == AGGREGATE_SUM || family->aggregate == AGGREGATE_MIN ||
                     family->aggregate == AGGREGATE_MAX;
    return sql_map_of(arena, &sql_bytes, is_number ? &sql_int64 : &sql_bytes);
}

static status add_families(struct vector *columns, struct arena *arena, const struct schema *schema)
{
    for (size_t i = 0; i < schema->family_count; i++) {
        const struct family *family = &schema->families[i];
        TRY(add_column(columns, arena, arena_string(arena, family->name), SQL_COLUMN_FAMILY,
                       family_type(family, arena), false));
    }
    return status_ok();
}

/* --- what is there now --- */

static status row_key_schema_of(struct table *table, struct arena *arena, bytes *out)
{
    struct table_info info;
    ProtobufCMessage *message;
    *out = bytes_make(NULL, 0);
    TRY(table_describe(table, arena, &info));
    TRY(proto_decode(&bt_admin__table__descriptor, info.extra, arena, &message));
    const BtAdmin__Table *extra = (const void *)message;
    if (extra->row_key_schema == NULL || extra->row_key_schema->n_fields == 0)
        return status_ok();
    struct buffer schema = {0};
    proto_encode(&extra->row_key_schema->base, &schema);
    *out = arena_copy(arena, buffer_bytes(&schema));
    bool failed = schema.failed || out->data == NULL;
    buffer_free(&schema);
    return failed ? status_out_of_memory() : status_ok();
}

static status describe_table(struct query_catalog *catalog, struct found_relation *found)
{
    struct vector columns = {0};
    TRY(row_key_schema_of(catalog->table, catalog->arena, &found->row_key_schema));
    TRY(add_key(&columns, catalog->arena, found->row_key_schema, found->relation));
    TRY(add_families(&columns, catalog->arena, table_schema(catalog->table)));
    found->relation->columns = columns.items;
    found->relation->column_count = columns.count;
    return status_ok();
}

/* The table of the name, held; `*is_there` false if there is none. */
static status hold_table(struct query_catalog *catalog, const char *id, bool *is_there)
{
    const char *name = name_of_table(catalog->arena, catalog->instance, id);
    if (name == NULL)
        return status_out_of_memory();
    *is_there = false;
    if (catalog->table != NULL) { /* a query reads one table: this is an error in any case */
        table_release(catalog->table);
        catalog->table = NULL;
    }
    status s = cluster_table(catalog->bigtable->cluster, bytes_of(name), &catalog->table);
    *is_there = status_is_ok(s);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status find_view(struct query_catalog *catalog, const char *id, const char **query)
{
    struct resource *resource;
    ProtobufCMessage *message;
    const char *name = name_join(catalog->arena, catalog->instance, "logicalViews", id);
    *query = NULL;
    if (name == NULL)
        return status_out_of_memory();
    status s = control_find(catalog->bigtable->control, RESOURCE_LOGICAL_VIEW, name, &resource);
    if (!status_is_ok(s)) {
        bool is_absent = s.code == STATUS_NOT_FOUND;
        if (!is_absent)
            return s;
        status_free(s);
        return status_ok();
    }
    s = resource_decode(resource, catalog->arena, &message);
    resource_release(resource);
    TRY(s);
    *query = ((const BtAdmin__LogicalView *)(const void *)message)->query;
    return status_ok();
}

static status find_now(struct query_catalog *catalog, const char *name,
                       struct found_relation *found, bool *is_there)
{
    TRY(hold_table(catalog, name, is_there));
    if (*is_there)
        return describe_table(catalog, found);
    TRY(find_view(catalog, name, &found->relation->view_query));
    *is_there = found->relation->view_query != NULL;
    return status_ok();
}

/* --- what was there when the query was prepared --- */

static const Query__Relation *prepared_relation(const struct query_catalog *catalog,
                                                const char *name)
{
    for (size_t i = 0; i < catalog->prepared->n_relations; i++)
        if (strcmp(catalog->prepared->relations[i]->name, name) == 0)
            return catalog->prepared->relations[i];
    return NULL;
}

static status restore_columns(struct query_catalog *catalog, const Query__Relation *prepared,
                              struct sql_relation *relation)
{
    struct vector columns = {0};
    for (size_t i = 0; i < prepared->n_columns; i++) {
        const Query__Column *column = prepared->columns[i];
        const struct sql_type *type;
        ProtobufCMessage *message;
        TRY(proto_decode(&bt__type__descriptor, proto_bytes(column->type), catalog->arena,
                         &message));
        TRY(query_type_from_message((const void *)message, catalog->arena, &type));
        TRY(add_column(&columns, catalog->arena, column->name, column->kind, type,
                       column->is_hidden));
    }
    relation->columns = columns.items;
    relation->column_count = columns.count;
    return status_ok();
}

static status find_prepared(struct query_catalog *catalog, const char *name,
                            struct found_relation *found, bool *is_there)
{
    const Query__Relation *prepared = prepared_relation(catalog, name);
    *is_there = prepared != NULL;
    if (prepared == NULL)
        return status_ok();
    if (prepared->query[0] != '\0') {
        found->relation->view_query = prepared->query;
        return status_ok();
    }
    bool has_table;
    TRY(hold_table(catalog, name, &has_table));
    if (!has_table)
        return query_expired();
    bytes schema = proto_bytes(prepared->row_key_schema);
    if (schema.size > 0)
        TRY(sql_key_schema_read(schema, catalog->arena, &found->relation->key_schema));
    return restore_columns(catalog, prepared, found->relation);
}

static status find(void *context, const char *name, struct arena *arena,
                   const struct sql_relation **out)
{
    struct query_catalog *catalog = context;
    struct found_relation found = {.relation = arena_zalloc(arena, sizeof *found.relation)};
    bool is_there;
    *out = NULL;
    if (found.relation == NULL)
        return status_out_of_memory();
    found.relation->name = name;
    TRY(catalog->prepared == NULL ? find_now(catalog, name, &found, &is_there)
                                  : find_prepared(catalog, name, &found, &is_there));
    if (!is_there)
        return status_ok();
    *out = found.relation;
    return vector_add(&catalog->found, catalog->arena, &found, sizeof found);
}

/* --- names --- */

struct naming {
    void (*visit)(void *to, const char *name);
    void *to;
};

static bool visit_table(void *context, struct table *table)
{
    const struct naming *naming = context;
    naming->visit(naming->to, name_id(table_name(table)));
    return true;
}

static void names(void *context, void (*visit)(void *to, const char *name), void *to)
{
    const struct query_catalog *catalog = context;
    struct naming naming = {visit, to};
    const char *prefix = name_of_table(catalog->arena, catalog->instance, "");
    if (prefix != NULL)
        status_ignore(cluster_list_tables(catalog->bigtable->cluster, bytes_of(prefix),
                                          bytes_make(NULL, 0), visit_table, &naming));
}

/* --- schema bundles --- */

static status bundle(void *context, const struct sql_relation *relation, const char *name,
                     struct arena *arena, bytes *out)
{
    const struct query_catalog *catalog = context;
    struct resource *resource;
    ProtobufCMessage *message;
    const char *table = name_of_table(arena, catalog->instance, relation->name);
    const char *full = table == NULL ? NULL : name_join(arena, table, "schemaBundles", name);
    *out = bytes_make(NULL, 0);
    if (full == NULL)
        return status_out_of_memory();
    status s = control_find(catalog->bigtable->control, RESOURCE_SCHEMA_BUNDLE, full, &resource);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    s = resource_decode(resource, arena, &message);
    resource_release(resource);
    TRY(s);
    const BtAdmin__SchemaBundle *found = (const void *)message;
    if (found->type_case == BT_ADMIN__SCHEMA_BUNDLE__TYPE_PROTO_SCHEMA)
        *out = proto_bytes(found->proto_schema->proto_descriptors);
    return status_ok();
}

/* --- scans --- */

struct query_scan {
    struct sql_scan base;
    const struct query_catalog *catalog;
    struct scan *scan;
    struct filter *filter;
    struct arena *arena; /* of the row's cells */
    struct cell_list cells;
};

static status new_filter(struct arena *arena, Bt__RowFilter__FilterCase kind, Bt__RowFilter **out)
{
    PROTO_NEW(arena, *out, BT__ROW_FILTER__INIT);
    (*out)->filter_case = kind;
    return status_ok();
}

static status add_filter(struct vector *filters, struct arena *arena, Bt__RowFilter *filter)
{
    return vector_add(filters, arena, &filter, sizeof filter);
}

static status add_times(struct vector *chain, struct arena *arena, const struct sql_scan_spec *spec)
{
    Bt__RowFilter *filter;
    if (spec->from_us <= 0 && spec->to_us == INT64_MAX)
        return status_ok();
    TRY(new_filter(arena, BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER, &filter));
    PROTO_NEW(arena, filter->timestamp_range_filter, BT__TIMESTAMP_RANGE__INIT);
    filter->timestamp_range_filter->start_timestamp_micros = spec->from_us > 0 ? spec->from_us : 0;
    filter->timestamp_range_filter->end_timestamp_micros =
        spec->to_us == INT64_MAX ? 0 : spec->to_us;
    return add_filter(chain, arena, filter);
}

static status join(struct arena *arena, const struct vector *filters, bool is_chain,
                   Bt__RowFilter **out)
{
    *out = filters->count == 1 ? *(Bt__RowFilter **)filters->items : NULL;
    if (filters->count <= 1)
        return status_ok();
    TRY(new_filter(
        arena, is_chain ? BT__ROW_FILTER__FILTER_CHAIN : BT__ROW_FILTER__FILTER_INTERLEAVE, out));
    if (is_chain) {
        PROTO_NEW(arena, (*out)->chain, BT__ROW_FILTER__CHAIN__INIT);
        (*out)->chain->filters = filters->items;
        (*out)->chain->n_filters = filters->count;
    } else {
        PROTO_NEW(arena, (*out)->interleave, BT__ROW_FILTER__INTERLEAVE__INIT);
        (*out)->interleave->filters = filters->items;
        (*out)->interleave->n_filters = filters->count;
    }
    return status_ok();
}

static status column_filter(struct arena *arena, bytes family, const bytes *qualifier,
                            struct vector *filters)
{
    Bt__RowFilter *filter;
    TRY(new_filter(arena, BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER, &filter));
    PROTO_NEW(arena, filter->column_range_filter, BT__COLUMN_RANGE__INIT);
    filter->column_range_filter->family_name = arena_string(arena, family);
    if (filter->column_range_filter->family_name == NULL)
        return status_out_of_memory();
    if (qualifier != NULL) {
        filter->column_range_filter->start_qualifier_case =
            BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED;
        filter->column_range_filter->start_qualifier_closed = proto_data(*qualifier);
        filter->column_range_filter->end_qualifier_case =
            BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED;
        filter->column_range_filter->end_qualifier_closed = proto_data(*qualifier);
    }
    return add_filter(filters, arena, filter);
}

/* The columns that are needed; and the row's first cell, since a row counts whatever is in it. */
static status add_columns(struct vector *chain, struct arena *arena,
                          const struct sql_scan_spec *spec)
{
    struct vector parts = {0};
    Bt__RowFilter *first, *all;
    TRY(new_filter(arena, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER, &first));
    first->cells_per_row_limit_filter = 1;
    TRY(add_filter(&parts, arena, first));
    for (size_t i = 0; i < spec->family_count; i++) {
        const struct sql_family_need *need = &spec->families[i];
        if (need->needs_all)
            TRY(column_filter(arena, need->family, NULL, &parts));
        for (size_t k = 0; k < need->qualifier_count && !need->needs_all; k++)
            TRY(column_filter(arena, need->family, &need->qualifiers[k], &parts));
    }
    TRY(join(arena, &parts, false, &all));
    return add_filter(chain, arena, all);
}

static bool needs_everything(const struct sql_scan_spec *spec, const struct schema *schema)
{
    bool all = spec->family_count == schema->family_count;
    for (size_t i = 0; i < spec->family_count; i++)
        all = all && spec->families[i].needs_all;
    return all;
}

static status build_filter(struct arena *arena, const struct sql_scan_spec *spec,
                           const struct schema *schema, Bt__RowFilter **out)
{
    struct vector chain = {0};
    Bt__RowFilter *newest;
    TRY(add_times(&chain, arena, spec));
    if (spec->cells_per_column != INT32_MAX) {
        TRY(new_filter(arena, BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER, &newest));
        newest->cells_per_column_limit_filter = spec->cells_per_column;
        TRY(add_filter(&chain, arena, newest));
    }
    if (!needs_everything(spec, schema))
        TRY(add_columns(&chain, arena, spec));
    return join(arena, &chain, true, out);
}

static bool is_same_cell(const struct cell *a, const struct cell *b)
{
    return a->family == b->family && a->timestamp_us == b->timestamp_us &&
           bytes_equal(a->qualifier, b->qualifier);
}

/* Without the copy of the first cell, if it was needed, too. */
static status take_cells(struct query_scan *scan, const struct cell_list *cells)
{
    arena_reset(scan->arena);
    scan->cells = (struct cell_list){.arena = scan->arena};
    for (size_t i = 0; i < cells->count; i++)
        if (i == 0 || !is_same_cell(&cells->items[i - 1], &cells->items[i]))
            if (!cell_list_add(&scan->cells, &cells->items[i]))
                return status_out_of_memory();
    return status_ok();
}

static bool has_copy(const struct cell_list *cells)
{
    return cells->count > 1 && is_same_cell(&cells->items[0], &cells->items[1]);
}

static status next(struct sql_scan *base, struct sql_scan_row *row, bool *found)
{
    struct query_scan *scan = (struct query_scan *)(void *)base;
    struct scan_row read;
    enum row_outcome outcome;
    *found = false;
    do {
        if (grpc_call_is_cancelled(scan->catalog->call))
            return status_make(STATUS_CANCELLED, "The call was cancelled");
        TRY(scan_next(scan->scan, STORE_ANYWHERE, &read, &outcome));
    } while (outcome == ROW_ABSENT);
    if (outcome == ROW_TOO_LARGE)
        return row_too_large(read.key, table_name(scan->catalog->table));
    if (outcome != ROW_FOUND)
        return status_ok();
    *row = (struct sql_scan_row){read.key, read.cells};
    *found = true;
    if (!has_copy(read.cells))
        return status_ok();
    row->cells = &scan->cells;
    return take_cells(scan, read.cells);
}

static void destroy(struct sql_scan *base)
{
    struct query_scan *scan = (struct query_scan *)(void *)base;
    scan_destroy(scan->scan);
    filter_destroy(scan->filter);
    arena_destroy(scan->arena);
}

/* Both kinds of ranges are sorted, without overlap. */
static status key_ranges(const struct sql_scan_spec *spec, struct arena *arena,
                         struct key_range **out)
{
    *out = arena_zalloc(arena, spec->range_count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->range_count; i++) {
        bytes from = spec->ranges[i].from, to = spec->ranges[i].to;
        (*out)[i] = (struct key_range){.from = from, .to = to};
        (*out)[i].is_point =
            to.size == from.size + 1 && to.data[from.size] == 0 && bytes_start_with(to, from);
    }
    return status_ok();
}

static status open_scan(struct query_scan *scan, const struct sql_scan_spec *spec,
                        struct arena *arena)
{
    struct table *table = scan->catalog->table;
    const struct schema *schema = table_schema(table);
    struct key_range *ranges;
    Bt__RowFilter *filter;
    scan->arena = arena_create(LIMIT_ROW_BYTES);
    if (scan->arena == NULL)
        return status_out_of_memory();
    TRY(key_ranges(spec, arena, &ranges));
    TRY(build_filter(arena, spec, schema, &filter));
    TRY(filter_compile(filter, arena, &scan->filter));
    return scan_create(&(struct scan_spec){.table = table,
                                           .ranges = ranges,
                                           .range_count = spec->range_count,
                                           .reversed = spec->is_reversed,
                                           .schema = schema,
                                           .filter = scan->filter,
                                           .arena = arena},
                       &scan->scan);
}

static status scan(void *context, const struct sql_relation *relation,
                   const struct sql_scan_spec *spec, struct arena *arena, struct sql_scan **out)
{
    (void)relation; /* a query reads one table */
    struct query_scan *opened = arena_zalloc(arena, sizeof *opened);
    if (opened == NULL)
        return status_out_of_memory();
    *opened = (struct query_scan){.base = {next, destroy}, .catalog = context};
    status s = open_scan(opened, spec, arena);
    if (!status_is_ok(s))
        destroy(&opened->base);
    else
        *out = &opened->base;
    return s;
}

/* --- the catalog --- */

void query_catalog_init(struct query_catalog *catalog, struct bigtable *bigtable,
                        struct grpc_call *call, struct arena *arena, const char *instance)
{
    *catalog = (struct query_catalog){
        .catalog = {catalog, find, names, bundle, scan},
        .bigtable = bigtable,
        .arena = arena,
        .instance = instance,
        .call = call,
    };
}

void query_catalog_free(struct query_catalog *catalog)
{
    if (catalog->table != NULL)
        table_release(catalog->table);
    catalog->table = NULL;
}

status query_catalog_check(const struct query_catalog *catalog, const struct sql_plan *plan)
{
    const struct sql_operator *scanned = plan->root;
    while (scanned->input != NULL)
        scanned = scanned->input;
    if (scanned->kind != SQL_OP_SCAN || catalog->table == NULL)
        return status_ok();
    const struct schema *schema = table_schema(catalog->table);
    for (size_t i = 0; i < scanned->scan->slot_count; i++) {
        const struct sql_slot *slot = &scanned->scan->slots[i];
        bool is_family = slot->kind == SQL_SLOT_FAMILY || slot->kind == SQL_SLOT_COLUMN;
        if (is_family && schema_family_named(schema, slot->family) == NULL)
            return query_expired();
    }
    return status_ok();
}
