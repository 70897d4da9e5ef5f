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
    /* The most that Google's clients in Go and Java receive. A row whose message would be larger
     * comes in several. */
    LIMIT_ROW_MESSAGE_BYTES = 256 * LIMIT_MB,
    LIMIT_MUTATIONS_A_REQUEST = 100000,
    LIMIT_IDEMPOTENCY_TOKEN_LEAST_BYTES = 8,
    /* How long after the first attempt a write with a token may be repeated; a request that says
     * that it began earlier: FAILED_PRECONDITION. */
    LIMIT_IDEMPOTENCY_SECONDS = 15 * 60,
    LIMIT_FILTER_BYTES = 20480,
    LIMIT_FILTER_DEPTH = 20,
    LIMIT_GC_RULE_BYTES = 500,
    LIMIT_TABLE_ID_BYTES = 50,
    LIMIT_TABLES_AN_INSTANCE = 1000, /* RESOURCE_EXHAUSTED */
    LIMIT_INSTANCE_ID_BYTES = 33,
    LIMIT_CLUSTER_ID_BYTES = 63,  /* documented are 30; Google's own suites use 31 and 37 */
    LIMIT_RESOURCE_ID_BYTES = 50, /* app profiles, authorized views, schema bundles, backups */
    LIMIT_VIEW_ID_BYTES = 128,    /* of logical and materialized views */
    LIMIT_VIEWS_A_TABLE = 5,
    LIMIT_LABELS_AN_INSTANCE = 64,
    LIMIT_VIEW_PARAMETERS = 100, /* of an authorized view: prefixes and qualifiers together */
    /* What a materialized view selects of a source row at most, and what may come of one: beyond
     * it the row is left out of the view. */
    LIMIT_VIEW_ROW_BYTES = LIMIT_MB,
};

/* --- Datastore's data (API); INVALID_ARGUMENT --- */
enum {
    LIMIT_DS_LOOKUP_KEYS = 1000,
    LIMIT_DS_DATABASES = 1000,         /* that are open */
    LIMIT_DS_TRANSACTIONS = 10000,     /* that have not ended */
    LIMIT_DS_KEY_BYTES = 6 * LIMIT_KB, /* as Datastore counts: 16, the namespace, its elements */
    LIMIT_DS_PATH_ELEMENTS = 100,
    LIMIT_DS_NAME_BYTES = 1500, /* kinds, names in keys, properties' names and paths */
    LIMIT_DS_PARTITION_BYTES = 100,
    LIMIT_DS_INDEXED_BYTES = 1500,
    LIMIT_DS_VALUE_BYTES = 1048487,
    LIMIT_DS_ENTITY_BYTES = 1048572,
    LIMIT_DS_NESTED_ENTITIES = 20,
    LIMIT_DS_TRANSFORMS = 500,               /* of one entity in a commit */
    LIMIT_DS_INDEX_ENTRIES = 20000,          /* indexed values and composite rows */
    LIMIT_DS_COMPOSITE_BYTES = 2 * LIMIT_MB, /* the row keys of an entity's composite rows */
    LIMIT_DS_COMPOSITE_INDEXES = 200,        /* of a database */
    LIMIT_DS_INDEX_PROPERTIES = 100,
    LIMIT_DS_QUERY_PROPERTIES = 100, /* projected, ordered by, distinct on, filtered by */
    LIMIT_DS_DISJUNCTIONS = 30,      /* of a query's filter in disjunctive normal form */
    LIMIT_DS_IN_VALUES = 30,
    LIMIT_DS_NOT_IN_VALUES = 10,
    LIMIT_DS_AGGREGATIONS = 5,
    LIMIT_DS_TTL_FIELDS = 200,
    LIMIT_DS_STATISTICS_BYTES = 16 * LIMIT_MB,
    LIMIT_DS_NEAREST = 100, /* results of find_nearest */
    LIMIT_DS_VECTOR_DIMENSIONS = 2048,
    LIMIT_DS_NEAREST_BYTES = 10 * LIMIT_MB, /* of those results, which come at once */
};

/* --- messages: decoding must cost no more than a message is worth. A packed message may unpack to
 * at most max-message; beyond: RESOURCE_EXHAUSTED. --- */
enum {
    /* The deepest legal request is a filter of depth 20, which is two or three messages a level.
     * Beyond: INVALID_ARGUMENT. Keeps a decoder's stack small. */
    LIMIT_MESSAGE_DEPTH = 100,
    /* Memory that a call may take from its arena: a base, and a multiple of the request's size up
     * to so much more. A row of one small mutation takes 30 bytes in a request and about 1 KB
     * in the arena. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_ARENA_BASE_BYTES = 1 * LIMIT_MB,
    LIMIT_ARENA_FACTOR = 64,
    LIMIT_ARENA_EXTRA_BYTES = 512 * LIMIT_MB,
    /* The same for administrative calls, whose answers may be larger than their requests: a list of
     * 10,000 backups takes some 10 MB. */
    LIMIT_ARENA_ADMIN_BYTES = 128 * LIMIT_MB,
    /* And for Datastore's, whose answers may have a thousand entities. */
    LIMIT_ARENA_DATASTORE_BYTES = 256 * LIMIT_MB,
};

/* --- connections: a bound on what one client can make us hold --- */
enum {
    /* Names and values of a call's headers, and 32 a field, as HTTP/2 counts; and their number.
     * Google's clients send under 2 KB. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_HEADER_LIST_BYTES = 16 * LIMIT_KB,
    LIMIT_METADATA_FIELDS = 64,
    /* A header block that unpacks to more is an attack (HPACK bomb): the connection ends. */
    LIMIT_HEADER_BOMB_BYTES = 256 * LIMIT_KB,
    LIMIT_CONTINUATION_FRAMES = 8,
    /* Streams that a connection remembers after they have closed, a byte each, to tell a client
     * what it may not send on them any more: those of the last few round trips. */
    LIMIT_STREAMS_REMEMBERED = 1024,
    /* The most that a stream may send before its message has been admitted: most messages in one
     * flight, while 1,000 streams of it stay bounded; with less than 1 GB a quarter of it. An
     * admitted long message may fill the connection's window: enough for a 16 ms round trip at 1
     * GB/s. */
    LIMIT_STREAM_WINDOW_BYTES = 256 * LIMIT_KB,
    LIMIT_CONNECTION_WINDOW_BYTES = 16 * LIMIT_MB,
    /* Request messages that one connection holds, arrived or promised. A message that would pass
     * it waits: its stream gets no more window until other calls have ended. */
    LIMIT_BUFFERED_REQUEST_BYTES = 512 * LIMIT_MB,
    /* Calls that one connection keeps at work, as a multiple of its streams: a client that resets
     * streams while their handlers run opens more than it may have. Beyond: REFUSED_STREAM. */
    LIMIT_CALLS_A_STREAM = 2,
    /* Output of one call that waits for the client. Above it the handler pauses. A call gets an
     * equal share, within these bounds, of what its connection may have at the time it begins: a
     * client that reads none of 1,000 scans holds some 20 MB, and a message of each. (What the
     * socket holds is not counted, and covers the round trip.) */
    LIMIT_CALL_OUTPUT_BYTES = 128 * LIMIT_KB,
    LIMIT_CALL_OUTPUT_LEAST_BYTES = 16 * LIMIT_KB,
    LIMIT_CALLS_OUTPUT_BYTES = 2 * LIMIT_MB,
    /* The same for a bidirectional call, which cannot pause. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_BIDI_OUTPUT_BYTES = 4 * LIMIT_MB,
    /* Output of one connection that has been framed for the socket. Above it no more frames are
     * made until that is written. */
    LIMIT_CONNECTION_OUTPUT_BYTES = 256 * LIMIT_KB,
    /* Frames that wait for a client that does not read, and those among them that answer PING and
     * SETTINGS. Beyond: the connection is dropped. */
    LIMIT_QUEUED_FRAMES = 10000,
    LIMIT_QUEUED_ACKS = 1000,
    /* Calls that a loop keeps for reuse: some 6 KB each, 20 KB after a longer request. */
    LIMIT_SPARE_CALLS = 128,
    /* Memory for output of connections that a loop keeps for the next one's: 65 KB each. */
    LIMIT_SPARE_BATCHES = 4,
    /* Memory of HTTP/2 sessions' small objects that a loop keeps for the next: for 1,000 calls. */
    LIMIT_H2_KEPT_BYTES = 1 * LIMIT_MB,
    /* Connections that may end before a loop frees all of that: each leaves a piece or two in a
     * page of its own, and 10,000 of them held 40 MB. */
    LIMIT_SPARES_CONNECTIONS = 64,
    /* Nuisances, which no working client makes often: resetting streams before their request is
     * whole, frames that say nothing, SETTINGS, streams refused. So many at once, and so many more
     * a second. Beyond: ENHANCE_YOUR_CALM. (Resetting a call that runs is common, at the end of
     * each scan that stops early, and is not counted: LIMIT_CALLS_A_STREAM bounds it.) */
    LIMIT_NUISANCES_AT_ONCE = 2000,
    LIMIT_NUISANCES_A_SECOND = 100,
    /* A client that neither reads what waits for it nor sends the rest of its request for so long
     * loses the call; if nothing of the connection's output can be written, the connection. Within
     * a message that is made as it is sent, for which a state of the data is held, it has a fifth
     * of that. */
    LIMIT_STALL_SECONDS = 300,
    /* A client that does not go on within a large value for so long lets go of it for those that
     * wait for room for theirs: far longer than a round trip. */
    LIMIT_VALUE_IDLE_MS = 1000,
    /* A status's message is cut, and its details are left out, where they are longer: clients
     * refuse headers of more than 8 KB. */
    LIMIT_STATUS_MESSAGE_BYTES = 1 * LIMIT_KB,
    LIMIT_STATUS_DETAILS_BYTES = 4 * LIMIT_KB,
    /* From accepting a connection to knowing its protocol, TLS handshake included. Beyond: closed.
     */
    LIMIT_HANDSHAKE_SECONDS = 10,
    /* Connections beyond max-connections, and beyond the places of HTTP/1.1, for peers on loopback:
     * health checks, metrics and administration of a server that is full. Calls for data have no
     * place there. And how long one stays that is not used. */
    LIMIT_RESERVED_CONNECTIONS = 16,
    LIMIT_RESERVED_IDLE_SECONDS = 10,
    LIMIT_HTTP1_CONNECTIONS = 256, /* health checks, metrics and REST need few */
    LIMIT_HTTP1_IDLE_SECONDS = 60, /* also for a request that does not get on. Beyond: closed */
    /* A request's body: 48 MB of cells in base64. Beyond: 413, or closed if it has not said so
     * before. And those of all requests together. Beyond: closed. */
    LIMIT_HTTP_BODY_BYTES = 64 * LIMIT_MB,
    LIMIT_HTTP1_BODIES_BYTES = 256 * LIMIT_MB,
    /* Of people at the console, beyond which the one that was used least lately ends; how long one
     * lasts that is not used, and how long at most. Beyond: the login page. */
    LIMIT_CONSOLE_SESSIONS = 256,
    LIMIT_CONSOLE_IDLE_SECONDS = 60 * 60,
    LIMIT_CONSOLE_SESSION_SECONDS = 12 * 60 * 60,
    LIMIT_CONSOLE_TOKEN_BYTES = 8 * LIMIT_KB, /* to log in with. Beyond: 401 */
};

/* --- the server --- */
enum {
    LIMIT_POOL_QUEUE = 10000, /* tasks that wait for a thread. Beyond: RESOURCE_EXHAUSTED */
    /* Handshakes of TLS that are refused, in the log: lines a second of each event loop. Beyond:
     * counted. */
    LIMIT_TLS_REFUSALS_A_SECOND = 5,
    LIMIT_ACCEPTS_A_TURN = 64, /* connections accepted before others are served again */
    /* Mutations that wait: about a second of what a fast disk takes, and more than the largest
     * single request. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_COMMIT_QUEUE_BYTES = 512 * LIMIT_MB,
    /* A batch of mutations that takes longer: the store holds writes back, or the disk does not
     * answer. Until it is over: UNAVAILABLE, before clients give up by themselves (20 s). */
    LIMIT_COMMIT_STALL_SECONDS = 10,
    /* Ranges of rows that were dropped, of a table, whose space is not given back yet: some hundred
     * bytes each, and a step more for all that folds and reads their keys. Beyond: the call waits
     * until the oldest have been, and if that does not come, UNAVAILABLE. */
    LIMIT_ROW_DROPS = 1000,
    /* Idempotency tokens that are remembered: 7,000 new ones a second, 21 to 43 bytes each. Beyond:
     * RESOURCE_EXHAUSTED. */
    LIMIT_IDEMPOTENCY_TOKENS = 8 << 20,
    /* Change streams that are read at a time (calls of ReadChangeStream), of a server: some 60 KB
     * each, and a look at its log for each heartbeat. Beyond: RESOURCE_EXHAUSTED. */
    LIMIT_CHANGE_STREAMS = 4000,
    /* Deleted tables that are kept to be undeleted, in all: each costs a start, and the making of a
     * table, what one that stands does. Beyond: the oldest go before their time. */
    LIMIT_DELETED_TABLES = 1000,
    /* Administrative calls that are remembered to be looked at, some 200 bytes each, 3 KB at most.
     * Beyond: the audit log alone has them. */
    LIMIT_AUDIT_ENTRIES = 1000,
    /* Of a period of audit-data: what each principal did with which table, 200 bytes each. Beyond:
     * they are one line. */
    LIMIT_DATA_SUMS = 4096,
    /* Requests whose spans wait for the collector: 792 bytes each, with what is within them.
     * Beyond: dropped, and counted. */
    LIMIT_SPANS_QUEUED = 8192,
    /* Slow requests that are described in a second: each takes time of its loop.
     * Beyond: counted. And of what size, and with how much memory. Beyond: by their size. The texts
     * kept of one: its resource's name and its plan. Beyond: cut. */
    LIMIT_SLOW_REQUESTS_A_SECOND = 20,
    LIMIT_SLOW_DESCRIBED_BYTES = 256 * LIMIT_KB,
    LIMIT_SLOW_ARENA_BYTES = 16 * LIMIT_MB,
    LIMIT_SLOW_NAME_BYTES = 512,
    LIMIT_SLOW_PLAN_BYTES = 16 * LIMIT_KB,
    /* App profiles that requests are counted by, each method on its own: 3 KB for each method that
     * it is used with. A power of two. Beyond: they count as "other". */
    LIMIT_PROFILE_METRICS = 64,
    /* Tables that metrics tell of by name. Beyond: together, as "other". */
    LIMIT_TABLE_METRICS = 100,
};

/* --- places of backups and of the archive; INVALID_ARGUMENT --- */
enum {
    LIMIT_PLACE_PART = 240,  /* of a name: a file's has 255 on most file systems */
    LIMIT_PLACE_NAME = 1000, /* an object's in a bucket has 1,024, with the place's own prefix */
};

/* --- the archive --- */
enum {
    /* A piece is put when there is so much for it, or when what waits is so old: so much is lost
     * with the disk, and so many objects there are. */
    LIMIT_ARCHIVE_SEGMENT_BYTES = 16 * LIMIT_MB,
    LIMIT_ARCHIVE_SEGMENT_SECONDS = 10,
    /* Pieces that expire between two looks at what is to be archived. */
    LIMIT_ARCHIVE_EXPIRED_AT_ONCE = 1000,
};

#endif
