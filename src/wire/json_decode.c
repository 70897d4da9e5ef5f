/* JSON to the wire format. See json.h.
 *
 * The length of a nested message is known only when it has been written: one byte is left for it,
 * and what was written moves up if it needs more. */
#include "wire/json_private.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "wire/grpc_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_FIELDS = 64,   /* of a message */
    MOST_NUMBER = 400,  /* characters of one that is read as floating point */
    MOST_EXCERPT = 100, /* of what was sent, in a message about it */
    MOST_DOTS = 8,      /* in the path of a field in a URL */
    WRAPPED = 1,        /* the number of `value` in wrappers */
    ANY_TYPE_URL = 1,   /* of google.protobuf.Any */
    ANY_VALUE = 2,
    TIME_SECONDS = 1, /* of Timestamp and Duration */
    TIME_NANOS = 2,
    FIELD_MASK_PATHS = 1,
};

struct decoder {
    struct json_reader reader;
    struct buffer *out;
    struct buffer scratch; /* the string that was read last */
    unsigned depth;        /* levels of messages that may still come */
};

/* Where a value stands, for messages: "clusters[0].value.location". */
struct place {
    const struct place *outer; /* NULL: the request itself */
    const ProtobufCFieldDescriptor *field;
    int index; /* in a list; -1: none */
};

/* A value that is no message: as JSON has it, or as a URL does. */
struct scalar {
    enum json_kind kind;
    bytes text; /* unescaped, in the scratch buffer, if it is a string */
    bytes shown;
};

/* --- what is wrong --- */

static void write_place(const struct place *place, struct buffer *out)
{
    if (place->outer != NULL && place->outer->field != NULL) {
        write_place(place->outer, out);
        buffer_append_byte(out, '.');
    }
    buffer_append_bytes(out, bytes_of(place->field->name));
    if (place->index >= 0)
        buffer_append_format(out, "[%d]", place->index);
}

static status bad_json(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid JSON payload received. Unexpected token.");
}

static status too_deep(void)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid JSON payload received. Message too deep. Max recursion depth "
                       "reached for key.");
}

/* As much of it as goes into a message: whole characters. */
static int excerpt(bytes text)
{
    size_t size = text.size;
    if (size > MOST_EXCERPT)
        for (size = MOST_EXCERPT; size > 0 && (text.data[size] & 0xc0) == 0x80;)
            size--;
    return utf8_is_valid(bytes_make(text.data, size)) ? (int)size : 0;
}

static status unknown_name(bytes name, const struct place *place)
{
    struct buffer where = {0};
    if (place->field != NULL) {
        buffer_append(&where, " at '", 5);
        write_place(place, &where);
        buffer_append_byte(&where, '\'');
    }
    status s = status_make(STATUS_INVALID_ARGUMENT,
                           "Invalid JSON payload received. Unknown name \"%.*s\"%.*s: Cannot find "
                           "field.",
                           excerpt(name), (const char *)name.data, (int)where.size,
                           (const char *)where.data);
    buffer_free(&where);
    return s;
}

/* As Google's parser calls the type of a field. */
static const char *type_name(const ProtobufCFieldDescriptor *field)
{
    static const char *const names[] = {
        [PROTOBUF_C_TYPE_INT32] = "TYPE_INT32",       [PROTOBUF_C_TYPE_SINT32] = "TYPE_SINT32",
        [PROTOBUF_C_TYPE_SFIXED32] = "TYPE_SFIXED32", [PROTOBUF_C_TYPE_INT64] = "TYPE_INT64",
        [PROTOBUF_C_TYPE_SINT64] = "TYPE_SINT64",     [PROTOBUF_C_TYPE_SFIXED64] = "TYPE_SFIXED64",
        [PROTOBUF_C_TYPE_UINT32] = "TYPE_UINT32",     [PROTOBUF_C_TYPE_FIXED32] = "TYPE_FIXED32",
        [PROTOBUF_C_TYPE_UINT64] = "TYPE_UINT64",     [PROTOBUF_C_TYPE_FIXED64] = "TYPE_FIXED64",
        [PROTOBUF_C_TYPE_FLOAT] = "TYPE_FLOAT",       [PROTOBUF_C_TYPE_DOUBLE] = "TYPE_DOUBLE",
        [PROTOBUF_C_TYPE_BOOL] = "TYPE_BOOL",         [PROTOBUF_C_TYPE_STRING] = "TYPE_STRING",
        [PROTOBUF_C_TYPE_BYTES] = "TYPE_BYTES",
    };
    if (field->type == PROTOBUF_C_TYPE_ENUM)
        return ((const ProtobufCEnumDescriptor *)field->descriptor)->name;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return ((const ProtobufCMessageDescriptor *)field->descriptor)->name;
    return names[field->type];
}

static status bad_value(const struct place *place, bytes shown)
{
    const ProtobufCFieldDescriptor *field = place->field;
    if (field == NULL) /* the payload itself, asked for as an Any */
        return bad_json();
    bool is_named = field->type == PROTOBUF_C_TYPE_ENUM || field->type == PROTOBUF_C_TYPE_MESSAGE;
    struct buffer where = {0};
    write_place(place, &where);
    status s = status_make(STATUS_INVALID_ARGUMENT, "Invalid value at '%.*s' (%s%s), %.*s",
                           (int)where.size, (const char *)where.data,
                           is_named ? "type.googleapis.com/" : "", type_name(field), excerpt(shown),
                           (const char *)shown.data);
    buffer_free(&where);
    return s;
}

/* --- the wire format --- */

static void write_tag(struct decoder *decoder, uint32_t id, ProtobufCWireType type)
{
    buffer_append_varint(decoder->out, (uint64_t)id << 3 | type);
}

static void write_fixed(struct decoder *decoder, uint64_t value, size_t size)
{
    uint8_t little[sizeof value];
    for (size_t i = 0; i < size; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    buffer_append(decoder->out, little, size);
}

static void write_bytes(struct decoder *decoder, uint32_t id, bytes content)
{
    write_tag(decoder, id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_varint(decoder->out, content.size);
    buffer_append_bytes(decoder->out, content);
}

static void write_number(struct decoder *decoder, uint32_t id, uint64_t value)
{
    write_tag(decoder, id, PROTOBUF_C_WIRE_TYPE_VARINT);
    buffer_append_varint(decoder->out, value);
}

/* Between these two the nested message is written. */
static size_t begin_message(struct decoder *decoder, uint32_t id)
{
    write_tag(decoder, id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    buffer_append_byte(decoder->out, 0);
    return decoder->out->size;
}

static void end_message(struct decoder *decoder, size_t start)
{
    struct buffer *out = decoder->out;
    if (out->failed)
        return;
    size_t size = out->size - start, more = varint_size(size) - 1;
    if (buffer_reserve(out, more) == NULL && more > 0)
        return;
    memmove(out->data + start + more, out->data + start, size);
    varint_write(out->data + start - 1, size);
    out->size += more;
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
static bool read_integer(const struct scalar *from, int64_t least, uint64_t most, uint64_t *value)
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

static bool read_float(const struct scalar *from, double most, double *value)
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
static bool read_bool(const struct scalar *from, bool *value)
{
    char word[6] = "";
    if (from->kind == JSON_NUMBER || from->text.size >= sizeof word)
        return false;
    for (size_t i = 0; i < from->text.size; i++)
        word[i] = (char)(from->text.data[i] | 0x20);
    *value = strcmp(word, "true") == 0;
    return *value || strcmp(word, "false") == 0;
}

static bool read_enum(const struct scalar *from, const ProtobufCEnumDescriptor *type,
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

static bool write_integer(struct decoder *decoder, const ProtobufCFieldDescriptor *field,
                          const struct scalar *from)
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
        write_number(decoder, field->id, zigzag_encode((int64_t)value));
        break;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        write_tag(decoder, field->id, PROTOBUF_C_WIRE_TYPE_32BIT);
        write_fixed(decoder, value, sizeof(uint32_t));
        break;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        write_tag(decoder, field->id, PROTOBUF_C_WIRE_TYPE_64BIT);
        write_fixed(decoder, value, sizeof(uint64_t));
        break;
    default:
        write_number(decoder, field->id, value);
    }
    return true;
}

static bool write_float(struct decoder *decoder, const ProtobufCFieldDescriptor *field,
                        const struct scalar *from)
{
    double number;
    uint64_t bits = 0;
    bool is_float = field->type == PROTOBUF_C_TYPE_FLOAT;
    if (!read_float(from, is_float ? (double)3.4028234663852886e38f : HUGE_VAL, &number))
        return false;
    float narrow = (float)number;
    size_t size = is_float ? sizeof narrow : sizeof number;
    memcpy(&bits, is_float ? (void *)&narrow : (void *)&number, size);
    write_tag(decoder, field->id,
              is_float ? PROTOBUF_C_WIRE_TYPE_32BIT : PROTOBUF_C_WIRE_TYPE_64BIT);
    write_fixed(decoder, bits, size);
    return true;
}

static bool write_base64(struct decoder *decoder, uint32_t id, bytes text)
{
    size_t size, start = begin_message(decoder, id);
    uint8_t *to = buffer_reserve(decoder->out, base64_decoded_most(text.size));
    if (to == NULL)
        return true; /* `failed` tells */
    if (!base64_decode(text, to, &size))
        return false;
    decoder->out->size += size;
    end_message(decoder, start);
    return true;
}

/* False if the text is no value of the field's type, which is no message. */
static bool write_scalar(struct decoder *decoder, const ProtobufCFieldDescriptor *field,
                         const struct scalar *from)
{
    bool flag;
    uint64_t number;
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        if (!read_bool(from, &flag))
            return false;
        write_number(decoder, field->id, flag);
        return true;
    case PROTOBUF_C_TYPE_ENUM:
        if (!read_enum(from, field->descriptor, &number))
            return false;
        write_number(decoder, field->id, number);
        return true;
    case PROTOBUF_C_TYPE_STRING:
        if (from->kind != JSON_STRING)
            return false;
        write_bytes(decoder, field->id, from->text);
        return true;
    case PROTOBUF_C_TYPE_BYTES:
        return from->kind == JSON_STRING && write_base64(decoder, field->id, from->text);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return write_float(decoder, field, from);
    default:
        return write_integer(decoder, field, from);
    }
}

/* --- messages that stand as one scalar --- */

static bool write_time(struct decoder *decoder, enum json_form form, const struct scalar *from)
{
    int64_t seconds;
    int32_t nanos;
    if (from->kind != JSON_STRING)
        return false;
    if (!(form == FORM_TIMESTAMP ? json_parse_timestamp(from->text, &seconds, &nanos)
                                 : json_parse_duration(from->text, &seconds, &nanos)))
        return false;
    if (seconds != 0)
        write_number(decoder, TIME_SECONDS, (uint64_t)seconds);
    if (nanos != 0)
        write_number(decoder, TIME_NANOS, (uint64_t)(int64_t)nanos);
    return true;
}

/* One path of a mask, "gcRule.maxAge", as gc_rule.max_age. */
static void write_path(struct decoder *decoder, bytes path)
{
    size_t start = begin_message(decoder, FIELD_MASK_PATHS);
    for (size_t i = 0; i < path.size; i++) {
        uint8_t c = path.data[i];
        bool is_capital = c >= 'A' && c <= 'Z';
        if (is_capital)
            buffer_append_byte(decoder->out, '_');
        buffer_append_byte(decoder->out, is_capital ? c | 0x20 : c);
    }
    end_message(decoder, start);
}

static bool write_field_mask(struct decoder *decoder, const struct scalar *from)
{
    bytes left = from->text;
    if (from->kind != JSON_STRING)
        return false;
    while (left.size > 0) {
        const uint8_t *comma = memchr(left.data, ',', left.size);
        size_t size = comma == NULL ? left.size : (size_t)(comma - left.data);
        if (size > 0)
            write_path(decoder, bytes_make(left.data, size));
        left = bytes_from(left, comma == NULL ? size : size + 1);
    }
    return true;
}

static bool write_form(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                       const struct scalar *from)
{
    enum json_form form = json_form_of(type);
    switch (form) {
    case FORM_TIMESTAMP:
    case FORM_DURATION:
        return write_time(decoder, form, from);
    case FORM_FIELD_MASK:
        return write_field_mask(decoder, from);
    case FORM_WRAPPER:
        return write_scalar(decoder, protobuf_c_message_descriptor_get_field(type, WRAPPED), from);
    default:
        return false;
    }
}

static bool is_scalar_form(const ProtobufCMessageDescriptor *type)
{
    enum json_form form = json_form_of(type);
    return form != FORM_OBJECT && form != FORM_ANY;
}

/* --- values --- */

static status take_string(struct decoder *decoder, bytes *text)
{
    buffer_clear(&decoder->scratch);
    if (!json_unescape(*text, &decoder->scratch))
        return bad_json();
    if (decoder->scratch.failed)
        return status_out_of_memory();
    *text = buffer_bytes(&decoder->scratch);
    return status_ok();
}

static status take_scalar(struct decoder *decoder, struct scalar *out)
{
    const uint8_t *start = decoder->reader.at;
    out->kind = json_take_scalar(&decoder->reader, &out->text);
    if (out->kind == JSON_BAD)
        return bad_json();
    while (*start == ' ' || *start == '\t' || *start == '\n' || *start == '\r')
        start++;
    out->shown = bytes_make(start, (size_t)(decoder->reader.at - start));
    return out->kind == JSON_STRING ? take_string(decoder, &out->text) : status_ok();
}

static status decode_body(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                          const struct place *place);

/* The value that comes next is of another kind than its field. */
static status wrong_kind(struct decoder *decoder, const struct place *place)
{
    if (json_peek(&decoder->reader) == JSON_BAD)
        return bad_json();
    const uint8_t *start = decoder->reader.at;
    if (!json_skip(&decoder->reader, decoder->depth))
        return bad_json();
    return bad_value(place, bytes_make(start, (size_t)(decoder->reader.at - start)));
}

/* A scalar where the type wants one, an object where it wants that. */
static status decode_value(struct decoder *decoder, const struct place *place)
{
    const ProtobufCFieldDescriptor *field = place->field;
    const bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
    enum json_kind kind = json_peek(&decoder->reader);
    bool wants_object = is_message && !is_scalar_form(field->descriptor);
    if (wants_object != (kind == JSON_OBJECT) || kind == JSON_ARRAY)
        return wrong_kind(decoder, place);
    if (wants_object) {
        size_t start = begin_message(decoder, field->id);
        TRY(decode_body(decoder, field->descriptor, place));
        end_message(decoder, start);
        return status_ok();
    }
    struct scalar scalar;
    TRY(take_scalar(decoder, &scalar));
    if (!is_message)
        return write_scalar(decoder, field, &scalar) ? status_ok() : bad_value(place, scalar.shown);
    size_t start = begin_message(decoder, field->id);
    if (!write_form(decoder, field->descriptor, &scalar))
        return bad_value(place, scalar.shown);
    end_message(decoder, start);
    return status_ok();
}

static status decode_list(struct decoder *decoder, const struct place *place)
{
    struct place element = *place;
    if (!json_take(&decoder->reader, '['))
        return wrong_kind(decoder, place);
    if (json_take(&decoder->reader, ']'))
        return status_ok();
    do {
        element.index++;
        TRY(decode_value(decoder, &element));
    } while (json_take(&decoder->reader, ','));
    return json_take(&decoder->reader, ']') ? status_ok() : bad_json();
}

/* A name and its colon. `*name` is in the scratch buffer. */
static status take_name(struct decoder *decoder, struct scalar *name)
{
    if (json_peek(&decoder->reader) != JSON_STRING)
        return bad_json();
    TRY(take_scalar(decoder, name));
    return json_take(&decoder->reader, ':') ? status_ok() : bad_json();
}

static status decode_entry(struct decoder *decoder, const struct place *entry)
{
    const ProtobufCMessageDescriptor *type = entry->field->descriptor;
    const struct place key = {entry, protobuf_c_message_descriptor_get_field(type, 1), -1};
    const struct place value = {entry, protobuf_c_message_descriptor_get_field(type, 2), -1};
    struct scalar name;
    size_t start = begin_message(decoder, entry->field->id);
    TRY(take_name(decoder, &name));
    if (!write_scalar(decoder, key.field, &name))
        return bad_value(&key, name.shown);
    TRY(decode_value(decoder, &value));
    end_message(decoder, start);
    return status_ok();
}

static status decode_map(struct decoder *decoder, const struct place *place)
{
    struct place entry = *place;
    if (!json_take(&decoder->reader, '{'))
        return wrong_kind(decoder, place);
    if (json_take(&decoder->reader, '}'))
        return status_ok();
    do {
        entry.index++;
        TRY(decode_entry(decoder, &entry));
    } while (json_take(&decoder->reader, ','));
    return json_take(&decoder->reader, '}') ? status_ok() : bad_json();
}

/* --- objects --- */

/* Whether the key names the field: as it is written in the .proto file, or in lowerCamelCase. */
static bool is_called(const char *name, bytes key)
{
    if (bytes_equal(key, bytes_of(name)))
        return true;
    size_t i = 0;
    for (bool is_raised = false; *name != '\0'; name++) {
        if (*name == '_') {
            is_raised = true;
            continue;
        }
        char c = is_raised && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        if (i == key.size || key.data[i++] != (uint8_t)c)
            return false;
        is_raised = false;
    }
    return i == key.size;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type, bytes key)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (is_called(type->fields[i].name, key))
            return &type->fields[i];
    return NULL;
}

/* Which fields of an object have come. */
struct seen {
    bool fields[MOST_FIELDS];
};

static status note_field(struct seen *seen, const ProtobufCMessageDescriptor *type,
                         const struct place *place)
{
    const ProtobufCFieldDescriptor *field = place->field;
    unsigned index = (unsigned)(field - type->fields);
    CHECK(type->n_fields <= MOST_FIELDS);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &type->fields[i];
        bool excludes = i == index || (field->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
                                       field->quantifier_offset == other->quantifier_offset);
        if (!excludes || !seen->fields[i])
            continue;
        struct buffer where = {0};
        write_place(place, &where);
        status s = status_make(STATUS_INVALID_ARGUMENT,
                               "Invalid value at '%.*s' (oneof), field '%s' is already set. "
                               "Cannot set '%s'",
                               (int)where.size, (const char *)where.data, other->name, field->name);
        buffer_free(&where);
        return s;
    }
    seen->fields[index] = true;
    return status_ok();
}

static status decode_field(struct decoder *decoder, const struct place *place)
{
    if (json_is_map(place->field))
        return decode_map(decoder, place);
    if (place->field->label == PROTOBUF_C_LABEL_REPEATED)
        return decode_list(decoder, place);
    return decode_value(decoder, place);
}

static status decode_member(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                            struct seen *seen, const struct place *outer, bool is_any)
{
    struct scalar name, nothing;
    TRY(take_name(decoder, &name));
    if (is_any && bytes_equal(name.text, bytes_of("@type")))
        return json_skip(&decoder->reader, decoder->depth) ? status_ok() : bad_json();
    const struct place place = {outer, find_field(type, name.text), -1};
    if (place.field == NULL)
        return unknown_name(name.text, outer);
    if (json_peek(&decoder->reader) == JSON_NULL)
        return take_scalar(decoder, &nothing);
    TRY(note_field(seen, type, &place));
    return decode_field(decoder, &place);
}

static status decode_members(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                             const struct place *place, bool is_any)
{
    struct seen seen = {0};
    if (!json_take(&decoder->reader, '{'))
        return bad_json();
    if (json_take(&decoder->reader, '}'))
        return status_ok();
    do
        TRY(decode_member(decoder, type, &seen, place, is_any));
    while (json_take(&decoder->reader, ','));
    return json_take(&decoder->reader, '}') ? status_ok() : bad_json();
}

/* --- google.protobuf.Any --- */

/* The member of that name, wherever it stands in the object that comes next: moves there. */
static bool seek_member(struct decoder *decoder, struct json_reader *reader, const char *wanted)
{
    bytes name;
    if (!json_take(reader, '{'))
        return false;
    do {
        if (json_take_scalar(reader, &name) != JSON_STRING || !json_take(reader, ':'))
            return false;
        if (bytes_equal(name, bytes_of(wanted)))
            return true;
        if (!json_skip(reader, decoder->depth))
            return false;
    } while (json_take(reader, ','));
    return false;
}

/* {"@type": URL, "value": …}, for what has a form of its own. */
static status decode_any_form(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                              const struct place *place)
{
    struct scalar scalar;
    struct json_reader whole = decoder->reader;
    if (!seek_member(decoder, &decoder->reader, "value"))
        return bad_value(place, bytes_of("\"value\" is missing"));
    TRY(take_scalar(decoder, &scalar));
    if (!write_form(decoder, type, &scalar))
        return bad_value(place, scalar.shown);
    decoder->reader = whole;
    return json_skip(&decoder->reader, decoder->depth) ? status_ok() : bad_json();
}

static status decode_any(struct decoder *decoder, const struct place *place)
{
    bytes url;
    struct json_reader look = decoder->reader;
    if (!seek_member(decoder, &look, "@type") || json_take_scalar(&look, &url) != JSON_STRING)
        return bad_value(place, bytes_of("\"@type\" is missing"));
    TRY(take_string(decoder, &url));
    const ProtobufCMessageDescriptor *type = json_type_of_url(url);
    if (type == NULL || json_form_of(type) == FORM_ANY)
        return bad_value(place, url);
    write_bytes(decoder, ANY_TYPE_URL, url);
    size_t start = begin_message(decoder, ANY_VALUE);
    TRY(is_scalar_form(type) ? decode_any_form(decoder, type, place)
                             : decode_members(decoder, type, place, true));
    end_message(decoder, start);
    return status_ok();
}

static status decode_body(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                          const struct place *place)
{
    if (decoder->depth == 0)
        return too_deep();
    decoder->depth--;
    status s = json_form_of(type) == FORM_ANY ? decode_any(decoder, place)
                                              : decode_members(decoder, type, place, false);
    decoder->depth++;
    return s;
}

/* --- what others call --- */

static status check_end(struct decoder *decoder, status s)
{
    bool is_end =
        json_peek(&decoder->reader) == JSON_BAD && decoder->reader.at == decoder->reader.end;
    if (status_is_ok(s) && !is_end)
        s = bad_json();
    if (status_is_ok(s) && decoder->out->failed)
        s = status_out_of_memory();
    buffer_free(&decoder->scratch);
    return s;
}

static struct decoder decoder_of(bytes json, struct buffer *wire)
{
    static const uint8_t nothing[1];
    const uint8_t *start = json.size == 0 ? nothing : json.data;
    return (struct decoder){
        .reader = {start, start + json.size}, .out = wire, .depth = LIMIT_MESSAGE_DEPTH};
}

status json_decode(const ProtobufCMessageDescriptor *type, bytes json, struct buffer *wire)
{
    struct decoder decoder = decoder_of(json, wire);
    const struct place place = {NULL, NULL, -1};
    enum json_kind kind = json_peek(&decoder.reader);
    if (kind != JSON_BAD && kind != JSON_OBJECT)
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid JSON payload received. Unknown name "
                                                    "\"\": Root element must be a message.");
    return check_end(&decoder, decode_body(&decoder, type, &place));
}

status json_decode_field(const ProtobufCMessageDescriptor *type, const char *name, bytes json,
                         struct buffer *wire)
{
    struct decoder decoder = decoder_of(json, wire);
    const struct place outer = {NULL, NULL, -1};
    const struct place place = {&outer, find_field(type, bytes_of(name)), -1};
    if (place.field == NULL)
        return unknown_name(bytes_of(name), &outer);
    return check_end(&decoder, decode_field(&decoder, &place));
}

/* --- fields of a URL --- */

static status cannot_bind(bytes path)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid JSON payload received. Unknown name \"%.*s\": Cannot bind query "
                       "parameter. Field '%.*s' could not be found in request message.",
                       excerpt(path), (const char *)path.data, excerpt(path),
                       (const char *)path.data);
}

static bytes take_part(bytes *path)
{
    const uint8_t *dot = path->size == 0 ? NULL : memchr(path->data, '.', path->size);
    bytes part = bytes_make(path->data, dot == NULL ? path->size : (size_t)(dot - path->data));
    *path = bytes_from(*path, dot == NULL ? part.size : part.size + 1);
    return part;
}

status json_decode_text(const ProtobufCMessageDescriptor *type, bytes path, bytes text,
                        struct buffer *wire)
{
    struct decoder decoder = {.out = wire};
    struct place places[MOST_DOTS];
    size_t starts[MOST_DOTS], count = 0;
    const struct scalar value = {JSON_STRING, text, text};
    for (bytes left = path;; count++) {
        const ProtobufCFieldDescriptor *field = find_field(type, take_part(&left));
        if (field == NULL || count == MOST_DOTS || json_is_map(field))
            return cannot_bind(path);
        places[count] = (struct place){count == 0 ? NULL : &places[count - 1], field, -1};
        bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (left.size == 0) {
            if (is_message && !is_scalar_form(field->descriptor))
                return cannot_bind(path);
            break;
        }
        if (!is_message || field->label == PROTOBUF_C_LABEL_REPEATED)
            return cannot_bind(path);
        type = field->descriptor;
    }
    for (size_t i = 0; i < count; i++)
        starts[i] = begin_message(&decoder, places[i].field->id);
    const ProtobufCFieldDescriptor *last = places[count].field;
    bool is_fine;
    if (last->type == PROTOBUF_C_TYPE_MESSAGE) {
        size_t start = begin_message(&decoder, last->id);
        is_fine = write_form(&decoder, last->descriptor, &value);
        end_message(&decoder, start);
    } else {
        is_fine = write_scalar(&decoder, last, &value);
    }
    if (!is_fine)
        return bad_value(&places[count], text);
    for (size_t i = count; i-- > 0;)
        end_message(&decoder, starts[i]);
    return wire->failed ? status_out_of_memory() : status_ok();
}
