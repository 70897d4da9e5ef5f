/* The report on two looks at a server's metrics: as text for a terminal, and as JSON. Pure
 * functions.
 *
 * A rate is what a counter rose by between the two, by the second. A server that was restarted in
 * between begins at 0: its counters are taken as they are. */
#ifndef TRESTLE_CMD_STATUS_STATUS_REPORT_H
#define TRESTLE_CMD_STATUS_STATUS_REPORT_H

#include "base/bytes.h"
#include "trestle/insight/v1/insight.pb-c.h"
#include "trestle/replica/v1/replica.pb-c.h"

struct status_looks {
    const char *address; /* the server's HOST:PORT */
    const Insight__Metrics *before;
    const Insight__Metrics *now;
    const Replica__ListPeersResponse *peers; /* NULL: it has none, or the caller may not see them */
    bool has_colors;                         /* the text is for a terminal that shows them */
};

/* `out->failed` for want of memory. */
void status_write_text(const struct status_looks *looks, struct buffer *out);
void status_write_json(const struct status_looks *looks, struct buffer *out);

/* The duration, in seconds, within which the share (0 to 1) of what was observed between the looks
 * is estimated to lie; `before` may be NULL: since the start. Negative if nothing was. */
double status_quantile(const Insight__Metric *before, const Insight__Metric *now, double share);

#endif
