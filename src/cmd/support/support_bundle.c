/* See support_bundle.h.
 *
 * Each part becomes a file of the archive. A part that fails is told in the file summary.txt and on
 * stdout, and the others are made all the same: often something does not work where help is needed.
 * The server's settings come from its configuration file, and with them where its data is and where
 * it serves, so that on most machines the command needs no option. */
#include "cmd/support/support_bundle.h"

#include "cmd/command.h"
#include "cmd/support/support_archive.h"
#include "cmd/support/support_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct bundle_options {
    const char *config;
    const char *endpoint;
    const char *data_dir;
    const char *ca;
    const char *token_file;
    const char *log;
    const char *output;
    bool tls;
};

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct bundle_options, member_), .preset = preset_, .unit = unit_,      \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    ROW(STRING, config, "/etc/trestle/trestle.conf", "FILE", "The server's configuration file."),
    ROW(STRING, endpoint, NULL, "ADDR:PORT", "Where it serves; by default as configured."),
    ROW(STRING, data_dir, NULL, "DIR", "Where its data is; by default as configured."),
    ROW(BOOLEAN, tls, "false", "", "Speaks TLS; the default is as configured."),
    ROW(STRING, ca, NULL, "FILE",
        "PEM certificates that the server's must lead to; by default the system's."),
    ROW(STRING, token_file, NULL, "FILE", "Its first line is the bearer token of each call."),
    ROW(STRING, log, NULL, "FILE", "The server's log, of which the last 4 MB are taken."),
    ROW(STRING, output, NULL, "FILE",
        "The archive; by default trestle-support-TIME.tar.gz. One that exists is left."),
};

enum { ROW_CONFIG = 0, ROW_COUNT = sizeof rows / sizeof *rows, NAME_SIZE = 64 };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle support-bundle"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\nMakes an archive of what somebody who helps needs to know: versions, settings, the\n"
        "machine, metrics, tables with their sizes, the log's end. It has names of tables, and no\n"
        "row keys, values, tokens or keys, but what may be in the log: look before you send it.\n");
}

/* --- the parts --- */

static status write_version(const struct support *support, struct buffer *out)
{
    (void)support;
    buffer_append_format(out, "trestle " TRESTLE_VERSION "\n");
    return status_ok();
}

static status write_settings(const struct support *support, struct buffer *out)
{
    if (support->settings == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s", support->settings_refusal);
    if (support->refused.size > 0)
        buffer_append_format(out, "# The server does not start with these:\n%.*s# The others:\n",
                             (int)support->refused.size, (const char *)support->refused.data);
    settings_write_values(support->settings, out);
    return status_ok();
}

static const struct part {
    const char *name;
    status (*write)(const struct support *support, struct buffer *out);
} parts[] = {
    {"version.txt", write_version},
    {"settings.txt", write_settings},
    {"system.txt", support_write_system},
    {"limits.txt", support_write_limits},
    {"disk.txt", support_write_disk},
    {"files.txt", support_write_files},
    {"server-live.txt", support_write_live},
    {"server-ready.txt", support_write_ready},
    {"server-metrics.txt", support_write_metrics},
    {"server-stacks.txt", support_write_stacks},
    {"server-profile.txt", support_write_profile},
    {"server-tables.txt", support_write_served_tables},
    {"stored-tables.txt", support_write_stored_tables},
    {"log.txt", support_write_log},
};

struct bundle {
    const struct support *support;
    struct support_archive *archive;
    struct buffer summary;
    char folder[NAME_SIZE]; /* "trestle-support-20260102T030405Z" */
    time_t time;
};

static status add_file(struct bundle *bundle, const char *name, const struct buffer *content)
{
    char path[2 * NAME_SIZE];
    if (content->failed)
        return status_out_of_memory();
    snprintf(path, sizeof path, "%s/%s", bundle->folder, name);
    return support_archive_add(bundle->archive, path, bundle->time, buffer_bytes(content));
}

/* On one line, whatever a server said. */
static void note_failure(struct bundle *bundle, const struct part *part, const char *why)
{
    buffer_append_format(&bundle->summary, "%-20s not there: ", part->name);
    for (; *why != '\0'; why++)
        buffer_append_byte(&bundle->summary, *why == '\n' ? ' ' : (uint8_t)*why);
    buffer_append_byte(&bundle->summary, '\n');
}

/* Fails if the archive cannot be written; that the part fails is noted. */
static status add_part(struct bundle *bundle, const struct part *part)
{
    struct buffer content = {0};
    status why = part->write(bundle->support, &content);
    if (status_is_ok(why))
        buffer_append_format(&bundle->summary, "%-20s %zu bytes\n", part->name, content.size);
    else
        note_failure(bundle, part, status_message(why));
    status s = status_is_ok(why) ? add_file(bundle, part->name, &content) : status_ok();
    status_free(why);
    buffer_free(&content);
    return s;
}

static status add_parts(struct bundle *bundle)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        TRY(add_part(bundle, &parts[i]));
    return add_file(bundle, "summary.txt", &bundle->summary);
}

static status make_archive(struct bundle *bundle, const char *path)
{
    TRY(support_archive_create(path, &bundle->archive));
    status s = add_parts(bundle);
    status closed = support_archive_close(bundle->archive);
    if (!status_is_ok(s)) {
        status_free(closed);
        return s;
    }
    return closed;
}

/* --- the command --- */

static void name_folder(struct bundle *bundle)
{
    struct tm parts_of_time;
    bundle->time = time(NULL);
    gmtime_r(&bundle->time, &parts_of_time);
    strftime(bundle->folder, sizeof bundle->folder, "trestle-support-%Y%m%dT%H%M%SZ",
             &parts_of_time);
}

static int make_bundle(const struct support *support, const char *output)
{
    struct bundle bundle = {.support = support};
    char path[2 * NAME_SIZE];
    name_folder(&bundle);
    snprintf(path, sizeof path, "%s.tar.gz", bundle.folder);
    if (output == NULL)
        output = path;
    status s = make_archive(&bundle, output);
    if (status_is_ok(s))
        printf("%.*s%s\n", (int)bundle.summary.size, (const char *)bundle.summary.data, output);
    else
        fprintf(stderr, "trestle support-bundle: %s\n", status_message(s));
    int exit_status = status_is_ok(s) ? EXIT_SUCCESS : EXIT_FAILURE;
    buffer_free(&bundle.summary);
    status_free(s);
    return exit_status;
}

/* Options that are not given are as the server is set, or else its default. A configuration file
 * that was not named need not be there. */
static int run(const struct bundle_options *options, bool config_is_meant)
{
    const char *const configured[] = {"--config", options->config, NULL};
    const char *const nothing[] = {NULL};
    bool has_file = config_is_meant || access(options->config, F_OK) == 0;
    struct settings settings, presets;
    struct buffer refused = {0};
    status read = settings_read_sound(has_file ? configured : nothing, (const char *const *)environ,
                                      &settings, &refused);
    status none = settings_read(nothing, nothing, &presets);
    const struct settings *known = status_is_ok(read) ? &settings : &presets;
    const struct support support = {
        .settings = status_is_ok(read) ? &settings : NULL,
        .settings_refusal = status_message(read),
        .refused = buffer_bytes(&refused),
        .endpoint = options->endpoint != NULL ? options->endpoint : known->listen,
        .data_directory = options->data_dir != NULL ? options->data_dir : known->data_dir,
        .ca = options->ca,
        .token_file = options->token_file,
        .log_file = options->log,
        .tls = options->tls || options->ca != NULL || known->tls_cert != NULL,
    };
    int exit_status = make_bundle(&support, options->output);
    settings_free(&settings);
    settings_free(&presets);
    buffer_free(&refused);
    status_free(read);
    status_free(none);
    return exit_status;
}

int support_bundle_command(const char *const *arguments)
{
    struct bundle_options options = {0};
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = &options, .origins = origins};
    const char *const no_environment[] = {NULL};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = options_read(&table, arguments, no_environment, &values);
    int exit_status = status_is_ok(s) ? run(&options, origins[ROW_CONFIG].source == OPTION_FLAG)
                                      : command_usage_error("support-bundle", status_message(s));
    status_free(s);
    return exit_status;
}
