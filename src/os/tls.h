/* TLS contexts: what all connections of one side share. OpenSSL 3; TLS 1.2 and 1.3; the protocols
 * offered and accepted by ALPN are h2 and http/1.1. */
#ifndef TRESTLE_OS_TLS_H
#define TRESTLE_OS_TLS_H

#include "base/status.h"

struct tls_context;

/* From PEM files: the certificate with its chain, and its private key. INVALID_ARGUMENT if they
 * cannot be read or do not belong together. */
status tls_server_create(const char *certificate_file, const char *key_file,
                         struct tls_context **out);

/* `authority_file`: PEM certificates that the server's must lead to; NULL: those of the system.
 * Offers h2 alone. */
status tls_client_create(const char *authority_file, struct tls_context **out);

void tls_context_destroy(struct tls_context *context); /* NULL is fine */

#endif
