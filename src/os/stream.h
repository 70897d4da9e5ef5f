/* A byte stream over a non-blocking socket, plain or TLS.
 *
 * No call blocks. A call that cannot go on says STREAM_BLOCKED, and stream_read_interest or
 * stream_write_interest then says what to wait for (a TLS read may have to wait for output, and the
 * other way round). A stream that has ended or failed stays so.
 *
 * One thread at a time. */
#ifndef TRESTLE_OS_STREAM_H
#define TRESTLE_OS_STREAM_H

#include "os/address.h"
#include "os/tls.h"

#include <sys/uio.h>

struct stream;

enum stream_result {
    STREAM_OK,
    STREAM_BLOCKED,
    STREAM_ENDED,  /* reading only: the peer has sent all it will send */
    STREAM_FAILED, /* stream_failure says why */
};

/* Take the socket, which is closed with the stream, also if they fail. `tls` may be NULL: plain;
 * it must outlive the stream. */
status stream_accepted(int socket, struct tls_context *tls, struct stream **out);

/* Begins to connect. `host`: the name that the server's certificate must have; unused if plain. */
status stream_connect(const struct address *address, struct tls_context *tls, const char *host,
                      struct stream **out);

/* Sends what TLS owes its peer, if the socket takes it, and closes. NULL is fine. */
void stream_close(struct stream *stream);

int stream_socket(const struct stream *stream); /* for watching */

/* After the handshake: the subject of the certificate that the peer has shown and that was found
 * good, in the form of RFC 2253 ("CN=alice,O=Example"), to be freed; NULL if there is none. Of a
 * server's stream one that leads to the authorities of its clients. */
char *stream_peer_subject(const struct stream *stream);

/* After the handshake, of a server's stream: whether the peer has shown a certificate of a fellow
 * server (tls_server_files.fellow_authority). False of a plain one. */
bool stream_peer_is_fellow(const struct stream *stream);

/* Reads and writes finish the handshake themselves. A server calls this first to know the protocol
 * before any byte comes: "h2", "http/1.1", or "" if none was agreed upon, or the stream is plain.
 */
enum stream_result stream_handshake(struct stream *stream);
const char *stream_protocol(const struct stream *stream);

/* `*done` gets the bytes moved, at least 1 if STREAM_OK (and there was one to move), else 0. Parts
 * need not be written whole. After STREAM_BLOCKED the next write begins with the same bytes. */
enum stream_result stream_read(struct stream *stream, void *to, size_t size, size_t *done);
enum stream_result stream_write(struct stream *stream, const struct iovec *parts, int count,
                                size_t *done);

/* Whether bytes wait inside, of which the socket will not tell: read on before waiting. */
bool stream_has_pending(const struct stream *stream);

/* Tells the peer that nothing more will be written. Reading goes on. */
enum stream_result stream_end_writing(struct stream *stream);

/* EPOLLIN or EPOLLOUT: what the last blocked read, write or handshake waits for. */
uint32_t stream_read_interest(const struct stream *stream);
uint32_t stream_write_interest(const struct stream *stream);

status stream_failure(const struct stream *stream);

/* Whether it has failed for what the other side said in TLS, or instead of it: not if it went. */
bool stream_is_refused(const struct stream *stream);

/* How the two sides of a failed stream do not fit together, for words that say what to set. */
enum stream_mismatch {
    STREAM_NO_MISMATCH,       /* none that is known */
    STREAM_NOT_TLS,           /* the other side does not speak TLS */
    STREAM_SAID_NOTHING,      /* it read what TLS begins with, and went: a write met its end */
    STREAM_UNKNOWN_AUTHORITY, /* its certificate leads to no trusted authority */
    STREAM_OTHER_NAME,        /* it has another name than it was called by */
};
enum stream_mismatch stream_mismatch(const struct stream *stream);

#endif
