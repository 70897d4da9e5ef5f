/* Plans: see query_plan.h. */
#include "datastore/query/query_parts.h"

#include "base/vector.h"
#include "datastore/query/query_metadata.h"
#include "row/row_key.h"

/* One conjunction being planned. */
struct planning {
    const struct ds_query *query;
    const struct ds_conjunction *conjunction;
    const struct ds_index *indexes;
    size_t index_count;
    struct arena *arena;
    const struct ds_order **varying; /* the ordered properties of the suffix */
    size_t varying_count;
    bool *is_covered; /* the equalities that a scan has */
    struct vector scans;
    const struct ds_part *parts;
};

/* --- scans --- */

/* The part of what comes first in a suffix. */
static const struct ds_part *first_part(const struct planning *planning)
{
    size_t i = 0;
    while (i < planning->query->order_count && planning->parts[i].constant.size > 0)
        i++;
    return &planning->parts[i];
}

static bool is_by_path(const struct planning *planning)
{
    return planning->varying_count == 0 && planning->query->key_flip == DS_ASCENDING;
}

/* Appends the end of the first part of the suffix, if it says. */
static void append_end(const struct planning *planning, bytes prefix, struct buffer *out)
{
    const struct ds_part *part = first_part(planning);
    struct buffer end = {0};
    if (part->end.size == 0)
        return;
    buffer_append_bytes(&end, prefix);
    buffer_append_bytes(&end, part->end);
    if (part->is_end_open) {
        buffer_append_bytes(out, buffer_bytes(&end));
    } else if (planning->varying_count == 0) {
        buffer_append_bytes(out, buffer_bytes(&end));
        buffer_append_byte(out, 0);
    } else if (!key_after_prefix(out, buffer_bytes(&end))) {
        buffer_clear(out);
    }
    out->failed = out->failed || end.failed;
    buffer_free(&end);
}

/* The prefix, and the range within it in which the first part of the suffix lies. */
static status set_range(const struct planning *planning, struct buffer *prefix,
                        struct ds_scan_plan *scan)
{
    bytes ancestor = planning->conjunction->ancestor;
    bool is_in_prefix = scan->index != NULL && scan->index->shape.has_ancestors;
    struct buffer to = {0};
    bytes end;
    TRY(ds_plan_keep(planning->arena, prefix, &scan->prefix));
    buffer_append_bytes(prefix, scan->prefix);
    if (!is_in_prefix)
        buffer_append_bytes(prefix, ancestor);
    if (!key_after_prefix(&to, buffer_bytes(prefix)))
        buffer_clear(&to);
    TRY(ds_plan_keep(planning->arena, prefix, &scan->from));
    TRY(ds_plan_keep(planning->arena, &to, &scan->to));
    append_end(planning, scan->prefix, &to);
    TRY(ds_plan_keep(planning->arena, &to, &end));
    if (key_ends_before(end, scan->to))
        scan->to = end;
    return status_ok();
}

static status add_scan(struct planning *planning, struct buffer *prefix, struct ds_scan_plan scan)
{
    TRY(set_range(planning, prefix, &scan));
    return vector_add(&planning->scans, planning->arena, &scan, sizeof scan);
}

/* All entities of the kind, or of the namespace. */
static status add_keys_scan(struct planning *planning)
{
    struct buffer prefix = {0};
    const struct ds_query *query = planning->query;
    struct ds_scan_plan scan = {.property = NULL};
    if (query->kind == NULL)
        ds_entity_prefix(&prefix, bytes_of(query->name_space));
    else
        ds_kind_prefix(&prefix, bytes_of(query->name_space), bytes_of(query->kind));
    return add_scan(planning, &prefix, scan);
}

/* `value` is empty, or an equality's. */
static status add_property_scan(struct planning *planning, const char *property, enum ds_flip flip,
                                bytes value)
{
    struct buffer prefix = {0};
    struct ds_scan_plan scan = {.property = property, .flip = flip, .type_offset = value.size > 0};
    ds_property_prefix(&prefix, bytes_of(planning->query->name_space),
                       bytes_of(planning->query->kind), bytes_of(property));
    buffer_append_bytes(&prefix, value);
    return add_scan(planning, &prefix, scan);
}

/* --- composite indexes --- */

/* The equality for a property with which an index begins: one that no scan has yet, if there is
 * one. */
static size_t choose_equality(const struct planning *planning, const char *property)
{
    const struct ds_conjunction *conjunction = planning->conjunction;
    size_t chosen = conjunction->equality_count;
    for (size_t i = 0; i < conjunction->equality_count; i++)
        if (strcmp(conjunction->equalities[i].property, property) == 0 &&
            (chosen == conjunction->equality_count ||
             (planning->is_covered[chosen] && !planning->is_covered[i])))
            chosen = i;
    return chosen;
}

/* Whether its rows have the suffixes that are wanted. */
static bool has_suffix(const struct planning *planning, const struct ds_index *index)
{
    const struct ds_index_shape *shape = &index->shape;
    bool has_ancestor = planning->conjunction->ancestor.size > 0;
    if (planning->query->kind == NULL || strcmp(index->kind, planning->query->kind) != 0 ||
        shape->key_flip != planning->query->key_flip || shape->values < planning->varying_count)
        return false;
    if (shape->has_ancestors != has_ancestor && (shape->has_ancestors || !is_by_path(planning)))
        return false;
    size_t first = shape->values - planning->varying_count;
    for (size_t i = 0; i < planning->varying_count; i++)
        if (strcmp(index->properties[first + i], planning->varying[i]->property) != 0 ||
            shape->flips[first + i] != planning->varying[i]->flip)
            return false;
    return true;
}

/* How many equalities it has that no scan has yet; -1 if it cannot be used. */
static int gain_of(const struct planning *planning, const struct ds_index *index)
{
    int gain = 0;
    if (!has_suffix(planning, index))
        return -1;
    for (size_t i = 0; i < index->shape.values - planning->varying_count; i++) {
        size_t chosen = choose_equality(planning, index->properties[i]);
        if (chosen == planning->conjunction->equality_count)
            return -1;
        gain += !planning->is_covered[chosen];
    }
    return gain;
}

static status add_composite_scan(struct planning *planning, const struct ds_index *index)
{
    struct buffer prefix = {0};
    const struct ds_conjunction *conjunction = planning->conjunction;
    size_t equalities = index->shape.values - planning->varying_count;
    struct ds_scan_plan scan = {.index = index, .type_offset = equalities};
    ds_composite_prefix(&prefix, bytes_of(planning->query->name_space), index->id,
                        index->shape.has_ancestors ? conjunction->ancestor : bytes_make(NULL, 0));
    for (size_t i = 0; i < equalities; i++) {
        size_t chosen = choose_equality(planning, index->properties[i]);
        planning->is_covered[chosen] = true;
        ds_bytes_append(&prefix, conjunction->equalities[chosen].value, index->shape.flips[i]);
    }
    return add_scan(planning, &prefix, scan);
}

/* The one that has most; NULL if none can be used. */
static const struct ds_index *best_index(const struct planning *planning, int *gain)
{
    const struct ds_index *best = NULL;
    *gain = -1;
    for (size_t i = 0; i < planning->index_count; i++) {
        int other = gain_of(planning, &planning->indexes[i]);
        if (other > *gain) {
            best = &planning->indexes[i];
            *gain = other;
        }
    }
    return best;
}

/* --- what is missing --- */

static void recommend_property(struct buffer *text, const char *name, enum ds_flip flip)
{
    buffer_append_format(text, "  - name: %s\n", name);
    if (flip == DS_DESCENDING)
        buffer_append_format(text, "    direction: desc\n");
}

static status refuse(const struct planning *planning)
{
    const struct ds_conjunction *conjunction = planning->conjunction;
    struct buffer text = {0};
    buffer_append_format(&text, "- kind: %s\n", planning->query->kind);
    if (conjunction->ancestor.size > 0)
        buffer_append_format(&text, "  ancestor: yes\n");
    buffer_append_format(&text, "  properties:\n");
    for (size_t i = 0; i < conjunction->equality_count; i++)
        if (i == 0 || strcmp(conjunction->equalities[i].property,
                             conjunction->equalities[i - 1].property) != 0)
            recommend_property(&text, conjunction->equalities[i].property, DS_ASCENDING);
    for (size_t i = 0; i < planning->varying_count; i++)
        recommend_property(&text, planning->varying[i]->property, planning->varying[i]->flip);
    if (planning->query->key_flip == DS_DESCENDING)
        recommend_property(&text, "__key__", DS_DESCENDING);
    status s = text.failed ? status_out_of_memory()
                           : status_make(STATUS_FAILED_PRECONDITION,
                                         "no matching index found. recommended index is:\n%.*s",
                                         (int)text.size, (const char *)text.data);
    buffer_free(&text);
    return s;
}

/* --- a branch --- */

static status set_varying(struct planning *planning)
{
    const struct ds_query *query = planning->query;
    planning->varying =
        arena_alloc(planning->arena, query->order_count * sizeof(const struct ds_order *));
    if (planning->varying == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < query->order_count; i++)
        if (ds_equality_find(planning->conjunction, query->orders[i].property, DS_ASCENDING) ==
            NULL)
            planning->varying[planning->varying_count++] = &query->orders[i];
    return status_ok();
}

/* Scans of built-in indexes for all equalities that have none yet; without equalities, one. */
static status use_built_in(struct planning *planning)
{
    const struct ds_conjunction *conjunction = planning->conjunction;
    bool is_ordered = planning->varying_count == 1 && conjunction->equality_count == 0 &&
                      conjunction->ancestor.size == 0 && planning->query->key_flip == DS_ASCENDING;
    if (is_ordered)
        return add_property_scan(planning, planning->varying[0]->property,
                                 planning->varying[0]->flip, bytes_make(NULL, 0));
    if (!is_by_path(planning))
        return refuse(planning);
    if (conjunction->equality_count == 0)
        return add_keys_scan(planning);
    for (size_t i = 0; i < conjunction->equality_count; i++)
        if (!planning->is_covered[i])
            TRY(add_property_scan(planning, conjunction->equalities[i].property, DS_ASCENDING,
                                  conjunction->equalities[i].value));
    return status_ok();
}

static bool is_complete(const struct planning *planning)
{
    for (size_t i = 0; i < planning->conjunction->equality_count; i++)
        if (!planning->is_covered[i])
            return false;
    return planning->scans.count > 0;
}

/* A composite index that has one equality is no better than the built-in one. */
static status choose_scans(struct planning *planning)
{
    int least = is_by_path(planning) ? 2 : planning->conjunction->equality_count > 0;
    while (!is_complete(planning)) {
        int gain;
        const struct ds_index *index = best_index(planning, &gain);
        if (index == NULL || gain < least)
            return use_built_in(planning);
        TRY(add_composite_scan(planning, index));
    }
    return status_ok();
}

static status plan_branch(struct planning *planning, struct ds_branch_plan *out)
{
    size_t equalities = planning->conjunction->equality_count;
    planning->is_covered = arena_zalloc(planning->arena, equalities * sizeof(bool));
    if (planning->is_covered == NULL)
        return status_out_of_memory();
    TRY(set_varying(planning));
    TRY(ds_parts_make(planning->query, planning->conjunction, planning->arena, &planning->parts));
    TRY(choose_scans(planning));
    *out = (struct ds_branch_plan){.scans = planning->scans.items,
                                   .scan_count = planning->scans.count,
                                   .parts = planning->parts};
    return status_ok();
}

static status plan_all(const struct ds_query *query, const struct ds_index *indexes, size_t count,
                       struct arena *arena, struct ds_plan *out)
{
    struct ds_branch_plan *branches =
        arena_alloc(arena, query->conjunction_count * sizeof *branches);
    if (branches == NULL)
        return status_out_of_memory();
    *out = (struct ds_plan){.branches = branches};
    for (; out->branch_count < query->conjunction_count; out->branch_count++) {
        struct planning planning = {.query = query,
                                    .conjunction = &query->conjunctions[out->branch_count],
                                    .indexes = indexes,
                                    .index_count = count,
                                    .arena = arena};
        TRY(plan_branch(&planning, &branches[out->branch_count]));
    }
    return status_ok();
}

/* --- the order of what is only projected --- */

/* The order with its free end as the last properties of the index are; false if those are others.
 */
static bool follow(const struct ds_query *query, const struct ds_index *index,
                   struct ds_order *orders)
{
    size_t fixed = query->order_count - query->free_count;
    if (strcmp(index->kind, query->kind) != 0 || index->shape.values < query->free_count)
        return false;
    size_t first = index->shape.values - query->free_count;
    for (size_t i = 0; i < query->order_count; i++)
        orders[i] = query->orders[i];
    for (size_t i = 0; i < query->free_count; i++) {
        size_t j = fixed;
        while (j < query->order_count &&
               strcmp(query->orders[j].property, index->properties[first + i]) != 0)
            j++;
        if (j == query->order_count)
            return false;
        orders[fixed + i] = query->orders[j];
        orders[fixed + i].flip = index->shape.flips[first + i];
    }
    return true;
}

/* Tries the order of each index. `refusal` is what becomes of it if none will do. */
static status plan_by_indexes(struct ds_query *query, const struct ds_index *indexes, size_t count,
                              struct arena *arena, status refusal, struct ds_plan *out)
{
    const struct ds_order *first = query->orders;
    for (size_t i = 0; i < count && refusal.code == STATUS_FAILED_PRECONDITION; i++) {
        struct ds_order *orders = arena_alloc(arena, query->order_count * sizeof *orders);
        query->orders = first;
        if (orders == NULL || !follow(query, &indexes[i], orders))
            continue;
        query->orders = orders;
        status s = plan_all(query, indexes, count, arena, out);
        if (s.code != STATUS_FAILED_PRECONDITION) {
            status_free(refusal);
            refusal = s;
        } else {
            status_free(s);
        }
    }
    return refusal;
}

status ds_plan_make(struct ds_query *query, const struct ds_index *indexes, size_t count,
                    struct arena *arena, struct ds_plan *out)
{
    *out = (struct ds_plan){.branch_count = 0};
    if (ds_is_metadata(query))
        return ds_metadata_check(query);
    status s = plan_all(query, indexes, count, arena, out);
    if (s.code == STATUS_FAILED_PRECONDITION && query->free_count > 0)
        s = plan_by_indexes(query, indexes, count, arena, s, out);
    return s;
}
