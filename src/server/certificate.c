/* See certificate.h. */
#include "server/certificate.h"

#include "base/clock.h"

#define HOUR_US (INT64_C(3600) * 1000000)
#define DAY_US  (24 * HOUR_US)

static bool is_near_end(const struct certificate_dates *dates, int64_t now_us)
{
    int64_t left_us = dates->to_us - now_us;
    return left_us < 14 * DAY_US && left_us < (dates->to_us - dates->from_us) / 5;
}

void certificate_look(struct condition *condition, const struct certificate_dates *dates,
                      int64_t now_us)
{
    char date[CLOCK_DATE_SIZE];
    int64_t left_us = dates->to_us - now_us;
    if (!is_near_end(dates, now_us)) {
        condition_leave(condition, REASON_certificate);
        return;
    }
    clock_date(dates->to_us, date);
    if (left_us < 0)
        condition_enter(condition, REASON_certificate,
                        "the certificate %s has ended at %s: clients do not accept it", dates->file,
                        date);
    else
        condition_enter(condition, REASON_certificate,
                        "the certificate %s ends at %s, in %lld hours", dates->file, date,
                        (long long)(left_us / HOUR_US));
}

void certificate_measure(struct metrics *metrics, const char *listener,
                         const struct certificate_dates *dates)
{
    const struct metric_series series = {.labels = {listener}, .value = dates->to_us / 1000000};
    status_ignore(
        metrics_replace(metrics, METRIC_BY_certificate_expiry_timestamp_seconds, &series, 1));
}
