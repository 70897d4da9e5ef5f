/* Schemas: see schema.h. Everything lies in one arena, whose handle the schema keeps. */
#include "row/schema.h"

#include "base/check.h"

#include "base/arena.h"

#include <stdlib.h>

struct owned_schema {
    struct schema schema;
    struct arena *arena;
};

static int compare_names(const void *a, const void *b)
{
    const struct family *left = a, *right = b;
    return bytes_compare(left->name, right->name);
}

static bool copy_bytes(struct arena *arena, bytes *b)
{
    *b = arena_copy(arena, *b);
    return b->data != NULL;
}

static struct gc_rule *copy_rules(struct arena *arena, const struct gc_rule *rules, size_t count)
{
    struct gc_rule *copies = arena_alloc(arena, count * sizeof *copies);
    for (size_t i = 0; copies != NULL && i < count; i++) {
        copies[i] = rules[i];
        copies[i].children = copy_rules(arena, rules[i].children, rules[i].child_count);
        if (copies[i].children == NULL)
            return NULL;
    }
    return copies;
}

static bool copy_family(struct arena *arena, struct family *family)
{
    if (!copy_bytes(arena, &family->name) || !copy_bytes(arena, &family->value_type))
        return false;
    if (family->gc != NULL)
        family->gc = copy_rules(arena, family->gc, 1);
    return true;
}

static bool rule_has(const struct gc_rule *rule, enum gc_kind kind)
{
    if (rule->kind == kind)
        return true;
    for (size_t i = 0; i < rule->child_count; i++)
        if (rule_has(&rule->children[i], kind))
            return true;
    return false;
}

bool gc_counts_versions(const struct gc_rule *rule)
{
    return rule != NULL && rule_has(rule, GC_MAX_VERSIONS);
}

/* Insertion: tables have few families, and catalogs mostly list them in order of their ids. */
static void order_by_id(const struct family *families, size_t count, uint32_t *by_id)
{
    DCHECK(count <= UINT32_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && families[by_id[at - 1]].id > families[i].id; at--)
            by_id[at] = by_id[at - 1];
        by_id[at] = (uint32_t)i;
    }
}

static void describe(struct schema *schema)
{
    schema->names_follow_ids = true;
    schema->has_lost_families = schema->family_count + 1 < schema->next_family_id;
    for (size_t i = 0; i < schema->family_count; i++) {
        const struct gc_rule *gc = schema->families[i].gc;
        schema->names_follow_ids &= schema->by_id[i] == i;
        schema->has_age_rules |= gc != NULL && rule_has(gc, GC_MAX_AGE);
        schema->has_count_rules |= gc_counts_versions(gc);
        schema->has_aggregates |= schema->families[i].aggregate != AGGREGATE_NONE;
    }
}

/* By name and by id; for DCHECKs. (That each is there once catalog.c sees to.) */
static bool is_indexed(const struct schema *schema)
{
    const struct family *families = schema->families;
    for (size_t i = 1; i < schema->family_count; i++)
        if (bytes_compare(families[i - 1].name, families[i].name) > 0 ||
            families[schema->by_id[i - 1]].id > families[schema->by_id[i]].id)
            return false;
    return true;
}

static struct schema *build(struct arena *arena, enum granularity granularity,
                            const struct family *families, size_t count, uint32_t next_family_id)
{
    struct owned_schema *owned = arena_alloc(arena, sizeof *owned);
    struct family *copies = arena_alloc(arena, count * sizeof *copies);
    uint32_t *by_id = arena_alloc(arena, count * sizeof *by_id);
    if (owned == NULL || copies == NULL || by_id == NULL)
        return NULL;
    if (count > 0)
        memcpy(copies, families, count * sizeof *copies);
    for (size_t i = 0; i < count; i++)
        if (!copy_family(arena, &copies[i]) || (families[i].gc != NULL && copies[i].gc == NULL))
            return NULL;
    qsort(copies, count, sizeof *copies, compare_names);
    order_by_id(copies, count, by_id);
    *owned = (struct owned_schema){.schema = {.granularity = granularity,
                                              .families = copies,
                                              .family_count = count,
                                              .by_id = by_id,
                                              .next_family_id = next_family_id},
                                   .arena = arena};
    describe(&owned->schema);
    DCHECK(is_indexed(&owned->schema));
    return &owned->schema;
}

status schema_create(enum granularity granularity, const struct family *families, size_t count,
                     uint32_t next_family_id, struct schema **out)
{
    *out = NULL;
    struct arena *arena = arena_create(SIZE_MAX);
    if (arena == NULL)
        return status_out_of_memory();
    *out = build(arena, granularity, families, count, next_family_id);
    if (*out == NULL) {
        arena_destroy(arena);
        return status_out_of_memory();
    }
    return status_ok();
}

status schema_without_rules(const struct schema *schema, struct schema **out)
{
    *out = NULL;
    struct family *families = malloc((schema->family_count + 1) * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->family_count; i++) {
        families[i] = schema->families[i];
        families[i].gc = NULL;
    }
    status s = schema_create(schema->granularity, families, schema->family_count,
                             schema->next_family_id, out);
    free(families);
    DCHECK(*out == NULL || (!(*out)->has_age_rules && !(*out)->has_count_rules));
    return s;
}

void schema_destroy(struct schema *schema)
{
    if (schema != NULL)
        arena_destroy(((struct owned_schema *)(void *)schema)->arena);
}

const struct family *schema_family_named(const struct schema *schema, bytes name)
{
    size_t low = 0, high = schema->family_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(schema->families[middle].name, name);
        if (order == 0)
            return &schema->families[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct family *schema_family(const struct schema *schema, uint32_t id)
{
    size_t low = 0, high = schema->family_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct family *family = &schema->families[schema->by_id[middle]];
        if (family->id == id)
            return family;
        if (family->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool schema_family_was_dropped(const struct schema *schema, uint32_t id)
{
    return id < schema->next_family_id && schema_family(schema, id) == NULL;
}

int32_t gc_most_versions(const struct gc_rule *rule)
{
    if (rule == NULL || rule->kind == GC_MAX_AGE)
        return INT32_MAX;
    if (rule->kind == GC_MAX_VERSIONS)
        return rule->max_versions;
    bool any = rule->kind == GC_UNION;
    int32_t most = any || rule->child_count == 0 ? INT32_MAX : 0;
    for (size_t i = 0; i < rule->child_count; i++) {
        int32_t child = gc_most_versions(&rule->children[i]);
        if (any ? child < most : child > most)
            most = child;
    }
    return most;
}

bool gc_condemns(const struct gc_rule *rule, int64_t timestamp_us, int32_t newer, int64_t now_us)
{
    DCHECK(newer >= 0);
    if (rule == NULL)
        return false;
    if (rule->kind == GC_MAX_VERSIONS)
        return newer >= rule->max_versions;
    if (rule->kind == GC_MAX_AGE)
        return timestamp_us < now_us - rule->max_age_us;
    bool any = rule->kind == GC_UNION;
    for (size_t i = 0; i < rule->child_count; i++)
        if (gc_condemns(&rule->children[i], timestamp_us, newer, now_us) == any)
            return any;
    return !any && rule->child_count > 0;
}
