/* The header that every unit test includes: cmocka, after the headers that it forgets to include
 * itself. */
#ifndef TRESTLE_BASE_TESTING_TESTING_H
#define TRESTLE_BASE_TESTING_TESTING_H

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Holds the status against the code that is expected; shows its words if they differ; ends it. */
static inline void assert_status(status s, enum status_code expected)
{
    if (s.code != expected)
        print_error("%s: %s\n", status_code_name(s.code), status_message(s));
    assert_int_equal(s.code, expected);
    status_free(s);
}

static inline void assert_ok(status s)
{
    assert_status(s, STATUS_OK);
}

#endif
