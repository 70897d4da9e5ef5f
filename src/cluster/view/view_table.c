/* See view_table.h. */
#include "cluster/view/view_table.h"

#include "base/check.h"
#include "cluster/deletions.h"
#include "cluster/index.h"

#include <stdlib.h>

/* --- what is asked --- */

bool table_is_view(const struct table *table)
{
    return table->view.source_id != 0;
}

uint64_t table_view_source_id(const struct table *view)
{
    return view->view.source_id;
}

bool table_is_viewed(const struct table *table)
{
    return table_description(table)->is_viewed;
}

/* A walk over all tables. */
struct search {
    uint64_t id;
    struct table *found; /* the one of that id, with a reference; NULL */
    size_t views;        /* that read it */
};

static bool look_at(void *context, struct table *table)
{
    struct search *search = context;
    search->views += table->view.source_id == search->id;
    if (table->id == search->id) {
        table_retain(table);
        search->found = table;
    }
    return true;
}

static status search_all(struct cluster *cluster, uint64_t id, struct search *search)
{
    const bytes all = bytes_make(NULL, 0);
    *search = (struct search){.id = id};
    status s = cluster_list_tables(cluster, all, all, look_at, search);
    if (!status_is_ok(s) && search->found != NULL)
        table_release(search->found);
    return s;
}

status table_view_source(struct table *view, struct table **out)
{
    struct search search;
    *out = NULL;
    DCHECK(table_is_view(view));
    TRY(search_all(view->cluster, view->view.source_id, &search));
    *out = search.found;
    return *out != NULL ? status_ok()
                        : status_make(STATUS_NOT_FOUND, "The source of %s is gone", view->name);
}

/* Without memory: 0, as of a table that nobody reads. */
size_t table_view_count(struct table *source)
{
    struct search search;
    status s = search_all(source->cluster, source->id, &search);
    size_t count = status_is_ok(s) ? search.views : 0;
    if (status_is_ok(s) && search.found != NULL)
        table_release(search.found);
    status_ignore(s);
    return count;
}

/* --- create --- */

static status make_schema(const struct view_spec *spec, struct schema **out)
{
    struct family *families = calloc(spec->family_count + 1, sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->family_count; i++)
        families[i] = (struct family){.id = (uint32_t)i + 1, .name = bytes_of(spec->families[i])};
    status s = schema_create(GRANULARITY_MILLIS, families, spec->family_count,
                             (uint32_t)spec->family_count + 1, out);
    free(families);
    return s;
}

static status check_source(const struct table *source)
{
    if (source->is_deleted)
        return cluster_not_found(bytes_of(source->name));
    if (table_is_view(source))
        return status_make(STATUS_FAILED_PRECONDITION, "%s is a view itself", source->name);
    if (!table_is_in_one_shard(source))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Rows of %s lie in several shards, which a materialized view cannot "
                           "read",
                           source->name);
    return status_ok();
}

/* Not viewed any more, unless another view reads it; with admin held. If it fails it costs what it
 * costs, and the next start puts it right. */
static void let_go(struct table *source)
{
    if (!source->is_deleted && table_view_count(source) == 0)
        status_ignore(cluster_set_viewed(source, false));
}

static status create_with(struct cluster *cluster, const struct view_spec *spec,
                          const struct schema *schema, struct table **out)
{
    struct table *source = spec->source;
    DCHECK(check_is_held(&cluster->admin));
    TRY(check_source(source));
    const unsigned shard = source->spaces[0].shard->number;
    const struct table_spec table = {.name = spec->name,
                                     .schema = schema,
                                     .shards = &shard,
                                     .view_source = source,
                                     .txn = spec->txn};
    TRY(cluster_check_is_new(cluster, spec->name));
    TRY(cluster_set_viewed(source, true));
    status s = cluster_create_locked(cluster, &table, out);
    if (!status_is_ok(s))
        let_go(source);
    return s;
}

static status create_locked(struct cluster *cluster, const struct view_spec *spec,
                            struct table **out)
{
    struct schema *schema;
    *out = NULL;
    TRY(make_schema(spec, &schema));
    status s = create_with(cluster, spec, schema, out);
    schema_destroy(schema);
    return s;
}

status cluster_create_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out)
{
    pthread_mutex_lock(&cluster->admin);
    status s = create_locked(cluster, spec, out);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* --- delete --- */

/* With admin held. */
static status delete_locked(struct cluster *cluster, struct table *view, struct catalog_txn *txn)
{
    struct search search;
    DCHECK(check_is_held(&cluster->admin) && table_is_view(view));
    TRY(search_all(cluster, view->view.source_id, &search));
    status s = deletions_drop(cluster, &view, 1, txn);
    if (status_is_ok(s) && search.found != NULL)
        let_go(search.found);
    if (search.found != NULL)
        table_release(search.found);
    return s;
}

status cluster_delete_view(struct cluster *cluster, bytes name, struct catalog_txn *txn)
{
    status s = status_ok();
    pthread_mutex_lock(&cluster->admin);
    struct table *view = index_find(cluster, name);
    if (view != NULL && table_is_view(view))
        s = delete_locked(cluster, view, txn);
    else if (txn != NULL)
        s = cluster_write_removal(cluster, txn);
    pthread_mutex_unlock(&cluster->admin);
    if (view != NULL)
        table_release(view);
    return s;
}

/* --- to be there --- */

static bool is_as_wanted(const struct table *view, const struct view_spec *spec)
{
    bool is_so = table_is_view(view) && view->view.source_id == spec->source->id &&
                 table_schema(view)->family_count == spec->family_count;
    for (size_t i = 0; is_so && i < spec->family_count; i++)
        is_so = schema_family_named(table_schema(view), bytes_of(spec->families[i])) != NULL;
    return is_so;
}

static status ensure_locked(struct cluster *cluster, const struct view_spec *spec,
                            struct table **out, bool *is_new)
{
    *is_new = false;
    *out = index_find(cluster, bytes_of(spec->name));
    if (*out != NULL && is_as_wanted(*out, spec))
        return spec->txn == NULL ? status_ok() : cluster_write_catalog(cluster, spec->txn);
    if (*out != NULL) {
        struct table *other = *out;
        *out = NULL;
        status s = table_is_view(other) ? delete_locked(cluster, other, NULL) : status_ok();
        table_release(other);
        TRY(s);
    }
    TRY(create_locked(cluster, spec, out));
    *is_new = true;
    return status_ok();
}

status cluster_ensure_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out, bool *is_new)
{
    pthread_mutex_lock(&cluster->admin);
    status s = ensure_locked(cluster, spec, out, is_new);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* --- without a server --- */

struct forgetting {
    struct keyspace *catalog;
    struct store_batch *batch;
};

static status forget_view(void *context, const struct table_record *record)
{
    const struct forgetting *forgetting = context;
    if (record->view.source_id == 0)
        return status_ok();
    catalog_delete_table(forgetting->batch, forgetting->catalog, record->id);
    catalog_delete_tablets(forgetting->batch, forgetting->catalog, record->id);
    return status_ok();
}

status views_forget(struct keyspace *catalog, struct catalog_txn *txn)
{
    struct forgetting forgetting = {catalog, catalog_txn_batch(txn)};
    const struct catalog_visitor visitor = {.context = &forgetting, .table = forget_view};
    return catalog_read(catalog, &visitor);
}

/* --- at start --- */

bool table_view_is_damaged(const struct table *view)
{
    bool is_damaged = keyspace_has_damage(view->view.records);
    for (size_t i = 0; i < view->space_count; i++)
        is_damaged |= keyspace_has_damage(view->spaces[i].keyspace);
    return is_damaged;
}

/* One that may have missed something: its source is gone, or was not viewed; or that has lost
 * something. */
static bool is_stale(struct table *view, bool *fails)
{
    *fails = false;
    if (table_view_is_damaged(view))
        return true;
    struct search search;
    status s = search_all(view->cluster, view->view.source_id, &search);
    *fails = !status_is_ok(s);
    status_ignore(s);
    bool is_stale = search.found == NULL || !table_is_viewed(search.found);
    if (search.found != NULL)
        table_release(search.found);
    return is_stale;
}

/* What its feed has is not known, but of before the start. */
static void note_feed(struct table *source)
{
    const struct shard *shard = source->spaces[0].shard;
    atomic_store(&source->feed.newest, commit_applied(shard->commits));
}

/* Puts one right; `*name` moves on to the next. False: there is none. */
static bool sweep_next(struct cluster *cluster, struct buffer *name, status *result)
{
    bool fails = false;
    struct table *table = cluster_table_from(cluster, buffer_bytes(name));
    if (table == NULL)
        return false;
    buffer_clear(name);
    buffer_append(name, table->name, strlen(table->name) + 1);
    if (table_is_view(table) && is_stale(table, &fails))
        *result = fails ? status_out_of_memory() : delete_locked(cluster, table, NULL);
    else if (table_is_viewed(table))
        let_go(table);
    if (table_is_viewed(table))
        note_feed(table);
    table_release(table);
    return status_is_ok(*result) && !name->failed;
}

status views_sweep(struct cluster *cluster)
{
    struct buffer name = {0};
    status s = status_ok();
    if (store_old_data(cluster->home->store) != NULL) /* nothing is written */
        return s;
    pthread_mutex_lock(&cluster->admin);
    while (sweep_next(cluster, &name, &s))
        ;
    pthread_mutex_unlock(&cluster->admin);
    buffer_free(&name);
    return s;
}
