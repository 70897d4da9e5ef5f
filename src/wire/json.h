/* Protobuf messages as JSON: proto3's mapping, by protobuf-c's descriptors.
 *
 * JSON becomes the wire format at once, and no message is built in between: what is appended later
 * to the same bytes overrides, or merges, as it does in protobuf. So a request's query, body and
 * path can each be appended in turn.
 *
 * Reading takes what Google's does: names in lowerCamelCase or as in the .proto file; enums by name
 * or number; numbers as strings and the other way round; bytes in either alphabet of base64; null
 * for what is absent. A key that comes twice, in a message or in a map, two members of a oneof, and
 * names that the type does not have are refused. Memory is a small multiple of the text's size, and
 * nesting is bounded by LIMIT_MESSAGE_DEPTH. */
#ifndef TRESTLE_WIRE_JSON_H
#define TRESTLE_WIRE_JSON_H

#include "wire/proto.h"

/* Appends the message that the JSON object stands for. INVALID_ARGUMENT, in Google's words, if it
 * stands for none. (Without memory `wire->failed` says so.) */
status json_decode(const ProtobufCMessageDescriptor *type, bytes json, struct buffer *wire);

/* The same for a value of the field that `path` names ("cluster"), with the field around it. A
 * mistake's place is told from the message, "cluster.location". INVALID_ARGUMENT also if there is
 * no such field. */
status json_decode_field(const ProtobufCMessageDescriptor *type, const char *name, bytes json,
                         struct buffer *wire);

/* Appends the field that a path leads to ("gcRule.maxNumVersions"), from its value as plain text:
 * how fields stand in the query or the path of a URL. A repeated field gets one more element. */
status json_decode_text(const ProtobufCMessageDescriptor *type, bytes path, bytes text,
                        struct buffer *wire);

/* The parts of a message that are wanted, as the parameter `fields` of a request says it:
 * "name,clusterStates(replicationState),columnFamilies/f/gcRule". */
struct json_fields;

/* INVALID_ARGUMENT, in Google's words, if a path leads nowhere. */
status json_fields_parse(const ProtobufCMessageDescriptor *type, bytes text,
                         struct json_fields **out);
void json_fields_destroy(struct json_fields *fields); /* NULL is fine */

struct json_style {
    bool compact;      /* on one line; otherwise indented by two blanks, as Google's */
    bool enum_numbers; /* not names */
    unsigned level;    /* of indentation, for what is part of something larger */
    const struct json_fields *fields; /* of the message's type; NULL: all */
};

/* Appends the message as JSON, fields with their default value left out. `out->failed` says
 * whether there was memory for it. */
void json_encode(const ProtobufCMessage *message, const struct json_style *style,
                 struct buffer *out);

/* Appends a string with its quotes; it must be UTF-8. */
void json_encode_string(bytes text, struct buffer *out);

/* The same of any bytes, for people to read: in what is not UTF-8, those beyond ASCII are shown as
 * \xNN. */
void json_encode_shown(bytes text, struct buffer *out);

/* --- times (RFC 3339), in seconds since 1970 and nanoseconds --- */

/* False if the text is none of the years 1 to 9999. */
bool json_parse_timestamp(bytes text, int64_t *seconds, int32_t *nanos);
/* With quotes; with as many decimals, in threes, as there are. */
void json_write_timestamp(int64_t seconds, int32_t nanos, struct buffer *out);

#endif
