/* Byte streams: see stream.h. */
#include "os/stream.h"

#include "base/check.h"
#include "os/tls_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct stream {
    uint32_t magic;
    int socket;
    SSL *tls;                    /* NULL: plain */
    struct tls_context *context; /* of that */
    uint32_t read_interest;
    uint32_t write_interest;
    bool failed;
    bool is_refused; /* for what the other side said in TLS */
    enum stream_mismatch mismatch;
    char failure[128];
};

#define STREAM_MAGIC 0x5354524du

/* A client's stream has a host, see stream_connect. */
static status create(int socket, struct tls_context *tls, const char *host, struct stream **out)
{
    *out = NULL;
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        close(socket);
        return status_out_of_memory();
    }
    *stream = (struct stream){.magic = STREAM_MAGIC,
                              .socket = socket,
                              .context = tls,
                              .read_interest = EPOLLIN,
                              .write_interest = EPOLLOUT};
    if (tls != NULL) {
        stream->tls = tls_session_create(tls, socket, host);
        if (stream->tls == NULL) {
            stream_close(stream);
            return status_out_of_memory();
        }
    }
    *out = stream;
    return status_ok();
}

status stream_accepted(int socket, struct tls_context *tls, struct stream **out)
{
    return create(socket, tls, NULL, out);
}

status stream_connect(const struct address *address, struct tls_context *tls, const char *host,
                      struct stream **out)
{
    *out = NULL;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return status_from_errno(errno, "cannot make a socket");
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only speed depends on it */
    if (connect(fd, (const struct sockaddr *)&address->storage, address->size) != 0 &&
        errno != EINPROGRESS) {
        status s = status_from_errno(errno, "cannot connect");
        close(fd);
        return s;
    }
    return create(fd, tls, host, out);
}

void stream_close(struct stream *stream)
{
    if (stream == NULL)
        return;
    CHECK_MAGIC(stream, STREAM_MAGIC);
    if (stream->tls != NULL) {
        if (!stream->failed && SSL_is_init_finished(stream->tls))
            SSL_shutdown(stream->tls); /* a courtesy: whether it gets out does not matter */
        SSL_free(stream->tls);
        ERR_clear_error();
    }
    close(stream->socket);
    stream->magic = 0;
    free(stream);
}

int stream_socket(const struct stream *stream)
{
    return stream->socket;
}

/* --- results --- */

static enum stream_result fail(struct stream *stream, int error)
{
    char words[sizeof stream->failure];
    stream->failed = true;
    snprintf(stream->failure, sizeof stream->failure, "%s", strerror_r(error, words, sizeof words));
    return STREAM_FAILED;
}

/* The result of a plain call that returned -1. */
static enum stream_result plain_result(struct stream *stream, uint32_t *interest, uint32_t event)
{
    if (errno == EAGAIN || errno == EINTR) {
        *interest = event;
        return STREAM_BLOCKED;
    }
    return fail(stream, errno);
}

static enum stream_result tls_result(struct stream *stream, int returned, uint32_t *interest)
{
    enum stream_result result = tls_session_result(stream->tls, returned, interest);
    if (result == STREAM_FAILED) {
        stream->failed = true;
        stream->is_refused = tls_describe_failure(stream->tls, stream->failure,
                                                  sizeof stream->failure, &stream->mismatch);
    }
    return result;
}

status stream_failure(const struct stream *stream)
{
    return status_make(STATUS_UNAVAILABLE, "%s", stream->failure);
}

bool stream_is_refused(const struct stream *stream)
{
    return stream->is_refused;
}

enum stream_mismatch stream_mismatch(const struct stream *stream)
{
    return stream->mismatch;
}

uint32_t stream_read_interest(const struct stream *stream)
{
    return stream->read_interest;
}

uint32_t stream_write_interest(const struct stream *stream)
{
    return stream->write_interest;
}

/* --- moving bytes --- */

enum stream_result stream_handshake(struct stream *stream)
{
    CHECK_MAGIC(stream, STREAM_MAGIC);
    if (stream->failed)
        return STREAM_FAILED;
    if (stream->tls == NULL)
        return STREAM_OK;
    ERR_clear_error(); /* SSL_get_error looks at the thread's queue */
    int returned = SSL_do_handshake(stream->tls);
    if (returned == 1) {
        stream->read_interest = EPOLLIN;
        return STREAM_OK;
    }
    enum stream_result result = tls_result(stream, returned, &stream->read_interest);
    return result == STREAM_ENDED ? fail(stream, ECONNRESET) : result;
}

const char *stream_protocol(const struct stream *stream)
{
    const unsigned char *name = NULL;
    unsigned size = 0;
    if (stream->tls != NULL)
        SSL_get0_alpn_selected(stream->tls, &name, &size);
    if (size == 2)
        return "h2";
    return size == 0 ? "" : "http/1.1";
}

char *stream_peer_subject(const struct stream *stream)
{
    return stream->tls == NULL ? NULL : tls_peer_subject(stream->context, stream->tls);
}

bool stream_peer_is_fellow(const struct stream *stream)
{
    return stream->tls != NULL && tls_peer_is_fellow(stream->context, stream->tls);
}

enum stream_result stream_read(struct stream *stream, void *to, size_t size, size_t *done)
{
    CHECK_MAGIC(stream, STREAM_MAGIC);
    *done = 0;
    if (stream->failed)
        return STREAM_FAILED;
    if (stream->tls != NULL) {
        ERR_clear_error();
        int returned = SSL_read_ex(stream->tls, to, size, done);
        if (returned == 1)
            return STREAM_OK;
        return tls_result(stream, returned, &stream->read_interest);
    }
    ssize_t count = recv(stream->socket, to, size, 0);
    if (count < 0)
        return plain_result(stream, &stream->read_interest, EPOLLIN);
    *done = (size_t)count;
    return count == 0 ? STREAM_ENDED : STREAM_OK;
}

/* Most answers are one part, for which the kernel need not fetch a list. */
static ssize_t send_parts(int socket, const struct iovec *parts, int count)
{
    if (count == 1)
        return send(socket, parts->iov_base, parts->iov_len, MSG_NOSIGNAL);
    struct msghdr message = {.msg_iovlen = (size_t)count};
    memcpy(&message.msg_iov, &parts, sizeof parts); /* sendmsg does not write to them */
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

static enum stream_result write_plain(struct stream *stream, const struct iovec *parts, int count,
                                      size_t *done)
{
    ssize_t sent = send_parts(stream->socket, parts, count);
    if (sent < 0)
        return plain_result(stream, &stream->write_interest, EPOLLOUT);
    *done = (size_t)sent;
    return STREAM_OK;
}

/* Copies the parts' first bytes together, as many as there is room for. */
static size_t gather(const struct iovec *parts, int count, uint8_t *to, size_t room)
{
    size_t size = 0;
    for (int i = 0; i < count && size < room; i++) {
        size_t taken = parts[i].iov_len < room - size ? parts[i].iov_len : room - size;
        if (taken > 0)
            memcpy(to + size, parts[i].iov_base, taken);
        size += taken;
    }
    return size;
}

/* One TLS record, however many the parts: each costs a system call, a header and a tag. After a
 * blocked write OpenSSL wants the same bytes again, or more that begin with them, which is what the
 * caller brings. */
static enum stream_result write_tls(struct stream *stream, const struct iovec *parts, int count,
                                    size_t *done)
{
    uint8_t record[SSL3_RT_MAX_PLAIN_LENGTH];
    const void *from = parts[0].iov_base;
    size_t size = parts[0].iov_len;
    if (size < sizeof record && count > 1) {
        size = gather(parts, count, record, sizeof record);
        from = record;
    }
    if (size == 0)
        return STREAM_OK;
    ERR_clear_error();
    int returned = SSL_write_ex(stream->tls, from, size, done);
    if (returned == 1)
        return STREAM_OK;
    enum stream_result result = tls_result(stream, returned, &stream->write_interest);
    if (result != STREAM_ENDED)
        return result;
    if (!SSL_is_init_finished(stream->tls))
        stream->mismatch = STREAM_SAID_NOTHING;
    return fail(stream, EPIPE); /* it reads no more */
}

enum stream_result stream_write(struct stream *stream, const struct iovec *parts, int count,
                                size_t *done)
{
    CHECK_MAGIC(stream, STREAM_MAGIC);
    *done = 0;
    if (stream->failed)
        return STREAM_FAILED;
    return stream->tls == NULL ? write_plain(stream, parts, count, done)
                               : write_tls(stream, parts, count, done);
}

bool stream_has_pending(const struct stream *stream)
{
    return stream->tls != NULL && SSL_pending(stream->tls) > 0;
}

enum stream_result stream_end_writing(struct stream *stream)
{
    CHECK_MAGIC(stream, STREAM_MAGIC);
    if (stream->failed)
        return STREAM_FAILED;
    if (stream->tls != NULL) {
        ERR_clear_error();
        int returned = SSL_shutdown(stream->tls);
        if (returned < 0)
            return tls_result(stream, returned, &stream->write_interest);
    }
    if (shutdown(stream->socket, SHUT_WR) != 0)
        return fail(stream, errno);
    return STREAM_OK;
}
