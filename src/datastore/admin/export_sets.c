/* See export_sets.h. */
#include "datastore/admin/export_sets.h"

#include "datastore/admin/export.h"
#include "datastore/model/validate.h"

static size_t at_least_one(size_t count)
{
    return count == 0 ? 1 : count;
}

size_t ds_set_count(const DsAdmin__EntityFilter *filter)
{
    return filter == NULL ? 1
                          : at_least_one(filter->n_kinds) * at_least_one(filter->n_namespace_ids);
}

struct ds_set_names ds_set_names(const DsAdmin__EntityFilter *filter, size_t set)
{
    struct ds_set_names names = {NULL, NULL};
    if (filter == NULL)
        return names;
    if (filter->n_kinds > 0)
        names.kind = filter->kinds[set % filter->n_kinds];
    if (filter->n_namespace_ids > 0)
        names.name_space = filter->namespace_ids[set / at_least_one(filter->n_kinds)];
    return names;
}

static bool is_named(const char *name, bytes text)
{
    return name == NULL || bytes_equal(bytes_of(name), text);
}

/* Kinds of the server's own, as statistics are. */
static bool is_reserved(bytes kind)
{
    const bytes mark = bytes_of("__");
    return kind.size >= 2 * mark.size && bytes_start_with(kind, mark) &&
           bytes_equal(bytes_from(kind, kind.size - mark.size), mark);
}

bool ds_set_find(const DsAdmin__EntityFilter *filter, bytes name_space, bytes kind, size_t *set)
{
    size_t count = is_reserved(kind) ? 0 : ds_set_count(filter);
    for (*set = 0; *set < count; ++*set) {
        struct ds_set_names names = ds_set_names(filter, *set);
        if (is_named(names.kind, kind) && is_named(names.name_space, name_space))
            return true;
    }
    return false;
}

/* --- what a request may ask --- */

static status check_different(const char *const *names, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return status_make(STATUS_INVALID_ARGUMENT, "The %s \"%s\" is named twice.", what,
                                   names[i]);
    return status_ok();
}

status ds_entity_filter_check(const DsAdmin__EntityFilter *filter)
{
    const struct ds_database any = {"", ""};
    if (filter == NULL)
        return status_ok();
    if (filter->n_kinds > DS_MOST_SETS || filter->n_namespace_ids > DS_MOST_SETS ||
        ds_set_count(filter) > DS_MOST_SETS)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The entity filter has more than %d combinations.", DS_MOST_SETS);
    for (size_t i = 0; i < filter->n_kinds; i++)
        TRY(ds_kind_check(filter->kinds[i]));
    for (size_t i = 0; i < filter->n_namespace_ids; i++) {
        Ds__PartitionId partition = DS__PARTITION_ID__INIT;
        partition.namespace_id = filter->namespace_ids[i];
        TRY(ds_partition_check(&partition, &any));
    }
    TRY(check_different(filter->kinds, filter->n_kinds, "kind"));
    return check_different(filter->namespace_ids, filter->n_namespace_ids, "namespace");
}
