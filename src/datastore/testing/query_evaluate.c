/* A plain evaluation of what a query means: see query_random.h. */
#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/testing/query_random.h"

/* The combination of comparisons in which each IN is one of its values. */
struct conjunction {
    struct term terms[MOST_TERMS];
    int count;
};

struct conjunctions {
    struct conjunction items[256];
    int count;
};

static void expand(const struct part *part, int at, struct conjunction so_far,
                   struct conjunctions *out)
{
    if (at == part->count) {
        CHECK(out->count < 256);
        out->items[out->count++] = so_far;
        return;
    }
    struct term term = part->terms[at];
    bool is_in = term.op == OP(IN);
    for (int i = 0; i < (is_in ? term.count : 1); i++) {
        struct conjunction next = so_far;
        struct term one = term;
        if (is_in) {
            one.op = OP(EQUAL);
            one.values[0] = term.values[i];
            one.count = 1;
        }
        next.terms[next.count++] = one;
        expand(part, at + 1, next, out);
    }
}

static int compare_all(const Ds__Value *a, const Ds__Value *b)
{
    if (a->value_type_case == DS__VALUE__VALUE_TYPE_KEY_VALUE)
        return ds_key_compare(a->key_value, b->key_value);
    return ds_value_compare(a, b);
}

static bool is_true(const struct term *term, const Ds__Value *value)
{
    int order = compare_all(value, term->values[0]);
    switch (term->op) {
    case OP(EQUAL):
        return order == 0;
    case OP(LESS_THAN):
        return order < 0;
    case OP(LESS_THAN_OR_EQUAL):
        return order <= 0;
    case OP(GREATER_THAN):
        return order > 0;
    case OP(GREATER_THAN_OR_EQUAL):
        return order >= 0;
    default:
        for (int i = 0; i < term->count; i++)
            if (compare_all(value, term->values[i]) == 0)
                return false;
        return true;
    }
}

static bool is_equality(const struct conjunction *conjunction, int property)
{
    for (int i = 0; i < conjunction->count; i++)
        if (conjunction->terms[i].property == property && conjunction->terms[i].op == OP(EQUAL))
            return true;
    return false;
}

/* Whether all comparisons of the property, but equalities, are true of the value. */
static bool are_true(const struct conjunction *conjunction, int property, const Ds__Value *value)
{
    for (int i = 0; i < conjunction->count; i++)
        if (conjunction->terms[i].property == property && conjunction->terms[i].op != OP(EQUAL) &&
            !is_true(&conjunction->terms[i], value))
            return false;
    return true;
}

/* A property with equalities must have one of which its other comparisons are true. */
static bool is_possible(const struct conjunction *conjunction)
{
    for (int property = 0; property < PROPERTIES; property++) {
        bool holds = !is_equality(conjunction, property);
        for (int i = 0; i < conjunction->count; i++)
            holds = holds || (conjunction->terms[i].property == property &&
                              conjunction->terms[i].op == OP(EQUAL) &&
                              are_true(conjunction, property, conjunction->terms[i].values[0]));
        if (!holds)
            return false;
    }
    return true;
}

int random_values(const Ds__Entity *entity, int property, const Ds__Value **out)
{
    int count = 0;
    for (size_t i = 0; i < entity->n_properties; i++) {
        Ds__Value *value = entity->properties[i]->value;
        if (strcmp(entity->properties[i]->key, random_names[property]) != 0 ||
            value->exclude_from_indexes)
            continue;
        if (value->value_type_case != DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
            out[count++] = value;
        else
            for (size_t j = 0; j < value->array_value->n_values; j++)
                out[count++] = value->array_value->values[j];
    }
    return count;
}

static void add_order(struct evaluation *evaluation, int property, bool is_down)
{
    for (int i = 0; i < evaluation->order_count; i++)
        if (evaluation->orders[i].property == property)
            return;
    evaluation->orders[evaluation->order_count++] =
        (struct order){.property = property,
                       .is_down = is_down,
                       .is_projected = random_is_projected(evaluation->asked, property)};
}

static bool has_range(const struct conjunctions *conjunctions, int property)
{
    for (int i = 0; i < conjunctions->count; i++)
        for (int j = 0; j < conjunctions->items[i].count; j++)
            if (conjunctions->items[i].terms[j].property == property &&
                conjunctions->items[i].terms[j].op != OP(EQUAL) &&
                !is_equality(&conjunctions->items[i], property) &&
                is_possible(&conjunctions->items[i]))
                return true;
    return false;
}

/* Of the bounds that the conjunction sets for keys, the tightest below or above; NULL: none. */
static const Ds__Value *key_bound(const struct conjunction *conjunction, bool is_low)
{
    const Ds__Value *bound = NULL;
    for (int i = 0; i < conjunction->count; i++) {
        const struct term *term = &conjunction->terms[i];
        bool sets = term->op == OP(EQUAL) ||
                    (is_low ? term->op == OP(GREATER_THAN) || term->op == OP(GREATER_THAN_OR_EQUAL)
                            : term->op == OP(LESS_THAN) || term->op == OP(LESS_THAN_OR_EQUAL));
        if (term->property >= 0 || !sets)
            continue;
        int order = bound == NULL ? 0 : compare_all(term->values[0], bound);
        if (bound == NULL || (is_low ? order > 0 : order < 0))
            bound = term->values[0];
    }
    return bound;
}

/* A query for one key has no order. */
static bool is_for_one_key(const struct conjunctions *conjunctions)
{
    const struct conjunction *only = NULL;
    for (int i = 0; i < conjunctions->count; i++) {
        if (!is_possible(&conjunctions->items[i]))
            continue;
        if (only != NULL)
            return false;
        only = &conjunctions->items[i];
    }
    const Ds__Value *low = only == NULL ? NULL : key_bound(only, true);
    const Ds__Value *high = only == NULL ? NULL : key_bound(only, false);
    return low != NULL && high != NULL && compare_all(low, high) == 0;
}

static void set_orders(struct evaluation *evaluation, const struct conjunctions *conjunctions)
{
    const struct asked *asked = evaluation->asked;
    bool is_ordered = !is_for_one_key(conjunctions);
    for (int i = 0; i < asked->distinct_count && !is_ordered; i++)
        add_order(evaluation, asked->orders[i].property, false);
    for (int i = 0; i < asked->order_count && is_ordered; i++)
        if (asked->orders[i].property < 0)
            evaluation->is_key_down = asked->orders[i].is_down;
        else
            add_order(evaluation, asked->orders[i].property, asked->orders[i].is_down);
    for (int i = 0; i < PROPERTIES; i++)
        if (has_range(conjunctions, i))
            add_order(evaluation, i, false);
    for (int i = 0; i < asked->projected_count; i++)
        add_order(evaluation, asked->projected[i], false);
}

static bool is_under(const Ds__Key *key, const Ds__Key *ancestor)
{
    if (ancestor == NULL)
        return true;
    if (key->n_path < ancestor->n_path)
        return false;
    Ds__Key start = *key;
    start.n_path = ancestor->n_path;
    return ds_key_compare(&start, ancestor) == 0;
}

static bool fits(const struct evaluation *evaluation, const struct conjunction *conjunction,
                 const Ds__Entity *entity)
{
    Ds__Value key = DS__VALUE__INIT;
    key.value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
    key.key_value = entity->key;
    const Ds__Key__PathElement *last = entity->key->path[entity->key->n_path - 1];
    if ((evaluation->asked->kind != NULL && strcmp(last->kind, evaluation->asked->kind) != 0) ||
        !is_under(entity->key, evaluation->asked->ancestor))
        return false;
    for (int i = 0; i < conjunction->count; i++) {
        const struct term *term = &conjunction->terms[i];
        const Ds__Value *values[MOST_VALUES];
        bool holds = term->property >= 0 ? term->op != OP(EQUAL) : is_true(term, &key);
        int count = term->property < 0 ? 0 : random_values(entity, term->property, values);
        for (int j = 0; j < count; j++)
            holds = holds || is_true(term, values[j]);
        if (!holds)
            return false;
    }
    return is_possible(conjunction);
}

/* All positions that go on from the first `at` values of this one. */
static void add_positions(struct evaluation *evaluation, const struct conjunction *conjunction,
                          struct position position, int at)
{
    const Ds__Value *values[MOST_VALUES];
    if (at == evaluation->order_count) {
        CHECK(evaluation->count < MOST_POSITIONS);
        evaluation->positions[evaluation->count++] = position;
        return;
    }
    int property = evaluation->orders[at].property;
    int count = random_values(position.entity, property, values);
    for (int i = 0; i < count; i++) {
        bool holds =
            !is_equality(conjunction, property) && are_true(conjunction, property, values[i]);
        for (int j = 0; j < conjunction->count; j++)
            holds = holds || (conjunction->terms[j].property == property &&
                              conjunction->terms[j].op == OP(EQUAL) &&
                              is_true(&conjunction->terms[j], values[i]));
        position.values[at] = values[i];
        if (holds)
            add_positions(evaluation, conjunction, position, at + 1);
    }
}

static const struct evaluation *sorting; /* qsort has no context */

static int compare_positions(const void *a, const void *b)
{
    const struct position *first = a, *second = b;
    for (int i = 0; i < sorting->order_count; i++) {
        int order = ds_value_compare(first->values[i], second->values[i]);
        if (order != 0)
            return sorting->orders[i].is_down ? -order : order;
    }
    int order = ds_key_compare(first->entity->key, second->entity->key);
    return sorting->is_key_down ? -order : order;
}

static bool is_same_result(const struct evaluation *evaluation, const struct position *a,
                           const struct position *b)
{
    bool is_same = a->entity == b->entity;
    for (int i = 0; i < evaluation->order_count; i++)
        if (evaluation->orders[i].is_projected)
            is_same = is_same && ds_value_compare(a->values[i], b->values[i]) == 0;
    return is_same;
}

static bool is_same_group(const struct evaluation *evaluation, const struct position *a,
                          const struct position *b)
{
    for (int i = 0; i < evaluation->asked->distinct_count; i++)
        if (ds_value_compare(a->values[i], b->values[i]) != 0)
            return false;
    return evaluation->asked->distinct_count > 0;
}

/* Keeps the first of those that are the same. */
static void drop(struct evaluation *evaluation,
                 bool is_same(const struct evaluation *, const struct position *,
                              const struct position *))
{
    int count = 0;
    for (int i = 0; i < evaluation->count; i++) {
        bool is_there = false;
        for (int j = 0; j < count && !is_there; j++)
            is_there = is_same(evaluation, &evaluation->positions[j], &evaluation->positions[i]);
        if (!is_there)
            evaluation->positions[count++] = evaluation->positions[i];
    }
    evaluation->count = count;
}

void evaluate(const struct fake *fake, const struct asked *asked, struct evaluation *evaluation)
{
    const Ds__Entity *const *entities = fake->entities.items;
    struct conjunctions *conjunctions = arena_zalloc(fake->arena, sizeof *conjunctions);
    *evaluation = (struct evaluation){.asked = asked};
    evaluation->positions = arena_alloc(fake->arena, MOST_POSITIONS * sizeof(struct position));
    CHECK(conjunctions != NULL && evaluation->positions != NULL);
    for (int i = 0; i < asked->part_count; i++)
        if (asked->parts[i].count > 0 || asked->part_count == 1)
            expand(&asked->parts[i], 0, (struct conjunction){.count = 0}, conjunctions);
    set_orders(evaluation, conjunctions);
    for (int i = 0; i < conjunctions->count; i++)
        for (size_t j = 0; j < fake->entities.count; j++)
            if (fits(evaluation, &conjunctions->items[i], entities[j]))
                add_positions(evaluation, &conjunctions->items[i],
                              (struct position){.entity = entities[j]}, 0);
    sorting = evaluation;
    if (evaluation->count > 1)
        qsort(evaluation->positions, (size_t)evaluation->count, sizeof(struct position),
              compare_positions);
    drop(evaluation, is_same_result);
    drop(evaluation, is_same_group);
}
