/* Fuzzer: values. Bytes that can be read are those that would be written; bytes order as values do,
 * and the other way round when they are inverted; no value's bytes begin as another's.
 *
 * Input: choices (base/testing/fuzzing.h): bytes to be read, then two values. */
#include "base/testing/fuzzing.h"
#include "datastore/model/value.h"
#include "wire/proto.h"

enum { MOST_TEXT = 8, MOST_BYTES = 64, ARENA_BYTES = 1 << 16 };

static void read_bytes(bytes given, enum ds_flip flip, uint8_t type, struct arena *arena)
{
    struct buffer again = {0};
    Ds__Value *value;
    size_t size = ds_value_size(given, flip);
    CHECK(size <= given.size);
    status s = ds_value_decode(bytes_make(given.data, size), flip, type, arena, &value);
    /* A NaN, and a zero, may have been written otherwise than we do. */
    if (status_is_ok(s) && type != DS__VALUE__VALUE_TYPE_DOUBLE_VALUE &&
        type != DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE) {
        ds_value_append(&again, value, flip);
        CHECK(bytes_equal(buffer_bytes(&again), bytes_make(given.data, size)));
    }
    status_free(s);
    buffer_free(&again);
}

static double choose_double(struct choices *choices)
{
    const double some[] = {0.0, -0.0, 1.0, -1.0, 1e300, -1e-300};
    unsigned which = choose(choices, 1 + sizeof some / sizeof some[0]);
    if (which > 0)
        return some[which - 1];
    uint64_t pattern = choose_number(choices, 8);
    double number;
    memcpy(&number, &pattern, sizeof number);
    return number;
}

static void *make(struct arena *arena, size_t size)
{
    void *made = arena_zalloc(arena, size);
    CHECK(made != NULL);
    return made;
}

static Ds__Key *choose_key(struct choices *choices, struct arena *arena)
{
    Ds__Key *key = make(arena, sizeof *key);
    *key = (Ds__Key)DS__KEY__INIT;
    if (choose_bool(choices)) {
        key->partition_id = make(arena, sizeof *key->partition_id);
        *key->partition_id = (Ds__PartitionId)DS__PARTITION_ID__INIT;
        key->partition_id->project_id = arena_string(arena, choose_bytes(choices, MOST_TEXT));
        key->partition_id->namespace_id = arena_string(arena, choose_bytes(choices, MOST_TEXT));
    }
    key->n_path = 1 + choose(choices, 2);
    key->path = make(arena, key->n_path * sizeof(Ds__Key__PathElement *));
    for (size_t i = 0; i < key->n_path; i++) {
        key->path[i] = make(arena, sizeof *key->path[i]);
        *key->path[i] = (Ds__Key__PathElement)DS__KEY__PATH_ELEMENT__INIT;
        key->path[i]->kind = "K";
        key->path[i]->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        key->path[i]->name = arena_string(arena, choose_bytes(choices, MOST_TEXT));
    }
    return key;
}

static void choose_body(struct choices *choices, struct arena *arena, Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        value->boolean_value = choose_bool(choices);
        break;
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        value->integer_value = (int64_t)choose_number(choices, choose_bool(choices) ? 1 : 8);
        break;
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        value->timestamp_value = make(arena, sizeof *value->timestamp_value);
        *value->timestamp_value = (Pb__Timestamp)PB__TIMESTAMP__INIT;
        value->timestamp_value->seconds = (int64_t)choose_number(choices, choose(choices, 9));
        value->timestamp_value->nanos = (int32_t)choose_number(choices, 3);
        break;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        value->string_value = arena_string(arena, choose_bytes(choices, MOST_TEXT));
        break;
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        value->blob_value = proto_data(choose_bytes(choices, MOST_TEXT));
        break;
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        value->double_value = choose_double(choices);
        break;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        value->geo_point_value = make(arena, sizeof *value->geo_point_value);
        *value->geo_point_value = (Type__LatLng)TYPE__LAT_LNG__INIT;
        value->geo_point_value->latitude = choose_double(choices);
        value->geo_point_value->longitude = choose_double(choices);
        break;
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        value->key_value = choose_key(choices, arena);
        break;
    default:
        break;
    }
}

static Ds__Value *choose_value(struct choices *choices, struct arena *arena)
{
    static const uint8_t types[] = {
        DS__VALUE__VALUE_TYPE_NULL_VALUE,   DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE,
        DS__VALUE__VALUE_TYPE_STRING_VALUE, DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE,
        DS__VALUE__VALUE_TYPE_BLOB_VALUE,   DS__VALUE__VALUE_TYPE_INTEGER_VALUE,
        DS__VALUE__VALUE_TYPE_DOUBLE_VALUE, DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE,
        DS__VALUE__VALUE_TYPE_KEY_VALUE};
    Ds__Value *value = make(arena, sizeof *value);
    *value = (Ds__Value)DS__VALUE__INIT;
    value->value_type_case = types[choose(choices, sizeof types)];
    choose_body(choices, arena, value);
    return value;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void compare_bytes(const Ds__Value *a, const Ds__Value *b, enum ds_flip flip)
{
    struct buffer of_a = {0}, of_b = {0};
    ds_value_append(&of_a, a, flip);
    ds_value_append(&of_b, b, flip);
    int order = sign(bytes_compare(buffer_bytes(&of_a), buffer_bytes(&of_b)));
    CHECK(order == (flip == DS_ASCENDING ? 1 : -1) * sign(ds_value_compare(a, b)));
    CHECK(order == 0 || !bytes_start_with(buffer_bytes(&of_a), buffer_bytes(&of_b)));
    buffer_free(&of_a);
    buffer_free(&of_b);
}

static void come_back(const Ds__Value *value, enum ds_flip flip, struct arena *arena)
{
    struct buffer of_it = {0};
    Ds__Value *back;
    ds_value_append(&of_it, value, flip);
    size_t size = of_it.size;
    buffer_append(&of_it, "more", 4);
    CHECK(ds_value_size(buffer_bytes(&of_it), flip) == size);
    CHECK(status_is_ok(
        ds_value_decode(bytes_make(of_it.data, size), flip, ds_value_type(value), arena, &back)));
    CHECK(ds_value_equal(value, back));
    buffer_free(&of_it);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct arena *arena = arena_create(ARENA_BYTES);
    CHECK(arena != NULL);
    enum ds_flip flip = choose_bool(&choices) ? DS_ASCENDING : DS_DESCENDING;
    uint8_t type = choose_byte(&choices);
    read_bytes(choose_bytes(&choices, MOST_BYTES), flip, type, arena);
    Ds__Value *a = choose_value(&choices, arena), *b = choose_value(&choices, arena);
    compare_bytes(a, b, DS_ASCENDING);
    compare_bytes(a, b, DS_DESCENDING);
    come_back(a, flip, arena);
    arena_destroy(arena);
    return 0;
}
