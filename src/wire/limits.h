/* The limits of the wire: what a peer may make us hold or do, and what it sees beyond.
 *
 * Those of struct grpc_server_options are defaults; the others are fixed. */
#ifndef TRESTLE_WIRE_LIMITS_H
#define TRESTLE_WIRE_LIMITS_H

enum grpc_limits {
    /* A row may have 256 MiB; the client sees RESOURCE_EXHAUSTED before a longer message is read.
     */
    GRPC_MAX_MESSAGE_SIZE = 256 << 20,

    /* Request messages that a connection holds, arrived or promised. A message that would pass it
     * waits: its stream gets no more flow-control credit until others have been answered. */
    GRPC_MAX_BUFFERED_REQUESTS = 512 << 20,

    /* What a stream may send before its message has been admitted: most messages in one flight,
     * and 1,000 streams of it stay bounded. */
    GRPC_STREAM_WINDOW = 256 << 10,

    /* A long message's stream, and all streams together. At 10 Gbit/s this covers 13 ms. */
    GRPC_CONNECTION_WINDOW = 16 << 20,

    GRPC_MAX_CONCURRENT_STREAMS = 1000, /* the client queues, or sees REFUSED_STREAM */

    /* Calls a connection may have at work, those included that the client has reset while their
     * handler runs. What opens more by resetting sees REFUSED_STREAM. */
    GRPC_MAX_CALLS = 2 * GRPC_MAX_CONCURRENT_STREAMS,

    /* Names, values and 32 bytes a field, as HTTP/2 counts; RESOURCE_EXHAUSTED. */
    GRPC_MAX_HEADER_LIST = 16 << 10,
    GRPC_MAX_METADATA = 64, /* request headers that a handler may ask for; RESOURCE_EXHAUSTED */

    /* A header block that unpacks to more than this closes the connection (HPACK bomb). */
    GRPC_HEADER_BOMB = 16 * GRPC_MAX_HEADER_LIST,
    GRPC_MAX_CONTINUATIONS = 8,

    /* Things no working client does often: streams reset before their request was whole, refused
     * streams, DATA frames of no bytes, SETTINGS. A bucket with so many tokens, refilled so fast;
     * when it is empty, GOAWAY with ENHANCE_YOUR_CALM. */
    GRPC_NUISANCE_BURST = 2000,
    GRPC_NUISANCE_RATE = 100,

    /* Frames nghttp2 may hold for a peer that does not read; then the connection is dropped. */
    GRPC_MAX_QUEUED_FRAMES = 10000,
    GRPC_MAX_QUEUED_ACKS = 1000, /* of which answers to PING and SETTINGS */

    /* A call with more unsent output than this is congested. */
    GRPC_CONGESTED_SIZE = 256 << 10,

    /* A bidirectional call whose client sends on without reading so many answers ends with
     * RESOURCE_EXHAUSTED. */
    GRPC_MAX_UNREAD_ANSWERS = 4 << 20,

    /* A call's arena: so much, and so many bytes for each of the request's (protobuf's structs are
     * larger than its wire form), up to so much more. */
    GRPC_ARENA_BASE = 1 << 20,
    GRPC_ARENA_FACTOR = 16,
    GRPC_ARENA_EXTRA = 512 << 20,

    /* Smaller messages are not worth compressing. */
    GRPC_COMPRESS_FROM = 1024,

    GRPC_MAX_STATUS_MESSAGE =
        1024, /* bytes of grpc-message before percent-encoding; the rest is cut */
    GRPC_MAX_STATUS_DETAILS = 4096, /* of google.rpc.Status; left out beyond */
};

/* Without reading or sending for so long, a peer loses the call, or the connection. */
#define GRPC_STALL_TIMEOUT_US ((int64_t)300 * 1000 * 1000)

#endif
