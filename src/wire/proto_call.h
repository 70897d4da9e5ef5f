/* Messages of protobuf on calls: what grpc.h and proto.h do together. */
#ifndef TRESTLE_WIRE_PROTO_CALL_H
#define TRESTLE_WIRE_PROTO_CALL_H

#include "wire/grpc.h"
#include "wire/proto.h"

/* As grpc_call_send. */
static inline void grpc_call_send_proto(struct grpc_call *call, const ProtobufCMessage *message)
{
    struct buffer encoded = {0};
    grpc_message_start(&encoded);
    proto_encode_small(message, &encoded); /* as most are */
    grpc_call_send(call, &encoded);
}

/* The one message of a unary method, and its end. */
static inline void grpc_call_answer(struct grpc_call *call, const ProtobufCMessage *message)
{
    grpc_call_send_proto(call, message);
    grpc_call_finish(call, status_ok());
}

#endif
