/* Whether the server's certificate is at its end: a part of the server's condition. */
#ifndef TRESTLE_SERVER_CERTIFICATE_H
#define TRESTLE_SERVER_CERTIFICATE_H

#include "base/condition.h"

struct certificate_dates {
    const char *file;
    int64_t from_us; /* since 1970, as the certificate says */
    int64_t to_us;
};

/* Enters or leaves the reason. It is near its end when less than a fifth of its life is left, and
 * less than two weeks: those that are renewed every day are not near it half of the time. `now_us`
 * is the wall clock's, as it is by the clients' that they accept it. */
void certificate_look(struct condition *condition, const struct certificate_dates *dates,
                      int64_t now_us);

/* Sets the metric of when it ends. Without memory it stays as it was. */
void certificate_measure(struct metrics *metrics, const char *listener,
                         const struct certificate_dates *dates);

#endif
