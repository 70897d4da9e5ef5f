/* OpenSSL contexts and sessions: see tls.h. */
#include "os/tls_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct tls_context {
    SSL_CTX *ssl;
};

/* ALPN's form: each name after its length; what we prefer comes first. gRPC's clients offer h2
 * alone. Who offers both is a browser, a probe or a REST client, and wants pages, which we serve by
 * HTTP/1.1. */
static const unsigned char both_protocols[] = "\x08http/1.1\x02h2";
static const unsigned char h2_only[] = "\x02h2";

static status openssl_status(const char *what, const char *name)
{
    unsigned long error = ERR_peek_error(); /* the first: later ones say what came of it */
    const char *reason = ERR_SYSTEM_ERROR(error) ? strerrordesc_np(ERR_GET_REASON(error))
                                                 : ERR_reason_error_string(error);
    status s = status_make(STATUS_INVALID_ARGUMENT, "%s %s: %s", what, name,
                           reason == NULL ? "unknown error" : reason);
    ERR_clear_error();
    return s;
}

static status context_create(const SSL_METHOD *method, struct tls_context **out)
{
    *out = NULL;
    struct tls_context *context = malloc(sizeof *context);
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (context == NULL || ssl == NULL) {
        free(context);
        SSL_CTX_free(ssl);
        ERR_clear_error();
        return status_out_of_memory();
    }
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    /* An end without TLS's goodbye is an end: HTTP's own framing shows what was cut short. */
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                 SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    *context = (struct tls_context){.ssl = ssl};
    *out = context;
    return status_ok();
}

void tls_context_destroy(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

/* A client that offers protocols of which we speak none is told so; one that offers none at all
 * never gets here. */
static int choose_protocol(SSL *session, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *offered, unsigned offered_size, void *context)
{
    (void)session;
    (void)context;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_size, both_protocols, sizeof both_protocols - 1, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static status load_identity(SSL_CTX *ssl, const char *certificate_file, const char *key_file)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, certificate_file) != 1)
        return openssl_status("cannot use certificate", certificate_file);
    if (SSL_CTX_use_PrivateKey_file(ssl, key_file, SSL_FILETYPE_PEM) != 1)
        return openssl_status("cannot use key", key_file);
    if (SSL_CTX_check_private_key(ssl) != 1) /* keys of another type come as far as here */
        return openssl_status("not the certificate's key:", key_file);
    return status_ok();
}

status tls_server_create(const char *certificate_file, const char *key_file,
                         struct tls_context **out)
{
    TRY(context_create(TLS_server_method(), out));
    SSL_CTX *ssl = (*out)->ssl;
    SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    status s = load_identity(ssl, certificate_file, key_file);
    if (!status_is_ok(s)) {
        tls_context_destroy(*out);
        *out = NULL;
    }
    return s;
}

static status trust(SSL_CTX *ssl, const char *authority_file)
{
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (authority_file == NULL ? SSL_CTX_set_default_verify_paths(ssl) != 1
                               : SSL_CTX_load_verify_file(ssl, authority_file) != 1)
        return openssl_status("cannot use authorities",
                              authority_file == NULL ? "of the system" : authority_file);
    if (SSL_CTX_set_alpn_protos(ssl, h2_only, sizeof h2_only - 1) != 0)
        return status_out_of_memory();
    return status_ok();
}

status tls_client_create(const char *authority_file, struct tls_context **out)
{
    TRY(context_create(TLS_client_method(), out));
    status s = trust((*out)->ssl, authority_file);
    if (!status_is_ok(s)) {
        tls_context_destroy(*out);
        *out = NULL;
    }
    return s;
}

/* --- sessions --- */

/* A host is a name, sent and checked, or an address, only checked. */
static bool expect_host(SSL *session, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1)
        return true;
    ERR_clear_error();
    char name[TLSEXT_MAXLEN_host_name + 1]; /* OpenSSL's macro wants it not const */
    snprintf(name, sizeof name, "%s", host);
    return SSL_set1_host(session, host) == 1 && SSL_set_tlsext_host_name(session, name) == 1;
}

SSL *tls_session_create(struct tls_context *context, int socket, const char *host)
{
    SSL *session = SSL_new(context->ssl);
    if (session == NULL || SSL_set_fd(session, socket) != 1 ||
        (host != NULL && !expect_host(session, host))) {
        SSL_free(session);
        ERR_clear_error();
        return NULL;
    }
    if (host == NULL)
        SSL_set_accept_state(session);
    else
        SSL_set_connect_state(session);
    return session;
}

enum stream_result tls_session_result(SSL *session, int returned, uint32_t *interest)
{
    switch (SSL_get_error(session, returned)) {
    case SSL_ERROR_WANT_READ:
        *interest = EPOLLIN;
        return STREAM_BLOCKED;
    case SSL_ERROR_WANT_WRITE:
        *interest = EPOLLOUT;
        return STREAM_BLOCKED;
    case SSL_ERROR_ZERO_RETURN:
        return STREAM_ENDED;
    default:
        return STREAM_FAILED;
    }
}

void tls_describe_failure(SSL *session, char *words, size_t size)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = error == 0 ? strerrordesc_np(errno) : ERR_reason_error_string(error);
    long verified = SSL_get_verify_result(session);
    if (verified != X509_V_OK)
        reason = X509_verify_cert_error_string(verified);
    snprintf(words, size, "TLS: %s", reason == NULL ? "unknown error" : reason);
    ERR_clear_error();
}
