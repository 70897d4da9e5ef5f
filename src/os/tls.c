/* OpenSSL contexts and sessions: see tls.h.
 *
 * A session holds a reference to the SSL_CTX that it was made from, so that another may take its
 * place at any time. */
#include "os/tls_private.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

struct tls_context {
    pthread_mutex_t lock; /* held to take a reference, or to put another in its place */
    SSL_CTX *ssl;
    X509_STORE *clients; /* the authorities of a server's clients, which `ssl` has together with */
    X509_STORE *fellows; /* those of fellow servers; NULL: there are none */
};

/* ALPN's form: each name after its length; what we prefer comes first. gRPC's clients offer h2
 * alone. A client that offers both is a browser, a probe or a REST client, and wants pages, which
 * we serve by HTTP/1.1. */
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

static SSL_CTX *new_ssl(const SSL_METHOD *method)
{
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (ssl == NULL)
        return NULL;
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    /* An end without TLS's goodbye is an end: HTTP's own framing shows what was cut short. */
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                 SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    return ssl;
}

/* Takes `ssl`, also if it fails. */
static status context_create(SSL_CTX *ssl, struct tls_context **out)
{
    *out = malloc(sizeof **out);
    if (*out == NULL) {
        SSL_CTX_free(ssl);
        return status_out_of_memory();
    }
    **out = (struct tls_context){.lock = PTHREAD_MUTEX_INITIALIZER, .ssl = ssl};
    return status_ok();
}

void tls_context_destroy(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    X509_STORE_free(context->clients);
    X509_STORE_free(context->fellows);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

/* --- the server's side --- */

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

static status load_identity(SSL_CTX *ssl, const struct tls_server_files *files)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, files->certificate) != 1)
        return openssl_status("cannot use certificate", files->certificate);
    if (SSL_CTX_use_PrivateKey_file(ssl, files->key, SSL_FILETYPE_PEM) != 1)
        return openssl_status("cannot use key", files->key);
    if (SSL_CTX_check_private_key(ssl) != 1) /* keys of another type come as far as here */
        return openssl_status("not the certificate's key:", files->key);
    return status_ok();
}

/* Keeps the identity of the context that is to be replaced. */
static status keep_identity(SSL_CTX *ssl, SSL_CTX *former)
{
    STACK_OF(X509) *chain = NULL;
    SSL_CTX_get0_chain_certs(former, &chain);
    if (SSL_CTX_use_cert_and_key(ssl, SSL_CTX_get0_certificate(former),
                                 SSL_CTX_get0_privatekey(former), chain, 1) != 1)
        return openssl_status("cannot keep", "the certificate");
    return status_ok();
}

/* Clients are told the names of the authorities, so that they can choose among certificates. */
static status add_authorities(SSL_CTX *ssl, const char *file)
{
    if (file == NULL)
        return status_ok();
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(file);
    bool is_whole = names != NULL && SSL_CTX_load_verify_file(ssl, file) == 1;
    STACK_OF(X509_NAME) *all = SSL_CTX_get_client_CA_list(ssl);
    for (int i = 0; is_whole && all != NULL && i < sk_X509_NAME_num(all); i++) {
        X509_NAME *name = X509_NAME_dup(sk_X509_NAME_value(all, i));
        is_whole = name != NULL && sk_X509_NAME_push(names, name) > 0;
    }
    if (!is_whole) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return openssl_status("cannot use authorities", file);
    }
    SSL_CTX_set_client_CA_list(ssl, names);
    return status_ok();
}

static status load_authorities(SSL_CTX *ssl, const struct tls_server_files *files)
{
    TRY(add_authorities(ssl, files->client_authority));
    return add_authorities(ssl, files->fellow_authority);
}

/* NULL for no file. */
static status load_store(const char *file, X509_STORE **out)
{
    *out = NULL;
    if (file == NULL)
        return status_ok();
    *out = X509_STORE_new();
    if (*out == NULL)
        return status_out_of_memory();
    return X509_STORE_load_file(*out, file) == 1 ? status_ok()
                                                 : openssl_status("cannot use authorities", file);
}

static status keep_authorities(SSL_CTX *ssl, SSL_CTX *former)
{
    STACK_OF(X509_NAME) *names = SSL_dup_CA_list(SSL_CTX_get_client_CA_list(former));
    if (names == NULL)
        return status_out_of_memory();
    SSL_CTX_set1_cert_store(ssl, SSL_CTX_get_cert_store(former));
    SSL_CTX_set_client_CA_list(ssl, names);
    return status_ok();
}

static status ask_for_certificates(SSL_CTX *ssl, const struct tls_server_files *files)
{
    static const unsigned char session_context[] = "trestle"; /* sessions resume only within it */
    bool is_required = files->client_authority != NULL && files->client_required;
    int demand = is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | demand, NULL);
    if (SSL_CTX_set_session_id_context(ssl, session_context, sizeof session_context - 1) != 1)
        return status_out_of_memory();
    return status_ok();
}

/* The parts that are read; others are kept of the former. */
enum loaded_part { LOAD_ALL, LOAD_IDENTITY, LOAD_AUTHORITIES };

static status load_parts(SSL_CTX *ssl, const struct tls_server_files *files, SSL_CTX *former,
                         enum loaded_part part)
{
    TRY(part == LOAD_AUTHORITIES ? keep_identity(ssl, former) : load_identity(ssl, files));
    if (files->client_authority == NULL && files->fellow_authority == NULL)
        return status_ok();
    TRY(part == LOAD_IDENTITY ? keep_authorities(ssl, former) : load_authorities(ssl, files));
    return ask_for_certificates(ssl, files);
}

static status load_server(const struct tls_server_files *files, SSL_CTX *former,
                          enum loaded_part part, SSL_CTX **out)
{
    SSL_CTX *ssl = *out = new_ssl(TLS_server_method());
    if (ssl == NULL)
        return status_out_of_memory();
    SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    /* Sessions are resumed by tickets, which clients keep: 20,000 of them would stay here else. */
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    status s = load_parts(ssl, files, former, part);
    if (!status_is_ok(s)) {
        SSL_CTX_free(ssl);
        *out = NULL;
    }
    return s;
}

/* Each by itself, where one's certificate is not to count as the other's. */
static status load_stores(const struct tls_server_files *files, X509_STORE **clients,
                          X509_STORE **fellows)
{
    status s = load_store(files->client_authority, clients);
    *fellows = NULL;
    if (status_is_ok(s))
        s = load_store(files->fellow_authority, fellows);
    if (!status_is_ok(s)) {
        X509_STORE_free(*clients);
        X509_STORE_free(*fellows);
        *clients = *fellows = NULL;
    }
    return s;
}

status tls_server_create(const struct tls_server_files *files, struct tls_context **out)
{
    SSL_CTX *ssl;
    *out = NULL;
    TRY(load_server(files, NULL, LOAD_ALL, &ssl));
    TRY(context_create(ssl, out));
    status s = load_stores(files, &(*out)->clients, &(*out)->fellows);
    if (!status_is_ok(s)) {
        tls_context_destroy(*out);
        *out = NULL;
    }
    return s;
}

/* No other thread replaces the context: the former is there until this one does. Keys of tickets
 * are the context's own, so that none resumes what an authority vouched for that has gone. */
static status reload(struct tls_context *context, const struct tls_server_files *files,
                     enum loaded_part part)
{
    SSL_CTX *ssl;
    TRY(load_server(files, context->ssl, part, &ssl));
    pthread_mutex_lock(&context->lock);
    SSL_CTX *old = context->ssl;
    context->ssl = ssl;
    pthread_mutex_unlock(&context->lock);
    SSL_CTX_free(old);
    return status_ok();
}

static void exchange_stores(X509_STORE **a, X509_STORE **b)
{
    X509_STORE *former = *a;
    *a = *b;
    *b = former;
}

status tls_server_reload_identity(struct tls_context *context, const struct tls_server_files *files)
{
    return reload(context, files, LOAD_IDENTITY);
}

status tls_server_reload_authorities(struct tls_context *context,
                                     const struct tls_server_files *files)
{
    X509_STORE *clients, *fellows;
    TRY(load_stores(files, &clients, &fellows));
    status s = reload(context, files, LOAD_AUTHORITIES);
    if (status_is_ok(s)) {
        pthread_mutex_lock(&context->lock);
        exchange_stores(&context->clients, &clients);
        exchange_stores(&context->fellows, &fellows);
        pthread_mutex_unlock(&context->lock);
    }
    X509_STORE_free(clients);
    X509_STORE_free(fellows);
    return s;
}

/* What is not ASCII comes escaped, so that the text can stand in logs and policies. */
static char *describe_subject(X509 *certificate)
{
    char *subject = NULL;
    BIO *text = BIO_new(BIO_s_mem());
    if (text != NULL &&
        X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        char *written;
        long size = BIO_get_mem_data(text, &written);
        subject = size <= 0 ? NULL : bytes_to_string(bytes_make(written, (size_t)size));
    }
    BIO_free(text);
    return subject;
}

struct validity {
    int64_t from_us;
    int64_t to_us;
};

static bool time_of(const ASN1_TIME *time, int64_t *us)
{
    struct tm parts;
    if (time == NULL || ASN1_TIME_to_tm(time, &parts) != 1)
        return false;
    *us = (int64_t)timegm(&parts) * 1000000;
    return true;
}

/* Keeps what ends first. */
static bool look_at(const X509 *certificate, struct validity *first)
{
    struct validity own;
    if (certificate == NULL || !time_of(X509_get0_notBefore(certificate), &own.from_us) ||
        !time_of(X509_get0_notAfter(certificate), &own.to_us))
        return false;
    if (own.to_us < first->to_us)
        *first = own;
    return true;
}

static bool look_at_chain(SSL_CTX *ssl, struct validity *first)
{
    STACK_OF(X509) *chain = NULL;
    bool is_told = look_at(SSL_CTX_get0_certificate(ssl), first);
    SSL_CTX_get0_chain_certs(ssl, &chain);
    for (int i = 0; chain != NULL && i < sk_X509_num(chain); i++)
        is_told = look_at(sk_X509_value(chain, i), first) && is_told;
    return is_told;
}

bool tls_server_validity(struct tls_context *context, int64_t *from_us, int64_t *to_us)
{
    struct validity first = {.to_us = INT64_MAX};
    pthread_mutex_lock(&context->lock);
    bool is_told = look_at_chain(context->ssl, &first);
    pthread_mutex_unlock(&context->lock);
    *from_us = first.from_us;
    *to_us = first.to_us;
    ERR_clear_error();
    return is_told;
}

static void describe_certificate(X509 *certificate, struct tls_certificate *out)
{
    char *subject = describe_subject(certificate);
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *serial = number == NULL ? NULL : BN_bn2hex(number);
    struct validity validity = {.to_us = INT64_MAX};
    look_at(certificate, &validity);
    snprintf(out->subject, sizeof out->subject, "%s", subject == NULL ? "" : subject);
    snprintf(out->serial, sizeof out->serial, "%s", serial == NULL ? "" : serial);
    out->to_us = validity.to_us;
    OPENSSL_free(serial);
    BN_free(number);
    free(subject);
}

bool tls_server_certificate(struct tls_context *context, struct tls_certificate *out)
{
    pthread_mutex_lock(&context->lock);
    X509 *certificate = SSL_CTX_get0_certificate(context->ssl);
    if (certificate != NULL)
        describe_certificate(certificate, out);
    pthread_mutex_unlock(&context->lock);
    ERR_clear_error();
    return certificate != NULL;
}

void tls_server_authorities(struct tls_context *context,
                            void (*visit)(void *context, const struct tls_certificate *authority),
                            void *visit_context)
{
    struct tls_certificate authority;
    pthread_mutex_lock(&context->lock);
    const STACK_OF(X509_OBJECT) *all =
        X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (certificate == NULL)
            continue;
        describe_certificate(certificate, &authority);
        visit(visit_context, &authority);
    }
    pthread_mutex_unlock(&context->lock);
    ERR_clear_error();
}

/* --- the client's side --- */

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
    const struct tls_client_files files = {.authority = authority_file};
    return tls_client_create_known(&files, out);
}

status tls_client_create_known(const struct tls_client_files *files, struct tls_context **out)
{
    const struct tls_server_files own = {.certificate = files->certificate, .key = files->key};
    *out = NULL;
    SSL_CTX *ssl = new_ssl(TLS_client_method());
    if (ssl == NULL)
        return status_out_of_memory();
    status s = trust(ssl, files->authority);
    if (status_is_ok(s) && files->certificate != NULL)
        s = load_identity(ssl, &own);
    if (!status_is_ok(s)) {
        SSL_CTX_free(ssl);
        return s;
    }
    return context_create(ssl, out);
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
    pthread_mutex_lock(&context->lock);
    SSL *session = SSL_new(context->ssl);
    pthread_mutex_unlock(&context->lock);
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

/* Whether the certificate that the client has shown leads to one of these authorities. */
static bool leads_to(SSL *session, X509_STORE *authorities)
{
    X509 *certificate = SSL_get0_peer_certificate(session);
    X509_STORE_CTX *verification = certificate == NULL ? NULL : X509_STORE_CTX_new();
    bool does = verification != NULL &&
                X509_STORE_CTX_init(verification, authorities, certificate,
                                    SSL_get_peer_cert_chain(session)) == 1 &&
                X509_STORE_CTX_set_default(verification, "ssl_client") == 1 &&
                X509_verify_cert(verification) == 1;
    X509_STORE_CTX_free(verification);
    ERR_clear_error();
    return does;
}

/* A reference to one of the context's stores; NULL: it has none. */
static X509_STORE *take_store(struct tls_context *context, X509_STORE *const *store)
{
    pthread_mutex_lock(&context->lock);
    X509_STORE *taken = *store;
    if (taken != NULL && X509_STORE_up_ref(taken) != 1)
        taken = NULL;
    pthread_mutex_unlock(&context->lock);
    return taken;
}

bool tls_peer_is_fellow(struct tls_context *context, SSL *session)
{
    X509_STORE *fellows = take_store(context, &context->fellows);
    bool is_fellow = fellows != NULL && leads_to(session, fellows);
    X509_STORE_free(fellows);
    return is_fellow;
}

/* The handshake has found that the certificate leads to some authority: only where there are two
 * kinds of them is it to be asked which. */
static bool is_clients(struct tls_context *context, SSL *session)
{
    X509_STORE *fellows = take_store(context, &context->fellows);
    X509_STORE *clients = take_store(context, &context->clients);
    bool is = fellows == NULL || (clients != NULL && leads_to(session, clients));
    X509_STORE_free(fellows);
    X509_STORE_free(clients);
    return is;
}

char *tls_peer_subject(struct tls_context *context, SSL *session)
{
    X509 *certificate = SSL_get0_peer_certificate(session);
    bool counts = certificate != NULL && is_clients(context, session);
    char *subject = counts ? describe_subject(certificate) : NULL;
    ERR_clear_error();
    return subject;
}

static bool is_no_tls(unsigned long error)
{
    switch (ERR_GET_REASON(error)) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return ERR_GET_LIB(error) == ERR_LIB_SSL;
    default:
        return false;
    }
}

static enum stream_mismatch mismatch_of(unsigned long error, long verified)
{
    switch (verified) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return STREAM_UNKNOWN_AUTHORITY;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return STREAM_OTHER_NAME;
    default:
        return is_no_tls(error) ? STREAM_NOT_TLS : STREAM_NO_MISMATCH;
    }
}

/* In words of ours, what OpenSSL says in its own or wrongly; NULL: it is to say it. */
static const char *reason_in_words(unsigned long error)
{
    if (is_no_tls(error))
        return "the other side does not speak TLS";
    switch (ERR_GET_REASON(error)) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
        return "the other side speaks no TLS as new as 1.2";
    default:
        return NULL;
    }
}

static const char *reason_of(unsigned long error)
{
    const char *words = NULL;
    if (error == 0)
        return strerrordesc_np(errno);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL)
        words = reason_in_words(error);
    return words == NULL ? ERR_reason_error_string(error) : words;
}

bool tls_describe_failure(SSL *session, char *words, size_t size, enum stream_mismatch *mismatch)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = reason_of(error);
    long verified = SSL_get_verify_result(session);
    bool is_certificate = verified != X509_V_OK;
    if (is_certificate)
        reason = X509_verify_cert_error_string(verified);
    snprintf(words, size, "TLS: %s", reason == NULL ? "unknown error" : reason);
    *mismatch = mismatch_of(error, verified);
    ERR_clear_error();
    return is_certificate || error != 0;
}
