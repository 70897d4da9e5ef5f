/* Values as bytes, and their order: see value.h. */
#include "datastore/model/value.h"

#include "base/check.h"
#include "row/key_text.h"
#include "wire/proto.h"

/* The first byte of a value: its place in the order of types. */
enum rank {
    RANK_NONE = 0,
    RANK_NULL = 0x05,
    RANK_INTEGER = 0x10,
    RANK_BOOLEAN = 0x20,
    RANK_STRING = 0x30,
    RANK_DOUBLE = 0x40,
    RANK_GEO_POINT = 0x50,
    RANK_KEY = 0x60,
};

enum { NUMBER_SIZE = 8, US_A_SECOND = 1000000, NS_A_US = 1000 };

static const uint64_t SIGN = (uint64_t)1 << 63;

static enum rank rank_of_type(uint8_t type)
{
    switch ((Ds__Value__ValueTypeCase)type) {
    case DS__VALUE__VALUE_TYPE_NULL_VALUE:
        return RANK_NULL;
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return RANK_INTEGER;
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        return RANK_BOOLEAN;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return RANK_STRING;
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        return RANK_DOUBLE;
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return RANK_GEO_POINT;
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        return RANK_KEY;
    default:
        return RANK_NONE;
    }
}

uint8_t ds_value_type(const Ds__Value *value)
{
    return (uint8_t)value->value_type_case;
}

static enum rank rank_of(const Ds__Value *value)
{
    return rank_of_type(ds_value_type(value));
}

bool ds_value_has_bytes(const Ds__Value *value)
{
    enum rank rank = rank_of(value);
    return rank == RANK_KEY ? ds_key_is_complete(value->key_value) : rank != RANK_NONE;
}

/* --- what a value is in the order --- */

int64_t ds_timestamp_us(const Pb__Timestamp *timestamp)
{
    int64_t us;
    if (__builtin_mul_overflow(timestamp->seconds, (int64_t)US_A_SECOND, &us) ||
        __builtin_add_overflow(us, (int64_t)(timestamp->nanos / NS_A_US), &us))
        return timestamp->seconds < 0 ? INT64_MIN : INT64_MAX;
    return us;
}

static int64_t integer_of(const Ds__Value *value)
{
    return value->value_type_case == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE
               ? ds_timestamp_us(value->timestamp_value)
               : value->integer_value;
}

static bytes text_of(const Ds__Value *value)
{
    return value->value_type_case == DS__VALUE__VALUE_TYPE_BLOB_VALUE
               ? proto_bytes(value->blob_value)
               : bytes_of(value->string_value);
}

/* --- writing --- */

/* The bits of a double that order as unsigned numbers as the doubles do. */
static uint64_t ordered_bits(double number)
{
    uint64_t pattern;
    if (number == 0)
        number = 0; /* of two zeroes the one without a sign */
    if (number != number)
        number = __builtin_nan("");
    memcpy(&pattern, &number, sizeof pattern);
    return (pattern & SIGN) != 0 ? ~pattern : pattern | SIGN;
}

static double double_of_bits(uint64_t ordered)
{
    uint64_t pattern = (ordered & SIGN) != 0 ? ordered ^ SIGN : ~ordered;
    double number;
    memcpy(&number, &pattern, sizeof number);
    return number;
}

static void append_key(struct buffer *out, const Ds__Key *key)
{
    static const Ds__PartitionId none = DS__PARTITION_ID__INIT;
    const Ds__PartitionId *partition = key->partition_id == NULL ? &none : key->partition_id;
    key_text_append(out, bytes_of(partition->project_id));
    key_text_append(out, bytes_of(partition->database_id));
    key_text_append(out, bytes_of(partition->namespace_id));
    ds_path_append(out, key);
    ds_ancestor_append(out, bytes_make(NULL, 0));
}

static void append_ascending(struct buffer *out, const Ds__Value *value)
{
    enum rank rank = rank_of(value);
    CHECK(rank != RANK_NONE);
    buffer_append_byte(out, (uint8_t)rank);
    switch (rank) {
    case RANK_INTEGER:
        ds_number_append(out, (uint64_t)integer_of(value) ^ SIGN);
        break;
    case RANK_BOOLEAN:
        buffer_append_byte(out, value->boolean_value != 0);
        break;
    case RANK_STRING:
        key_text_append(out, text_of(value));
        break;
    case RANK_DOUBLE:
        ds_number_append(out, ordered_bits(value->double_value));
        break;
    case RANK_GEO_POINT:
        ds_number_append(out, ordered_bits(value->geo_point_value->latitude));
        ds_number_append(out, ordered_bits(value->geo_point_value->longitude));
        break;
    case RANK_KEY:
        append_key(out, value->key_value);
        break;
    default:
        break;
    }
}

void ds_value_append(struct buffer *out, const Ds__Value *value, enum ds_flip flip)
{
    size_t start = out->size;
    append_ascending(out, value);
    ds_flip_from(out, start, flip);
}

/* --- reading --- */

static size_t key_size(bytes encoded, enum ds_flip flip)
{
    size_t at = 0;
    for (int texts = 0; texts < 3; texts++) {
        size_t text = key_text_size(bytes_from(encoded, at), (uint8_t)flip);
        if (text == 0)
            return 0;
        at += text;
    }
    size_t path = ds_ancestor_size(bytes_from(encoded, at), flip);
    return path == 0 ? 0 : at + path;
}

/* The size of what stands behind the first byte. `*is_any` is whether that is a value's. */
static size_t body_size(uint8_t rank, bytes body, enum ds_flip flip, bool *is_any)
{
    *is_any = true;
    switch ((enum rank)rank) {
    case RANK_NULL:
        return 0;
    case RANK_BOOLEAN:
        return 1;
    case RANK_INTEGER:
    case RANK_DOUBLE:
        return NUMBER_SIZE;
    case RANK_GEO_POINT:
        return 2 * (size_t)NUMBER_SIZE;
    case RANK_STRING:
    case RANK_KEY: {
        size_t size = rank == RANK_KEY ? key_size(body, flip) : key_text_size(body, (uint8_t)flip);
        *is_any = size > 0;
        return size;
    }
    default:
        *is_any = false;
        return 0;
    }
}

size_t ds_value_size(bytes encoded, enum ds_flip flip)
{
    bool is_any;
    if (encoded.size == 0)
        return 0;
    bytes body = bytes_from(encoded, 1);
    size_t size = body_size(encoded.data[0] ^ (uint8_t)flip, body, flip, &is_any);
    return is_any && size <= body.size ? 1 + size : 0;
}

/* The bytes in their ascending form, in which all are read; NULL without memory. */
static bytes ascending(bytes encoded, enum ds_flip flip, struct arena *arena)
{
    if (flip == DS_ASCENDING)
        return encoded;
    uint8_t *copy = arena_alloc(arena, encoded.size);
    for (size_t i = 0; copy != NULL && i < encoded.size; i++)
        copy[i] = encoded.data[i] ^ (uint8_t)flip;
    return bytes_make(copy, encoded.size);
}

static status decode_blob(bytes body, struct arena *arena, Ds__Value *value)
{
    uint8_t *blob = arena_alloc(arena, body.size);
    if (blob == NULL)
        return status_out_of_memory();
    value->value_type_case = DS__VALUE__VALUE_TYPE_BLOB_VALUE;
    value->blob_value = proto_data(key_text_read(body, DS_ASCENDING, blob));
    return status_ok();
}

static status decode_geo_point(bytes body, struct arena *arena, Ds__Value *value)
{
    PROTO_NEW(arena, value->geo_point_value, TYPE__LAT_LNG__INIT);
    const uint8_t *longitude = body.data + NUMBER_SIZE;
    value->geo_point_value->latitude = double_of_bits(ds_number_read(body.data, DS_ASCENDING));
    value->geo_point_value->longitude = double_of_bits(ds_number_read(longitude, DS_ASCENDING));
    return status_ok();
}

static status decode_key(bytes body, struct arena *arena, Ds__Value *value)
{
    enum { MARK_SIZE = 2 };
    Ds__PartitionId *partition;
    PROTO_NEW(arena, partition, DS__PARTITION_ID__INIT);
    TRY(ds_text_read(&body, DS_ASCENDING, arena, &partition->project_id));
    TRY(ds_text_read(&body, DS_ASCENDING, arena, &partition->database_id));
    TRY(ds_text_read(&body, DS_ASCENDING, arena, &partition->namespace_id));
    TRY(ds_path_decode(bytes_make(body.data, body.size - MARK_SIZE), arena, &value->key_value));
    value->key_value->partition_id = partition;
    return status_ok();
}

static status decode_boolean(bytes body, Ds__Value *value)
{
    value->boolean_value = body.data[0];
    return body.data[0] > 1 ? ds_damaged("a boolean that is none") : status_ok();
}

/* `body` has the size that the type wants. */
static status decode_body(bytes body, struct arena *arena, Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_NULL_VALUE:
        return status_ok();
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        value->value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
        value->meaning = DS_MEANING_TIMESTAMP;
        /* fallthrough */
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        value->integer_value = (int64_t)(ds_number_read(body.data, DS_ASCENDING) ^ SIGN);
        return status_ok();
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        return decode_boolean(body, value);
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        return ds_text_read(&body, DS_ASCENDING, arena, &value->string_value);
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return decode_blob(body, arena, value);
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        value->double_value = double_of_bits(ds_number_read(body.data, DS_ASCENDING));
        return status_ok();
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return decode_geo_point(body, arena, value);
    default:
        return decode_key(body, arena, value);
    }
}

status ds_value_decode(bytes encoded, enum ds_flip flip, uint8_t type, struct arena *arena,
                       Ds__Value **out)
{
    size_t size = ds_value_size(encoded, flip);
    if (size == 0 || size != encoded.size)
        return ds_damaged("no value in an index");
    if ((encoded.data[0] ^ (uint8_t)flip) != rank_of_type(type))
        return ds_damaged("a value of another type than its index row says");
    encoded = ascending(encoded, flip, arena);
    if (encoded.data == NULL)
        return status_out_of_memory();
    Ds__Value *value;
    PROTO_NEW(arena, value, DS__VALUE__INIT);
    value->value_type_case = (Ds__Value__ValueTypeCase)type;
    TRY(decode_body(bytes_from(encoded, 1), arena, value));
    *out = value;
    return status_ok();
}

status ds_number_decode(bytes encoded, enum ds_flip flip, uint8_t type, struct arena *arena,
                        Ds__Value **out)
{
    uint8_t rank = encoded.size == 0 ? RANK_NONE : encoded.data[0] ^ (uint8_t)flip;
    *out = NULL;
    if (rank == RANK_DOUBLE)
        return ds_value_decode(encoded, flip, DS__VALUE__VALUE_TYPE_DOUBLE_VALUE, arena, out);
    if (rank == RANK_INTEGER && type != DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE)
        return ds_value_decode(encoded, flip, DS__VALUE__VALUE_TYPE_INTEGER_VALUE, arena, out);
    return status_ok();
}

/* --- order --- */

static int compare_doubles(double a, double b)
{
    if (a != a || b != b)
        return (a != a) - (b != b);
    return (a > b) - (a < b);
}

static int compare_geo_points(const Type__LatLng *a, const Type__LatLng *b)
{
    int order = compare_doubles(a->latitude, b->latitude);
    return order == 0 ? compare_doubles(a->longitude, b->longitude) : order;
}

static int compare_integers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int ds_value_compare(const Ds__Value *a, const Ds__Value *b)
{
    enum rank rank = rank_of(a), other = rank_of(b);
    CHECK(rank != RANK_NONE && other != RANK_NONE);
    if (rank != other)
        return rank < other ? -1 : 1;
    switch (rank) {
    case RANK_INTEGER:
        return compare_integers(integer_of(a), integer_of(b));
    case RANK_BOOLEAN:
        return (a->boolean_value != 0) - (b->boolean_value != 0);
    case RANK_STRING:
        return bytes_compare(text_of(a), text_of(b));
    case RANK_DOUBLE:
        return compare_doubles(a->double_value, b->double_value);
    case RANK_GEO_POINT:
        return compare_geo_points(a->geo_point_value, b->geo_point_value);
    case RANK_KEY:
        return ds_key_value_compare(a->key_value, b->key_value);
    default:
        return 0;
    }
}
