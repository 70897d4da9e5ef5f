/* The settings of `trestle serve`. settings.def is the table: a row there is a member here, a
 * flag, an environment variable, a key of the configuration file, and a line of the reference. */
#ifndef TRESTLE_BASE_SETTINGS_H
#define TRESTLE_BASE_SETTINGS_H

#include "base/options.h"

enum durability { DURABILITY_SYNC, DURABILITY_ASYNC };
enum replication_compression { REPLICATION_COMPRESSION_OFF, REPLICATION_COMPRESSION_GZIP };
enum datastore_concurrency { CONCURRENCY_OPTIMISTIC, CONCURRENCY_PESSIMISTIC };
enum auto_create { AUTO_CREATE_AUTO, AUTO_CREATE_ON, AUTO_CREATE_OFF };
enum auth { AUTH_OFF, AUTH_ON };
enum tls_client_certs { TLS_CLIENT_CERTS_REQUIRED, TLS_CLIENT_CERTS_OPTIONAL };

enum {
#define SETTING(kind, member, preset, least, most, unit, sentence) SETTING_##member,
#include "base/settings.def"
#undef SETTING
    SETTING_COUNT
};

#define SETTING_TYPE_STRING   const char *
#define SETTING_TYPE_SIZE     uint64_t
#define SETTING_TYPE_INTEGER  uint64_t
#define SETTING_TYPE_DURATION int64_t
#define SETTING_TYPE_BOOLEAN  bool
#define SETTING_TYPE_ENUM     int

/* Sizes are in bytes, durations in microseconds; those of kind ENUM hold values of the
 * enumerations of their names. */
struct settings {
#define SETTING(kind, member, preset, least, most, unit, sentence) SETTING_TYPE_##kind member;
#include "base/settings.def"
#undef SETTING
    struct option_values sources;
    struct option_origin origins[SETTING_COUNT];
};

/* `arguments` and `environment` end with NULL and must outlive the settings, which point into
 * them. INVALID_ARGUMENT with one line of words if something is refused. The structure stays where
 * it is: it knows its own address. */
status settings_read(const char *const *arguments, const char *const *environment,
                     struct settings *out);

/* The same of what can be read: what is refused is a line of `refusals`, and is as if it had not
 * been given. INVALID_ARGUMENT if the file cannot be read. */
status settings_read_sound(const char *const *arguments, const char *const *environment,
                           struct settings *out, struct buffer *refusals);

/* Frees what the settings hold; they were read, successfully or not. */
void settings_free(struct settings *settings);

/* A refusal of a member's value for a reason that only its user knows: "--listen: <why>". */
__attribute__((format(printf, 3, 4))) status
settings_refuse(const struct settings *settings, const char *member, const char *format, ...);

/* The failure, which it takes, with where the setting came from before its words; OK stays. */
status settings_blame(const struct settings *settings, const char *member, status s);

/* See options_unknown_variable. */
const char *settings_unknown_variable(const char *const **environment);
/* Which settings were given by a former name: see options_next_alias. */
const struct option_alias *settings_next_alias(const struct settings *settings, size_t *at);

/* Describes a setting, from 0 to SETTING_COUNT - 1: its row of the table, its value (see
 * options_append_value), and where that came from (see options_origin). */
const struct option *settings_describe(const struct settings *settings, size_t index,
                                       struct buffer *value, struct buffer *origin);

/* See options_write_values. */
void settings_write_values(const struct settings *settings, struct buffer *out);

void settings_write_help(struct buffer *out);
void settings_write_markdown(struct buffer *out);

#endif
