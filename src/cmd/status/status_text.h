/* Numbers as `trestle status` words them. */
#ifndef TRESTLE_CMD_STATUS_STATUS_TEXT_H
#define TRESTLE_CMD_STATUS_STATUS_TEXT_H

enum { STATUS_TEXT_SIZE = 64 };

struct status_text {
    char chars[STATUS_TEXT_SIZE];
};

struct status_text status_count_text(double value);
/* Small rates have a digit behind the point. */
struct status_text status_rate_text(double value);
struct status_text status_bytes_text(double value);
/* Negative: there is none. */
struct status_text status_seconds_text(double seconds);

#endif
