/* What a server remembers of its own metrics, as `trestle status --since` tells it. */
#ifndef TRESTLE_CMD_STATUS_STATUS_HISTORY_H
#define TRESTLE_CMD_STATUS_STATUS_HISTORY_H

#include "client/client_session.h"
#include "trestle/insight/v1/insight.pb-c.h"

/* Appends it, back to so long ago: some twenty lines for people, or all as one line of JSON. */
status status_write_history(struct client_session *session, int64_t since_us, bool as_json,
                            struct buffer *out);

/* The lines for people. */
void history_write_text(const Insight__MetricHistory *history, struct buffer *out);

#endif
