/* What runs now: the calls that are open, asked of the loops that they belong to.
 *
 * Nothing is noted of a request for it. A caller has each loop go over its connections' calls and
 * describe the oldest of them. A loop that is stuck does not answer in time: then that is told,
 * beside what the others have said. */
#ifndef TRESTLE_INTROSPECT_RUNNING_H
#define TRESTLE_INTROSPECT_RUNNING_H

#include "access/access.h"
#include "base/arena.h"
#include "os/loop.h"
#include "wire/grpc_server.h"

/* The owner of the loops and their connections; all zeroes: none. */
struct running_source {
    struct loop *const *loops;
    size_t count;
    void *context;
    /* On the thread of the loop: hands over each of its connections. */
    void (*connections)(void *context, size_t loop, void *to,
                        void (*each)(void *to, struct grpc_connection *connection));
    struct access *access; /* NULL: no callers are known */
    struct clock *clock;
};

enum { RUNNING_ID_SIZE = 40, RUNNING_MOST = 1000 };

struct running_request {
    char id[RUNNING_ID_SIZE]; /* "17-5": of its connection, and in it */
    int64_t begun_us;         /* clock_steady_us */
    int64_t deadline_us;      /* INT64_MAX: none */
    const char *service;      /* these two outlive all */
    const char *method;
    const char *profile; /* these four are the arena's; "": none, or not known */
    const char *principal;
    const char *resource;
    const char *address;
    enum call_step step;
    bool is_cancelled; /* its handler has not noticed yet */
    size_t request_bytes;
    size_t answer_bytes;
    int64_t items;
    int64_t seen;
};

struct running_list {
    struct running_request *requests; /* the one that began first comes first */
    size_t count;
    size_t total;        /* with those beyond `most` */
    size_t silent_loops; /* that have not answered */
    size_t loops;
};

/* Lists the requests, in the arena. RESOURCE_EXHAUSTED. May block for two seconds. */
status running_requests_list(const struct running_source *source, size_t most, struct arena *arena,
                             struct running_list *out);

/* Ends the request with CANCELLED and the words, and says what it was. NOT_FOUND if there is none,
 * UNAVAILABLE if a loop does not answer, INVALID_ARGUMENT for what is no id. May block likewise. */
status running_request_cancel(const struct running_source *source, const char *id, bytes words,
                              struct arena *arena, struct running_request *out);

#endif
