/* Property transforms: see transform.h. */
#include "datastore/model/transform.h"

#include "base/limits.h"
#include "datastore/model/property_path.h"
#include "datastore/model/validate.h"
#include "datastore/model/value.h"
#include "wire/proto.h"

#include <math.h>
#include <stdlib.h>

enum { US_A_MS = 1000, MS_A_SECOND = 1000, NS_A_MS = 1000000 };

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* --- numbers --- */

static bool is_integer(const Ds__Value *value)
{
    return value->value_type_case == DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
}

static bool is_number(const Ds__Value *value)
{
    return value != NULL &&
           (is_integer(value) || value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE);
}

static double double_of(const Ds__Value *value)
{
    return is_integer(value) ? (double)value->integer_value : value->double_value;
}

static bool is_nan(const Ds__Value *value)
{
    return !is_integer(value) && isnan(value->double_value);
}

static const double TWO_63 = 9223372036854775808.0;

/* Exactly, although not every integer is a double. `number` is no NaN. */
static int compare_to_double(int64_t integer, double number)
{
    if (number >= TWO_63)
        return -1;
    if (number < -TWO_63)
        return 1;
    int64_t whole = (int64_t)number;
    if (integer != whole)
        return integer < whole ? -1 : 1;
    double rest = number - (double)whole;
    return (rest < 0) - (rest > 0);
}

/* Neither is a NaN. */
static int compare_numbers(const Ds__Value *a, const Ds__Value *b)
{
    if (is_integer(a) && is_integer(b))
        return (a->integer_value > b->integer_value) - (a->integer_value < b->integer_value);
    if (is_integer(a))
        return compare_to_double(a->integer_value, b->double_value);
    if (is_integer(b))
        return -compare_to_double(b->integer_value, a->double_value);
    return (a->double_value > b->double_value) - (a->double_value < b->double_value);
}

static void add(const Ds__Value *a, const Ds__Value *b, Ds__Value *sum)
{
    if (!is_integer(a) || !is_integer(b)) {
        sum->value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
        sum->double_value = double_of(a) + double_of(b);
        return;
    }
    sum->value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
    if (__builtin_add_overflow(a->integer_value, b->integer_value, &sum->integer_value))
        sum->integer_value = a->integer_value < 0 ? INT64_MIN : INT64_MAX;
}

/* Whether the operand takes the place of the number that is there. */
static bool is_better(const Ds__Value *operand, const Ds__Value *present, bool is_maximum)
{
    if (is_nan(operand) || is_nan(present))
        return !is_nan(present);
    int order = compare_numbers(operand, present);
    return is_maximum ? order > 0 : order < 0;
}

/* --- one transform: from what is there, NULL if nothing is --- */

struct operation {
    const Ds__PropertyTransform *transform;
    const Ds__Value *present;
    struct arena *arena;
};

/* A value that is to be what the property is; as yet null. */
static status make_value(const struct operation *operation, Ds__Value **out)
{
    Ds__Value *value;
    PROTO_NEW(operation->arena, value, DS__VALUE__INIT);
    value->value_type_case = DS__VALUE__VALUE_TYPE_NULL_VALUE;
    if (operation->present != NULL)
        value->exclude_from_indexes = operation->present->exclude_from_indexes;
    *out = value;
    return status_ok();
}

static void copy_number(const Ds__Value *from, Ds__Value *to)
{
    to->value_type_case = from->value_type_case;
    if (is_integer(from))
        to->integer_value = from->integer_value;
    else
        to->double_value = from->double_value;
}

static status set_time(const struct operation *operation, int64_t now_us, Ds__Value **out)
{
    int64_t now_ms = now_us / US_A_MS;
    if (operation->transform->set_to_server_value !=
        DS__PROPERTY_TRANSFORM__SERVER_VALUE__REQUEST_TIME)
        return INVALID("Property transform of \"%s\" sets an unknown server value.",
                       operation->transform->property);
    TRY(make_value(operation, out));
    PROTO_NEW(operation->arena, (*out)->timestamp_value, PB__TIMESTAMP__INIT);
    (*out)->value_type_case = DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE;
    (*out)->timestamp_value->seconds = now_ms / MS_A_SECOND;
    (*out)->timestamp_value->nanos = (int32_t)(now_ms % MS_A_SECOND) * NS_A_MS;
    return status_ok();
}

/* increment, maximum or minimum. */
static status compute(const struct operation *operation, const Ds__Value *operand, Ds__Value **out)
{
    const Ds__Value *present = operation->present;
    Ds__PropertyTransform__TransformTypeCase type = operation->transform->transform_type_case;
    bool is_maximum = type == DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_MAXIMUM;
    if (!is_number(operand))
        return INVALID("The operand of the transform of property \"%s\" must be an integer or a "
                       "double.",
                       operation->transform->property);
    TRY(make_value(operation, out));
    if (present == NULL)
        (*out)->exclude_from_indexes = operand->exclude_from_indexes;
    if (!is_number(present))
        copy_number(operand, *out);
    else if (type == DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_INCREMENT)
        add(present, operand, *out);
    else
        copy_number(is_better(operand, present, is_maximum) ? operand : present, *out);
    return status_ok();
}

/* --- arrays --- */

/* An element, and bytes that it shares with those that are the same. */
struct element {
    bytes same;
    size_t place;
    Ds__Value *value;
    bool is_operand;
};

/* A number is a whole one of an integer's range, or a double, whatever its type is. */
static void append_number(struct buffer *out, const Ds__Value *value)
{
    double number = double_of(value);
    Ds__Value plain = DS__VALUE__INIT;
    copy_number(value, &plain);
    if (!is_integer(value) && number >= -TWO_63 && number < TWO_63 && trunc(number) == number) {
        plain.value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
        plain.integer_value = (int64_t)number;
    }
    buffer_append_byte(out, 0);
    ds_value_append(out, &plain, DS_ASCENDING);
}

static status append_same(const Ds__Value *value, struct buffer *out)
{
    if (is_number(value)) {
        append_number(out, value);
    } else if (ds_value_has_bytes(value)) {
        buffer_append_byte(out, ds_value_type(value));
        ds_value_append(out, value, DS_ASCENDING);
    } else {
        Ds__Value plain = *value;
        plain.exclude_from_indexes = false;
        buffer_append_byte(out, UINT8_MAX);
        proto_encode(&plain.base, out);
    }
    return out->failed ? status_out_of_memory() : status_ok();
}

static status make_element(struct element *element, struct arena *arena)
{
    struct buffer out = {0};
    status s = append_same(element->value, &out);
    if (status_is_ok(s)) {
        element->same = arena_copy(arena, buffer_bytes(&out));
        if (element->same.data == NULL)
            s = status_out_of_memory();
    }
    buffer_free(&out);
    return s;
}

static int compare_elements(const void *a, const void *b)
{
    const struct element *first = a, *second = b;
    int order = bytes_compare(first->same, second->same);
    return order != 0 ? order : (first->place > second->place) - (first->place < second->place);
}

static int compare_places(const void *a, const void *b)
{
    const struct element *first = a, *second = b;
    return (first->place > second->place) - (first->place < second->place);
}

/* Lists the present elements, then the operands, with their bytes. */
static status list_elements(const Ds__ArrayValue *present, const Ds__ArrayValue *operands,
                            struct arena *arena, struct element *out)
{
    for (size_t i = 0; i < present->n_values + operands->n_values; i++) {
        bool is_operand = i >= present->n_values;
        out[i] = (struct element){.place = i,
                                  .value = is_operand ? operands->values[i - present->n_values]
                                                      : present->values[i],
                                  .is_operand = is_operand};
        TRY(make_element(&out[i], arena));
    }
    return status_ok();
}

/* Keeps those of equal elements that stay, in the order of their places. */
static size_t keep_group(struct element *group, size_t count, bool is_removal, struct element *kept)
{
    size_t stay = 0;
    if (is_removal && group[count - 1].is_operand)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !group[i].is_operand)
            kept[stay++] = group[i];
    return stay;
}

/* Leaves those that stay, at the front, in their order; returns their number. */
static size_t keep_elements(struct element *elements, size_t count, bool is_removal)
{
    size_t kept = 0;
    if (count == 0)
        return 0;
    qsort(elements, count, sizeof *elements, compare_elements);
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count; end++)
            if (!bytes_equal(elements[start].same, elements[end].same))
                break;
        kept += keep_group(elements + start, end - start, is_removal, elements + kept);
    }
    if (kept > 0)
        qsort(elements, kept, sizeof *elements, compare_places);
    return kept;
}

static status make_array(const struct operation *operation, const struct element *elements,
                         size_t count, Ds__Value **out)
{
    Ds__ArrayValue *array;
    PROTO_NEW(operation->arena, array, DS__ARRAY_VALUE__INIT);
    array->values = arena_alloc(operation->arena, count * sizeof(Ds__Value *));
    if (array->values == NULL)
        return status_out_of_memory();
    for (; array->n_values < count; array->n_values++)
        array->values[array->n_values] = elements[array->n_values].value;
    TRY(make_value(operation, out));
    (*out)->value_type_case = DS__VALUE__VALUE_TYPE_ARRAY_VALUE;
    (*out)->array_value = array;
    (*out)->exclude_from_indexes = false; /* only an array's elements say that */
    return status_ok();
}

static status change_array(const struct operation *operation, const Ds__ArrayValue *operands,
                           bool is_removal, Ds__Value **out)
{
    static const Ds__ArrayValue empty = DS__ARRAY_VALUE__INIT;
    const Ds__Value *value = operation->present;
    const Ds__ArrayValue *present = &empty;
    if (value != NULL && value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE)
        present = value->array_value;
    size_t count = present->n_values + operands->n_values;
    struct element *elements = arena_alloc(operation->arena, count * sizeof *elements);
    if (elements == NULL)
        return status_out_of_memory();
    TRY(list_elements(present, operands, operation->arena, elements));
    return make_array(operation, elements, keep_elements(elements, count, is_removal), out);
}

/* --- all of them --- */

/* `*result` is what MutationResult says: the new value, or null for arrays. */
static status apply(const struct operation *operation, int64_t now_us, Ds__Value **out,
                    Ds__Value **result)
{
    const Ds__PropertyTransform *transform = operation->transform;
    *result = NULL;
    switch (transform->transform_type_case) {
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_SET_TO_SERVER_VALUE:
        return set_time(operation, now_us, out);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_INCREMENT:
        return compute(operation, transform->increment, out);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_MAXIMUM:
        return compute(operation, transform->maximum, out);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_MINIMUM:
        return compute(operation, transform->minimum, out);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_APPEND_MISSING_ELEMENTS:
        TRY(make_value(operation, result));
        return change_array(operation, transform->append_missing_elements, false, out);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_REMOVE_ALL_FROM_ARRAY:
        TRY(make_value(operation, result));
        return change_array(operation, transform->remove_all_from_array, true, out);
    default:
        return INVALID("Property transform of \"%s\" has no operation.", transform->property);
    }
}

static status apply_at(const Ds__PropertyTransform *transform, int64_t now_us, struct arena *arena,
                       Ds__Entity **entity, Ds__Value **result)
{
    struct ds_property_path path;
    Ds__Value *value = NULL;
    TRY(ds_property_path_parse(transform->property, arena, &path));
    struct operation operation = {
        .transform = transform, .present = ds_property_get(*entity, &path), .arena = arena};
    TRY(apply(&operation, now_us, &value, result));
    if (*result == NULL)
        *result = value;
    else
        (*result)->exclude_from_indexes = false;
    return ds_property_set(*entity, &path, value, arena, entity);
}

static status normalise_array(Ds__ArrayValue *array, const struct ds_database *database,
                              struct arena *arena)
{
    for (size_t i = 0; i < array->n_values; i++)
        TRY(ds_value_normalise(array->values[i], database, arena));
    return status_ok();
}

status ds_transform_normalise(const Ds__PropertyTransform *transform,
                              const struct ds_database *database, struct arena *arena)
{
    switch (transform->transform_type_case) {
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_APPEND_MISSING_ELEMENTS:
        return normalise_array(transform->append_missing_elements, database, arena);
    case DS__PROPERTY_TRANSFORM__TRANSFORM_TYPE_REMOVE_ALL_FROM_ARRAY:
        return normalise_array(transform->remove_all_from_array, database, arena);
    default: /* of numbers there is nothing to do */
        return status_ok();
    }
}

status ds_transform(const Ds__Entity *entity, Ds__PropertyTransform *const *transforms,
                    size_t count, int64_t now_us, struct arena *arena, Ds__Entity **out,
                    Ds__Value ***results)
{
    if (count > LIMIT_DS_TRANSFORMS)
        return INVALID("At most %d property transforms are supported.", LIMIT_DS_TRANSFORMS);
    TRY(ds_entity_like(entity, entity->n_properties, arena, out));
    for (; (*out)->n_properties < entity->n_properties; (*out)->n_properties++)
        (*out)->properties[(*out)->n_properties] = entity->properties[(*out)->n_properties];
    *results = arena_alloc(arena, count * sizeof(Ds__Value *));
    if (*results == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(apply_at(transforms[i], now_us, arena, out, &(*results)[i]));
    return status_ok();
}
