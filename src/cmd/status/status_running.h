/* Running requests as `trestle status` tells of them, and what it asks a server to do: to end one,
 * to tell more or less in its log. */
#ifndef TRESTLE_CMD_STATUS_STATUS_RUNNING_H
#define TRESTLE_CMD_STATUS_STATUS_RUNNING_H

#include "client/client_session.h"
#include "trestle/insight/v1/insight.pb-c.h"

/* Appends the list: for people, or as one line of JSON. */
status status_write_running(struct client_session *session, bool as_json, struct buffer *out);

/* Each does it, and appends a line that says what came of it. */
status status_cancel(struct client_session *session, const char *id, struct buffer *out);
status status_set_log_level(struct client_session *session, const char *level, struct buffer *out);

/* Appends where its threads are; where their CPU time goes within so long. */
status status_write_stacks(struct client_session *session, struct buffer *out);
status status_write_profile(struct client_session *session, int64_t duration_us,
                            struct buffer *out);

/* The list as text. */
void running_write_text(const Insight__ListRunningRequestsResponse *list, struct buffer *out);

#endif
