/* When a call that failed is made again: after a while, twice as long each time, for a minute. */
#ifndef TRESTLE_CLIENT_CHANGE_RETRY_H
#define TRESTLE_CLIENT_CHANGE_RETRY_H

#include "client/endpoint.h"

#include <stdio.h>

/* All zeroes: it goes well. Times are of clock_steady_us. */
struct change_retry {
    char words[160];  /* of the last failure */
    int64_t at_us;    /* when the next attempt is due */
    int64_t wait_us;  /* before it */
    int64_t since_us; /* of the first failure */
};

enum { CHANGE_RETRY_GIVE_UP_US = 60 * 1000 * 1000 };

/* Takes the failure; returns it if there is to be no other attempt, for it will not pass, or has
 * not passed for too long. */
static inline status change_retry_after(struct change_retry *retry, status s, int64_t now_us)
{
    if (retry->since_us == 0)
        retry->since_us = now_us;
    if (!endpoint_failure_may_pass(s) || now_us - retry->since_us > CHANGE_RETRY_GIVE_UP_US)
        return s;
    snprintf(retry->words, sizeof retry->words, "%s", status_message(s));
    status_free(s);
    retry->wait_us = endpoint_next_wait(retry->wait_us);
    retry->at_us = now_us + retry->wait_us;
    return status_ok();
}

#endif
