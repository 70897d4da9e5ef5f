/* See family.h. */
#include "formats/family.h"

#include <stdlib.h>

status move_age_parse(const char *text, int64_t *us)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 60 * 60}, {"d", 24 * 60 * 60}};
    const int64_t most_s = 100ll * 366 * 24 * 60 * 60;
    char *end;
    long long number = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) != 0 || number < 1 || number > most_s / units[i].seconds)
            continue;
        *us = number * units[i].seconds * 1000 * 1000;
        return status_ok();
    }
    return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is no duration like 30d, 12h, 90m or 45s",
                       text);
}
