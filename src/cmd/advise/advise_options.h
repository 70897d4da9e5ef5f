/* The options of `trestle advise`. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_OPTIONS_H
#define TRESTLE_CMD_ADVISE_ADVISE_OPTIONS_H

#include "client/target_options.h"

#include <stdint.h>

enum advise_format { ADVISE_TEXT, ADVISE_JSON, ADVISE_SARIF, ADVISE_MARKDOWN };

/* The side that looks. */
enum advise_looker { BY_EITHER, BY_SERVER, BY_CLIENT };

struct advise_options {
    struct target_options target;
    const char *table;
    const char *database; /* NULL: tables are looked at */
    const char *schema;   /* a description of tables that are not there; NULL: of none */
    bool all;             /* tables of the instance */
    bool whole_server;    /* `all`, and no instance was named */
    int by;               /* enum advise_looker */
    int format;           /* enum advise_format */
    int fail_on;          /* enum advice_severity */
    uint64_t places;
    uint64_t rows;
    uint64_t max_bytes;
    uint64_t seed;
    bool show_values;
    const char *since;
    int64_t since_us; /* what that comes to, since 1970; 0: it is not given */
    const char *mute; /* a rule; NULL: none, as of the next two */
    const char *reason;
    const char *unmute;
    bool rules;
    bool practices;
};

void advise_options_help(struct buffer *out);

/* `arguments` end with NULL, and outlive `*out`. INVALID_ARGUMENT. */
status advise_options_read(const char *const *arguments, struct advise_options *out);

#endif
