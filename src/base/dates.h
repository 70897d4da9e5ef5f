/* Moments that people are told together, and that are not to contradict each other. */
#ifndef TRESTLE_BASE_DATES_H
#define TRESTLE_BASE_DATES_H

#include "base/clock.h"

#include <stddef.h>

/* Each of the moments, microseconds since 1970, to `texts` in the same order: as clock_date tells
 * it, or, if two of them differ in the same second, all to the microsecond,
 * 2026-11-21T22:53:43.000001Z. Empty for years of more than four digits. */
enum { DATE_TEXT_SIZE = sizeof "2026-11-21T22:53:43.000001Z" };
typedef char date_text[DATE_TEXT_SIZE];
void dates_tell(const int64_t *us, size_t count, date_text *texts);

/* The first whole second that is not before the moment: what there is from then on is there from
 * that second on, too. */
void dates_tell_from(int64_t us, date_text text);

#endif
