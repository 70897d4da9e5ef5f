/* One connection's TLS, for stream.c. */
#ifndef TRESTLE_OS_TLS_PRIVATE_H
#define TRESTLE_OS_TLS_PRIVATE_H

#include "os/stream.h"

#include <openssl/ssl.h>

/* NULL without memory. `host`: see stream_connect; NULL on the server's side. */
SSL *tls_session_create(struct tls_context *context, int socket, const char *host);

/* The result of an OpenSSL call on the session that returned `returned` (<= 0). `*interest` is set
 * if it is STREAM_BLOCKED. */
enum stream_result tls_session_result(SSL *session, int returned, uint32_t *interest);

/* The subject of the peer's certificate, see stream_peer_subject; NULL if it has none, or without
 * memory. */
char *tls_peer_subject(struct tls_context *context, SSL *session);

/* See stream_peer_is_fellow. */
bool tls_peer_is_fellow(struct tls_context *context, SSL *session);

/* Why the session failed, as words. True if it is for what the other side said, false if it only
 * went. */
bool tls_describe_failure(SSL *session, char *words, size_t size, enum stream_mismatch *mismatch);

#endif
