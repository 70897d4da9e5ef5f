/* Sketches in their written form: see hll.h. */
#include "base/varint.h"
#include "row/hll_private.h"

#include <inttypes.h>

/* --- the messages' fields --- */

enum { TYPE = 1, NUM_VALUES = 2, ENCODING_VERSION = 3, VALUE_TYPE = 4, UNIQUE_STATE = 112 };
enum { SPARSE_SIZE = 2, PRECISION = 3, SPARSE_PRECISION = 4, DATA = 5, SPARSE_DATA = 6 };

enum {
    TYPE_SUM = 100,
    TYPE_HLL = 112,
    DEFAULT_ENCODING_VERSION = 1,
    WRITTEN_ENCODING_VERSION = 2,
};

/* Kinds of fields on the wire, the lower three bits of a tag. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5, WIRE_BITS = 3 };

/* A field of a message: its number with its wire kind, and the one or the other value. */
struct field {
    uint64_t tag;
    uint64_t number;
    bytes content;
};

#define TAG(field, kind) ((uint64_t)(field) << WIRE_BITS | (kind))

static status malformed(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "The sketch is not a whole protobuf message");
}

/* Takes the next field from the front of the message; false if it does not parse. */
static bool take_field(bytes *message, struct field *field)
{
    const uint8_t *end = message->data + message->size;
    const uint8_t *at = varint_read(message->data, end, &field->tag);
    uint64_t size = 0;
    if (at == NULL || field->tag >> WIRE_BITS == 0 || field->tag > UINT32_MAX)
        return false;
    switch (field->tag & ((1 << WIRE_BITS) - 1)) {
    case WIRE_VARINT:
        at = varint_read(at, end, &field->number);
        break;
    case WIRE_BYTES:
        at = varint_read(at, end, &size);
        break;
    case WIRE_FIXED64:
        size = 8;
        break;
    case WIRE_FIXED32:
        size = 4;
        break;
    default:
        return false;
    }
    if (at == NULL || size > (uint64_t)(end - at))
        return false;
    field->content = bytes_make(at, size);
    *message = bytes_make(at + size, (size_t)(end - at) - size);
    return true;
}

/* --- parsing --- */

/* What the messages say, as the library's parser takes it. */
struct raw_state {
    int32_t type;
    int32_t encoding_version;
    int32_t value_type;
    int32_t precision;
    int32_t sparse_precision;
    int32_t sparse_size;
    int64_t num_values;
    bytes data;
    bytes sparse_data;
};

static bool read_unique_state(bytes message, struct raw_state *raw)
{
    struct field field;
    while (message.size > 0) {
        if (!take_field(&message, &field))
            return false;
        if (field.tag == TAG(SPARSE_SIZE, WIRE_VARINT))
            raw->sparse_size = (int32_t)field.number;
        else if (field.tag == TAG(PRECISION, WIRE_VARINT))
            raw->precision = (int32_t)field.number;
        else if (field.tag == TAG(SPARSE_PRECISION, WIRE_VARINT))
            raw->sparse_precision = (int32_t)field.number;
        else if (field.tag == TAG(DATA, WIRE_BYTES))
            raw->data = field.content;
        else if (field.tag == TAG(SPARSE_DATA, WIRE_BYTES))
            raw->sparse_data = field.content;
    }
    return true;
}

/* Fields may come in any order; the last of several counts; unknown ones are passed over. */
static bool read_aggregator_state(bytes message, struct raw_state *raw)
{
    struct field field;
    while (message.size > 0) {
        if (!take_field(&message, &field))
            return false;
        if (field.tag == TAG(TYPE, WIRE_VARINT))
            raw->type = (int32_t)field.number;
        else if (field.tag == TAG(NUM_VALUES, WIRE_VARINT))
            raw->num_values = (int64_t)field.number;
        else if (field.tag == TAG(ENCODING_VERSION, WIRE_VARINT))
            raw->encoding_version = (int32_t)field.number;
        else if (field.tag == TAG(VALUE_TYPE, WIRE_VARINT))
            raw->value_type = (int32_t)field.number;
        else if (field.tag == TAG(UNIQUE_STATE, WIRE_BYTES) &&
                 !read_unique_state(field.content, raw))
            return false;
    }
    return true;
}

static status check_types(const struct raw_state *raw)
{
    static const char *const refused[] = {
        [1] = "INT8",  [2] = "INT16",  [3] = "INT32", [4] = "INT64",
        [5] = "UINT8", [6] = "UINT16", [9] = "FLOAT", [10] = "DOUBLE",
    };
    if (raw->type == TYPE_SUM)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected proto to be of type HYPERLOGLOG_PLUS_UNIQUE but was SUM");
    if (raw->type != TYPE_HLL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected proto to be of type HYPERLOGLOG_PLUS_UNIQUE but was %" PRId32,
                           raw->type);
    if (raw->encoding_version != WRITTEN_ENCODING_VERSION)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected encoding version to be 2 but was %" PRId32,
                           raw->encoding_version);
    int32_t type = raw->value_type;
    if (type == HLL_UNKNOWN || type == HLL_INT32 || type == HLL_INT64 || type == HLL_BYTES)
        return status_ok();
    if (type > 0 && type < (int32_t)(sizeof refused / sizeof *refused))
        return status_make(STATUS_INVALID_ARGUMENT, "Unsupported value type DefaultOpsType.Id.%s",
                           refused[type]);
    return status_make(STATUS_INVALID_ARGUMENT, "Unsupported value type %" PRId32, type);
}

static status check_precisions(const struct raw_state *raw)
{
    int32_t precision = raw->precision;
    int32_t sparse_precision = raw->sparse_precision;
    if (precision < HLL_LEAST_PRECISION || precision > HLL_MOST_PRECISION)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected normal precision to be >= %d and <= %d but was %" PRId32,
                           HLL_LEAST_PRECISION, HLL_MOST_PRECISION, precision);
    if (sparse_precision != 0 &&
        (sparse_precision < precision || sparse_precision > HLL_MOST_SPARSE_PRECISION))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected sparse precision to be >= normal precision (%" PRId32
                           ") and <= %d but was %" PRId32 ".",
                           precision, HLL_MOST_SPARSE_PRECISION, sparse_precision);
    if (sparse_precision == 0 && raw->sparse_data.size > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Must have a sparse precision when sparse data is set");
    return status_ok();
}

/* A function of its own, of whose loop the compiler makes one over many bytes at a time. */
static uint8_t greatest_of(bytes registers)
{
    uint8_t greatest = 0;
    for (size_t i = 0; i < registers.size; i++)
        greatest = registers.data[i] > greatest ? registers.data[i] : greatest;
    return greatest;
}

static status check_registers(const struct hll_state *state)
{
    size_t count = (size_t)1 << state->precision;
    uint8_t most = (uint8_t)(HLL_HASH_BITS + 1 - state->precision);
    if (state->data.size != count)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected data to consist of exactly %zu bytes but got %zu", count,
                           state->data.size);
    uint8_t greatest = greatest_of(state->data);
    if (greatest > most)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected data to hold at most %u at precision %u but got %u", most,
                           state->precision, greatest);
    return status_ok();
}

/* Whether some hash is listed as this value. */
static bool is_possible(uint32_t value, struct hll_precisions at)
{
    struct hll_point point = hll_listed(value, at);
    return point.index >> at.sparse_precision == 0 && hll_list(point, at) == value &&
           ((value & hll_flag(at)) == 0 ||
            (point.rho >= 1 && point.rho <= HLL_HASH_BITS + 1 - at.sparse_precision));
}

static status check_list(const struct hll_state *state)
{
    struct hll_precisions at = {state->precision, state->sparse_precision};
    struct hll_list_reader reader = hll_list_read(state->sparse_data);
    uint32_t count = 0, former = 0;
    while (hll_list_next(&reader)) {
        if (!is_possible(reader.value, at) ||
            (count > 0 && (reader.value <= former || hll_is_same_index(reader.value, former, at))))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "Value %" PRIu32 " of sparse_data is not one that can follow",
                               count);
        former = reader.value;
        count++;
    }
    if (reader.at != reader.end)
        return status_make(STATUS_INVALID_ARGUMENT, "sparse_data ends within a value");
    if (count != state->sparse_size)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Expected sparse_data to hold sparse_size (%" PRIu32
                           ") values but got %" PRIu32,
                           state->sparse_size, count);
    return status_ok();
}

status hll_state_parse(bytes wire, struct hll_state *out)
{
    struct raw_state raw = {.type = TYPE_HLL, .encoding_version = DEFAULT_ENCODING_VERSION};
    *out = (struct hll_state){0};
    if (!read_aggregator_state(wire, &raw))
        return malformed();
    TRY(check_types(&raw));
    TRY(check_precisions(&raw));
    *out = (struct hll_state){.num_values = raw.num_values,
                              .value_type = (enum hll_value_type)raw.value_type,
                              .precision = (uint8_t)raw.precision,
                              .sparse_precision = (uint8_t)raw.sparse_precision,
                              .data = raw.data};
    if (out->data.size > 0)
        return check_registers(out);
    out->sparse_size = (uint32_t)raw.sparse_size;
    out->sparse_data = raw.sparse_data;
    return check_list(out);
}

bool hll_list_next(struct hll_list_reader *reader)
{
    uint64_t step;
    const uint8_t *at = varint_read(reader->at, reader->end, &step);
    if (at == NULL || step > UINT32_MAX - reader->value)
        return false;
    reader->at = at;
    reader->value += (uint32_t)step;
    return true;
}

/* --- writing --- */

/* Tags, sizes and numbers of one message, without what data and sparse_data hold. */
enum { HEAD_MOST = 10 * VARINT_MAX_SIZE };

static uint8_t *write_number(uint8_t *at, int field, uint64_t number)
{
    return varint_write(varint_write(at, TAG(field, WIRE_VARINT)), number);
}

/* A field's tag and size: the content is to follow. */
static uint8_t *write_size(uint8_t *at, int field, size_t size)
{
    return varint_write(varint_write(at, TAG(field, WIRE_BYTES)), size);
}

/* What ends both messages. */
static bytes content_of(const struct hll_state *state)
{
    return hll_state_is_sparse(state) ? state->sparse_data : state->data;
}

/* The inner message up to the content of its last field. A list is written though it be empty. */
static uint8_t *write_unique_head(uint8_t *at, const struct hll_state *state)
{
    bool is_sparse = hll_state_is_sparse(state);
    if (is_sparse && state->sparse_size > 0)
        at = write_number(at, SPARSE_SIZE, state->sparse_size);
    at = write_number(at, PRECISION, state->precision);
    if (state->sparse_precision > 0)
        at = write_number(at, SPARSE_PRECISION, state->sparse_precision);
    if (is_sparse)
        return write_size(at, SPARSE_DATA, state->sparse_data.size);
    return state->data.size > 0 ? write_size(at, DATA, state->data.size) : at;
}

/* Both messages up to the content: at most 2 * HEAD_MOST bytes. */
static uint8_t *write_head(uint8_t *at, const struct hll_state *state)
{
    uint8_t inner[HEAD_MOST];
    size_t inner_size = (size_t)(write_unique_head(inner, state) - inner);
    at = write_number(at, TYPE, TYPE_HLL);
    at = write_number(at, NUM_VALUES, (uint64_t)state->num_values);
    at = write_number(at, ENCODING_VERSION, WRITTEN_ENCODING_VERSION);
    if (state->value_type != HLL_UNKNOWN)
        at = write_number(at, VALUE_TYPE, state->value_type);
    at = write_size(at, UNIQUE_STATE, inner_size + content_of(state).size);
    memcpy(at, inner, inner_size);
    return at + inner_size;
}

void hll_state_write(const struct hll_state *state, struct buffer *out)
{
    bytes content = content_of(state);
    uint8_t *start = buffer_reserve(out, 2 * HEAD_MOST + content.size);
    if (start == NULL)
        return;
    out->size += (size_t)(write_head(start, state) - start);
    buffer_append_bytes(out, content);
}

size_t hll_state_write_one(enum hll_value_type value_type, uint64_t hash, uint8_t out[HLL_ONE_MOST])
{
    const struct hll_precisions at = {HLL_PRECISION, HLL_SPARSE_PRECISION};
    uint8_t list[VARINT_MAX_SIZE];
    uint32_t value = hll_list(hll_point_of(hash, HLL_SPARSE_PRECISION), at);
    size_t size = (size_t)(varint_write(list, value) - list);
    struct hll_state state = {
        .num_values = 1,
        .value_type = value_type,
        .precision = HLL_PRECISION,
        .sparse_precision = HLL_SPARSE_PRECISION,
        .sparse_size = 1,
        .sparse_data = bytes_make(list, size),
    };
    uint8_t *end = write_head(out, &state);
    memcpy(end, list, size);
    return (size_t)(end - out) + size;
}

/* --- may they merge --- */

static const char *type_name(enum hll_value_type type)
{
    if (type == HLL_INT32)
        return "INTEGER";
    return type == HLL_INT64 ? "LONG" : "STRING, BYTES";
}

status hll_check_types(enum hll_value_type into, enum hll_value_type type)
{
    if (hll_types_match(into, type))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Aggregator of type [%s] is incompatible with aggregator of type [%s]",
                       type_name(into), type_name(type));
}
