/* Databases and queries made up at random: see query_random.h. */
#include "datastore/testing/query_random.h"

#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/testing/testing.h"

#include <stdio.h>

enum { ENTITIES = 24 };

static uint64_t random_state;

const char *const random_names[PROPERTIES] = {"a", "b", "c", "d"};

void random_seed(uint64_t seed)
{
    random_state = seed;
}

unsigned random_below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % bound;
}

static bool one_in(unsigned n)
{
    return random_below(n) == 0;
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
    switch (random_below(8)) {
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
        value->integer_value = (int64_t)random_below(5) - 1;
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
    for (unsigned count = random_below(MOST_VALUES + 1); count > 0; count--)
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
        property->key = random_names[i];
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
    const char *form = forms[random_below(10) < 8 ? random_below(3) : 3 + random_below(2)];
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof path, form, 1 + random_below(3), 1 + random_below(4),
             1 + random_below(3));
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
void random_fill(struct fake *fake)
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

void random_indexes(struct fake *fake)
{
    for (unsigned count = 1 + random_below(3); count > 0; count--) {
        struct buffer text = {0};
        unsigned first = random_below(PROPERTIES);
        buffer_append_format(&text, "%sK", one_in(3) ? "^" : "");
        for (unsigned i = 0, properties = 1 + random_below(3); i < properties; i++)
            buffer_append_format(&text, " %s%s", one_in(2) ? "-" : "",
                                 random_names[(first + i) % PROPERTIES]);
        buffer_append_byte(&text, '\0');
        CHECK(!text.failed);
        fake_add_index(fake, (const char *)text.data);
        buffer_free(&text);
    }
}

static const Ds__Value *key_value(struct arena *arena)
{
    Ds__Value *value = NEW(arena, Ds__Value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
    value->key_value = make_key(arena);
    return value;
}

/* NOT_IN is for queries without IN and OR. */
static struct term make_term(struct arena *arena, bool *may_exclude, bool unites, bool is_kindless)
{
    static const Ds__PropertyFilter__Operator ops[] = {OP(EQUAL),        OP(EQUAL),
                                                       OP(EQUAL),        OP(IN),
                                                       OP(LESS_THAN),    OP(LESS_THAN_OR_EQUAL),
                                                       OP(GREATER_THAN), OP(GREATER_THAN_OR_EQUAL),
                                                       OP(NOT_EQUAL),    OP(NOT_IN)};
    struct term term = {.property = is_kindless || one_in(10) ? -1 : (int)random_below(PROPERTIES)};
    term.op = ops[random_below(*may_exclude ? 10 : 8)];
    if (term.op == (unites ? OP(NOT_IN) : OP(IN)))
        term.op = unites ? OP(NOT_EQUAL) : OP(EQUAL);
    if (term.op == OP(NOT_EQUAL) || term.op == OP(NOT_IN))
        *may_exclude = false;
    term.count = term.op == OP(IN) || term.op == OP(NOT_IN) ? 1 + (int)random_below(3) : 1;
    for (int i = 0; i < term.count; i++)
        term.values[i] = term.property < 0 ? key_value(arena) : make_value(arena);
    return term;
}

bool random_is_projected(const struct asked *asked, int property)
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
    for (unsigned count = one_in(2) ? random_below(3) : 0; count > 0; count--) {
        int property = (int)random_below(PROPERTIES);
        if (!is_ordered(asked, property))
            asked->orders[asked->order_count++] =
                (struct order){.property = property, .is_down = one_in(2)};
    }
    if (asked->order_count > 0 && one_in(6) && !has_equality(asked, asked->orders[0].property) &&
        !has_equality(asked, asked->orders[asked->order_count - 1].property))
        asked->distinct_count = 1 + (int)random_below((unsigned)asked->order_count);
    if (one_in(6))
        asked->orders[asked->order_count++] = (struct order){.property = -1, .is_down = one_in(2)};
}

struct asked random_query(struct arena *arena)
{
    struct asked asked = {.kind = one_in(10) ? NULL : "K", .part_count = 1};
    bool may_exclude = true, unites = one_in(2);
    if (unites && one_in(2))
        asked.part_count = 1 + (int)random_below(3);
    for (int i = 0; i < asked.part_count; i++) {
        asked.parts[i].count = (int)random_below(4) + (asked.part_count > 1);
        for (int j = 0; j < asked.parts[i].count; j++)
            asked.parts[i].terms[j] = make_term(arena, &may_exclude, unites, asked.kind == NULL);
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
    made->name = property < 0 ? "__key__" : random_names[property];
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

Ds__Query *random_request(struct arena *arena, const struct asked *asked)
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
