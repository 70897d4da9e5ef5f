/* See dates.h. */
#include "base/dates.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SECOND_US 1000000

static bool want_fractions(const int64_t *us, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (us[i] != us[j] && us[i] / SECOND_US == us[j] / SECOND_US)
                return true;
    return false;
}

void dates_tell(const int64_t *us, size_t count, date_text *texts)
{
    bool is_fine = want_fractions(us, count);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(clock_date(us[i], texts[i]));
        if (is_fine && size > 0)
            snprintf(texts[i] + size - 1, DATE_TEXT_SIZE - (size - 1), ".%06uZ",
                     (unsigned)(us[i] % SECOND_US));
    }
}

void dates_tell_from(int64_t us, date_text text)
{
    clock_date(us + SECOND_US - 1, text);
}
