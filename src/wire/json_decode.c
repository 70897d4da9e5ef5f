/* JSON to the wire format: lists, maps, objects. See json.h. */
#include "wire/json_private.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/varint.h"

#include <stdlib.h>

enum {
    MOST_FIELDS = 64, /* of a message */
    ANY_TYPE_URL = 1, /* of google.protobuf.Any */
    ANY_VALUE = 2,
};

struct decoder {
    struct json_reader reader;
    struct buffer *out;
    struct buffer scratch; /* the string that was read last */
    unsigned depth;        /* levels of messages that may still come */
};

/* --- values --- */

static status take_string(struct decoder *decoder, bytes *text)
{
    buffer_clear(&decoder->scratch);
    if (!json_unescape(*text, &decoder->scratch))
        return json_bad_text();
    if (decoder->scratch.failed)
        return status_out_of_memory();
    *text = buffer_bytes(&decoder->scratch);
    return status_ok();
}

static status take_scalar(struct decoder *decoder, struct json_scalar *out)
{
    const uint8_t *start = decoder->reader.at;
    out->kind = json_take_scalar(&decoder->reader, &out->text);
    if (out->kind == JSON_BAD)
        return json_bad_text();
    while (*start == ' ' || *start == '\t' || *start == '\n' || *start == '\r')
        start++;
    out->shown = bytes_make(start, (size_t)(decoder->reader.at - start));
    return out->kind == JSON_STRING ? take_string(decoder, &out->text) : status_ok();
}

static status decode_body(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                          const struct json_place *place);

/* The value that comes next is of another kind than its field. */
static status wrong_kind(struct decoder *decoder, const struct json_place *place)
{
    if (json_peek(&decoder->reader) == JSON_BAD)
        return json_bad_text();
    const uint8_t *start = decoder->reader.at;
    if (!json_skip(&decoder->reader, decoder->depth))
        return json_bad_text();
    return json_bad_value(place, bytes_make(start, (size_t)(decoder->reader.at - start)));
}

/* A scalar where the type wants one, an object where it wants that. */
static status decode_value(struct decoder *decoder, const struct json_place *place)
{
    const ProtobufCFieldDescriptor *field = place->field;
    const bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
    enum json_kind kind = json_peek(&decoder->reader);
    bool wants_object = is_message && !json_is_scalar_form(field->descriptor);
    if (wants_object != (kind == JSON_OBJECT) || kind == JSON_ARRAY)
        return wrong_kind(decoder, place);
    if (wants_object) {
        size_t start = json_begin_message(decoder->out, field->id);
        TRY(decode_body(decoder, field->descriptor, place));
        json_end_message(decoder->out, start);
        return status_ok();
    }
    struct json_scalar scalar;
    TRY(take_scalar(decoder, &scalar));
    if (!is_message)
        return json_write_scalar(decoder->out, field, &scalar)
                   ? status_ok()
                   : json_bad_value(place, scalar.shown);
    size_t start = json_begin_message(decoder->out, field->id);
    if (!json_write_form(decoder->out, field->descriptor, &scalar))
        return json_bad_value(place, scalar.shown);
    json_end_message(decoder->out, start);
    return status_ok();
}

static status decode_list(struct decoder *decoder, const struct json_place *place)
{
    struct json_place element = *place;
    if (!json_take(&decoder->reader, '['))
        return wrong_kind(decoder, place);
    if (json_take(&decoder->reader, ']'))
        return status_ok();
    do {
        element.index++;
        TRY(decode_value(decoder, &element));
    } while (json_take(&decoder->reader, ','));
    return json_take(&decoder->reader, ']') ? status_ok() : json_bad_text();
}

/* A name and its colon. `*name` is in the scratch buffer. */
static status take_name(struct decoder *decoder, struct json_scalar *name)
{
    if (json_peek(&decoder->reader) != JSON_STRING)
        return json_bad_text();
    TRY(take_scalar(decoder, name));
    return json_take(&decoder->reader, ':') ? status_ok() : json_bad_text();
}

static status decode_entry(struct decoder *decoder, const struct json_place *entry)
{
    const ProtobufCMessageDescriptor *type = entry->field->descriptor;
    const struct json_place key = {entry, protobuf_c_message_descriptor_get_field(type, 1), -1};
    const struct json_place value = {entry, protobuf_c_message_descriptor_get_field(type, 2), -1};
    struct json_scalar name = {0};
    size_t start = json_begin_message(decoder->out, entry->field->id);
    TRY(take_name(decoder, &name));
    if (!json_write_scalar(decoder->out, key.field, &name))
        return json_bad_value(&key, name.shown);
    TRY(decode_value(decoder, &value));
    json_end_message(decoder->out, start);
    return status_ok();
}

static bytes take_sized(const uint8_t **at, const uint8_t *end)
{
    uint64_t tag, size = 0;
    const uint8_t *content = varint_read(*at, end, &tag);
    if (content != NULL)
        content = varint_read(content, end, &size);
    CHECK(content != NULL); /* it is what we have written */
    *at = content + size;
    return bytes_make(content, size);
}

static int compare_keys(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* Refuses a key that comes twice. The map has been written from `start` on, and each entry begins
 * with its key, a string in all maps that Google's interfaces have. */
static status check_keys(const struct decoder *decoder, const struct json_place *place,
                         size_t start, size_t count)
{
    const struct buffer *wire = decoder->out;
    status s = status_ok();
    bytes *keys = wire->failed ? NULL : malloc(count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    const uint8_t *at = wire->data + start, *end = wire->data + wire->size;
    for (size_t i = 0; i < count; i++) {
        bytes entry = take_sized(&at, end);
        keys[i] = take_sized(&entry.data, end);
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count && status_is_ok(s); i++)
        if (bytes_equal(keys[i - 1], keys[i]))
            s = json_repeated_key(keys[i], place);
    free(keys);
    return s;
}

static status decode_map(struct decoder *decoder, const struct json_place *place)
{
    struct json_place entry = *place;
    if (!json_take(&decoder->reader, '{'))
        return wrong_kind(decoder, place);
    if (json_take(&decoder->reader, '}'))
        return status_ok();
    size_t start = decoder->out->size;
    do {
        entry.index++;
        TRY(decode_entry(decoder, &entry));
    } while (json_take(&decoder->reader, ','));
    if (!json_take(&decoder->reader, '}'))
        return json_bad_text();
    return check_keys(decoder, place, start, (size_t)entry.index + 1);
}

/* --- objects --- */

/* Which fields of an object have come. */
struct seen {
    bool fields[MOST_FIELDS];
};

static status note_field(struct seen *seen, const ProtobufCMessageDescriptor *type,
                         const struct json_place *place)
{
    const ProtobufCFieldDescriptor *field = place->field;
    unsigned index = (unsigned)(field - type->fields);
    CHECK(type->n_fields <= MOST_FIELDS);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &type->fields[i];
        bool excludes = i == index || (field->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
                                       field->quantifier_offset == other->quantifier_offset);
        if (excludes && seen->fields[i])
            return json_already_set(place, other->name);
    }
    seen->fields[index] = true;
    return status_ok();
}

static status decode_field(struct decoder *decoder, const struct json_place *place)
{
    if (json_is_map(place->field))
        return decode_map(decoder, place);
    if (place->field->label == PROTOBUF_C_LABEL_REPEATED)
        return decode_list(decoder, place);
    return decode_value(decoder, place);
}

static status decode_member(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                            struct seen *seen, const struct json_place *outer, bool is_any)
{
    struct json_scalar name = {0}, nothing;
    TRY(take_name(decoder, &name));
    if (is_any && bytes_equal(name.text, bytes_of("@type")))
        return json_skip(&decoder->reader, decoder->depth) ? status_ok() : json_bad_text();
    const struct json_place place = {outer, json_find_field(type, name.text), -1};
    if (place.field == NULL)
        return json_unknown_name(name.text, outer);
    if (json_peek(&decoder->reader) == JSON_NULL && !json_is_null(place.field))
        return take_scalar(decoder, &nothing);
    TRY(note_field(seen, type, &place));
    return decode_field(decoder, &place);
}

static status decode_members(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                             const struct json_place *place, bool is_any)
{
    struct seen seen = {0};
    if (!json_take(&decoder->reader, '{'))
        return json_bad_text();
    if (json_take(&decoder->reader, '}'))
        return status_ok();
    do
        TRY(decode_member(decoder, type, &seen, place, is_any));
    while (json_take(&decoder->reader, ','));
    return json_take(&decoder->reader, '}') ? status_ok() : json_bad_text();
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
                              const struct json_place *place)
{
    struct json_scalar scalar;
    struct json_reader whole = decoder->reader;
    if (!seek_member(decoder, &decoder->reader, "value"))
        return json_bad_value(place, bytes_of("\"value\" is missing"));
    TRY(take_scalar(decoder, &scalar));
    if (!json_write_form(decoder->out, type, &scalar))
        return json_bad_value(place, scalar.shown);
    decoder->reader = whole;
    return json_skip(&decoder->reader, decoder->depth) ? status_ok() : json_bad_text();
}

static status decode_any(struct decoder *decoder, const struct json_place *place)
{
    bytes url;
    struct json_reader look = decoder->reader;
    if (!seek_member(decoder, &look, "@type") || json_take_scalar(&look, &url) != JSON_STRING)
        return json_bad_value(place, bytes_of("\"@type\" is missing"));
    TRY(take_string(decoder, &url));
    const ProtobufCMessageDescriptor *type = json_type_of_url(url);
    if (type == NULL || json_form_of(type) == FORM_ANY)
        return json_bad_value(place, url);
    json_write_bytes(decoder->out, ANY_TYPE_URL, url);
    size_t start = json_begin_message(decoder->out, ANY_VALUE);
    TRY(json_is_scalar_form(type) ? decode_any_form(decoder, type, place)
                                  : decode_members(decoder, type, place, true));
    json_end_message(decoder->out, start);
    return status_ok();
}

static status decode_body(struct decoder *decoder, const ProtobufCMessageDescriptor *type,
                          const struct json_place *place)
{
    if (decoder->depth == 0)
        return json_too_deep();
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
        s = json_bad_text();
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
    const struct json_place place = {NULL, NULL, -1};
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
    const struct json_place outer = {NULL, NULL, -1};
    const struct json_place place = {&outer, json_find_field(type, bytes_of(name)), -1};
    if (place.field == NULL)
        return json_unknown_name(bytes_of(name), &outer);
    return check_end(&decoder, decode_field(&decoder, &place));
}
