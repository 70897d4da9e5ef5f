/* gRPC as a service sees it: calls, messages, statuses.
 *
 * A service is a table of methods. The connection (wire/grpc_server.h) decodes HTTP/2, checks what
 * came against the table, and calls the method's handler on its event loop's thread with one whole
 * request message. The handler answers on any thread, now or later:
 *
 *     grpc_call_send(call, message)   none, one, or for a streaming method any number;
 *                                     grpc_call_announce and its pieces for a very large one
 *     grpc_call_finish(call, status)  exactly once, and after it the call is not touched again
 *
 * Invariants
 *  1. A call lives until the handler's side calls grpc_call_finish, even if the client has gone:
 *     cancellation only sets a flag and calls on_cancel. A handler may thus keep the pointer
 *     without counting references.
 *  2. send and finish may be called on any one thread at a time. From outside the call's loop they
 *     post to it; order is kept.
 *  3. Nothing here blocks. Output waits in the call under flow control; a streaming handler stops
 *     when grpc_call_is_congested says so and goes on when on_writable is called. */
#ifndef TRESTLE_WIRE_GRPC_H
#define TRESTLE_WIRE_GRPC_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

struct grpc_call;
struct loop;

/* The handler of a GRPC_BIDI method is called for each message as it comes, and then once with
 * request.data == NULL, for the client has said all or has gone: it must then finish the call. It
 * sends its answers before it returns; a message is valid only until then. (An empty message has
 * data != NULL.) */
enum grpc_method_kind { GRPC_UNARY, GRPC_SERVER_STREAMING, GRPC_BIDI };

typedef void grpc_handler(void *context, struct grpc_call *call, bytes request);

struct grpc_method {
    const char *name; /* "MutateRow" */
    enum grpc_method_kind kind;
    grpc_handler *handle; /* `request` stays valid until the call is finished */
};

/* Methods that clients know but that are not in the table answer UNIMPLEMENTED. */
struct grpc_service {
    const char *name; /* "google.bigtable.v2.Bigtable" */
    const struct grpc_method *methods;
    size_t method_count;
    void *context; /* handed to each handler */
    bool is_data;  /* has no place on connections that are kept for operators */
    const struct ProtobufCServiceDescriptor *rest; /* REST serves it as well; NULL: it does not */
};

/* --- what a handler may ask and do; thread rules as in the head --- */

/* Memory that lives as long as the call. Its limit is a multiple of the request's size. */
struct arena *grpc_call_arena(struct grpc_call *call);

/* The loop whose thread runs the handler and the callbacks. */
struct loop *grpc_call_loop(struct grpc_call *call);

/* A request header's value ("bigtable-features"), base64-decoded, into the call's arena, if the
 * name (in lower case) ends in -bin; the first if there are several. Valid as long as the call.
 * False if absent or not base64. Loop thread only, and not while another thread uses the arena. */
bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value);

/* When its headers came, in clock_steady_us: before a delay that was put in its way. */
int64_t grpc_call_begun_us(const struct grpc_call *call);

/* Tells the connections of a server apart. Any thread. */
uint64_t grpc_call_connection(const struct grpc_call *call);

/* What grpc_connection_set_peer (wire/grpc_server.h) was given for the call's connection; NULL: it
 * has gone. Loop thread only. */
void *grpc_call_peer(const struct grpc_call *call);

/* In clock_steady_us; INT64_MAX without one. When it passes the call is cancelled by itself. */
int64_t grpc_call_deadline_us(const struct grpc_call *call);

/* Whether the client has gone, cancelled, or the deadline has passed. Any thread. */
bool grpc_call_is_cancelled(const struct grpc_call *call);

/* Sets what the server's `admit` (wire/grpc_server.h) has found out about the call, or NULL. */
void grpc_call_set_note(struct grpc_call *call, const void *note);
const void *grpc_call_note(const struct grpc_call *call);

/* Which of its app profiles the request names ("": none), for the server's observer; the text lives
 * as long as the call, as its message does. Before the call is finished, on the loop's thread. */
void grpc_call_set_profile(struct grpc_call *call, const char *id);

/* Puts the call's request before the server's `admit` once more, as a handler does that answers for
 * long: the caller's rights may have changed. What is not OK is to end the call. Not for
 * bidirectional methods, of which each message is admitted. Loop thread only. */
status grpc_call_admit_again(struct grpc_call *call);

/* What is told of the call when it has ended (wire/grpc_server.h), all before grpc_call_finish and
 * on the thread that calls it: how many rows, entities or the like it has answered or written, and
 * how many it has looked at for that. */
void grpc_call_count(struct grpc_call *call, int64_t items, int64_t seen);

/* Whether it has taken so long, without the time that the client is to blame for, that the operator
 * will want to know why. */
bool grpc_call_is_slow(const struct grpc_call *call);

/* The call has had nothing to do for so long, as one that waits for something to tell of: it was
 * not slow for that. Loop thread only. */
void grpc_call_rested(struct grpc_call *call, int64_t us);

/* Says what the call did, in words, where the request does not. They live as long as the call. */
void grpc_call_explain(struct grpc_call *call, bytes words);

/* Takes the buffer's memory, whatever comes; `message` is empty afterwards. The buffer must have
 * been started with grpc_message_start, which leaves room before the message for gRPC's 5-byte
 * prefix and for the link of the queue it waits in, so that nothing is copied or allocated. A
 * buffer that has `failed` turns into a RESOURCE_EXHAUSTED end of the call. */
void grpc_call_send(struct grpc_call *call, struct buffer *message);
enum { GRPC_PREFIX_SIZE = 24 }; /* the size of a buffer with an empty message */
void grpc_message_start(struct buffer *message);

/* A message that is too large to be made at once. grpc_call_announce says how large it is, and then
 * its body comes in pieces that add up to just that, with no other message before the last of them.
 * It is not compressed.
 *
 * What the client has of it when the call ends before (a deadline, a cancellation, a failure) is no
 * message, and a status behind it would not be looked at: the stream is reset, with the code that
 * gRPC takes for the status. So ends a call whose client takes nothing of it for a fifth of the
 * time that others may wait, since a message is of one state of the data, which is held for it:
 * ABORTED. */
void grpc_call_announce(struct grpc_call *call, uint32_t body_size);
/* As grpc_call_send, of a buffer that was started with grpc_piece_start; not empty. */
void grpc_call_send_piece(struct grpc_call *call, struct buffer *piece);
enum { GRPC_PIECE_SIZE = 19 }; /* the size of a buffer with an empty piece */
void grpc_piece_start(struct buffer *piece);

/* Whether the client keeps each message until it has been dealt with, and so would rather have many
 * than a large one: our own REST. Any thread. */
bool grpc_call_wants_small_messages(const struct grpc_call *call);

/* Has `rescue` asked, on the loop's thread, if the call's handler ends it with UNAVAILABLE and its
 * client has been sent nothing: true, and who was asked has the call as a handler has it. What the
 * handler has set and added is forgotten, and its status is gone. Once, of a call that nobody has
 * yet. Loop thread only. */
void grpc_call_set_rescue(struct grpc_call *call, void *context,
                          bool (*rescue)(void *context, struct grpc_call *call));

/* Ends the call; takes the status. Adds trailers, and grpc-status-details-bin where the status has
 * details. */
void grpc_call_finish(struct grpc_call *call, status s);

/* Adds metadata to the initial headers (before the first send) or to the trailers; the name in
 * lower case, the value base64-encoded if the name ends in -bin. Copied; left out without memory.
 * Loop thread only. */
void grpc_call_add_header(struct grpc_call *call, const char *name, bytes value);
void grpc_call_add_trailer(struct grpc_call *call, const char *name, bytes value);

/* Header fields that many calls have, made ready once: they cost a call a byte or two each. */
struct grpc_field {
    const char *name;
    bytes value;
};
/* NULL without memory. */
struct metadata *grpc_headers_create(const struct grpc_field *fields, size_t count);
void grpc_headers_destroy(struct metadata *headers); /* NULL is fine */
/* As grpc_call_add_header with each; GRPC_SHARED_MOST times a call. They must outlive the server.
 */
enum { GRPC_SHARED_MOST = 2 };
void grpc_call_share_headers(struct grpc_call *call, const struct metadata *headers);
/* As grpc_call_add_trailer with each, once a call; left out of an answer that is trailers alone,
 * where what is shared as headers is said in the same place. */
void grpc_call_share_trailers(struct grpc_call *call, const struct metadata *trailers);

/* --- requests that are not gRPC's: the option `http` of wire/grpc_server.h --- */

/* All headers, and with them `:method` if it is not POST, and `:path`; `:authority` as `host`. Loop
 * thread only. */
void grpc_call_visit_headers(const struct grpc_call *call, void *context,
                             void (*each)(void *context, bytes name, bytes value));

/* Instead of grpc_call_send: says status, content type (a literal, or NULL) and Cache-Control (the
 * same; NULL: it may not be kept), once and before all; then adds bytes to the body. Further
 * headers are those of grpc_call_add_header, each value as it is, from the thread that answers.
 * grpc_call_finish ends it: the status is only looked at for whether it is OK, and if not the
 * client sees the stream reset, or 503 for want of an answer. */
void grpc_call_answer_http(struct grpc_call *call, unsigned code, const char *content_type,
                           const char *caching);
void grpc_call_send_http(struct grpc_call *call, bytes body);

/* --- */

/* Whether more than a window's worth of output waits (the threshold is in base/limits.h). Any
 * thread; on another than the loop's, on_writable may come before this has returned true. */
bool grpc_call_is_congested(struct grpc_call *call);

/* Callbacks, run on the loop's thread; either may be NULL. `on_writable` is called once each time
 * the output falls under the threshold after grpc_call_is_congested was true; `on_cancel` at most
 * once, also if the call was cancelled already when it was set, but never after finish. Loop
 * thread only. */
void grpc_call_set_callbacks(struct grpc_call *call, void *context,
                             void (*on_writable)(void *context), void (*on_cancel)(void *context));

/* `on_drain` is called once, with the context of the callbacks, when the client is asked to leave,
 * as at the server's end, or now if it has been: a call that would last for as long as its client
 * wants is to end then. Loop thread only. */
void grpc_call_set_on_drain(struct grpc_call *call, void (*on_drain)(void *context));

#endif
