/* See view.h. */
#include "bigtable/view.h"

#include "bigtable/names.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "wire/proto.h"

enum { VIEW_MEMORY = 64 << 20 };

/* --- compiling --- */

static status compile_columns(const BtAdmin__AuthorizedView__SubsetView *subset,
                              struct arena *arena, struct columns *out)
{
    size_t count = subset->n_family_subsets;
    struct family_columns *families = arena_alloc(arena, count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const BtAdmin__AuthorizedView__FamilySubsets *given = subset->family_subsets[i]->value;
        families[i] = (struct family_columns){.family = bytes_of(subset->family_subsets[i]->key)};
        if (given != NULL)
            TRY(string_set_make(given->qualifiers, given->n_qualifiers, given->qualifier_prefixes,
                                given->n_qualifier_prefixes, arena, &families[i].qualifiers));
    }
    *out = (struct columns){.families = families, .count = count};
    return status_ok();
}

static status compile(struct resource *resource, struct arena *arena, struct view *view)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, arena, &message));
    const BtAdmin__AuthorizedView *given = (const void *)message;
    if (given->authorized_view_case != BT_ADMIN__AUTHORIZED_VIEW__AUTHORIZED_VIEW_SUBSET_VIEW)
        return status_ok(); /* of a kind that is newer than we are: it shows nothing */
    const BtAdmin__AuthorizedView__SubsetView *subset = given->subset_view;
    TRY(string_set_make(NULL, 0, subset->row_prefixes, subset->n_row_prefixes, arena, &view->rows));
    return compile_columns(subset, arena, &view->columns);
}

static void destroy(struct resource_kept *kept)
{
    arena_destroy(((struct view *)kept)->arena);
}

static status make(struct resource *resource, struct view **out)
{
    struct arena *arena = arena_create(VIEW_MEMORY);
    struct view *view = arena == NULL ? NULL : arena_zalloc(arena, sizeof *view);
    status s = view == NULL ? status_out_of_memory() : compile(resource, arena, view);
    if (!status_is_ok(s)) {
        arena_destroy(arena);
        return s;
    }
    view->kept.destroy = destroy;
    view->resource = resource;
    view->arena = arena;
    *out = view;
    return s;
}

/* --- finding --- */

static status view_of(struct resource *resource, const struct view **out)
{
    struct resource_kept *kept = atomic_load(&resource->kept);
    struct view *view;
    if (kept == NULL) {
        TRY(make(resource, &view));
        kept = resource_keep(resource, &view->kept);
    }
    *out = (const struct view *)kept;
    return status_ok();
}

status view_open(struct control *control, const char *name, const struct view **out)
{
    struct resource *resource;
    TRY(name_check_form("Authorized view", name,
                        "projects/{project}/instances/{instance}/tables/{table}/"
                        "authorizedViews/{id}"));
    TRY(control_find(control, RESOURCE_AUTHORIZED_VIEW, name, &resource));
    status s = view_of(resource, out);
    if (!status_is_ok(s))
        resource_release(resource);
    return s;
}

void view_release(const struct view *view)
{
    if (view != NULL)
        resource_release(view->resource);
}

/* --- writing --- */

static bool has_column(const struct view *view, const char *family, ProtobufCBinaryData qualifier)
{
    const struct string_set *set = columns_of_family(&view->columns, bytes_of(family));
    return set != NULL && string_set_has(set, proto_bytes(qualifier));
}

static bool has_family(const struct view *view, bytes family)
{
    const struct string_set *set = columns_of_family(&view->columns, family);
    return set != NULL && string_set_has_all(set);
}

static bool has_all_families(const struct view *view, const struct schema *schema)
{
    bool has_all = true;
    for (size_t i = 0; i < schema->family_count && has_all; i++)
        has_all = has_family(view, schema->families[i].name);
    return has_all;
}

static bool has_place(const struct view *view, const struct schema *schema,
                      const Bt__Mutation *mutation)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        return has_column(view, mutation->set_cell->family_name,
                          mutation->set_cell->column_qualifier);
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        return has_column(view, mutation->add_to_cell->family_name,
                          mutation->add_to_cell->column_qualifier->raw_value);
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        return has_column(view, mutation->merge_to_cell->family_name,
                          mutation->merge_to_cell->column_qualifier->raw_value);
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        return has_column(view, mutation->delete_from_column->family_name,
                          mutation->delete_from_column->column_qualifier);
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
        return has_family(view, bytes_of(mutation->delete_from_family->family_name));
    default: /* mutations_check has passed no other */
        return has_all_families(view, schema);
    }
}

bool view_has(const struct view *view, const struct schema *schema, bytes row_key,
              Bt__Mutation *const *mutations, size_t count)
{
    bool has_all = string_set_has(&view->rows, row_key);
    for (size_t i = 0; i < count && has_all; i++)
        has_all = has_place(view, schema, mutations[i]);
    return has_all;
}

status view_refusal(const struct view *view)
{
    return status_make(STATUS_PERMISSION_DENIED,
                       "Cannot mutate from %s because the mutation contains cells outside the "
                       "Authorized View.",
                       view->resource->name);
}

status view_refuse_family(const struct view *view)
{
    return status_make(STATUS_PERMISSION_DENIED,
                       "Cannot read from %s because the filter names a column family outside the "
                       "Authorized View.",
                       view->resource->name);
}

status view_check_mutations(const struct view *view, const struct schema *schema, bytes row_key,
                            Bt__Mutation *const *mutations, size_t count)
{
    if (view == NULL || view_has(view, schema, row_key, mutations, count))
        return status_ok();
    return view_refusal(view);
}

status view_check_rules(const struct view *view, bytes row_key,
                        Bt__ReadModifyWriteRule *const *rules, size_t count)
{
    if (view == NULL)
        return status_ok();
    bool has_all = string_set_has(&view->rows, row_key);
    for (size_t i = 0; i < count && has_all; i++)
        has_all = has_column(view, rules[i]->family_name, rules[i]->column_qualifier);
    return has_all ? status_ok() : view_refusal(view);
}
