/* See tail_options.h. Where it stood is kept in --token-file, as the tokens of a change stream; so
 * the file of a bearer token, which has that name in other commands, has another here. */
#include "cmd/tail/tail_options.h"

#include "cmd/command.h"
#include "wire/json.h"

#define TARGET(kind_, name_, place_, preset_, unit_, sentence_)                                    \
    TARGET_OPTION(struct tail_options, target, kind_, name_, place_, preset_, unit_, sentence_)

#define ROW(kind_, member_, place_, preset_, least_, most_, unit_, sentence_)                      \
    {                                                                                              \
        .member = member_, .kind = OPTION_##kind_,                                                 \
        .offset = offsetof(struct tail_options, place_), .preset = preset_, .least = least_,       \
        .most = most_, .unit = unit_, .sentence = sentence_                                        \
    }

#define SECOND INT64_C(1000000)

static const struct option rows[] = {
    TARGET_ENDPOINT_ROW_AS(struct tail_options, target, "", ""),
    TARGET(STRING, "project", project, "p", "NAME", "The project."),
    TARGET(STRING, "instance", instance, "i", "NAME", "The instance."),
    TARGET(STRING, "app_profile", app_profile, NULL, "NAME",
           "The app profile of each request: one with a single cluster."),
    TARGET_TLS_ROW_AS(struct tail_options, target, ""),
    TARGET(STRING, "ca", server.ca, NULL, "FILE",
           "PEM certificates that the server's must lead to; by default the system's."),
    TARGET(STRING, "bearer_file", server.token_file, NULL, "FILE",
           "Its first line is the bearer token of each call: --token-file of other commands."),
    TARGET(STRING, "token", server.token, NULL, "TOKEN",
           "The bearer token itself, which other users of the machine may see."),
    TARGET(STRING, "account", server.account_file, NULL, "FILE",
           "A Google service account's key (JSON), which signs the tokens."),
    ROW(STRING, "from", from, NULL, 0, 0, "TIME",
        "Changes of then or later: 2026-11-29T03:00:00Z, or a time ago, 10m. By default those from "
        "now on. Not heeded if --token-file says where it stopped."),
    ROW(STRING, "until", until, NULL, 0, 0, "TIME", "Ends when all changes up to then are given."),
    ROW(STRING, "prefix", prefix, NULL, 0, 0, "TEXT", "Only rows whose keys begin so."),
    ROW(STRING, "families", families, NULL, 0, 0, "REGEX",
        "Only what changes in families whose names match (RE2)."),
    ROW(BOOLEAN, "with_gc", with_gc, "false", 0, 0, "", "Also what garbage collection deletes."),
    ROW(STRING, "token_file", token_file, NULL, 0, 0, "FILE",
        "Keeps the place where it stopped, and goes on there."),
    ROW(STRING, "to", to, NULL, 0, 0, "SINK",
        "file:DIRECTORY or kafka://HOST:PORT/TOPIC; by default the output."),
    ROW(SIZE, "rotate_size", rotate_bytes, "64MB", 1024, INT64_C(1) << 40, "BYTES",
        "A file is finished when it has this size."),
    ROW(DURATION, "rotate_time", rotate_us, "1h", SECOND, 30 * 24 * 3600 * SECOND, "DURATION",
        "A file is finished when it is this old."),
    ROW(STRING, "kafka_config", kafka_config, NULL, 0, 0, "FILE",
        "Settings of librdkafka, NAME=VALUE a line: security.protocol and the like."),
    ROW(DURATION, "status", status_us, "0", 0, 24 * 3600 * SECOND, "DURATION",
        "Tells how far it is, on stderr, this often; 0: never."),
    ROW(STRING, "metrics_file", metrics_file, NULL, 0, 0, "FILE",
        "Keeps Prometheus metrics there, every 10 s or as --status says."),
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle tail TABLE"};

void tail_options_write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

status tail_options_time(const char *name, const char *text, int64_t now_us, int64_t *out)
{
    int64_t seconds, ago_us;
    int32_t nanos;
    *out = 0;
    if (text == NULL)
        return status_ok();
    if (json_parse_timestamp(bytes_of(text), &seconds, &nanos) && seconds > 0)
        *out = seconds * SECOND + nanos / 1000;
    else if (options_parse_duration(text, &ago_us) && ago_us >= 0 && ago_us < now_us)
        *out = now_us - ago_us;
    else
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s: %s is neither a time as 2026-11-29T03:00:00Z nor one ago as 10m",
                           name, text);
    return status_ok();
}

/* As target_options_resolve does, by the name that the file has here. */
static status check_credentials(const struct endpoint_options *server)
{
    int given =
        (server->token != NULL) + (server->token_file != NULL) + (server->account_file != NULL);
    return given <= 1 ? status_ok()
                      : status_make(STATUS_INVALID_ARGUMENT,
                                    "--token, --bearer-file and --account exclude each other");
}

static bool is_given(const struct option_origin *origins, const char *member)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].member, member) == 0)
            return origins[i].given != 0;
    return false;
}

/* An option that would do nothing is a mistake in --to. */
static status check_sink_options(const struct option_origin *origins, const char *to)
{
    static const struct {
        const char *member, *words, *scheme;
    } needs[] = {{"rotate_size", "--rotate-size is of --to file:DIRECTORY", "file:"},
                 {"rotate_time", "--rotate-time is of --to file:DIRECTORY", "file:"},
                 {"kafka_config", "--kafka-config is of --to kafka://HOST:PORT/TOPIC", "kafka:"}};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (is_given(origins, needs[i].member) && !tail_options_have_scheme(to, needs[i].scheme))
            return status_make(STATUS_INVALID_ARGUMENT, "%s", needs[i].words);
    return status_ok();
}

bool tail_options_have_scheme(const char *to, const char *scheme)
{
    return to != NULL && strncmp(to, scheme, strlen(scheme)) == 0;
}

status tail_options_read(const char *const *arguments, int64_t now_us, struct tail_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct tail_options){0};
    TRY(command_need_words(arguments, 1, "the table comes first"));
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    out->table = arguments[0];
    TRY(check_credentials(&out->target.server));
    TRY(check_sink_options(origins, out->to));
    TRY(target_options_resolve(&table, origins, &out->target));
    TRY(tail_options_time("--from", out->from, now_us, &out->from_us));
    TRY(tail_options_time("--until", out->until, now_us, &out->until_us));
    if (out->until_us != 0 && out->from_us > out->until_us)
        return status_make(STATUS_INVALID_ARGUMENT, "--until is before --from");
    return status_ok();
}
