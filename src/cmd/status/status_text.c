/* See status_text.h. */
#include "cmd/status/status_text.h"

#include <stddef.h>
#include <stdio.h>

struct status_text status_count_text(double value)
{
    char digits[STATUS_TEXT_SIZE / 2];
    struct status_text out = {""};
    int size = snprintf(digits, sizeof digits, "%.0f", value), at = 0;
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0 && digits[i - 1] != '-')
            out.chars[at++] = ',';
        out.chars[at++] = digits[i];
    }
    return out;
}

struct status_text status_rate_text(double value)
{
    struct status_text out = {"0"};
    if (value >= 10)
        return status_count_text(value);
    if (value > 0)
        snprintf(out.chars, sizeof out.chars, "%.1f", value);
    return out;
}

struct status_text status_bytes_text(double value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    enum { STEP = 1024, LAST = sizeof units / sizeof *units - 1 };
    struct status_text out;
    size_t unit = 0;
    while (value >= STEP && unit < LAST) {
        value /= STEP;
        unit++;
    }
    snprintf(out.chars, sizeof out.chars, unit > 0 && value < 100 ? "%.1f %s" : "%.0f %s", value,
             units[unit]);
    return out;
}

struct status_text status_seconds_text(double seconds)
{
    struct status_text out = {"-"};
    if (seconds >= 1)
        snprintf(out.chars, sizeof out.chars, "%.1f s", seconds);
    else if (seconds >= 0.001)
        snprintf(out.chars, sizeof out.chars, "%.1f ms", seconds * 1e3);
    else if (seconds >= 0)
        snprintf(out.chars, sizeof out.chars, "%.0f us", seconds * 1e6);
    return out;
}
