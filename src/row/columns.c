/* See columns.h. */
#include "row/columns.h"

const struct string_set *columns_of_family(const struct columns *columns, bytes family)
{
    for (size_t i = 0; i < columns->count; i++)
        if (bytes_equal(columns->families[i].family, family))
            return &columns->families[i].qualifiers;
    return NULL;
}

/* The bounds are for seeks; the set is exact. */
static void restrict_family(const struct string_set *qualifiers, struct family_scope *scope)
{
    if (qualifiers == NULL || qualifiers->count == 0) {
        scope->is_wanted = false;
        return;
    }
    const struct string_range *first = &qualifiers->ranges[0];
    const struct string_range *last = &qualifiers->ranges[qualifiers->count - 1];
    if (bytes_compare(scope->from, first->from) < 0)
        scope->from = first->from;
    if (last->to.size > 0 && (!scope->has_to || bytes_compare(last->to, scope->to) < 0)) {
        scope->has_to = true;
        scope->to = last->to;
    }
    if (!string_set_has_all(qualifiers))
        scope->visible = qualifiers;
}

status columns_restrict(const struct columns *columns, const struct schema *schema,
                        struct arena *arena, struct read_scope *scope)
{
    struct family_scope *families = arena_alloc(arena, schema->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->family_count; i++) {
        families[i] =
            scope->families == NULL ? (struct family_scope){.is_wanted = true} : scope->families[i];
        restrict_family(columns_of_family(columns, schema->families[i].name), &families[i]);
    }
    scope->families = families;
    return status_ok();
}
