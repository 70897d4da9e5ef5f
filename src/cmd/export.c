/* `trestle export`: which kind of files. See export.h. */
#include "cmd/export.h"

#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(status s, int exit_status)
{
    fprintf(stderr, "trestle export: %s\n", status_message(s));
    status_free(s);
    return exit_status;
}

int export_refuse(status s)
{
    return fail(s, s.code == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE);
}

int export_end(status s, bool is_perfect)
{
    if (!status_is_ok(s))
        return fail(s, EXIT_FAILURE);
    return is_perfect ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Debian 12 has no library for it: libarrow, which has its only well-kept writer, is not in it. */
static int export_parquet_command(const char *const *arguments)
{
    (void)arguments;
    return export_end(status_make(STATUS_UNIMPLEMENTED,
                                  "Parquet is not written: Debian has no library for it. Avro is "
                                  "read by the same tools: trestle export avro"),
                      false);
}

static const struct kind {
    const char *name;
    int (*run)(const char *const *arguments);
    const char *sentence;
} kinds[] = {
    {"dynamodb", export_dynamodb_command, "a directory as DynamoDB's exports to S3 lie there"},
    {"csv", export_csv_command, "comma-separated values"},
    {"jsonl", export_jsonl_command, "JSON, an object a line"},
    {"avro", export_avro_command, "Avro, as Google's Dataflow templates write and read it"},
    {"parquet", export_parquet_command, "not yet"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void write_help(struct buffer *out)
{
    buffer_append_bytes(out, bytes_of("usage: trestle export KIND TABLE OUT [OPTION…]\n\n"));
    for (size_t i = 0; i < KINDS; i++)
        buffer_append_format(out, "  %-8s  %s\n", kinds[i].name, kinds[i].sentence);
    buffer_append_bytes(out, bytes_of("\ntrestle export KIND --help lists its options.\n"));
}

/* Names the kinds that there are. */
static int refuse_kind(const char *name)
{
    struct buffer words = {0};
    buffer_append_format(&words, "there is no kind \"%.64s\":", name);
    for (size_t i = 0; i < KINDS; i++)
        buffer_append_format(&words, "%s %s", i == 0 ? "" : ",", kinds[i].name);
    buffer_append_byte(&words, '\0');
    int exit_status = command_usage_error("export", words.failed ? "there is no such kind"
                                                                 : (const char *)words.data);
    buffer_free(&words);
    return exit_status;
}

int export_command(const char *const *arguments)
{
    const char *name = arguments[0];
    if (name == NULL)
        return command_usage_error("export", "as what? trestle export --help lists the kinds");
    if (strcmp(name, "--help") == 0)
        return command_print(write_help);
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].run(arguments + 1);
    return refuse_kind(name);
}
