/* Of a view's resource what is needed to keep it up: see views_private.h. */
#include "views/views_private.h"

#include "base/check.h"
#include "base/siphash.h"
#include "views/keys.h"

#include <stdlib.h>

enum { PROGRAM_MEMORY = 64 << 20 };

/* --- the table --- */

struct making {
    const struct view_entry *entry;
    struct view_spec spec;
    bool is_anew; /* what there is goes first */
    struct table *table;
};

static status make_table(struct cluster *cluster, struct making *making, struct catalog_txn *txn)
{
    bool is_new;
    if (making->is_anew)
        TRY(cluster_delete_view(cluster, bytes_of(making->entry->name), NULL));
    making->spec.txn = txn;
    return cluster_ensure_view(cluster, &making->spec, &making->table, &is_new);
}

/* Within an edit nobody deletes the view: so no table is left behind. Of all edits before this one
 * the entry has been told: while it was being opened its view may have gone, and another one have
 * come by its name, whose table is not this entry's to replace. */
static status make_in_edit(void *context, struct edit *edit)
{
    struct making *making = context;
    struct catalog_txn *txn;
    if (atomic_load(&making->entry->gives_up))
        return status_make(STATUS_CANCELLED, "Upkeep is to end.");
    DCHECK(edit_find(edit, RESOURCE_MATERIALIZED_VIEW, making->entry->name) != NULL);
    TRY(edit_txn(edit, &txn));
    return make_table(control_cluster(edit_control(edit)), making, txn);
}

static struct view_spec spec_of(const char *name, struct table *source,
                                const struct view_program *program)
{
    struct view_spec spec = {.name = name, .source = source};
    spec.families = view_program_families(program, &spec.family_count);
    return spec;
}

/* The one that there is, if it is of this source. */
static bool find_table(struct cluster *cluster, const char *name, const struct table *source,
                       struct table **out)
{
    status s = cluster_table(cluster, bytes_of(name), out);
    bool is_there = status_is_ok(s);
    status_free(s);
    if (is_there && table_is_view(*out) && table_view_source_id(*out) == table_id(source))
        return true;
    if (is_there)
        table_release(*out);
    *out = NULL;
    return false;
}

static status hold_table(struct views *views, struct view_entry *entry)
{
    struct view_upkeep *upkeep = &entry->upkeep;
    if (find_table(views->options.cluster, entry->name, upkeep->source, &upkeep->table))
        return status_ok();
    struct making making = {.entry = entry,
                            .spec = spec_of(entry->name, upkeep->source, upkeep->program)};
    TRY(control_edit(views->options.control, make_in_edit, &making));
    upkeep->table = making.table;
    return status_ok();
}

status view_entry_remake(struct views *views, struct view_entry *entry)
{
    struct view_upkeep *upkeep = &entry->upkeep;
    struct making making = {.entry = entry,
                            .spec = spec_of(entry->name, upkeep->source, upkeep->program),
                            .is_anew = true};
    TRY(control_edit(views->options.control, make_in_edit, &making));
    pthread_mutex_lock(&views->lock);
    struct table *former = entry->table;
    table_retain(making.table);
    entry->table = making.table;
    atomic_store(&upkeep->counts.was_ready, false); /* nobody reads it empty */
    pthread_mutex_unlock(&views->lock);
    table_release(former);
    table_release(upkeep->table);
    upkeep->table = making.table;
    return status_ok();
}

/* --- the program --- */

static struct fingerprint print_of(const char *query, const struct view_program *program)
{
    uint64_t form = view_program_fingerprint(program);
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_make(&form, sizeof form));
    siphash_add(&hash, bytes_of(query));
    return siphash_finish(&hash);
}

static status make_program(struct views *views, struct view_entry *entry)
{
    struct view_upkeep *upkeep = &entry->upkeep;
    struct view_definition definition;
    struct view_program *program;
    entry->arena = arena_create(PROGRAM_MEMORY);
    if (entry->arena == NULL)
        return status_out_of_memory();
    TRY(views->options.define(views->options.context, entry->name, entry->query, entry->arena,
                              &definition));
    TRY(view_program_make(definition.plan, entry->arena, &program));
    TRY(cluster_table(views->options.cluster, bytes_of(definition.source), &upkeep->source));
    upkeep->program = program;
    upkeep->print = print_of(entry->query, program);
    upkeep->gives_up = &entry->gives_up;
    upkeep->most_piece_rows = views->options.piece_rows;
    return view_runner_create(program, &upkeep->runner);
}

/* --- before it is open --- */

static status read_ready(struct table *table, bool *was_ready)
{
    struct view_progress_state state = {0};
    struct buffer record = {0};
    bool is_there;
    status s = view_records_get(table, view_state_key(), &record, &is_there);
    *was_ready = false;
    if (status_is_ok(s) && is_there && !record.failed)
        s = view_state_read(buffer_bytes(&record), &state);
    if (status_is_ok(s))
        *was_ready = state.was_ready;
    view_state_free(&state);
    buffer_free(&record);
    return s;
}

void view_entry_foresee(struct views *views, struct view_entry *entry)
{
    struct table *table;
    bool was_ready;
    status s = cluster_table(views->options.cluster, bytes_of(entry->name), &table);
    if (!status_is_ok(s)) {
        status_free(s);
        return;
    }
    status_ignore(read_ready(table, &was_ready)); /* it is told when it is opened */
    atomic_store(&entry->upkeep.counts.was_ready, was_ready);
    entry->table = table;
}

status view_entry_open(struct views *views, struct view_entry *entry)
{
    TRY(make_program(views, entry));
    TRY(hold_table(views, entry));
    char *source = strdup(table_name(entry->upkeep.source));
    if (source == NULL)
        return status_out_of_memory();
    pthread_mutex_lock(&views->lock);
    struct table *former = entry->table;
    table_retain(entry->upkeep.table);
    entry->table = entry->upkeep.table;
    free(entry->source_name);
    entry->source_name = source;
    pthread_mutex_unlock(&views->lock);
    if (former != NULL)
        table_release(former);
    return status_ok();
}

void view_entry_close(struct view_entry *entry)
{
    struct view_upkeep *upkeep = &entry->upkeep;
    view_upkeep_free(upkeep);
    if (upkeep->table != NULL)
        table_release(upkeep->table);
    if (upkeep->source != NULL)
        table_release(upkeep->source);
    upkeep->table = NULL;
    upkeep->source = NULL;
    arena_destroy(entry->arena);
    entry->arena = NULL;
}

/* --- for the services --- */

static status make_program_alone(const struct view_definition *definition, struct arena *arena,
                                 struct view_program **out)
{
    return arena == NULL ? status_out_of_memory() : view_program_make(definition->plan, arena, out);
}

static status create_table(struct views *views, const char *name, struct table *source,
                           const struct view_definition *definition, struct catalog_txn *txn)
{
    struct arena *arena = arena_create(PROGRAM_MEMORY);
    struct view_program *program;
    struct table *made;
    status s = make_program_alone(definition, arena, &program);
    if (status_is_ok(s)) {
        struct view_spec spec = spec_of(name, source, program);
        spec.txn = txn;
        s = cluster_create_view(views->options.cluster, &spec, &made);
    }
    if (status_is_ok(s))
        table_release(made);
    arena_destroy(arena);
    return s;
}

status views_create_table(struct views *views, const char *name,
                          const struct view_definition *definition, struct catalog_txn *txn)
{
    struct table *source;
    TRY(cluster_table(views->options.cluster, bytes_of(definition->source), &source));
    status s = create_table(views, name, source, definition, txn);
    table_release(source);
    return s;
}

status views_delete_table(struct views *views, const char *name, struct catalog_txn *txn)
{
    return cluster_delete_view(views->options.cluster, bytes_of(name), txn);
}
