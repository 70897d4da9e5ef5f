/* `trestle export`: which kind of files. See export.h. */
#include "cmd/transfer/export.h"

#include "cmd/command.h"

/* Debian 12 has no library for it: libarrow, which has its only well-kept writer, is not in it. */
static int export_parquet_command(const char *const *arguments)
{
    (void)arguments;
    return command_fail("export",
                        status_make(STATUS_UNIMPLEMENTED,
                                    "Parquet is not written: Debian has no library for it. Avro is "
                                    "read by the same tools: trestle export avro"));
}

static const struct command_kind all[] = {
    {"dynamodb", export_dynamodb_command, "a directory as DynamoDB's exports to S3 lie there"},
    {"csv", export_csv_command, "comma-separated values"},
    {"jsonl", export_jsonl_command, "JSON, an object a line"},
    {"avro", export_avro_command, "Avro, as Google's Dataflow templates write and read it"},
    {"parquet", export_parquet_command, "not yet"},
};

static const struct command_kinds kinds = {.command = "export",
                                           .arguments = "TABLE OUT [OPTION…]",
                                           .question = "as what?",
                                           .all = all,
                                           .count = sizeof all / sizeof *all};

int export_command(const char *const *arguments)
{
    return command_run_kind(&kinds, arguments);
}
