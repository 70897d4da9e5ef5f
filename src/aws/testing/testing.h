/* An HTTP server for tests: a thread that answers each request with what the test says. */
#ifndef TRESTLE_AWS_TESTING_TESTING_H
#define TRESTLE_AWS_TESTING_TESTING_H

#include "base/bytes.h"

#include <pthread.h>

struct fake_server {
    /* The test's answer, on the server's thread: appends all that goes out, status line and
     * headers, too. `request` ends with a NUL; `number` counts from 0. */
    void (*answer)(void *context, unsigned number, const char *request, struct buffer *out);
    void *context;

    int listener;
    char url[64]; /* "http://127.0.0.1:PORT" */
    pthread_t thread;
};

void fake_server_start(struct fake_server *server);
void fake_server_stop(struct fake_server *server);

/* An answer with this status and body; "HTTP/1.1 200 OK" and so on. */
void fake_answer(struct buffer *out, int http_status, const char *body);

#endif
