/* Values that are no objects, from JSON or from a URL, to the wire format. See json_private.h. */
#include "wire/json_private.h"

#include "base/varint.h"
#include "wire/grpc_text.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_NUMBER = 400, /* characters of one that is read as floating point */
    WRAPPED = 1,       /* the number of `value` in wrappers */
    TIME_SECONDS = 1,  /* of Timestamp and Duration */
    TIME_NANOS = 2,
    FIELD_MASK_PATHS = 1,
};

/* --- the wire format --- */

static void write_tag(struct buffer *wire, uint32_t id, ProtobufCWireType type)
{
    buffer_append_varint(wire, (uint64_t)id << 3 | type);
}

static void write_fixed(struct buffer *wire, uint64_t value, size_t size)
{
    uint8_t little[sizeof value];
    for (size_t i = 0; i < size; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    buffer_append(wire, little, size);
}

void json_write_bytes(struct buffer *wire, uint32_t id, bytes content)
{
    write_tag(wire, id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_varint(wire, content.size);
    buffer_append_bytes(wire, content);
}

static void write_number(struct buffer *wire, uint32_t id, uint64_t value)
{
    write_tag(wire, id, PROTOBUF_C_WIRE_TYPE_VARINT);
    buffer_append_varint(wire, value);
}

size_t json_begin_message(struct buffer *wire, uint32_t id)
{
    write_tag(wire, id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_byte(wire, 0);
    return wire->size;
}

void json_end_message(struct buffer *wire, size_t start)
{
    if (wire->failed)
        return;
    size_t size = wire->size - start, more = varint_size(size) - 1;
    if (buffer_reserve(wire, more) == NULL && more > 0)
        return;
    memmove(wire->data + start + more, wire->data + start, size);
    varint_write(wire->data + start - 1, size);
    wire->size += more;
}

/* --- numbers --- */

/* The digits of a whole number that is not written as a fraction. */
static bool read_digits(bytes text, bool *is_negative, uint64_t *size)
{
    *is_negative = text.size > 0 && text.data[0] == '-';
    *size = 0;
    for (size_t i = *is_negative; i < text.size; i++) {
        uint64_t digit = (uint64_t)text.data[i] - '0';
        if (digit > 9 || *size > (UINT64_MAX - digit) / 10)
            return false;
        *size = *size * 10 + digit;
    }
    return text.size > *is_negative;
}

static bool read_double(bytes text, double *value)
{
    char copy[MOST_NUMBER + 1];
    if (text.size > MOST_NUMBER || !json_is_number(text))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *value = strtod(copy, NULL);
    return isfinite(*value);
}

/* A whole number, also as "1e3" or "5.0", between `least` and `most`, in two's complement. */
static bool read_integer(const struct json_scalar *from, int64_t least, uint64_t most,
                         uint64_t *value)
{
    bool is_negative;
    uint64_t size;
    double number;
    if ((from->kind != JSON_NUMBER && from->kind != JSON_STRING) || !json_is_number(from->text))
        return false;
    if (!read_digits(from->text, &is_negative, &size)) {
        if (!read_double(from->text, &number) || number != floor(number) || fabs(number) >= 0x1p63)
            return false;
        is_negative = number < 0;
        size = (uint64_t)fabs(number);
    }
    *value = is_negative ? 0 - size : size;
    return is_negative ? size <= 0 - (uint64_t)least : size <= most;
}

static bool read_float(const struct json_scalar *from, double most, double *value)
{
    if (from->kind == JSON_STRING) {
        static const struct {
            const char *name;
            double value;
        } names[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (bytes_equal(from->text, bytes_of(names[i].name))) {
                *value = names[i].value;
                return true;
            }
    } else if (from->kind != JSON_NUMBER) {
        return false;
    }
    return read_double(from->text, value) && fabs(*value) <= most;
}

/* Python's clients write True and False into URLs. */
static bool read_bool(const struct json_scalar *from, bool *value)
{
    char word[6] = "";
    if (from->kind == JSON_NUMBER || from->text.size >= sizeof word)
        return false;
    for (size_t i = 0; i < from->text.size; i++)
        word[i] = (char)(from->text.data[i] | 0x20);
    *value = strcmp(word, "true") == 0;
    return *value || strcmp(word, "false") == 0;
}

static bool read_enum(const struct json_scalar *from, const ProtobufCEnumDescriptor *type,
                      uint64_t *value)
{
    if (from->kind == JSON_STRING)
        for (unsigned i = 0; i < type->n_value_names; i++)
            if (bytes_equal(from->text, bytes_of(type->values_by_name[i].name))) {
                *value = (uint64_t)(int64_t)type->values[type->values_by_name[i].index].value;
                return true;
            }
    return read_integer(from, INT32_MIN, INT32_MAX, value);
}

/* --- scalars --- */

static bool write_integer(struct buffer *wire, const ProtobufCFieldDescriptor *field,
                          const struct json_scalar *from)
{
    uint64_t value;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        if (!read_integer(from, INT32_MIN, INT32_MAX, &value))
            return false;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        if (!read_integer(from, 0, UINT32_MAX, &value))
            return false;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        if (!read_integer(from, 0, UINT64_MAX, &value))
            return false;
        break;
    default:
        if (!read_integer(from, INT64_MIN, INT64_MAX, &value))
            return false;
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
        write_number(wire, field->id, zigzag_encode((int64_t)value));
        break;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        write_tag(wire, field->id, PROTOBUF_C_WIRE_TYPE_32BIT);
        write_fixed(wire, value, sizeof(uint32_t));
        break;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        write_tag(wire, field->id, PROTOBUF_C_WIRE_TYPE_64BIT);
        write_fixed(wire, value, sizeof(uint64_t));
        break;
    default:
        write_number(wire, field->id, value);
    }
    return true;
}

static bool write_float(struct buffer *wire, const ProtobufCFieldDescriptor *field,
                        const struct json_scalar *from)
{
    double number;
    uint64_t bits = 0;
    bool is_float = field->type == PROTOBUF_C_TYPE_FLOAT;
    if (!read_float(from, is_float ? (double)3.4028234663852886e38f : HUGE_VAL, &number))
        return false;
    float narrow = (float)number;
    size_t size = is_float ? sizeof narrow : sizeof number;
    memcpy(&bits, is_float ? (void *)&narrow : (void *)&number, size);
    write_tag(wire, field->id, is_float ? PROTOBUF_C_WIRE_TYPE_32BIT : PROTOBUF_C_WIRE_TYPE_64BIT);
    write_fixed(wire, bits, size);
    return true;
}

static bool write_base64(struct buffer *wire, uint32_t id, bytes text)
{
    size_t size, start = json_begin_message(wire, id);
    uint8_t *to = buffer_reserve(wire, base64_decoded_most(text.size));
    if (to == NULL)
        return true; /* `failed` tells */
    if (!base64_decode(text, to, &size))
        return false;
    wire->size += size;
    json_end_message(wire, start);
    return true;
}

bool json_write_scalar(struct buffer *wire, const ProtobufCFieldDescriptor *field,
                       const struct json_scalar *from)
{
    bool flag;
    uint64_t number;
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        if (!read_bool(from, &flag))
            return false;
        write_number(wire, field->id, flag);
        return true;
    case PROTOBUF_C_TYPE_ENUM:
        if (json_is_null(field) && from->kind == JSON_NULL)
            number = 0;
        else if (!read_enum(from, field->descriptor, &number))
            return false;
        write_number(wire, field->id, number);
        return true;
    case PROTOBUF_C_TYPE_STRING:
        if (from->kind != JSON_STRING)
            return false;
        json_write_bytes(wire, field->id, from->text);
        return true;
    case PROTOBUF_C_TYPE_BYTES:
        return from->kind == JSON_STRING && write_base64(wire, field->id, from->text);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return write_float(wire, field, from);
    default:
        return write_integer(wire, field, from);
    }
}

/* --- messages that stand as one scalar --- */

static bool write_time(struct buffer *wire, enum json_form form, const struct json_scalar *from)
{
    int64_t seconds;
    int32_t nanos;
    if (from->kind != JSON_STRING)
        return false;
    if (!(form == FORM_TIMESTAMP ? json_parse_timestamp(from->text, &seconds, &nanos)
                                 : json_parse_duration(from->text, &seconds, &nanos)))
        return false;
    if (seconds != 0)
        write_number(wire, TIME_SECONDS, (uint64_t)seconds);
    if (nanos != 0)
        write_number(wire, TIME_NANOS, (uint64_t)(int64_t)nanos);
    return true;
}

/* One path of a mask, "gcRule.maxAge", as gc_rule.max_age. */
static void write_path(struct buffer *wire, bytes path)
{
    size_t start = json_begin_message(wire, FIELD_MASK_PATHS);
    for (size_t i = 0; i < path.size; i++) {
        uint8_t c = path.data[i];
        bool is_capital = c >= 'A' && c <= 'Z';
        if (is_capital)
            buffer_append_byte(wire, '_');
        buffer_append_byte(wire, is_capital ? c | 0x20 : c);
    }
    json_end_message(wire, start);
}

static bool write_field_mask(struct buffer *wire, const struct json_scalar *from)
{
    bytes left = from->text;
    if (from->kind != JSON_STRING)
        return false;
    while (left.size > 0) {
        const uint8_t *comma = memchr(left.data, ',', left.size);
        size_t size = comma == NULL ? left.size : (size_t)(comma - left.data);
        if (size > 0)
            write_path(wire, bytes_make(left.data, size));
        left = bytes_from(left, comma == NULL ? size : size + 1);
    }
    return true;
}

bool json_write_form(struct buffer *wire, const ProtobufCMessageDescriptor *type,
                     const struct json_scalar *from)
{
    enum json_form form = json_form_of(type);
    switch (form) {
    case FORM_TIMESTAMP:
    case FORM_DURATION:
        return write_time(wire, form, from);
    case FORM_FIELD_MASK:
        return write_field_mask(wire, from);
    case FORM_WRAPPER:
        return json_write_scalar(wire, protobuf_c_message_descriptor_get_field(type, WRAPPED),
                                 from);
    default:
        return false;
    }
}

bool json_is_scalar_form(const ProtobufCMessageDescriptor *type)
{
    enum json_form form = json_form_of(type);
    return form != FORM_OBJECT && form != FORM_ANY;
}
