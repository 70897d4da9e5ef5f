/* Protobuf messages, from bytes and to bytes.
 *
 * The structs and descriptors are protobuf-c's (proto/); decoding is ours, because protobuf-c
 * trusts its input: nested messages overflow its stack, unknown fields cost 40 times their size,
 * strings end at a NUL and may be anything.
 *
 * What decoding promises
 *  1. Memory is the arena's, never more than its limit. Unknown fields cost none.
 *  2. Nesting is at most LIMIT_MESSAGE_DEPTH deep, and so is the decoder's recursion.
 *  3. A string is valid UTF-8 without a NUL in it. A `bytes` field points into the wire bytes,
 *     which must outlive the message.
 *  4. As in Google's parsers, the last of several occurrences of a field counts, of a oneof's
 *     members too; sub-messages that occur several times merge; a field of an unexpected wire type
 *     counts as unknown; repeated scalars may come packed or not. Groups are refused.
 *  5. What is a message may be absent: its pointer is then NULL, also a map entry's value. */
#ifndef TRESTLE_WIRE_PROTO_H
#define TRESTLE_WIRE_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

/* INVALID_ARGUMENT if the bytes are no such message, naming the field where one is to blame.
 * RESOURCE_EXHAUSTED if it does not fit into the arena. `*out` is then NULL.
 *
 * (gRPC's own libraries answer INTERNAL to what they cannot parse. But the cause is the request,
 * sending it again is no use, and INTERNAL is what operators are woken for.) */
status proto_decode(const ProtobufCMessageDescriptor *type, bytes wire, struct arena *arena,
                    ProtobufCMessage **out);

/* The text of one field, found without decoding the rest: `path` has the numbers of `depth` fields,
 * each but the last a message. `*value` points into the wire bytes, and is left alone if the field
 * is not there. What it finds is what proto_decode would find. False if the bytes are malformed. */
bool proto_peek(bytes wire, const uint32_t *path, size_t depth, bytes *value);

/* --- fields, by descriptor --- */

/* Bytes that a value of this type takes in its struct or array. */
size_t proto_value_size(ProtobufCType type);

/* Makes the field of `target` what it is in `source`, a message of the same type; what it points to
 * is then shared. NULL for `source`: as in a message in which nothing is set. */
void proto_copy_field(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *source,
                      ProtobufCMessage *target);

/* The message in a singular field; NULL if it is not set. */
ProtobufCMessage *proto_sub_message(const ProtobufCFieldDescriptor *field,
                                    const ProtobufCMessage *message);

/* The same, set to an empty message of the arena if it is not set; NULL without memory. */
ProtobufCMessage *proto_set_sub_message(const ProtobufCFieldDescriptor *field,
                                        ProtobufCMessage *message, struct arena *arena);

/* --- encoding --- */

/* Appends the message to the buffer, whose `failed` says whether there was memory for it. */
void proto_encode(const ProtobufCMessage *message, struct buffer *out);

/* The same bytes, in about a third of the time if they are 4 KB at most. */
void proto_encode_small(const ProtobufCMessage *message, struct buffer *out);
/* The same in the arena; without memory its data is NULL. */
bytes proto_encode_in(struct arena *arena, const ProtobufCMessage *message);

/* Makes a message in `arena`, by its INIT macro, for building an answer; leaves the calling
 * function, which returns a status, without memory. */
#define PROTO_NEW(arena, variable, ...)                                                            \
    do {                                                                                           \
        (variable) = arena_alloc((arena), sizeof *(variable));                                     \
        if ((variable) == NULL)                                                                    \
            return status_out_of_memory();                                                         \
        *(variable) = (__typeof__(*(variable)))__VA_ARGS__;                                        \
    } while (0)

static inline bytes proto_bytes(ProtobufCBinaryData data)
{
    return bytes_make(data.data, data.len);
}

/* For a message that is only going to be encoded: protobuf-c has no const bytes. */
static inline ProtobufCBinaryData proto_data(bytes b)
{
    union {
        const uint8_t *given;
        uint8_t *wanted;
    } pointer = {.given = b.data};
    return (ProtobufCBinaryData){.len = b.size, .data = pointer.wanted};
}

#endif
