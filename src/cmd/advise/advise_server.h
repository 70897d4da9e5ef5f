/* Advice that a server which is a Trestle finds itself: trestle.insight.v1.Insight/Advise. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_SERVER_H
#define TRESTLE_CMD_ADVISE_ADVISE_SERVER_H

#include "advisor/report.h"
#include "client/client_session.h"

/* The parts of a report. */
struct advise_report {
    struct advice_observations seen; /* as far as reports tell it */
    struct advice_sample sample;
    struct advice advice;
};

struct advise_question {
    const char *name;  /* an instance, or a database */
    const char *table; /* its id; NULL: of a database */
    uint64_t places;
    uint64_t rows;
    uint64_t bytes;
    uint64_t seed; /* 0: any */
    bool shows_values;
    int64_t since_us; /* since 1970: what requests since then show; 0: all */
};

/* All of `*out` is the arena's. UNIMPLEMENTED, or what a stranger calls it, of a server that is
 * none; PERMISSION_DENIED of one that does not look for everybody. */
status advise_ask(struct client_session *session, const struct advise_question *question,
                  struct arena *arena, struct advise_report *out);

/* From now on findings of the rule about the table, or the database, are muted, for this reason;
 * NULL: they are not any more. */
status advise_set_mute(struct client_session *session, const char *name, const char *rule,
                       const char *reason, struct arena *arena);

#endif
