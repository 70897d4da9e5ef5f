/* See materialized.h. */
#include "bigtable/materialized.h"

#include "bigtable/names.h"
#include "bigtable/query.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

enum { MEMORY = 64 << 20 };

/* --- planning --- */

status materialized_define(struct bigtable *bigtable, const struct materialized_query *query,
                           struct arena *arena, struct view_definition *out)
{
    struct sql_plan *plan = arena_zalloc(arena, sizeof *plan);
    const char *instance = name_parent(arena, query->name);
    if (plan == NULL || instance == NULL)
        return status_out_of_memory();
    const struct query_view view = {.instance = instance,
                                    .id = name_id(query->name),
                                    .text = query->text,
                                    .is_materialized = true,
                                    .call = query->call};
    TRY(query_plan_view(bigtable, arena, &view, plan));
    if (plan->table == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "queries must read from a table");
    *out = (struct view_definition){.plan = plan,
                                    .source = name_of_table(arena, instance, plan->table->name)};
    return out->source == NULL ? status_out_of_memory() : status_ok();
}

status materialized_define_for_engine(void *context, const char *name, const char *query,
                                      struct arena *arena, struct view_definition *out)
{
    return materialized_define(context, &(struct materialized_query){.name = name, .text = query},
                               arena, out);
}

/* --- reading --- */

status materialized_unreadable(const char *name, const struct view_found *found)
{
    if (found->state == VIEW_FAILED)
        return status_make(STATUS_FAILED_PRECONDITION, "Materialized view %s has failed: %s", name,
                           found->words);
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Materialized view %s is being populated, and cannot be read until then",
                       name);
}

status materialized_open(struct bigtable *bigtable, const char *name, struct table **out)
{
    struct view_found found;
    TRY(views_find(bigtable->views, name, &found));
    *out = found.is_readable ? found.table : NULL;
    if (*out != NULL)
        return status_ok();
    if (found.table != NULL)
        table_release(found.table);
    return materialized_unreadable(name, &found);
}

/* --- keeping --- */

static void destroy(struct resource_kept *kept)
{
    arena_destroy(((struct materialized *)kept)->arena);
}

static status plan_resource(struct bigtable *bigtable, struct resource *resource,
                            struct materialized *view)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, view->arena, &message));
    struct materialized_query query = {
        .name = ((const BtAdmin__MaterializedView *)(const void *)message)->name,
        .text = ((const BtAdmin__MaterializedView *)(const void *)message)->query};
    struct view_program *program;
    TRY(materialized_define(bigtable, &query, view->arena, &view->definition));
    TRY(view_program_make(view->definition.plan, view->arena, &program));
    view->program = program;
    return status_ok();
}

static status make(struct bigtable *bigtable, struct resource *resource, struct materialized **out)
{
    struct arena *arena = arena_create(MEMORY);
    struct materialized *view = arena == NULL ? NULL : arena_zalloc(arena, sizeof *view);
    if (view == NULL) {
        arena_destroy(arena);
        return status_out_of_memory();
    }
    *view = (struct materialized){.kept.destroy = destroy, .arena = arena};
    status s = plan_resource(bigtable, resource, view);
    if (!status_is_ok(s)) {
        arena_destroy(arena);
        return s;
    }
    *out = view;
    return s;
}

status materialized_of(struct bigtable *bigtable, struct resource *resource,
                       const struct materialized **out)
{
    struct resource_kept *kept = atomic_load(&resource->kept);
    struct materialized *view;
    if (kept == NULL) {
        TRY(make(bigtable, resource, &view));
        kept = resource_keep(resource, &view->kept);
    }
    *out = (const struct materialized *)kept;
    return status_ok();
}
