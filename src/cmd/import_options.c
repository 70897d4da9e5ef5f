/* The options of `trestle import dynamodb`. */
#include "cmd/import.h"

#include <stdio.h>
#include <stdlib.h>

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct import_options, member_), .preset = preset_, .unit = unit_,      \
        .sentence = sentence_                                                                      \
    }

#define NUMBER(member_, preset_, most_, unit_, sentence_)                                          \
    {                                                                                              \
        .member = #member_, .kind = OPTION_INTEGER,                                                \
        .offset = offsetof(struct import_options, member_), .preset = preset_, .most = most_,      \
        .unit = unit_, .sentence = sentence_                                                       \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct import_options, target),
    ROW(STRING, table, NULL, "NAME", "The table, which is made if it is not there."),
    ROW(STRING, partition_key, NULL, "NAME", "The attribute that row keys begin with."),
    ROW(STRING, sort_key, NULL, "NAME", "The attribute that they end with; by default none."),
    ROW(STRING, delimiter, "#", "TEXT", "What stands between the two."),
    ROW(BOOLEAN, ordered_numbers, "false", "",
        "Numbers in row keys as bytes that order as they do, instead of text."),
    NUMBER(salts, "0", 1000, "N",
           "Begins row keys with one of N numbers, to spread writes; 0: none."),
    ROW(STRING, family, NULL, "NAME", "The column family; by default item, with --compat cf1."),
    ROW(BOOLEAN, lossless, "false", "",
        "Each attribute in DynamoDB's JSON, so that items can be had back from rows."),
    ROW(ENUM, compat, "none", "none|google", "Rows as Google's utility makes them."),
    ROW(STRING, counters, NULL, "NAMES",
        "Attributes that become integers of 64 bits, joined by commas."),
    ROW(STRING, families, NULL, "NAMES",
        "Sets and maps that become column families, joined by commas."),
    ROW(STRING, timestamp, NULL, "NAME",
        "The attribute that says when: a number of seconds or milliseconds since 1970, or RFC "
        "3339. "
        "The default is the time of the export, else now."),
    NUMBER(rate, "0", 100000000, "N", "Rows a second at most; 0: as fast as it goes."),
    ROW(BOOLEAN, dry_run, "false", "", "Reads and checks everything, and writes nothing."),
    ROW(ENUM, verify, "sample", "sample|full|none", "Which rows are read again at the end."),
    ROW(STRING, checkpoint, NULL, "FILE",
        "Where it notes how far it has come; by default TABLE.checkpoint."),
    ROW(STRING, rejects, NULL, "FILE",
        "Gets the records that could not become rows; by default TABLE.rejects.jsonl."),
    ROW(BOOLEAN, quiet, "false", "", "Shows no progress."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle import dynamodb SOURCE"};

void import_options_write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status check(const struct import_options *options)
{
    if (options->table == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--table is missing");
    if (options->partition_key == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--partition-key is missing");
    if (options->lossless && options->compat != COMPAT_NONE)
        return status_make(STATUS_INVALID_ARGUMENT, "--lossless and --compat exclude each other");
    if (options->compat == COMPAT_GOOGLE && options->sort_key != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Google's utility knows no sort keys: leave out --compat or --sort-key");
    bool has_lists = options->counters != NULL || options->families != NULL;
    if (has_lists && (options->lossless || options->compat != COMPAT_NONE))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--counters and --families need neither --lossless nor --compat");
    return status_ok();
}

status import_options_read(const char *const *arguments, struct import_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct import_options){0};
    if (arguments[0] == NULL || strncmp(arguments[0], "--", 2) == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "the source comes first: a file or directory");
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    out->source = arguments[0];
    TRY(check(out));
    return target_options_settle(&table, origins, &out->target);
}

/* --- what they ask for --- */

static status split_names(const char *list, struct arena *arena, struct item_names *out)
{
    *out = (struct item_names){0};
    if (list == NULL)
        return status_ok();
    size_t most = 1;
    for (const char *at = list; *at != '\0'; at++)
        most += *at == ',';
    const char **names = arena_alloc(arena, most * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    out->names = names;
    while (*list != '\0') {
        size_t size = strcspn(list, ",");
        names[out->count] = arena_string(arena, bytes_make(list, size));
        if (names[out->count] == NULL)
            return status_out_of_memory();
        out->count += size > 0;
        list += size + (list[size] == ',');
    }
    return status_ok();
}

status import_layout(const struct import_options *options, struct arena *arena,
                     struct item_layout *out)
{
    bool is_google = options->compat == COMPAT_GOOGLE;
    *out = (struct item_layout){
        .form = is_google           ? ITEM_AS_GOOGLE
                : options->lossless ? ITEM_LOSSLESS
                                    : ITEM_AS_COLUMNS,
        .partition_key = options->partition_key,
        .sort_key = options->sort_key,
        .delimiter = options->delimiter,
        .orders_numbers = options->ordered_numbers,
        .salts = (unsigned)options->salts,
        .family = options->family != NULL ? options->family
                  : is_google             ? "cf1"
                                          : "item",
        .timestamp = options->timestamp,
    };
    TRY(split_names(options->counters, arena, &out->counters));
    return split_names(options->families, arena, &out->families);
}
