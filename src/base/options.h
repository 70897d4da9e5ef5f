/* Settings from one table: flags, environment, a configuration file, help and reference pages.
 *
 * A row of the table names a member of the caller's structure, its type, default, range and
 * meaning; everything else follows from it. For a row `data_dir`:
 *
 *     --data-dir /var/lib/trestle      or --data-dir=/var/lib/trestle
 *     TRESTLE_DATA_DIR=/var/lib/trestle
 *     data-dir = /var/lib/trestle      in the file that the setting `config` names
 *
 * Precedence: flag, environment, file, default. A boolean flag needs no value: --insecure,
 * --insecure=false. A setting that is unknown, given twice by the same source, or impossible is
 * refused whatever its rank, with one line that says where it came from. Only unknown variables are
 * let pass: Kubernetes sets TRESTLE_PORT and its like for a service that is called trestle.
 *
 * In the file, a # at the start of a line or after white space begins a comment. */
#ifndef TRESTLE_BASE_OPTIONS_H
#define TRESTLE_BASE_OPTIONS_H

#include "base/bytes.h"
#include "base/status.h"

enum option_kind {
    OPTION_STRING,   /* const char *, NULL if there is neither a value nor a default */
    OPTION_SIZE,     /* uint64_t: bytes; written 4096, 64KB, 512MB, 1GB, 2TB (powers of 1,024) */
    OPTION_INTEGER,  /* uint64_t */
    OPTION_DURATION, /* int64_t: microseconds; written 500us, 100ms, 30s, 5m, 2h, 7d, or 0 */
    OPTION_BOOLEAN,  /* bool; written true or false */
    OPTION_ENUM,     /* int: the place of the word in `unit`, from 0 */
};

enum { OPTION_NAME_SIZE = 64 };

struct option {
    const char *member; /* "data_dir" */
    enum option_kind kind;
    size_t offset;      /* of the member in the caller's structure */
    const char *preset; /* the default, as one would write it; NULL: none */
    int64_t least;      /* bounds of sizes, integers and durations, both allowed */
    int64_t most;
    const char *unit; /* words of an enumeration: "sync|async"; else what to show: "DIR" */
    const char *sentence;
};

enum option_source {
    OPTION_PRESET,
    OPTION_FILE,
    OPTION_ENVIRONMENT,
    OPTION_FLAG,
    OPTION_DERIVED, /* from other settings, by the code that has read them */
};

/* The origin of a setting's value. */
struct option_origin {
    enum option_source source; /* the one that counts */
    unsigned given;            /* bit 1 << source for each that gave it */
    unsigned line;             /* in the file */
    bool has_former_name;      /* it was given by a name that it had once */
};

/* A name that a row had once, and is still read by. */
struct option_alias {
    const char *former; /* as members are written: "overflow_threshold" */
    const char *member;
};

struct option_table {
    const struct option *rows;
    size_t count;
    const char *command;            /* "trestle serve", for help */
    const char *environment_prefix; /* "TRESTLE_"; NULL: no environment */
    const char *config_member;      /* the row that names the file; NULL: no file */
    const struct option_alias *aliases;
    size_t alias_count;
};

/* The values that were read, with the memory of their strings. */
struct option_values {
    void *object;                  /* the caller's structure */
    struct option_origin *origins; /* one a row, zeroed by the caller */
    const char *file_name;         /* NULL: there was none */
    struct buffer file;            /* the file's text; zeroed and freed by the caller */
    struct buffer *refusals;       /* NULL: the first refusal ends it; see options_read */
};

/* Fills the object from its sources. INVALID_ARGUMENT with one line of words if a setting is
 * refused; with `refusals` each is a line there, its setting is as if it had not been given, and
 * the others are read: then it fails only if the file cannot be read. `arguments` and `environment`
 * end with NULL; the object's strings point into them or into `values->file`. */
status options_read(const struct option_table *table, const char *const *arguments,
                    const char *const *environment, struct option_values *values);

/* The next variable that has the prefix and is no setting, "NAME=value"; NULL if there is none.
 * Steps over it. */
const char *options_unknown_variable(const struct option_table *table,
                                     const char *const **environment);

/* Which of the aliases was used, from `*at` on; NULL if none. Steps over it. */
const struct option_alias *options_next_alias(const struct option_table *table,
                                              const struct option_values *values, size_t *at);

/* Where the row's value came from, in words: "--cache", "TRESTLE_CACHE", "trestle.conf:12: cache",
 * "cache" for a default, or "cache, from other settings". */
void options_origin(const struct option_table *table, const struct option_values *values,
                    const char *member, struct buffer *out);

/* The name as flags and files have it: data-dir. */
void option_name(const struct option *option, char name[OPTION_NAME_SIZE]);

/* Appends the value of a row's setting. Text that is neither a path, an address nor a word of an
 * enumeration might be a secret: of that is only said that it is given. */
void options_append_value(const struct option_table *table, const struct option_values *values,
                          size_t row, struct buffer *out);

/* All settings so, and where they came from, a line each: "cache = 1GB  (trestle.conf:3: cache)".
 */
void options_write_values(const struct option_table *table, const struct option_values *values,
                          struct buffer *out);

void options_write_help(const struct option_table *table, struct buffer *out);
void options_write_markdown(const struct option_table *table, struct buffer *out);

/* Text of one kind into a number, within no bounds; false if it is none. */
bool options_parse_size(const char *text, uint64_t *bytes);
bool options_parse_duration(const char *text, int64_t *microseconds);

#endif
