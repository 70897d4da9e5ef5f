/* See schema.h. */
#include "advisor/schema.h"

/* The oldest that a cell can become; INT64_MAX: it stays. */
static int64_t most_age(const BtAdmin__GcRule *rule)
{
    const int64_t us_per_s = 1000 * 1000;
    if (rule == NULL)
        return INT64_MAX;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_MAX_AGE && rule->max_age != NULL)
        return rule->max_age->seconds < INT64_MAX / us_per_s ? rule->max_age->seconds * us_per_s
                                                             : INT64_MAX;
    int64_t age = INT64_MAX;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_UNION && rule->union_ != NULL)
        for (size_t i = 0; i < rule->union_->n_rules; i++) {
            int64_t each = most_age(rule->union_->rules[i]);
            age = each < age ? each : age;
        }
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_INTERSECTION && rule->intersection != NULL) {
        age = rule->intersection->n_rules == 0 ? INT64_MAX : 0;
        for (size_t i = 0; i < rule->intersection->n_rules; i++) {
            int64_t each = most_age(rule->intersection->rules[i]);
            age = each > age ? each : age;
        }
    }
    return age;
}

static int32_t least(int32_t a, int32_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The most versions that a column can have; 0: any number. */
static int32_t most_versions(const BtAdmin__GcRule *rule)
{
    int32_t most = 0;
    if (rule == NULL)
        return 0;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_MAX_NUM_VERSIONS)
        return rule->max_num_versions;
    if (rule->rule_case == BT_ADMIN__GC_RULE__RULE_UNION && rule->union_ != NULL)
        for (size_t i = 0; i < rule->union_->n_rules; i++)
            most = least(most, most_versions(rule->union_->rules[i]));
    return most; /* of an intersection, as many as are young enough */
}

static struct advice_family family_of(const BtAdmin__Table__ColumnFamiliesEntry *entry)
{
    const BtAdmin__ColumnFamily *family = entry->value;
    struct advice_family out = {.name = entry->key, .most_age_us = INT64_MAX};
    if (family == NULL)
        return out;
    out.has_rule =
        family->gc_rule != NULL && family->gc_rule->rule_case != BT_ADMIN__GC_RULE__RULE__NOT_SET;
    out.most_age_us = most_age(family->gc_rule);
    out.most_versions = most_versions(family->gc_rule);
    out.is_aggregate = family->value_type != NULL &&
                       family->value_type->kind_case == BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE;
    return out;
}

status advice_set_families(const BtAdmin__Table *schema, struct arena *arena,
                           struct advice_observations *out)
{
    size_t count = schema->n_column_families;
    struct advice_family *families = arena_alloc(arena, count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        families[i] = family_of(schema->column_families[i]);
    out->families = families;
    out->family_count = count;
    return status_ok();
}

static bool has_family(const BtAdmin__Table *table, const char *name)
{
    for (size_t i = 0; i < table->n_column_families; i++)
        if (strcmp(table->column_families[i]->key, name) == 0)
            return true;
    return false;
}

bool advice_has_same_families(const BtAdmin__Table *one, const BtAdmin__Table *other)
{
    if (one->n_column_families != other->n_column_families)
        return false;
    for (size_t i = 0; i < one->n_column_families; i++)
        if (!has_family(other, one->column_families[i]->key))
            return false;
    return true;
}
