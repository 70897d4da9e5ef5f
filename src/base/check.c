/* See check.h. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "trestle: %s:%d: this is a bug in trestle: %s does not hold\n", file, line,
            what);
    abort();
}
