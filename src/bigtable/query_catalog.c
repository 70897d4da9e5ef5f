/* The tables and views of an instance, as SQL sees them: see query_catalog.h. */
#include "bigtable/query_catalog.h"

#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/query_access.h"
#include "bigtable/query_materialized.h"
#include "bigtable/query_messages.h"
#include "bigtable/row_error.h"
#include "cluster/rows.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "history/history_store.h"
#include "sql/plan/key_schema.h"
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
    struct sql_table_column column = {
        .name = name, .kind = kind, .type = type, .is_hidden = is_hidden};
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
    const char *name =
        query_names_own(id) ? HISTORY_TABLE : name_of_table(catalog->arena, catalog->instance, id);
    if (name == NULL)
        return status_out_of_memory();
    *is_there = false;
    query_catalog_let_go(catalog);
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

/* What a name stands for, where it is no table. */
static enum query_source view_kind(const struct query_catalog *catalog, const char *id)
{
    const char *name = name_join(catalog->arena, catalog->instance, "materializedViews", id);
    bool is_materialized =
        name != NULL && control_has(catalog->bigtable->control, RESOURCE_MATERIALIZED_VIEW, name);
    return is_materialized ? QUERY_MATERIALIZED_VIEW : QUERY_LOGICAL_VIEW;
}

static status find_now(struct query_catalog *catalog, const char *name, bool in_view,
                       struct found_relation *found, bool *is_there)
{
    TRY(hold_table(catalog, name, is_there));
    if (!in_view)
        TRY(query_access_demand(catalog, name, *is_there ? QUERY_TABLE : view_kind(catalog, name)));
    if (*is_there)
        return describe_table(catalog, found);
    if (catalog->only_tables)
        return status_ok();
    if (catalog->defined != NULL && strcmp(catalog->defined, name) == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "The query of view %s must not contain it",
                           name);
    TRY(find_view(catalog, name, &found->relation->view_query));
    *is_there = found->relation->view_query != NULL;
    return *is_there ? status_ok() : query_find_materialized(catalog, name, found, is_there);
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

/* A token is what its bearer makes it: a view in it vouches for what it reads only if it is a view
 * of the instance, which took the right to make it. */
static status trust_view(struct query_catalog *catalog, const char *id, const char *query)
{
    const char *now;
    TRY(find_view(catalog, id, &now));
    if (now == NULL || strcmp(now, query) != 0)
        catalog->distrusts_views = true;
    return status_ok();
}

/* The view may just have another query now: the client is to prepare its query again. */
static status demand_or_expire(struct query_catalog *catalog, const char *name,
                               enum query_source source)
{
    status s = query_access_demand(catalog, name, source);
    if (s.code != STATUS_PERMISSION_DENIED && s.code != STATUS_UNAUTHENTICATED)
        return s;
    status_free(s);
    return query_expired();
}

static enum query_source prepared_source(const Query__Relation *prepared)
{
    if (prepared->is_materialized)
        return QUERY_MATERIALIZED_VIEW;
    return prepared->query[0] != '\0' ? QUERY_LOGICAL_VIEW : QUERY_TABLE;
}

/* What the prepared query does not say: rights, and what has the name now. */
static status ask_now(struct query_catalog *catalog, const Query__Relation *prepared, bool in_view)
{
    const char *name = prepared->name;
    enum query_source source = prepared_source(prepared);
    bool has_table;
    if (!in_view)
        TRY(query_access_demand(catalog, name, source));
    else if (catalog->distrusts_views)
        TRY(demand_or_expire(catalog, name, source));
    if (source == QUERY_MATERIALIZED_VIEW)
        return status_ok();
    if (source == QUERY_LOGICAL_VIEW)
        return trust_view(catalog, name, prepared->query);
    TRY(hold_table(catalog, name, &has_table));
    return has_table ? status_ok() : query_expired();
}

status query_catalog_again(struct query_catalog *catalog, const struct found_relation *found,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(ask_now(catalog, found[i].prepared, found[i].in_view));
    return status_ok();
}

static status find_prepared(struct query_catalog *catalog, const char *name, bool in_view,
                            struct found_relation *found, bool *is_there)
{
    const Query__Relation *prepared = found->prepared = prepared_relation(catalog, name);
    *is_there = prepared != NULL;
    if (prepared == NULL)
        return status_ok();
    TRY(ask_now(catalog, prepared, in_view));
    enum query_source source = prepared_source(prepared);
    if (source == QUERY_MATERIALIZED_VIEW)
        return query_find_prepared_materialized(catalog, prepared, found);
    if (source == QUERY_LOGICAL_VIEW) {
        found->relation->view_query = prepared->query;
        return status_ok();
    }
    bytes schema = proto_bytes(prepared->row_key_schema);
    if (schema.size > 0)
        TRY(sql_key_schema_read(schema, catalog->arena, &found->relation->key_schema));
    return restore_columns(catalog, prepared, found->relation);
}

/* Who may read a view may read what it does: not what is the server's. */
static status check_own(const struct query_catalog *catalog, const char *name, bool in_view)
{
    if (!query_names_own(name) || (!in_view && catalog->defined == NULL))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Views cannot read %s", name);
}

static status find(void *context, const char *name, bool in_view, struct arena *arena,
                   const struct sql_relation **out)
{
    struct query_catalog *catalog = context;
    struct found_relation found = {.relation = arena_zalloc(arena, sizeof *found.relation),
                                   .in_view = in_view};
    bool is_there;
    *out = NULL;
    if (found.relation == NULL)
        return status_out_of_memory();
    found.relation->name = name;
    TRY(check_own(catalog, name, in_view));
    TRY(catalog->prepared == NULL ? find_now(catalog, name, in_view, &found, &is_there)
                                  : find_prepared(catalog, name, in_view, &found, &is_there));
    if (!is_there)
        return status_ok();
    *out = found.relation;
    return vector_add(&catalog->found, catalog->arena, &found, sizeof found);
}

/* --- names --- */

struct naming {
    const struct query_catalog *catalog;
    void (*visit)(void *to, const char *name);
    void *to;
};

static bool visit_table(void *context, struct table *table)
{
    const struct naming *naming = context;
    if (query_access_shows(naming->catalog, table_name(table)))
        naming->visit(naming->to, name_id(table_name(table)));
    return true;
}

static void names(void *context, void (*visit)(void *to, const char *name), void *to)
{
    const struct query_catalog *catalog = context;
    struct naming naming = {catalog, visit, to};
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
    ((struct query_catalog *)context)->has_asked_for_bundles = true;
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

/* --- the catalog --- */

void query_catalog_init(struct query_catalog *catalog, struct bigtable *bigtable,
                        const struct grpc_call *call, struct arena *arena, const char *instance)
{
    *catalog = (struct query_catalog){
        .catalog = {catalog, find, names, bundle, query_scan_open, query_scan_divide},
        .bigtable = bigtable,
        .arena = arena,
        .instance = instance,
        .call = call,
        .unreadable = status_ok(),
    };
}

void query_catalog_let_go(struct query_catalog *catalog)
{
    if (catalog->table != NULL)
        table_release(catalog->table);
    catalog->table = NULL;
    status_free(catalog->unreadable);
    catalog->unreadable = status_ok();
}

void query_catalog_free(struct query_catalog *catalog)
{
    struct resource *const *views = catalog->views.items;
    query_catalog_let_go(catalog);
    for (size_t i = 0; i < catalog->views.count; i++)
        resource_release(views[i]);
    catalog->views.count = 0;
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
