/* Shared by options.c (reading) and options_help.c (describing). */
#ifndef TRESTLE_BASE_OPTIONS_PRIVATE_H
#define TRESTLE_BASE_OPTIONS_PRIVATE_H

#include "base/options.h"

struct option_suffix {
    const char *text;
    uint64_t factor;
};

/* From the smallest to the largest, ended by a NULL text. */
extern const struct option_suffix option_size_suffixes[];
extern const struct option_suffix option_duration_suffixes[];

/* TRESTLE_DATA_DIR; `out` gets it without a NUL. */
void option_environment_name(const char *prefix, const struct option *option, struct buffer *out);

/* Appends what is expected, for use after "is not": "a size from 1MB to 1TB". */
void option_append_expectation(const struct option *option, struct buffer *out);

#endif
