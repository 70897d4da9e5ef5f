/* \d: what there is to be queried.
 *
 * Names are the admin API's to tell, which some endpoints do not have beside the data API: Google's
 * is another host. Columns are those of a query that is prepared and never run, so that they are
 * told wherever queries are; the admin API adds the rules of garbage collection. */
#include "cmd/sql/sql_shell.h"
#include "cmd/sql/sql_values.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

#include <stdlib.h>

enum { ARENA_LIMIT = 256 << 20, PAGES_MOST = 100000 };

#define TABLE_ADMIN    "/google.bigtable.admin.v2.BigtableTableAdmin/"
#define INSTANCE_ADMIN "/google.bigtable.admin.v2.BigtableInstanceAdmin/"

/* The last part of a resource's name, as a terminal may have it. */
static void append_id(struct buffer *out, const char *name)
{
    const char *slash = strrchr(name, '/');
    shell_text_append(out, bytes_of(slash == NULL ? name : slash + 1));
}

static void add_text(struct text_table *table, const char *text)
{
    text_table_add(table, bytes_of(text));
}

/* --- all of them --- */

static void add_name(struct text_table *table, const char *name, const char *kind)
{
    struct buffer id = {0};
    append_id(&id, name);
    text_table_add(table, buffer_bytes(&id));
    add_text(table, kind);
    buffer_free(&id);
}

/* Lists one page; `*page` becomes the token of the next, "" behind the last. */
static status list_tables_page(struct shell *shell, struct arena *arena, const char **page,
                               struct text_table *table)
{
    BtAdmin__ListTablesRequest request = BT_ADMIN__LIST_TABLES_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = client_session_instance(shell->session);
    request.view = BT_ADMIN__TABLE__VIEW__NAME_ONLY;
    request.page_token = *page;
    TRY(client_session_call(shell->session, TABLE_ADMIN "ListTables", NULL, &request.base,
                            &bt_admin__list_tables_response__descriptor, arena, &message));
    const BtAdmin__ListTablesResponse *response = (const void *)message;
    for (size_t i = 0; i < response->n_tables; i++)
        add_name(table, response->tables[i]->name, "table");
    *page = response->next_page_token;
    return status_ok();
}

static status list_views_page(struct shell *shell, struct arena *arena, const char **page,
                              struct text_table *table)
{
    BtAdmin__ListLogicalViewsRequest request = BT_ADMIN__LIST_LOGICAL_VIEWS_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = client_session_instance(shell->session);
    request.page_token = *page;
    TRY(client_session_call(shell->session, INSTANCE_ADMIN "ListLogicalViews", NULL, &request.base,
                            &bt_admin__list_logical_views_response__descriptor, arena, &message));
    const BtAdmin__ListLogicalViewsResponse *response = (const void *)message;
    for (size_t i = 0; i < response->n_logical_views; i++)
        add_name(table, response->logical_views[i]->name, "logical view");
    *page = response->next_page_token;
    return status_ok();
}

static status list_materialized_page(struct shell *shell, struct arena *arena, const char **page,
                                     struct text_table *table)
{
    BtAdmin__ListMaterializedViewsRequest request = BT_ADMIN__LIST_MATERIALIZED_VIEWS_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = client_session_instance(shell->session);
    request.page_token = *page;
    TRY(client_session_call(shell->session, INSTANCE_ADMIN "ListMaterializedViews", NULL,
                            &request.base, &bt_admin__list_materialized_views_response__descriptor,
                            arena, &message));
    const BtAdmin__ListMaterializedViewsResponse *response = (const void *)message;
    for (size_t i = 0; i < response->n_materialized_views; i++)
        add_name(table, response->materialized_views[i]->name, "materialized view");
    *page = response->next_page_token;
    return status_ok();
}

typedef status list_page(struct shell *shell, struct arena *arena, const char **page,
                         struct text_table *table);

static status list_pages(struct shell *shell, struct arena *arena, list_page *list,
                         struct text_table *table)
{
    const char *page = "";
    for (size_t pages = 0; pages < PAGES_MOST; pages++) {
        TRY(list(shell, arena, &page, table));
        if (page[0] == '\0')
            break;
    }
    return status_ok();
}

/* A server without the admin API answers so. */
static bool is_not_served(status s)
{
    return s.code == STATUS_UNIMPLEMENTED;
}

static status explain_absence(const struct shell *shell, status s)
{
    if (!is_not_served(s))
        return s;
    status_free(s);
    return status_make(STATUS_UNIMPLEMENTED, "%s does not serve the admin API, which has the names",
                       client_session_address(shell->session));
}

/* An emulator may have tables and no views. */
static status list_if_served(struct shell *shell, struct arena *arena, list_page *list,
                             struct text_table *table)
{
    status s = list_pages(shell, arena, list, table);
    if (!is_not_served(s))
        return s;
    status_free(s);
    return status_ok();
}

static status list_all(struct shell *shell, struct arena *arena, struct text_table *table)
{
    TRY(explain_absence(shell, list_pages(shell, arena, list_tables_page, table)));
    TRY(list_if_served(shell, arena, list_views_page, table));
    return list_if_served(shell, arena, list_materialized_page, table);
}

status shell_list(struct shell *shell)
{
    struct text_column columns[] = {{.name = "name"}, {.name = "kind"}};
    struct text_table table;
    struct buffer text = {0};
    struct arena *arena = arena_create(ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    text_table_begin(&table, columns, 2, true, &text);
    status s = list_all(shell, arena, &table);
    text_table_end(&table);
    if (status_is_ok(s)) {
        shell->out.failed |= text.failed;
        buffer_append_bytes(&shell->out, buffer_bytes(&text));
        s = shell_flush(shell);
    }
    buffer_free(&text);
    arena_destroy(arena);
    return s;
}

/* --- rules of garbage collection --- */

static void append_rule(struct buffer *out, const BtAdmin__GcRule *rule, bool is_part);

static void append_rules(struct buffer *out, BtAdmin__GcRule *const *rules, size_t count,
                         const char *between, bool is_part)
{
    buffer_append_format(out, is_part ? "(" : "");
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(out, "%s", i == 0 ? "" : between);
        append_rule(out, rules[i], true);
    }
    buffer_append_format(out, is_part ? ")" : "");
}

/* 90 s as 90s, but whole minutes, hours, days by themselves. */
static void append_age(struct buffer *out, const Pb__Duration *age)
{
    static const struct {
        int64_t seconds;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (age->nanos == 0 && age->seconds > 0 && age->seconds % units[i].seconds == 0) {
            buffer_append_format(out, "age > %lld%c", (long long)(age->seconds / units[i].seconds),
                                 units[i].letter);
            return;
        }
    if (age->nanos == 0)
        buffer_append_format(out, "age > %llds", (long long)age->seconds);
    else
        buffer_append_format(out, "age > %lld.%06ds", (long long)age->seconds, age->nanos / 1000);
}

static void append_rule(struct buffer *out, const BtAdmin__GcRule *rule, bool is_part)
{
    switch (rule->rule_case) {
    case BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS:
        buffer_append_format(out, "versions > %d", rule->max_num_versions);
        break;
    case BT_ADMIN__GC_RULE__RULE_MAX_AGE:
        append_age(out, rule->max_age);
        break;
    case BT_ADMIN__GC_RULE__RULE_INTERSECTION:
        append_rules(out, rule->intersection->rules, rule->intersection->n_rules, " and ", is_part);
        break;
    case BT_ADMIN__GC_RULE__RULE_UNION:
        append_rules(out, rule->union_->rules, rule->union_->n_rules, " or ", is_part);
        break;
    default:
        buffer_append_format(out, "never");
    }
}

static const BtAdmin__ColumnFamily *find_family(const BtAdmin__Table *table, const char *name)
{
    for (size_t i = 0; table != NULL && i < table->n_column_families; i++)
        if (strcmp(table->column_families[i]->key, name) == 0)
            return table->column_families[i]->value;
    return NULL;
}

/* --- one of them --- */

/* NULL without memory. */
static const char *child_name(const struct shell *shell, const char *kind, const char *id,
                              struct arena *arena)
{
    struct buffer full = {0};
    buffer_append_format(&full, "%s/%s/%s", client_session_instance(shell->session), kind, id);
    const char *name = full.failed ? NULL : arena_string(arena, buffer_bytes(&full));
    buffer_free(&full);
    return name;
}

/* Those of the server itself ("system/metrics"), of which the admin API knows nothing. */
static bool is_of_server(const char *name)
{
    return strchr(name, '/') != NULL;
}

/* `*out` is NULL if there is no such table, or no admin API. */
static status get_table(struct shell *shell, const char *name, struct arena *arena,
                        const BtAdmin__Table **out)
{
    BtAdmin__GetTableRequest request = BT_ADMIN__GET_TABLE_REQUEST__INIT;
    const ProtobufCMessage *message = NULL;
    *out = NULL;
    if (is_of_server(name))
        return status_ok();
    request.name = child_name(shell, "tables", name, arena);
    request.view = BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW;
    if (request.name == NULL)
        return status_out_of_memory();
    status s = client_session_call(shell->session, TABLE_ADMIN "GetTable", NULL, &request.base,
                                   &bt_admin__table__descriptor, arena, &message);
    *out = status_is_ok(s) ? (const void *)message : NULL;
    if (is_not_served(s)) {
        buffer_append_format(&shell->out,
                             "%s does not serve the admin API: no rules of garbage collection.\n",
                             client_session_address(shell->session));
    } else if (s.code != STATUS_NOT_FOUND) {
        return s;
    }
    status_free(s);
    return status_ok();
}

/* NULL if there is none, or it cannot be asked for. */
static const ProtobufCMessage *get_view(struct shell *shell, const char *path,
                                        const ProtobufCMessage *request,
                                        const ProtobufCMessageDescriptor *type, struct arena *arena)
{
    const ProtobufCMessage *message;
    status s = client_session_call(shell->session, path, NULL, request, type, arena, &message);
    bool is_there = status_is_ok(s);
    status_ignore(s);
    return is_there ? message : NULL;
}

static const char *logical_query(struct shell *shell, const char *id, struct arena *arena)
{
    BtAdmin__GetLogicalViewRequest request = BT_ADMIN__GET_LOGICAL_VIEW_REQUEST__INIT;
    request.name = child_name(shell, "logicalViews", id, arena);
    if (request.name == NULL)
        return NULL;
    const BtAdmin__LogicalView *view =
        (const void *)get_view(shell, INSTANCE_ADMIN "GetLogicalView", &request.base,
                               &bt_admin__logical_view__descriptor, arena);
    return view == NULL ? NULL : view->query;
}

static const char *materialized_query(struct shell *shell, const char *id, struct arena *arena)
{
    BtAdmin__GetMaterializedViewRequest request = BT_ADMIN__GET_MATERIALIZED_VIEW_REQUEST__INIT;
    request.name = child_name(shell, "materializedViews", id, arena);
    if (request.name == NULL)
        return NULL;
    const BtAdmin__MaterializedView *view =
        (const void *)get_view(shell, INSTANCE_ADMIN "GetMaterializedView", &request.base,
                               &bt_admin__materialized_view__descriptor, arena);
    return view == NULL ? NULL : view->query;
}

/* A view's query, and which kind it is; nothing of what is no view. */
static void write_view(struct shell *shell, const char *id, struct arena *arena)
{
    const char *kind = "logical";
    const char *query = logical_query(shell, id, arena);
    if (query == NULL) {
        kind = "materialized";
        query = materialized_query(shell, id, arena);
    }
    if (query == NULL)
        return;
    buffer_append_format(&shell->out, "A %s view: ", kind);
    shell_text_append(&shell->out, bytes_of(query));
    buffer_append_byte(&shell->out, '\n');
}

static const char *input_of(const BtAdmin__Type__Aggregate *aggregate)
{
    const BtAdmin__Type *input = aggregate->input_type;
    if (input != NULL && input->kind_case == BT_ADMIN__TYPE__KIND_INT64_TYPE)
        return " of INT64";
    bool is_text = input != NULL && input->kind_case == BT_ADMIN__TYPE__KIND_STRING_TYPE;
    return is_text ? " of STRING" : " of BYTES";
}

/* The family's aggregate, which its column's type does not say: " (sum)". */
static void append_aggregate(struct buffer *out, const BtAdmin__ColumnFamily *family)
{
    const BtAdmin__Type *type = family == NULL ? NULL : family->value_type;
    if (type == NULL || type->kind_case != BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE)
        return;
    switch (type->aggregate_type->aggregator_case) {
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_SUM:
        buffer_append_format(out, " (sum)");
        break;
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_MIN:
        buffer_append_format(out, " (min)");
        break;
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_MAX:
        buffer_append_format(out, " (max)");
        break;
    case BT_ADMIN__TYPE__AGGREGATE__AGGREGATOR_HLLPP_UNIQUE_COUNT:
        buffer_append_format(out, " (unique count%s)", input_of(type->aggregate_type));
        break;
    default: /* one that is newer than we are */
        buffer_append_format(out, " (aggregate)");
    }
}

static void add_column(struct text_table *out, const Bt__ColumnMetadata *column,
                       const BtAdmin__Table *table)
{
    const BtAdmin__ColumnFamily *family = find_family(table, column->name);
    struct buffer text = {0};
    shell_text_append(&text, bytes_of(column->name));
    text_table_add(out, buffer_bytes(&text));
    buffer_clear(&text);
    shell_type_append(&text, column->type);
    append_aggregate(&text, family);
    text_table_add(out, buffer_bytes(&text));
    buffer_clear(&text);
    if (family != NULL && family->gc_rule != NULL)
        append_rule(&text, family->gc_rule, false);
    else if (family != NULL)
        buffer_append_format(&text, "never");
    if (table != NULL)
        text_table_add(out, buffer_bytes(&text));
    buffer_free(&text);
}

static void write_columns(struct shell *shell, const Bt__ProtoSchema *schema,
                          const BtAdmin__Table *table)
{
    struct text_column columns[] = {
        {.name = "column"}, {.name = "type"}, {.name = "garbage collection"}};
    struct text_table out;
    text_table_begin(&out, columns, table == NULL ? 2 : 3, true, &shell->out);
    for (size_t i = 0; i < schema->n_columns; i++)
        add_column(&out, schema->columns[i], table);
    text_table_end(&out);
}

static bool is_quotable(const char *name)
{
    return strpbrk(name, "`\\\n") == NULL && name[0] != '\0';
}

static status describe(struct shell *shell, const char *name, struct arena *arena)
{
    struct buffer query = {0};
    const Bt__ProtoSchema *schema;
    const BtAdmin__Table *table;
    buffer_append_format(&query, "SELECT * FROM `%s`", name);
    buffer_append_byte(&query, '\0');
    status s = query.failed ? status_out_of_memory()
                            : shell_columns(shell, (const char *)query.data, arena, &schema);
    buffer_free(&query);
    TRY(s);
    TRY(get_table(shell, name, arena, &table));
    write_columns(shell, schema, table);
    if (table == NULL && !is_of_server(name))
        write_view(shell, name, arena);
    return shell_flush(shell);
}

status shell_describe(struct shell *shell, const char *name)
{
    if (!is_quotable(name))
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is no name of a table", name);
    struct arena *arena = arena_create(ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = describe(shell, name, arena);
    arena_destroy(arena);
    return s;
}
