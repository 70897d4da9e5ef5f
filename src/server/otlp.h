/* Where an OpenTelemetry collector takes spans: batches, by POST, from one thread.
 *
 * http_proxy, https_proxy and no_proxy are obeyed, as libcurl does; https:// servers are checked
 * against the system's authorities. A collector's redirections are not followed. */
#ifndef TRESTLE_SERVER_OTLP_H
#define TRESTLE_SERVER_OTLP_H

#include "base/bytes.h"
#include "base/status.h"

struct otlp;

/* INVALID_ARGUMENT if it is no URL of http or https. `headers`: of the collector's own
 * (server/otlp_headers.h), which outlive it; NULL: none. */
status otlp_create(const char *endpoint, const char *headers, struct otlp **out);
void otlp_destroy(struct otlp *otlp); /* NULL is fine */

/* tracer_options.send, with a struct otlp. */
status otlp_send(void *context, bytes batch, int64_t timeout_us);

#endif
