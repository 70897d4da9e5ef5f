/* Fuzzer: files of the tz database. They are read or refused; clocks of those that are read are
 * never more than a week and a bit ahead or behind, at any time that a timestamp can be.
 *
 * Input: the file. */
#include "base/check.h"
#include "base/testing/fuzzing.h"
#include "sql/time/calendar.h"
#include "sql/time/tzfile.h"

#include <stdlib.h>

enum { MOST_SECONDS = 8 * 86400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tzfile *file;
    status result = tzfile_parse(bytes_make(data, size), &file);
    CHECK(status_is_ok(result) == (file != NULL));
    CHECK(status_is_ok(result) || result.code == STATUS_DATA_LOSS ||
          result.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(result);
    for (int32_t year = 0; file != NULL && year <= 10000; year += 50)
        for (int32_t month = 1; month <= 12; month += 3) {
            int64_t days = days_of_civil((struct civil_date){year, month, 1});
            CHECK(abs(tzfile_offset(file, days * 86400)) <= MOST_SECONDS);
        }
    tzfile_destroy(file);
    return 0;
}
