/* What the schema advisor found, as the service's message: insight.proto, TableAdvice. */
#ifndef TRESTLE_INTROSPECT_ADVICE_MESSAGE_H
#define TRESTLE_INTROSPECT_ADVICE_MESSAGE_H

#include "advisor/report.h"
#include "trestle/insight/v1/insight.pb-c.h"

/* Makes the message; all of it is the arena's. */
status advice_message(const struct advice_observations *seen, const struct advice_sample *sample,
                      const struct advice *advice, struct arena *arena, Insight__TableAdvice **out);

#endif
