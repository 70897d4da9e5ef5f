/* google.bigtable.v2.Idempotency: the token by which a write is known when it comes again.
 * tablet/tokens.h says what it does. */
#ifndef TRESTLE_BIGTABLE_IDEMPOTENCY_H
#define TRESTLE_BIGTABLE_IDEMPOTENCY_H

#include "base/clock.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "row/schema.h"

/* By itself: INVALID_ARGUMENT for a token that is too short. NULL is fine. */
status idempotency_check(const Bt__Idempotency *idempotency);

/* FAILED_PRECONDITION if the first attempt was so long ago, by the wall clock, that its token may
 * have been forgotten. NULL, or one that does not say when, is fine. */
status idempotency_check_age(const Bt__Idempotency *idempotency, struct clock *clock);

/* Empty if there is none. */
bytes idempotency_token(const Bt__Idempotency *idempotency);

#endif
