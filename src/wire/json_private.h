/* What reading and writing JSON share (json.h says what for):
 *
 *     json_text.c     tokens: strings, numbers, where a value ends; escaping
 *     json_time.c     google.protobuf.Timestamp and Duration as text
 *     json_types.c    which message has which form, which field a name means
 *     json_scalar.c   values that are no objects, to the wire format
 *     json_decode.c   lists, maps and objects, to the wire format
 *     json_url.c      fields from a URL, to the wire format
 *     json_mistake.c  what is wrong with a text
 *     json_fields.c   which parts of a message are wanted
 *     json_encode.c   messages to JSON */
#ifndef TRESTLE_WIRE_JSON_PRIVATE_H
#define TRESTLE_WIRE_JSON_PRIVATE_H

#include "wire/json.h"
#include "wire/json_text.h"

/* --- json_time.c: seconds, and nanoseconds of the same sign; timestamps are in json.h --- */

bool json_parse_duration(bytes text, int64_t *seconds, int32_t *nanos);
void json_write_duration(int64_t seconds, int32_t nanos, struct buffer *out);

/* --- json_types.c: what reading and writing must agree upon --- */

/* Messages that have a form of their own in JSON. */
enum json_form {
    FORM_OBJECT,
    FORM_TIMESTAMP,
    FORM_DURATION,
    FORM_FIELD_MASK,
    FORM_WRAPPER, /* a field `value`, which stands there alone */
    FORM_ANY,
    FORM_STRUCT, /* these three stand for JSON itself; they are written alone, since no request has
                  */
    FORM_VALUE,  /* one */
    FORM_LIST,
};
enum json_form json_form_of(const ProtobufCMessageDescriptor *type);

/* Whether the field is null's own: null as a value says that it is set. */
bool json_is_null(const ProtobufCFieldDescriptor *field);

/* Whether the field is a map, which is an object in JSON. protobuf-c does not say so: it is a
 * repeated message with the name and the fields that protoc gives to a map's entries. */
bool json_is_map(const ProtobufCFieldDescriptor *field);

/* Whether the key names the field: as it is written in the .proto file, or in lowerCamelCase. */
bool json_is_called(const char *field, bytes key);

/* The field that the key names, or NULL. */
const ProtobufCFieldDescriptor *json_find_field(const ProtobufCMessageDescriptor *type, bytes key);

/* The type that the URL of an Any names; NULL if we have none of that name. */
const ProtobufCMessageDescriptor *json_type_of_url(bytes url);

/* --- json_fields.c --- */

/* A segment of a path, with those that may follow it. */
struct json_node {
    struct json_node *first;
    struct json_node *next;
    bytes name;
    bool is_whole; /* a path ends here: all of it is wanted */
};

/* NULL: everything is wanted. */
const struct json_node *json_fields_root(const struct json_fields *fields);

/* Whether the field, or the entry of a map, is wanted where `*node` stands. If so, that moves on to
 * it. */
bool json_wants_field(const struct json_node **node, const char *name);
bool json_wants_key(const struct json_node **node, bytes key);

/* --- json_scalar.c --- */

/* A value that is no object: as JSON has it, or as a URL does. */
struct json_scalar {
    enum json_kind kind;
    bytes text;  /* unescaped, if it is a string */
    bytes shown; /* in a message about it */
};

/* Appends the field; false if the text is no value of its type, which is no message. */
bool json_write_scalar(struct buffer *wire, const ProtobufCFieldDescriptor *field,
                       const struct json_scalar *from);

/* Appends the fields of a message that stands as one scalar; false if it is none of that type. */
bool json_write_form(struct buffer *wire, const ProtobufCMessageDescriptor *type,
                     const struct json_scalar *from);
bool json_is_scalar_form(const ProtobufCMessageDescriptor *type);

void json_write_bytes(struct buffer *wire, uint32_t id, bytes content);

/* Between these two the nested message is written. Its length is known only then: one byte is left
 * for it, and what was written moves up if it needs more. */
size_t json_begin_message(struct buffer *wire, uint32_t id);
void json_end_message(struct buffer *wire, size_t start);

/* --- json_mistake.c: all of them INVALID_ARGUMENT --- */

/* Where a value stands, for messages: "clusters[0].value.location". */
struct json_place {
    const struct json_place *outer; /* NULL: the request itself */
    const ProtobufCFieldDescriptor *field;
    int index; /* in a list; -1: none */
};

status json_bad_text(void);
status json_too_deep(void);
status json_bad_value(const struct json_place *place, bytes shown);
status json_unknown_name(bytes name, const struct json_place *place);
status json_repeated_key(bytes key, const struct json_place *place);
status json_already_set(const struct json_place *place, const char *other);
status json_cannot_bind(bytes path);

#endif
