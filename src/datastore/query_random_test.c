/* Queries made up at random, held against a plain evaluation of what query_check.h says that they
 * mean: all entities, all their positions, sorted. Each query is run in one pass, and in pages from
 * cursor to cursor; the index that it is refused for is made, and must be enough. */
#include "base/check.h"
#include "base/testing.h"
#include "datastore/query_fake.h"
#include "datastore/testing.h"
#include "wire/proto.h"

#include <stdio.h>

enum { ROUNDS = 1500, ENTITIES = 24, PROPERTIES = 4, MOST_VALUES = 3, MOST_TERMS = 5 };
enum { MOST_PARTS = 40, MOST_ORDERS = 12, MOST_POSITIONS = 20000 };

static const char *const NAMES[PROPERTIES] = {"a", "b", "c", "d"};

#define OP(name) DS__PROPERTY_FILTER__OPERATOR__##name

static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % bound;
}

static bool one_in(unsigned n)
{
    return below(n) == 0;
}

static void *new_of(struct arena *arena, size_t size, const void *like)
{
    void *made = arena_alloc(arena, size);
    CHECK(made != NULL);
    memcpy(made, like, size);
    return made;
}

#define NEW(arena, type, init) ((type *)new_of(arena, sizeof(type), &(type)init))

/* --- entities --- */

static Ds__Value *make_value(struct arena *arena)
{
    Ds__Value *value = NEW(arena, Ds__Value, DS__VALUE__INIT);
    switch (below(8)) {
    case 0:
        value->value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
        value->string_value = one_in(2) ? "x" : "";
        break;
    case 1:
        value->value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
        value->double_value = one_in(2) ? -1.5 : 2.0;
        break;
    default:
        value->value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
        value->integer_value = (int64_t)below(5) - 1;
    }
    return value;
}

static Ds__Value *make_array(struct arena *arena)
{
    Ds__Value *value = NEW(arena, Ds__Value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    value->array_value = NEW(arena, Ds__ArrayValue, DS__ARRAY_VALUE__INIT);
    value->array_value->values = arena_alloc(arena, MOST_VALUES * sizeof(Ds__Value *));
    CHECK(value->array_value->values != NULL);
    for (unsigned count = below(MOST_VALUES + 1); count > 0; count--)
        value->array_value->values[value->array_value->n_values++] = make_value(arena);
    return value;
}

static Ds__Entity *make_entity(struct arena *arena, const Ds__Key *key)
{
    Ds__Entity *entity = NEW(arena, Ds__Entity, DS__ENTITY__INIT);
    entity->key = (Ds__Key *)(uintptr_t)key;
    entity->properties = arena_alloc(arena, PROPERTIES * sizeof(Ds__Entity__PropertiesEntry *));
    CHECK(entity->properties != NULL);
    for (unsigned i = 0; i < PROPERTIES; i++) {
        if (one_in(5))
            continue;
        Ds__Entity__PropertiesEntry *property =
            NEW(arena, Ds__Entity__PropertiesEntry, DS__ENTITY__PROPERTIES_ENTRY__INIT);
        property->key = NAMES[i];
        property->value = one_in(3) ? make_array(arena) : make_value(arena);
        property->value->exclude_from_indexes = one_in(12);
        entity->properties[entity->n_properties++] = property;
    }
    return entity;
}

static Ds__Key *make_key(struct arena *arena)
{
    static const char *const forms[] = {"K/%u", "R/%u/K/%u", "R/%u/K/%u/K/%u", "J/%u", "R/%u/J/%u"};
    char path[64];
    const char *form = forms[below(10) < 8 ? below(3) : 3 + below(2)];
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof path, form, 1 + below(3), 1 + below(4), 1 + below(3));
#pragma clang diagnostic pop
    return test_key(arena, "", path);
}

static bool has_key(const struct fake *fake, const Ds__Key *key)
{
    const Ds__Entity *const *entities = fake->entities.items;
    for (size_t i = 0; i < fake->entities.count; i++)
        if (ds_key_value_compare(entities[i]->key, key) == 0)
            return true;
    return false;
}

/* In the past there are rows, too, of what entities were later, and of those that came later. */
static void fill(struct fake *fake)
{
    bool is_past = one_in(4);
    for (int i = 0; i < ENTITIES; i++) {
        const Ds__Key *key = make_key(fake->arena);
        if (!has_key(fake, key))
            fake_add(fake, make_entity(fake->arena, key));
        if (is_past && one_in(3))
            fake_add_past(fake, make_entity(fake->arena, one_in(2) ? key : make_key(fake->arena)));
    }
}

/* --- a query: what is asked, and what it means --- */

struct term {
    int property; /* -1: the key */
    Ds__PropertyFilter__Operator op;
    const Ds__Value *values[3]; /* of IN and NOT_IN; else one */
    int count;
};

struct part {
    struct term terms[MOST_TERMS];
    int count;
};

struct order {
    int property; /* -1: the key */
    bool is_down;
    bool is_projected;
};

struct asked {
    const char *kind;
    struct part parts[3];
    int part_count;
    const Ds__Key *ancestor;
    struct order orders[MOST_ORDERS];
    int order_count;
    int projected[PROPERTIES];
    int projected_count;
    int distinct_count;
    bool is_keys_only;
};

static const Ds__Value *key_value(struct arena *arena)
{
    Ds__Value *value = NEW(arena, Ds__Value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
    value->key_value = make_key(arena);
    return value;
}

static struct term make_term(struct arena *arena, bool *may_exclude, bool is_kindless)
{
    static const Ds__PropertyFilter__Operator ops[] = {OP(EQUAL),        OP(EQUAL),
                                                       OP(EQUAL),        OP(IN),
                                                       OP(LESS_THAN),    OP(LESS_THAN_OR_EQUAL),
                                                       OP(GREATER_THAN), OP(GREATER_THAN_OR_EQUAL),
                                                       OP(NOT_EQUAL),    OP(NOT_IN)};
    struct term term = {.property = is_kindless || one_in(10) ? -1 : (int)below(PROPERTIES)};
    term.op = ops[below(*may_exclude ? 10 : 8)];
    if (term.op == OP(NOT_EQUAL) || term.op == OP(NOT_IN))
        *may_exclude = false;
    term.count = term.op == OP(IN) || term.op == OP(NOT_IN) ? 1 + (int)below(3) : 1;
    for (int i = 0; i < term.count; i++)
        term.values[i] = term.property < 0 ? key_value(arena) : make_value(arena);
    return term;
}

static bool is_projected(const struct asked *asked, int property)
{
    for (int i = 0; i < asked->projected_count; i++)
        if (asked->projected[i] == property)
            return true;
    return false;
}

static bool is_ordered(const struct asked *asked, int property)
{
    for (int i = 0; i < asked->order_count; i++)
        if (asked->orders[i].property == property)
            return true;
    return false;
}

static bool has_equality(const struct asked *asked, int property)
{
    for (int i = 0; i < asked->part_count; i++)
        for (int j = 0; j < asked->parts[i].count; j++)
            if (asked->parts[i].terms[j].property == property &&
                (asked->parts[i].terms[j].op == OP(EQUAL) || asked->parts[i].terms[j].op == OP(IN)))
                return true;
    return false;
}

static void make_orders(struct asked *asked)
{
    for (unsigned count = one_in(2) ? below(3) : 0; count > 0; count--) {
        int property = (int)below(PROPERTIES);
        if (!is_ordered(asked, property))
            asked->orders[asked->order_count++] =
                (struct order){.property = property, .is_down = one_in(2)};
    }
    if (asked->order_count > 0 && one_in(6))
        asked->distinct_count = 1 + (int)below((unsigned)asked->order_count);
    if (one_in(6))
        asked->orders[asked->order_count++] = (struct order){.property = -1, .is_down = one_in(2)};
}

static struct asked make_query(struct arena *arena)
{
    struct asked asked = {.kind = one_in(10) ? NULL : "K", .part_count = 1};
    bool may_exclude = true;
    if (one_in(3))
        asked.part_count = 1 + (int)below(3);
    for (int i = 0; i < asked.part_count; i++) {
        asked.parts[i].count = (int)below(4) + (asked.part_count > 1);
        for (int j = 0; j < asked.parts[i].count; j++)
            asked.parts[i].terms[j] = make_term(arena, &may_exclude, asked.kind == NULL);
    }
    if (one_in(5))
        asked.ancestor = make_key(arena);
    asked.is_keys_only = one_in(5);
    if (asked.kind == NULL)
        return asked;
    for (int i = 0; i < PROPERTIES && !asked.is_keys_only; i++)
        if (one_in(8) && !has_equality(&asked, i))
            asked.projected[asked.projected_count++] = i;
    make_orders(&asked);
    return asked;
}

/* --- as a request --- */

static Ds__PropertyReference *reference(struct arena *arena, int property)
{
    Ds__PropertyReference *made = NEW(arena, Ds__PropertyReference, DS__PROPERTY_REFERENCE__INIT);
    made->name = property < 0 ? "__key__" : NAMES[property];
    return made;
}

static Ds__Filter *compare(struct arena *arena, int property, Ds__PropertyFilter__Operator op,
                           const Ds__Value *value)
{
    Ds__Filter *filter = NEW(arena, Ds__Filter, DS__FILTER__INIT);
    filter->filter_type_case = DS__FILTER__FILTER_TYPE_PROPERTY_FILTER;
    filter->property_filter = NEW(arena, Ds__PropertyFilter, DS__PROPERTY_FILTER__INIT);
    filter->property_filter->property = reference(arena, property);
    filter->property_filter->op = op;
    filter->property_filter->value = (Ds__Value *)(uintptr_t)value;
    return filter;
}

static Ds__Filter *filter_of(struct arena *arena, const struct term *term)
{
    if (term->op != OP(IN) && term->op != OP(NOT_IN))
        return compare(arena, term->property, term->op, term->values[0]);
    Ds__Value *list = NEW(arena, Ds__Value, DS__VALUE__INIT);
    list->value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    list->array_value = NEW(arena, Ds__ArrayValue, DS__ARRAY_VALUE__INIT);
    list->array_value->n_values = (size_t)term->count;
    list->array_value->values = new_of(arena, sizeof term->values, term->values);
    return compare(arena, term->property, term->op, list);
}

static Ds__Filter *composite(struct arena *arena, Ds__CompositeFilter__Operator op)
{
    Ds__Filter *filter = NEW(arena, Ds__Filter, DS__FILTER__INIT);
    filter->filter_type_case = DS__FILTER__FILTER_TYPE_COMPOSITE_FILTER;
    filter->composite_filter = NEW(arena, Ds__CompositeFilter, DS__COMPOSITE_FILTER__INIT);
    filter->composite_filter->op = op;
    filter->composite_filter->filters = arena_alloc(arena, MOST_PARTS * sizeof(Ds__Filter *));
    CHECK(filter->composite_filter->filters != NULL);
    return filter;
}

static void add_filter(Ds__Filter *composite_one, Ds__Filter *filter)
{
    Ds__CompositeFilter *list = composite_one->composite_filter;
    list->filters[list->n_filters++] = filter;
}

static Ds__Filter *ancestor_filter(struct arena *arena, const Ds__Key *ancestor)
{
    Ds__Value *value = NEW(arena, Ds__Value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
    value->key_value = (Ds__Key *)(uintptr_t)ancestor;
    return compare(arena, -1, OP(HAS_ANCESTOR), value);
}

static Ds__Filter *make_filter(struct arena *arena, const struct asked *asked)
{
    Ds__Filter *any = composite(arena, DS__COMPOSITE_FILTER__OPERATOR__OR);
    for (int i = 0; i < asked->part_count; i++) {
        Ds__Filter *all = composite(arena, DS__COMPOSITE_FILTER__OPERATOR__AND);
        for (int j = 0; j < asked->parts[i].count; j++)
            add_filter(all, filter_of(arena, &asked->parts[i].terms[j]));
        if (asked->parts[i].count > 0)
            add_filter(any, all);
    }
    if (asked->ancestor == NULL)
        return any->composite_filter->n_filters > 0 ? any : NULL;
    Ds__Filter *both = composite(arena, DS__COMPOSITE_FILTER__OPERATOR__AND);
    add_filter(both, ancestor_filter(arena, asked->ancestor));
    if (any->composite_filter->n_filters > 0)
        add_filter(both, any);
    return both;
}

static Ds__Query *make_request(struct arena *arena, const struct asked *asked)
{
    Ds__Query *query = NEW(arena, Ds__Query, DS__QUERY__INIT);
    query->filter = make_filter(arena, asked);
    query->kind = arena_alloc(arena, sizeof(Ds__KindExpression *));
    query->order = arena_alloc(arena, MOST_ORDERS * sizeof(Ds__PropertyOrder *));
    query->projection = arena_alloc(arena, MOST_ORDERS * sizeof(Ds__Projection *));
    query->distinct_on = arena_alloc(arena, MOST_ORDERS * sizeof(Ds__PropertyReference *));
    CHECK(query->kind != NULL && query->order != NULL && query->projection != NULL &&
          query->distinct_on != NULL);
    if (asked->kind != NULL) {
        query->kind[query->n_kind++] = NEW(arena, Ds__KindExpression, DS__KIND_EXPRESSION__INIT);
        query->kind[0]->name = asked->kind;
    }
    for (int i = 0; i < asked->order_count; i++) {
        Ds__PropertyOrder *order = NEW(arena, Ds__PropertyOrder, DS__PROPERTY_ORDER__INIT);
        order->property = reference(arena, asked->orders[i].property);
        order->direction = asked->orders[i].is_down ? DS__PROPERTY_ORDER__DIRECTION__DESCENDING
                                                    : DS__PROPERTY_ORDER__DIRECTION__ASCENDING;
        query->order[query->n_order++] = order;
    }
    for (int i = asked->is_keys_only ? -1 : 0; i < asked->projected_count; i++) {
        Ds__Projection *projection = NEW(arena, Ds__Projection, DS__PROJECTION__INIT);
        projection->property = reference(arena, i < 0 ? -1 : asked->projected[i]);
        query->projection[query->n_projection++] = projection;
    }
    for (int i = 0; i < asked->distinct_count; i++)
        query->distinct_on[query->n_distinct_on++] = reference(arena, asked->orders[i].property);
    return query;
}

/* --- the plain evaluation --- */

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

/* The indexed values of a property. */
static int values_of(const Ds__Entity *entity, int property, const Ds__Value **out)
{
    int count = 0;
    for (size_t i = 0; i < entity->n_properties; i++) {
        Ds__Value *value = entity->properties[i]->value;
        if (strcmp(entity->properties[i]->key, NAMES[property]) != 0 || value->exclude_from_indexes)
            continue;
        if (value->value_type_case != DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
            out[count++] = value;
        else
            for (size_t j = 0; j < value->array_value->n_values; j++)
                out[count++] = value->array_value->values[j];
    }
    return count;
}

struct position {
    const Ds__Entity *entity;
    const Ds__Value *values[MOST_ORDERS];
};

struct evaluation {
    const struct asked *asked;
    struct order orders[MOST_ORDERS];
    int order_count; /* without the key */
    bool is_key_down;
    struct position *positions;
    int count;
};

static void add_order(struct evaluation *evaluation, int property, bool is_down)
{
    for (int i = 0; i < evaluation->order_count; i++)
        if (evaluation->orders[i].property == property)
            return;
    evaluation->orders[evaluation->order_count++] =
        (struct order){.property = property,
                       .is_down = is_down,
                       .is_projected = is_projected(evaluation->asked, property)};
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

static void set_orders(struct evaluation *evaluation, const struct conjunctions *conjunctions)
{
    const struct asked *asked = evaluation->asked;
    for (int i = 0; i < asked->order_count; i++)
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
        int count = term->property < 0 ? 0 : values_of(entity, term->property, values);
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
    int count = values_of(position.entity, property, values);
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

static void evaluate(const struct fake *fake, const struct asked *asked,
                     struct evaluation *evaluation)
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

/* --- results against the evaluation --- */

static void assert_result(const struct evaluation *evaluation, const struct position *expected,
                          const Ds__EntityResult *result)
{
    assert_int_equal(ds_key_value_compare(expected->entity->key, result->entity->key), 0);
    for (int i = 0; i < evaluation->order_count; i++) {
        if (!evaluation->orders[i].is_projected)
            continue;
        const char *name = NAMES[evaluation->orders[i].property];
        size_t at = 0;
        while (at < result->entity->n_properties &&
               strcmp(result->entity->properties[at]->key, name) != 0)
            at++;
        assert_true(at < result->entity->n_properties);
        const Ds__Value *value = result->entity->properties[at]->value;
        assert_int_equal(ds_value_compare(value, expected->values[i]), 0);
        assert_int_equal(value->value_type_case, expected->values[i]->value_type_case);
    }
}

/* The index that the refusal recommends. */
static void add_recommended(struct fake *fake, const char *message)
{
    struct buffer text = {0};
    const char *line = strstr(message, "- kind: ");
    assert_non_null(line);
    if (strstr(message, "ancestor: yes") != NULL)
        buffer_append_byte(&text, '^');
    buffer_append_byte(&text, 'K');
    for (const char *at = strstr(line, "- name: "); at != NULL;) {
        const char *next = strstr(at + 1, "- name: "), *down = strstr(at, "direction: desc");
        bool is_down = down != NULL && (next == NULL || down < next);
        const char *name = at + strlen("- name: ");
        buffer_append_format(&text, " %s%.*s", is_down ? "-" : "", (int)strcspn(name, "\n"), name);
        at = next;
    }
    buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    fake_add_index(fake, (const char *)text.data);
    buffer_free(&text);
}

/* Runs it, and makes the indexes that it lacks. False if it is one that may not be asked. */
static bool run(struct fake *fake, const Ds__Query *request, Ds__QueryResultBatch **out)
{
    for (int i = 0; i < MOST_PARTS; i++) {
        status s = fake_run(fake, request, "", out);
        if (status_is_ok(s))
            return true;
        if (s.code == STATUS_INVALID_ARGUMENT) {
            const char *why = status_message(s);
            bool is_known = strstr(why, "first sort property") != NULL ||
                            strstr(why, "ordered by __key__") != NULL ||
                            strstr(why, "more than 30 disjunctions") != NULL;
            if (!is_known)
                print_error("%s\n", why);
            assert_true(is_known);
            status_free(s);
            return false;
        }
        assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
        add_recommended(fake, status_message(s));
        status_free(s);
    }
    fail_msg("no index is enough");
    return false;
}

/* In batches of `page` results, each after `skip` that are passed over at first. */
static bool check(struct fake *fake, const struct evaluation *evaluation, Ds__Query *request,
                  int page, int skip)
{
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    Ds__QueryResultBatch *batch;
    int at = 0;
    limit.value = page;
    request->limit = page > 0 ? &limit : NULL;
    request->offset = skip;
    request->start_cursor = (ProtobufCBinaryData){0};
    do {
        if (!run(fake, request, &batch))
            return false;
        at += batch->skipped_results;
        for (size_t i = 0; i < batch->n_entity_results; i++, at++) {
            assert_true(at < evaluation->count);
            assert_result(evaluation, &evaluation->positions[at], batch->entity_results[i]);
        }
        request->offset = 0;
        request->start_cursor = batch->end_cursor;
    } while (batch->more_results != DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS);
    assert_int_equal(at, evaluation->count);
    return true;
}

/* Up to the cursor of one of the results. */
static void check_end(struct fake *fake, const struct evaluation *evaluation, Ds__Query *request)
{
    Ds__QueryResultBatch *batch;
    request->limit = NULL;
    request->offset = 0;
    request->start_cursor = (ProtobufCBinaryData){0};
    if (evaluation->count == 0)
        return;
    unsigned at = below((unsigned)evaluation->count);
    assert_true(run(fake, request, &batch));
    request->end_cursor = batch->entity_results[at]->cursor;
    assert_true(run(fake, request, &batch));
    assert_int_equal(batch->n_entity_results, at + 1);
}

/* --- rounds --- */

static int checked, found;
static uint64_t round_seed;
static bool is_done;

static void run_round(uint64_t seed)
{
    struct fake fake = {.arena = arena_create(512 << 20)};
    struct evaluation evaluation;
    random_state = seed;
    round_seed = seed;
    assert_non_null(fake.arena);
    fill(&fake);
    struct asked asked = make_query(fake.arena);
    Ds__Query *request = make_request(fake.arena, &asked);
    evaluate(&fake, &asked, &evaluation);
    if (check(&fake, &evaluation, request, 0, 0)) {
        check(&fake, &evaluation, request, 1, 0);
        check(&fake, &evaluation, request, 2, 1 + (int)below(3));
        check_end(&fake, &evaluation, request);
        checked++;
        found += evaluation.count;
    }
    arena_destroy(fake.arena);
}

static void test_queries_give_what_they_mean(void **state)
{
    (void)state;
    const char *seed = getenv("QUERY_SEED");
    if (seed != NULL) {
        run_round(strtoull(seed, NULL, 10));
        is_done = true;
        return;
    }
    for (uint64_t i = 0; i < ROUNDS; i++)
        run_round(i);
    is_done = true;
    print_message("%d queries, %d results\n", checked, found);
    assert_true(checked > ROUNDS * 3 / 4 && found > ROUNDS);
}

/* How to have the round again that failed. */
static int tell_seed(void **state)
{
    (void)state;
    if (!is_done)
        print_message("QUERY_SEED=%llu\n", (unsigned long long)round_seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_queries_give_what_they_mean, tell_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
