/* Every limit in one place: the value, why, and what a client sees that goes beyond it.
 *
 * Settings that an operator may change (largest message, connections, streams) are in settings.def.
 * "API" marks limits of Bigtable's documentation, which applications rely on. */
#ifndef TRESTLE_BASE_LIMITS_H
#define TRESTLE_BASE_LIMITS_H

enum {
    LIMIT_KB = 1 << 10,
    LIMIT_MB = 1 << 20,
};

/* --- data (API); INVALID_ARGUMENT unless said otherwise --- */
enum {
    LIMIT_ROW_KEY_BYTES = 4 * LIMIT_KB, /* and at least 1 */
    LIMIT_FAMILY_NAME_BYTES = 64,       /* of [-_.a-zA-Z0-9] */
    LIMIT_QUALIFIER_BYTES = 16 * LIMIT_KB,
    LIMIT_CELL_BYTES = 100 * LIMIT_MB,
    LIMIT_ROW_BYTES = 256 * LIMIT_MB, /* on reading: FAILED_PRECONDITION with its ErrorInfo */
    LIMIT_MUTATIONS_A_REQUEST = 100000,
    LIMIT_FILTER_BYTES = 20480,
    LIMIT_FILTER_DEPTH = 20,
    LIMIT_GC_RULE_BYTES = 500,
    LIMIT_TABLE_ID_BYTES = 50,
    LIMIT_TABLES_AN_INSTANCE = 1000, /* RESOURCE_EXHAUSTED */
};

/* --- messages: decoding must cost no more than a message is worth. A packed message may unpack to
 * at most max-message; beyond: RESOURCE_EXHAUSTED. --- */
enum {
    /* The deepest legal request is a filter of depth 20, which is two or three messages a level.
     * Beyond: INVALID_ARGUMENT. Keeps a decoder's stack small. */
    LIMIT_MESSAGE_DEPTH = 100,
    /* Memory that a request may take, as a multiple of its size, plus a base: decoded structures of
     * tiny fields are larger than their bytes. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_ARENA_FACTOR = 4,
    LIMIT_ARENA_BASE_BYTES = 1 * LIMIT_MB,
};

/* --- connections: a bound on what one client can make us hold --- */
enum {
    /* Names and values of a request's headers. Google's clients send under 2 KB. Beyond: the stream
     * ends with RESOURCE_EXHAUSTED, or the connection with COMPRESSION_ERROR. */
    LIMIT_HEADER_LIST_BYTES = 64 * LIMIT_KB,
    /* Flow-control windows that we open for requests: enough for a 10 ms round trip at 100 MB/s
     * on one stream. The connection's bounds what all streams together may send ahead. */
    LIMIT_STREAM_WINDOW_BYTES = 1 * LIMIT_MB,
    LIMIT_CONNECTION_WINDOW_BYTES = 4 * LIMIT_MB,
    LIMIT_FRAME_BYTES = 64 * LIMIT_KB, /* largest frame we take; fewer, larger frames cost less */
    /* Output of one call that waits for the client. Above it the handler pauses. */
    LIMIT_CALL_OUTPUT_BYTES = 1 * LIMIT_MB,
    /* Output of one connection that waits for the socket. Above it no more frames are made. */
    LIMIT_CONNECTION_OUTPUT_BYTES = 256 * LIMIT_KB,
    /* Answers to a client's control frames (PING, SETTINGS) that wait. A client that sends without
     * reading them is flooding: the connection ends with ENHANCE_YOUR_CALM. */
    LIMIT_CONTROL_FRAMES = 10000,
    /* Streams that a client resets: gRPC clients reset on every cancel and every scan ended early.
     * Tokens for that many at once, and so many more a second. Beyond: ENHANCE_YOUR_CALM. Each
     * reset stream has cost us no more than a request that was served. */
    LIMIT_RESETS_AT_ONCE = 100000,
    LIMIT_RESETS_A_SECOND = 10000,
    /* From accepting a connection to knowing its protocol, TLS handshake included. Beyond: closed.
     */
    LIMIT_HANDSHAKE_SECONDS = 10,
    LIMIT_HTTP1_CONNECTIONS = 256, /* health checks and metrics need few */
};

/* --- the server --- */
enum {
    LIMIT_POOL_QUEUE = 10000,  /* tasks that wait for a thread. Beyond: RESOURCE_EXHAUSTED */
    LIMIT_ACCEPTS_A_TURN = 64, /* connections accepted before others are served again */
    LIMIT_COMMIT_QUEUE_BYTES = 64 * LIMIT_MB, /* mutations that wait. Beyond: RESOURCE_EXHAUSTED */
};

#endif
