/* Words for how many there are. */
#ifndef TRESTLE_CMD_PLURAL_H
#define TRESTLE_CMD_PLURAL_H

#include <stdint.h>

/* The ending of a word after that number: "s", or "" for one. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static inline const char *plural_is(uint64_t count)
{
    return count == 1 ? "is" : "are";
}

#endif
