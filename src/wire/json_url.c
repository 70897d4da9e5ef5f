/* Fields of a message from the path and the query of a URL. See json.h. */
#include "wire/json_private.h"

enum { MOST_DOTS = 8 }; /* in the path of a field */

static bytes take_part(bytes *path)
{
    const uint8_t *dot = path->size == 0 ? NULL : memchr(path->data, '.', path->size);
    bytes part = bytes_make(path->data, dot == NULL ? path->size : (size_t)(dot - path->data));
    *path = bytes_from(*path, dot == NULL ? part.size : part.size + 1);
    return part;
}

/* The fields that the path leads through, up to one that may stand as a text. False: none. */
static bool find_path(const ProtobufCMessageDescriptor *type, bytes path,
                      struct json_place places[MOST_DOTS], size_t *count)
{
    for (size_t i = 0; i < MOST_DOTS; i++) {
        const ProtobufCFieldDescriptor *field = json_find_field(type, take_part(&path));
        if (field == NULL || json_is_map(field))
            return false;
        places[i] = (struct json_place){i == 0 ? NULL : &places[i - 1], field, -1};
        *count = i + 1;
        bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (path.size == 0)
            return !is_message || json_is_scalar_form(field->descriptor);
        if (!is_message || field->label == PROTOBUF_C_LABEL_REPEATED)
            return false;
        type = field->descriptor;
    }
    return false;
}

static bool write_field(struct buffer *wire, const ProtobufCFieldDescriptor *field, bytes text)
{
    const struct json_scalar value = {JSON_STRING, text, text};
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return json_write_scalar(wire, field, &value);
    size_t start = json_begin_message(wire, field->id);
    bool is_fine = json_write_form(wire, field->descriptor, &value);
    json_end_message(wire, start);
    return is_fine;
}

status json_decode_text(const ProtobufCMessageDescriptor *type, bytes path, bytes text,
                        struct buffer *wire)
{
    struct json_place places[MOST_DOTS];
    size_t starts[MOST_DOTS], count, outer;
    if (!find_path(type, path, places, &count))
        return json_cannot_bind(path);
    for (outer = 0; outer + 1 < count; outer++)
        starts[outer] = json_begin_message(wire, places[outer].field->id);
    if (!write_field(wire, places[outer].field, text))
        return json_bad_value(&places[outer], text);
    while (outer-- > 0)
        json_end_message(wire, starts[outer]);
    return wire->failed ? status_out_of_memory() : status_ok();
}
