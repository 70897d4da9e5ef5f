/* See testing.h. A connection is closed behind each answer. */
#include "aws/testing/testing.h"

#include "base/testing/testing.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t request_size(const struct buffer *request)
{
    static const char name[] = "content-length:";
    const char *end = memmem(request->data, request->size, "\r\n\r\n", 4);
    if (end == NULL)
        return SIZE_MAX;
    for (const char *at = (const char *)request->data; at < end; at++)
        if (strncasecmp(at, name, strlen(name)) == 0)
            return (size_t)(end + 4 - (const char *)request->data) +
                   strtoul(at + strlen(name), NULL, 10);
    return 0;
}

static void read_request(int fd, struct buffer *request)
{
    for (;;) {
        char *to = (char *)buffer_reserve(request, 64 << 10);
        ssize_t count = to == NULL ? -1 : read(fd, to, 64 << 10);
        if (count <= 0)
            break;
        request->size += (size_t)count;
        if (request->size >= request_size(request))
            break;
    }
    buffer_append_byte(request, '\0');
}

static void write_all(int fd, const struct buffer *out)
{
    for (size_t done = 0; done < out->size;) {
        ssize_t count = send(fd, out->data + done, out->size - done, MSG_NOSIGNAL);
        if (count <= 0)
            return;
        done += (size_t)count;
    }
}

static void *serve(void *argument)
{
    struct fake_server *server = argument;
    for (unsigned number = 0;; number++) {
        struct buffer request = {0}, out = {0};
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        read_request(fd, &request);
        server->answer(server->context, number, (const char *)request.data, &out);
        write_all(fd, &out);
        close(fd);
        buffer_free(&request);
        buffer_free(&out);
    }
}

void fake_server_start(struct fake_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (const void *)&address, size), 0);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(getsockname(server->listener, (void *)&address, &size), 0);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

void fake_server_stop(struct fake_server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

void fake_answer(struct buffer *out, int http_status, const char *body)
{
    buffer_append_format(out,
                         "HTTP/1.1 %d X\r\nDate: Sun, 30 Aug 2015 12:36:00 GMT\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         http_status, strlen(body), body);
}
