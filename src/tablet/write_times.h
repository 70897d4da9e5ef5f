/* When a commit was written, for what reports it. */
#ifndef TRESTLE_TABLET_WRITE_TIMES_H
#define TRESTLE_TABLET_WRITE_TIMES_H

#include <stdint.h>

struct write_times {
    int64_t begun_us;   /* its batch was begun, by clock_steady_us; 0: it was in none */
    int64_t written_us; /* its batch was written; 0: it was not, or there was nothing to write */
};

#endif
