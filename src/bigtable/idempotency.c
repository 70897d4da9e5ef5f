/* See idempotency.h. */
#include "bigtable/idempotency.h"

#include "base/limits.h"
#include "wire/proto.h"

enum { SECOND_US = 1000000, MICROSECOND_NS = 1000 };

status idempotency_check(const Bt__Idempotency *idempotency)
{
    if (idempotency == NULL || idempotency->token.len >= LIMIT_IDEMPOTENCY_TOKEN_LEAST_BYTES)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Idempotency token is %zu bytes long; at least %d are needed",
                       idempotency->token.len, LIMIT_IDEMPOTENCY_TOKEN_LEAST_BYTES);
}

/* Saturates: times that a timestamp may not have are compared, not computed with. */
static int64_t microseconds_of(const Pb__Timestamp *time)
{
    if (time->seconds <= INT64_MIN / SECOND_US)
        return INT64_MIN;
    if (time->seconds >= INT64_MAX / SECOND_US)
        return INT64_MAX;
    return time->seconds * SECOND_US + time->nanos / MICROSECOND_NS;
}

status idempotency_check_age(const Bt__Idempotency *idempotency, struct clock *clock)
{
    if (idempotency == NULL || idempotency->start_time == NULL)
        return status_ok();
    const Pb__Timestamp *start = idempotency->start_time;
    bool is_unset = start->seconds == 0 && start->nanos == 0;
    int64_t promised_us = (int64_t)LIMIT_IDEMPOTENCY_SECONDS * SECOND_US;
    if (is_unset || microseconds_of(start) >= clock_wall_us(clock) - promised_us)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Idempotency start_time is more than %d seconds ago: whether the write has "
                       "been applied is not known any more",
                       LIMIT_IDEMPOTENCY_SECONDS);
}

bytes idempotency_token(const Bt__Idempotency *idempotency)
{
    return idempotency == NULL ? bytes_make(NULL, 0) : proto_bytes(idempotency->token);
}
