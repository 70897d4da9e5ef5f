/* The options of `trestle tail`. */
#ifndef TRESTLE_CMD_TAIL_TAIL_OPTIONS_H
#define TRESTLE_CMD_TAIL_TAIL_OPTIONS_H

#include "client/target_options.h"

struct tail_options {
    struct target_options target;
    const char *table;
    const char *from; /* NULL: now */
    const char *until;
    const char *prefix;
    const char *families;
    const char *token_file;
    const char *to; /* NULL: the output */
    const char *kafka_config;
    const char *metrics_file;
    uint64_t rotate_bytes;
    int64_t rotate_us;
    int64_t status_us; /* 0: none is told */
    bool with_gc;
    /* Of the strings: microseconds since 1970; 0: none. */
    int64_t from_us;
    int64_t until_us;
};

/* INVALID_ARGUMENT, also of options of a sink that --to does not name. Times ago are before
 * `now_us`, of the wall clock. */
status tail_options_read(const char *const *arguments, int64_t now_us, struct tail_options *out);

/* Whether --to begins so, as "file:"; NULL, the output, does not. */
bool tail_options_have_scheme(const char *to, const char *scheme);

void tail_options_write_help(struct buffer *out);

/* "2026-11-29T03:19:36Z", or a duration before `now_us`, "10m", in microseconds since 1970. */
status tail_options_time(const char *name, const char *text, int64_t now_us, int64_t *out);

#endif
