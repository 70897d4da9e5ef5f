/* The pages that HTTP/1.1 serves: /livez and /readyz for orchestrators, /metrics for Prometheus,
 * and / for who looks for the console. */
#ifndef TRESTLE_SERVER_PAGES_H
#define TRESTLE_SERVER_PAGES_H

#include "access/access.h"
#include "server/measure.h"
#include "wire/http.h"

/* What the pages tell of; all of it outlives the HTTP/1.1 server. */
struct pages {
    struct measured *measured;
    struct cluster *cluster;
    bool hides_names;     /* there is access control: from clients that were not admitted */
    struct access *guard; /* of /metrics; NULL: it is for all clients */
};

void pages_handle(struct pages *pages, struct http_request *request);

#endif
