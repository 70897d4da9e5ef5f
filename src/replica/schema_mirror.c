/* See schema_mirror.h. */
#include "replica/schema_mirror.h"

#include "base/check.h"
#include "cluster/view/view_table.h"

struct mirror {
    const struct schema_mirror_options *options;
    struct control *control;
    struct cluster *cluster;
    const struct schema_snapshot *wanted;
    struct schema_snapshot *local; /* what was here when it began */
    status failure;                /* the first */
    unsigned made, changed, deleted;
};

/* A step's end; takes the status. */
static void note(struct mirror *mirror, const char *name, status s)
{
    if (status_is_ok(s))
        return;
    log_warn(control_log(mirror->control), "the leader's schema is not mirrored in part",
             LOG_STR("name", name), LOG_STR("cause", status_message(s)));
    if (status_is_ok(mirror->failure))
        mirror->failure = s;
    else
        status_free(s);
}

/* A step on what has a name, as an edit. */
struct step {
    struct mirror *mirror;
    const char *name;
    const struct shared_table *table; /* that is to be, or NULL */
};

static void take_step(struct mirror *mirror, const char *name, const struct shared_table *table,
                      status (*step)(void *context, struct edit *edit))
{
    struct step context = {mirror, name, table};
    note(mirror, name, control_edit(mirror->control, step, &context));
}

/* --- what goes: instances, whole --- */

static bool has_table_under(const struct schema_snapshot *snapshot, bytes prefix)
{
    const struct shared_table *tables = snapshot->tables.items;
    for (size_t i = 0; i < snapshot->tables.count; i++)
        if (bytes_start_with(bytes_of(tables[i].name), prefix))
            return true;
    return false;
}

struct unprotecting {
    status failure;
};

static bool unprotect(void *context, struct table *table)
{
    struct unprotecting *unprotecting = context;
    if (schema_has_table(table))
        unprotecting->failure = table_unprotect(table);
    return status_is_ok(unprotecting->failure);
}

/* Its tables go for good, as in DeleteInstance, with those of views and with what was kept. */
static status delete_under(const struct step *step, struct edit *edit, bytes prefix)
{
    struct cluster *cluster = step->mirror->cluster;
    struct unprotecting unprotecting = {status_ok()};
    struct catalog_txn *txn;
    TRY(cluster_list_tables(cluster, prefix, prefix, unprotect, &unprotecting));
    TRY(unprotecting.failure);
    TRY(edit_delete(edit, RESOURCE_INSTANCE, step->name));
    TRY(edit_txn(edit, &txn));
    return cluster_delete_tables(cluster, prefix, txn);
}

/* One whose tables are wanted has lost its record at the leader; they stay. */
static status delete_instance(void *context, struct edit *edit)
{
    const struct step *step = context;
    struct buffer prefix = {0};
    buffer_append_format(&prefix, "%s/", step->name);
    status s = status_ok();
    if (prefix.failed)
        s = status_out_of_memory();
    else if (!has_table_under(step->mirror->wanted, buffer_bytes(&prefix)))
        s = delete_under(step, edit, buffer_bytes(&prefix));
    buffer_free(&prefix);
    return s;
}

/* --- what goes: views --- */

/* Whether a table of here is to be no more, or to be another one. */
static bool is_stale(const struct mirror *mirror, const char *name, uint64_t uid)
{
    const struct shared_table *wanted = schema_snapshot_table(mirror->wanted, name);
    return wanted == NULL || wanted->uid != uid;
}

/* Whether the view has a table whose source is. In doubt it is not. */
static bool has_stale_source(const struct mirror *mirror, const char *name)
{
    struct table *view, *source;
    status s = cluster_table(mirror->cluster, bytes_of(name), &view);
    bool is_so = false;
    if (status_is_ok(s) && table_is_view(view)) {
        s = table_view_source(view, &source);
        is_so = status_is_ok(s) && is_stale(mirror, table_name(source), table_uid(source));
        if (source != NULL)
            table_release(source);
    }
    if (view != NULL)
        table_release(view);
    status_free(s);
    return is_so;
}

/* Another one may have been made by its name, also of the same query. */
static bool view_is_stale(const struct mirror *mirror, const struct resource *view)
{
    const struct resource *wanted =
        schema_snapshot_resource(mirror->wanted, RESOURCE_MATERIALIZED_VIEW, view->name);
    return wanted == NULL || resource_made_in(wanted) != resource_made_in(view) ||
           has_stale_source(mirror, view->name);
}

static status delete_view(void *context, struct edit *edit)
{
    const struct step *step = context;
    struct catalog_txn *txn;
    TRY(edit_delete(edit, RESOURCE_MATERIALIZED_VIEW, step->name));
    TRY(edit_txn(edit, &txn));
    return cluster_delete_view(step->mirror->cluster, bytes_of(step->name), txn);
}

/* Instances and views. */
static void delete_parents(struct mirror *mirror)
{
    struct resource *const *resources = mirror->local->resources.items;
    for (size_t i = 0; i < mirror->local->resources.count; i++) {
        const struct resource *at = resources[i];
        if (at->kind == RESOURCE_INSTANCE && !mirror->options->keeps_tables &&
            schema_snapshot_resource(mirror->wanted, at->kind, at->name) == NULL)
            take_step(mirror, at->name, NULL, delete_instance);
    }
    for (size_t i = 0; i < mirror->local->resources.count; i++) {
        const struct resource *at = resources[i];
        if (at->kind == RESOURCE_MATERIALIZED_VIEW && view_is_stale(mirror, at) &&
            control_has(mirror->control, at->kind, at->name))
            take_step(mirror, at->name, NULL, delete_view);
    }
}

/* --- what goes: tables --- */

static status delete_one(const struct step *step, struct edit *edit, struct table *table)
{
    struct catalog_txn *txn;
    TRY(table_unprotect(table));
    TRY(edit_keep_under(edit, step->name, table_id(table)));
    TRY(edit_txn(edit, &txn));
    TRY(cluster_delete_table(step->mirror->cluster, bytes_of(step->name), txn));
    step->mirror->deleted++;
    return status_ok();
}

/* It may have gone with its instance. */
static status delete_table(void *context, struct edit *edit)
{
    const struct step *step = context;
    struct table *table;
    status s = cluster_table(step->mirror->cluster, bytes_of(step->name), &table);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    s = delete_one(step, edit, table);
    table_release(table);
    return s;
}

static void delete_tables(struct mirror *mirror)
{
    const struct shared_table *tables = mirror->local->tables.items;
    for (size_t i = 0; i < mirror->local->tables.count; i++)
        if (is_stale(mirror, tables[i].name, tables[i].uid))
            take_step(mirror, tables[i].name, NULL, delete_table);
}

/* --- what comes: resources --- */

static bool is_same(const struct resource *a, const struct resource *b)
{
    return a != NULL && a->version == b->version && bytes_equal(a->body, b->body) &&
           bytes_equal(a->extra, b->extra);
}

/* What has no parent that is a table. */
static bool is_parent(const struct resource *resource)
{
    return resource->kind == RESOURCE_INSTANCE || resource->kind == RESOURCE_CLUSTER ||
           resource->kind == RESOURCE_APP_PROFILE;
}

static status put_if_new(const struct mirror *mirror, struct edit *edit, struct resource *wanted)
{
    struct resource *standing;
    status s = control_find(mirror->control, wanted->kind, wanted->name, &standing);
    bool is_there = status_is_ok(s) && is_same(standing, wanted);
    resource_release(standing);
    status_free(s);
    return is_there ? status_ok() : edit_put_as_is(edit, wanted);
}

static status put_parents(void *context, struct edit *edit)
{
    const struct mirror *mirror = ((const struct step *)context)->mirror;
    struct resource *const *resources = mirror->wanted->resources.items;
    for (size_t i = 0; i < mirror->wanted->resources.count; i++)
        if (is_parent(resources[i]))
            TRY(put_if_new(mirror, edit, resources[i]));
    return status_ok();
}

struct sweeping {
    const struct mirror *mirror;
    struct edit *edit;
    status failure;
};

/* Stages the end of what is here alone. */
static bool sweep(void *context, struct resource *resource)
{
    struct sweeping *sweeping = context;
    if (resource_is_shared(resource->kind, resource->name) &&
        schema_snapshot_resource(sweeping->mirror->wanted, resource->kind, resource->name) == NULL)
        sweeping->failure = edit_delete(sweeping->edit, resource->kind, resource->name);
    return status_is_ok(sweeping->failure);
}

/* With what goes all under its name does, also what is wanted and comes again then. */
static status sweep_all(void *context, struct edit *edit)
{
    const struct mirror *mirror = ((const struct step *)context)->mirror;
    struct sweeping sweeping = {mirror, edit, status_ok()};
    const struct resource_type *type;
    for (size_t i = 0; (type = resource_type_at(i)) != NULL; i++) {
        if (type->kind == RESOURCE_MATERIALIZED_VIEW)
            continue; /* they have gone with their tables, or will the next time */
        TRY(control_list(mirror->control, type->kind, "", "", sweep, &sweeping));
        TRY(sweeping.failure);
    }
    return status_ok();
}

static status put_all(void *context, struct edit *edit)
{
    const struct mirror *mirror = ((const struct step *)context)->mirror;
    struct resource *const *resources = mirror->wanted->resources.items;
    for (size_t i = 0; i < mirror->wanted->resources.count; i++)
        TRY(put_if_new(mirror, edit, resources[i]));
    return status_ok();
}

/* --- what comes: tables --- */

static status undelete(const struct step *step, struct edit *edit, struct table *table)
{
    struct catalog_txn *txn;
    TRY(edit_put_back(edit, table_id(table)));
    TRY(edit_txn(edit, &txn));
    return cluster_undelete_table(step->mirror->cluster, table, txn);
}

static status make(const struct step *step)
{
    const struct schema_mirror_options *options = step->mirror->options;
    struct table *table;
    TRY(cluster_create_shared(step->mirror->cluster, step->table, NULL, &table));
    step->mirror->made++;
    if (options->made != NULL)
        options->made(options->context, table);
    table_release(table);
    return status_ok();
}

/* Within an edit, since an id that somebody looks for there is to be there or not. */
static status bring(void *context, struct edit *edit)
{
    const struct step *step = context;
    struct table *kept;
    status s = cluster_deleted_table_of_uid(step->mirror->cluster, step->table->uid, &kept);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return make(step);
    }
    TRY(s);
    s = undelete(step, edit, kept);
    table_release(kept);
    return s;
}

static status follow(void *context, struct edit *edit)
{
    const struct step *step = context;
    struct table *table;
    bool is_changed;
    (void)edit;
    TRY(cluster_table(step->mirror->cluster, bytes_of(step->name), &table));
    status s = table_follow_shared(table, step->table->record, &is_changed);
    table_release(table);
    TRY(s);
    step->mirror->changed += is_changed;
    return status_ok();
}

/* One that comes back is as it was, and has no change stream. */
static void bring_tables(struct mirror *mirror)
{
    const struct shared_table *tables = mirror->wanted->tables.items;
    for (size_t i = 0; i < mirror->wanted->tables.count; i++) {
        const struct shared_table *at = &tables[i];
        const struct shared_table *here = schema_snapshot_table(mirror->local, at->name);
        bool is_here = here != NULL && here->uid == at->uid;
        if (!is_here)
            take_step(mirror, at->name, at, bring);
        if (!is_here || !bytes_equal(here->record, at->record))
            take_step(mirror, at->name, at, follow);
    }
}

/* --- all of it --- */

static void mirror_all(struct mirror *mirror)
{
    delete_parents(mirror);
    delete_tables(mirror);
    take_step(mirror, "instances", NULL, put_parents);
    bring_tables(mirror);
    take_step(mirror, "resources", NULL, sweep_all);
    take_step(mirror, "resources", NULL, put_all);
    log_info(control_log(mirror->control), "the leader's schema is mirrored",
             LOG_INT("made", mirror->made), LOG_INT("changed", mirror->changed),
             LOG_INT("deleted", mirror->deleted));
}

status schema_mirror(const struct schema_mirror_options *options,
                     const struct schema_snapshot *wanted)
{
    struct mirror mirror = {.options = options,
                            .control = options->control,
                            .cluster = control_cluster(options->control),
                            .wanted = wanted,
                            .failure = status_ok()};
    TRY(schema_snapshot_take(options->control, &mirror.local));
    if (!bytes_equal(schema_snapshot_digest(mirror.local), schema_snapshot_digest(wanted)))
        mirror_all(&mirror);
    schema_snapshot_release(mirror.local);
    return mirror.failure;
}
