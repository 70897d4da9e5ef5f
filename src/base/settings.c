/* The table of settings, and the rules between them: see settings.h. */
#include "base/settings.h"

#include "base/sizing.h"
#include "base/zonal_id.h"

#include <stdarg.h>
#include <stdio.h>

#define KB     (1ll << 10)
#define MB     (1ll << 20)
#define GB     (1ll << 30)
#define TB     (1ll << 40)
#define SECOND 1000000ll
#define DAY    (86400 * SECOND)

static const struct option rows[] = {
#define SETTING(kind_, member_, preset_, least_, most_, unit_, sentence_)                          \
    {.member = #member_,                                                                           \
     .kind = OPTION_##kind_,                                                                       \
     .offset = offsetof(struct settings, member_),                                                 \
     .preset = preset_,                                                                            \
     .least = least_,                                                                              \
     .most = most_,                                                                                \
     .unit = unit_,                                                                                \
     .sentence = sentence_},
#include "base/settings.def"
#undef SETTING
};

static const struct option_alias aliases[] = {
    {.former = "spill_threshold", .member = "overflow_threshold"},
};

static const struct option_table table = {
    .rows = rows,
    .count = SETTING_COUNT,
    .command = "trestle serve",
    .environment_prefix = "TRESTLE_",
    .config_member = "config",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof *aliases,
};

status settings_refuse(const struct settings *settings, const char *member, const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    struct buffer origin = {0};
    options_origin(&table, &settings->sources, member, &origin);
    status s = status_make(STATUS_INVALID_ARGUMENT, "%.*s: %s", (int)origin.size,
                           (const char *)origin.data, why);
    buffer_free(&origin);
    return s;
}

status settings_blame(const struct settings *settings, const char *member, status s)
{
    struct buffer origin = {0};
    if (status_is_ok(s))
        return s;
    options_origin(&table, &settings->sources, member, &origin);
    status blamed = status_make(s.code, "%.*s: %s", (int)origin.size, (const char *)origin.data,
                                status_message(s));
    buffer_free(&origin);
    status_free(s);
    return blamed;
}

/* Files for access control are refused where it is off: they would not be looked at. */
static status check_auth(const struct settings *settings)
{
    static const char *const members[] = {"auth_tokens", "auth_jwks", "auth_policy"};
    const char *const values[] = {settings->auth_tokens, settings->auth_jwks,
                                  settings->auth_policy};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (values[i] != NULL && settings->auth == AUTH_OFF)
            return settings_refuse(settings, members[i], "needs auth=on beside it");
    if (settings->auth_jwks != NULL &&
        (settings->auth_audience == NULL || settings->auth_issuer == NULL))
        return settings_refuse(settings, "auth_jwks",
                               "needs auth-audience and auth-issuer beside it");
    if (settings->audit_data > 0 && settings->auth == AUTH_OFF && settings->audit_log == NULL)
        return settings_refuse(settings, "audit_data", "needs auth=on or audit-log beside it");
    return status_ok();
}

static status check_peer_certificate(const struct settings *settings)
{
    if (settings->peer_cert != NULL && settings->peer_ca == NULL)
        return settings_refuse(settings, "peer_cert", "needs peer-ca beside it");
    if (settings->peer_cert != NULL && settings->peer_key == NULL)
        return settings_refuse(settings, "peer_cert", "needs peer-key beside it");
    if (settings->peer_key != NULL && settings->peer_cert == NULL)
        return settings_refuse(settings, "peer_key", "needs peer-cert beside it");
    return status_ok();
}

static status check_together(struct settings *settings)
{
    enum { ZONE_LENGTH = 63 };
    if (!zonal_id_has_form(settings->location) || strlen(settings->location) > ZONE_LENGTH)
        return settings_refuse(settings, "location",
                               "\"%s\" is no zone: small letters, digits and hyphens, 63 at most, "
                               "a letter first and no hyphen last",
                               settings->location);
    if (settings->tls_cert != NULL && settings->tls_key == NULL)
        return settings_refuse(settings, "tls_cert", "needs tls-key beside it");
    if (settings->backup_schedule > 0 && settings->backup_places == NULL)
        return settings_refuse(settings, "backup_schedule", "needs backup-places beside it");
    if (settings->backup_scopes != NULL && settings->backup_places == NULL)
        return settings_refuse(settings, "backup_scopes", "needs backup-places beside it");
    if (settings->tls_key != NULL && settings->tls_cert == NULL)
        return settings_refuse(settings, "tls_key", "needs tls-cert beside it");
    if (settings->tls_client_ca != NULL && settings->tls_cert == NULL)
        return settings_refuse(settings, "tls_client_ca", "needs tls-cert beside it");
    if (settings->peer_ca != NULL && settings->tls_cert == NULL)
        return settings_refuse(settings, "peer_ca", "needs tls-cert beside it");
    TRY(check_peer_certificate(settings));
    return check_auth(settings);
}

/* Rules over all settings together, for settings_read and settings_read_sound alike. */
static status (*const rules[])(struct settings *settings) = {check_together, sizing_derive};

enum { RULES = sizeof rules / sizeof *rules };

status settings_read(const char *const *arguments, const char *const *environment,
                     struct settings *out)
{
    *out = (struct settings){0};
    out->sources = (struct option_values){.object = out, .origins = out->origins};
    TRY(options_read(&table, arguments, environment, &out->sources));
    for (size_t i = 0; i < RULES; i++)
        TRY(rules[i](out));
    return status_ok();
}

static void tell_refusal(struct buffer *refusals, status s)
{
    if (!status_is_ok(s))
        buffer_append_format(refusals, "%s\n", status_message(s));
    status_free(s);
}

status settings_read_sound(const char *const *arguments, const char *const *environment,
                           struct settings *out, struct buffer *refusals)
{
    *out = (struct settings){0};
    out->sources =
        (struct option_values){.object = out, .origins = out->origins, .refusals = refusals};
    TRY(options_read(&table, arguments, environment, &out->sources));
    for (size_t i = 0; i < RULES; i++)
        tell_refusal(refusals, rules[i](out));
    return status_ok();
}

void settings_free(struct settings *settings)
{
    buffer_free(&settings->sources.file);
}

const char *settings_unknown_variable(const char *const **environment)
{
    return options_unknown_variable(&table, environment);
}

const struct option_alias *settings_next_alias(const struct settings *settings, size_t *at)
{
    return options_next_alias(&table, &settings->sources, at);
}

const struct option *settings_describe(const struct settings *settings, size_t index,
                                       struct buffer *value, struct buffer *origin)
{
    const struct option *row = &table.rows[index];
    options_append_value(&table, &settings->sources, index, value);
    options_origin(&table, &settings->sources, row->member, origin);
    return row;
}

void settings_write_values(const struct settings *settings, struct buffer *out)
{
    options_write_values(&table, &settings->sources, out);
}

void settings_write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

void settings_write_markdown(struct buffer *out)
{
    buffer_append_format(
        out,
        "# Settings of `trestle serve`\n\n"
        "Written by `./dev docs` from `src/base/settings.def`: change it there.\n\n"
        "Each setting is a flag (`--data-dir DIR` or `--data-dir=DIR`), an environment\n"
        "variable, and a key of the file that `--config` names (`data-dir = DIR`, one a line;\n"
        "a `#` at the start of a line or after white space begins a comment). A flag outranks\n"
        "the environment, which outranks the file. Sizes are written 4096, 64KB, 512MB, 1GB\n"
        "(powers of 1,024), durations 500us, 100ms, 30s, 5m, 2h, 7d. What is unknown or\n"
        "impossible is refused with one line and exit status 2.\n\n");
    options_write_markdown(&table, out);
}
