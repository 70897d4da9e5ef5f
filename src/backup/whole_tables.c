/* See whole_tables.h. */
#include "backup/whole_tables.h"

#include "backup/whole_copy.h"
#include "backup/whole_scope.h"
#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "bigtable/table_extra.h"

struct making {
    const struct whole_tables *order;
    const char *to; /* the order's, or what it is called */
    const struct whole_copy *copy;
    const struct foreign_table *source; /* NULL, as is the name: of an instance without tables */
    struct arena *arena;                /* of one table */
    const char *name;                   /* that it is to have */
    struct staged_backup *staged;
    struct edit *edit;
    struct table *made;
};

/* --- names --- */

status whole_tables_check(const char *from, const char *to)
{
    TRY(whole_scope_check(from));
    if (to == NULL)
        return status_ok();
    TRY(whole_scope_check(to));
    if (whole_kind_of(from) != whole_kind_of(to))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s and %s: a table becomes a table, an instance an instance, a "
                           "database a database",
                           from, to);
    return status_ok();
}

/* The new name of a thing that has this name in the backup: the source, or a thing in it. */
static const char *new_name(const struct making *m, const char *name)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s%s", m->to, name + strlen(m->order->from));
    const char *out = text.failed ? NULL : arena_string(m->arena, buffer_bytes(&text));
    buffer_free(&text);
    return out;
}

/* In the backup, and what it is to be called; NULL without memory. */
static const char *instance_of(const struct making *m)
{
    return m->source == NULL ? m->order->from : name_parent(m->arena, m->source->record->name);
}

static const char *new_instance_of(const struct making *m)
{
    return m->source == NULL ? m->to : name_parent(m->arena, m->name);
}

/* The same of the table's instance, or what is in it. */
static const char *new_name_in_instance(const struct making *m, const char *instance,
                                        const char *name)
{
    struct buffer text = {0};
    const char *to = new_instance_of(m);
    if (to == NULL)
        return NULL;
    buffer_append_format(&text, "%s%s", to, name + strlen(instance));
    const char *out = text.failed ? NULL : arena_string(m->arena, buffer_bytes(&text));
    buffer_free(&text);
    return out;
}

/* --- resources of the backup --- */

static status put_as(const struct making *m, const struct resource *resource, const char *name)
{
    ProtobufCMessage *message;
    if (name == NULL)
        return status_out_of_memory();
    TRY(resource_decode(resource, m->arena, &message));
    const char **own = resource_field(message, "name");
    if (own != NULL)
        *own = name;
    return edit_put(m->edit, resource->kind, name, message, resource->extra);
}

static status visit_resources(const struct making *m,
                              status (*visit)(const struct making *m, const struct resource *each))
{
    static const uint8_t first = RESOURCE_KEY, end = RESOURCE_KEY + 1;
    const struct store_cursor_options options = {
        .lower = bytes_make(&first, 1), .upper = bytes_make(&end, 1), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    status s = status_ok();
    TRY(store_cursor_create(whole_copy_catalog(m->copy), &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor) && status_is_ok(s);
         store_cursor_next(cursor)) {
        struct resource *resource;
        s = resource_parse(store_cursor_key(cursor), store_cursor_value(cursor), m->arena,
                           &resource);
        if (!status_is_ok(s))
            break;
        s = visit(m, resource);
        resource_release(resource);
    }
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* --- an instance --- */

static bool comes_with_instance(const struct making *m, const struct resource *resource)
{
    switch (resource->kind) {
    case RESOURCE_INSTANCE:
    case RESOURCE_CLUSTER:
    case RESOURCE_APP_PROFILE:
        return true;
    case RESOURCE_LOGICAL_VIEW:
    case RESOURCE_MATERIALIZED_VIEW:
        return m->order->with_policies && whole_kind_of(m->order->from) == WHOLE_INSTANCE;
    case RESOURCE_POLICY:
        return m->order->with_policies && strstr(resource->name, "/tables/") == NULL &&
               strstr(resource->name, "/backups/") == NULL;
    default:
        return false;
    }
}

static status put_of_instance(const struct making *m, const struct resource *resource)
{
    const char *instance = instance_of(m);
    if (instance == NULL)
        return status_out_of_memory();
    if (!whole_scope_has(instance, resource->name) || !comes_with_instance(m, resource))
        return status_ok();
    return put_as(m, resource, new_name_in_instance(m, instance, resource->name));
}

static bool is_database(const struct making *m)
{
    return whole_kind_of(m->order->from) == WHOLE_DATABASE;
}

static status require_instance_of(const struct making *m)
{
    const char *instance = new_instance_of(m);
    if (instance == NULL)
        return status_out_of_memory();
    if (is_database(m))
        return status_ok();
    if (edit_find(m->edit, RESOURCE_INSTANCE, instance) != NULL)
        return status_ok();
    TRY(visit_resources(m, put_of_instance));
    return edit_find(m->edit, RESOURCE_INSTANCE, instance) != NULL
               ? status_ok()
               : status_make(STATUS_NOT_FOUND, "Not found: %s", instance);
}

/* --- a table --- */

static status put_of_table(const struct making *m, const struct resource *resource)
{
    bool is_with_policies = resource->kind == RESOURCE_POLICY ||
                            resource->kind == RESOURCE_AUTHORIZED_VIEW ||
                            resource->kind == RESOURCE_SCHEMA_BUNDLE;
    bool is_wanted =
        resource->kind == RESOURCE_FIELD || (is_with_policies && m->order->with_policies);
    if (!is_wanted || !whole_scope_has(m->source->record->name, resource->name))
        return status_ok();
    return put_as(m, resource, new_name(m, resource->name));
}

/* Without policies it has what RestoreTable leaves it. */
static status describe(const struct making *m, struct restore_spec *spec)
{
    BtAdmin__Table *source, table = BT_ADMIN__TABLE__INIT;
    spec->deletion_protection = m->order->with_policies && m->source->record->deletion_protection;
    if (m->order->with_policies || is_database(m)) {
        spec->extra = m->source->record->extra;
        return status_ok();
    }
    TRY(table_extra_decode(m->source->record->extra, m->arena, &source));
    table.row_key_schema = source->row_key_schema;
    return table_extra_encode(&table, m->arena, &spec->extra);
}

static status stage_table(void *context, struct edit *edit)
{
    struct making *m = context;
    struct restore_spec spec = {.table = m->name};
    m->edit = edit;
    TRY(require_instance_of(m));
    if (m->order->with_policies || is_database(m))
        TRY(visit_resources(m, put_of_table));
    TRY(describe(m, &spec));
    TRY(edit_txn(edit, &spec.txn));
    return staged_backup_restore(m->staged, &spec, &m->made);
}

static bool goes_on(struct backup_work *work)
{
    const struct whole_work *whole = work->context;
    return whole->goes_on == NULL || whole->goes_on(whole->context);
}

static status count_closed(void *context, const struct lost_rows *lost)
{
    size_t *count = context;
    (void)lost;
    ++*count;
    return status_ok();
}

/* Without memory closed ranges are not counted, and out of service all the same. */
static void let_go(struct table *made, size_t *closed)
{
    status_ignore(table_list_damage(made, count_closed, closed));
    table_release(made);
}

static status make_one(struct making *m, size_t *closed)
{
    struct backup_work work = {.goes_on = goes_on, .context = m->order->work};
    m->name = new_name(m, m->source->record->name);
    if (m->name == NULL)
        return status_out_of_memory();
    TRY(backup_stage_foreign(m->order->backups, m->source, &work, &m->staged));
    status s = control_edit(m->order->control, stage_table, m);
    staged_backup_destroy(m->staged);
    if (m->made != NULL)
        let_go(m->made, closed);
    return s;
}

/* --- an instance that has none --- */

static status stage_instance(void *context, struct edit *edit)
{
    struct making *m = context;
    m->edit = edit;
    if (edit_find(edit, RESOURCE_INSTANCE, m->to) != NULL)
        return status_make(STATUS_ALREADY_EXISTS, "Instance already exists: %s", m->to);
    return require_instance_of(m);
}

/* --- all of them --- */

static status check_is_new(struct making *m)
{
    struct table *table;
    const char *name = new_name(m, m->source->record->name);
    if (name == NULL)
        return status_out_of_memory();
    status s = cluster_table(control_cluster(m->order->control), bytes_of(name), &table);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    table_release(table);
    return status_make(STATUS_ALREADY_EXISTS, "Table already exists: %s", name);
}

static status make_all(const struct making *all, struct whole_tables_made *made)
{
    size_t count;
    const struct foreign_table *tables = whole_copy_tables(all->copy, &count);
    struct making one = *all;
    if (count == 0)
        return control_edit(all->order->control, stage_instance, &one);
    for (size_t i = 0; i < count; i++) {
        one.source = &tables[i];
        TRY(check_is_new(&one));
    }
    for (; made->tables < count; made->tables++) {
        arena_reset(all->arena);
        one = *all;
        one.source = &tables[made->tables];
        TRY(make_one(&one, &made->closed));
    }
    return status_ok();
}

status whole_restore_tables(const struct whole_tables *order, struct whole_tables_made *made)
{
    const struct whole_copy_options options = {.place = order->place,
                                               .backup = order->backup,
                                               .files = order->files,
                                               .directory = order->scratch,
                                               .name = order->from,
                                               .work = order->work,
                                               .salvage = order->salvage,
                                               .way_out = "With --salvage all other rows are "
                                                          "restored, and these are out of service"};
    struct whole_copy *copy;
    *made = (struct whole_tables_made){.tables = 0};
    TRY(whole_tables_check(order->from, order->to));
    TRY(whole_copy_open(&options, &copy));
    struct making all = {.order = order,
                         .to = order->to != NULL ? order->to : order->from,
                         .copy = copy,
                         .arena = arena_create(LIMIT_ARENA_ADMIN_BYTES)};
    status s = all.arena == NULL ? status_out_of_memory() : make_all(&all, made);
    arena_destroy(all.arena);
    whole_copy_close(copy);
    return s;
}
