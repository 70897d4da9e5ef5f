/* TLS contexts: what all connections of one side share. OpenSSL 3; TLS 1.2 and 1.3; the protocols
 * offered and accepted by ALPN are h2 and http/1.1. */
#ifndef TRESTLE_OS_TLS_H
#define TRESTLE_OS_TLS_H

#include "base/status.h"

struct tls_context;

/* PEM files of a server. The strings must live only during the call. */
struct tls_server_files {
    const char *certificate; /* the certificate with its chain */
    const char *key;
    const char *client_authority; /* certificates that clients' must lead to; NULL: none are asked
                                   * for */
    bool client_required; /* with these, a client without a certificate gets no connection */
    /* Certificates that those of fellow servers must lead to, which are clients, too; NULL: there
     * are none. Nobody else needs to have one. */
    const char *fellow_authority;
};

/* INVALID_ARGUMENT if the files cannot be read or do not belong together. */
status tls_server_create(const struct tls_server_files *files, struct tls_context **out);

/* Reads the certificate with its key again, or the authorities, for connections that begin from now
 * on; those that exist keep what they have. Neither looks at the other's files. On failure, as
 * above, all stays as it was. One thread at a time. */
status tls_server_reload_identity(struct tls_context *context,
                                  const struct tls_server_files *files);
status tls_server_reload_authorities(struct tls_context *context,
                                     const struct tls_server_files *files);

/* When the certificate became valid and when it ends, in microseconds since 1970; of a chain's,
 * those of the one that ends first. False if that cannot be told. Any thread. */
bool tls_server_validity(struct tls_context *context, int64_t *from_us, int64_t *to_us);

/* What the server shows clients. The subject is as in stream_peer_subject; both are cut to fit. */
struct tls_certificate {
    char subject[256];
    char serial[64]; /* hexadecimal */
    int64_t to_us;   /* when it ends, in microseconds since 1970 */
};

/* False if that cannot be told. Any thread. */
bool tls_server_certificate(struct tls_context *context, struct tls_certificate *out);

/* Calls `visit` with each authority that clients' certificates may lead to. Any thread. */
void tls_server_authorities(struct tls_context *context,
                            void (*visit)(void *context, const struct tls_certificate *authority),
                            void *visit_context);

/* `authority_file`: PEM certificates that the server's must lead to; NULL: those of the system.
 * Offers h2 alone. */
status tls_client_create(const char *authority_file, struct tls_context **out);

/* The same of a client that shows a certificate. The strings must live only during the call. */
struct tls_client_files {
    const char *authority;   /* as above */
    const char *certificate; /* its own, with its chain; NULL: it shows none */
    const char *key;         /* of that */
};
status tls_client_create_known(const struct tls_client_files *files, struct tls_context **out);

void tls_context_destroy(struct tls_context *context); /* NULL is fine */

#endif
