/* The options that say what files of rows look like, for `trestle import` and `trestle export` of
 * CSV, JSON lines and Avro. */
#ifndef TRESTLE_CMD_TRANSFER_FILE_OPTIONS_H
#define TRESTLE_CMD_TRANSFER_FILE_OPTIONS_H

#include "base/options.h"
#include "formats/row_file.h"

struct file_options {
    int form; /* enum row_form */
    const char *delimiter;
    const char *columns;
    const char *types;
    const char *family;
    bool value_timestamps;
};

#define FILE_OPTION(type_, field_, kind_, name_, preset_, unit_, sentence_)                        \
    {                                                                                              \
        .member = #name_, .kind = OPTION_##kind_, .offset = offsetof(type_, field_.name_),         \
        .preset = preset_, .unit = unit_, .sentence = sentence_                                    \
    }

/* Rows of the table of a command whose options are a `type` with a file_options `field`. */
#define FILE_OPTION_ROWS(type, field)                                                              \
    FILE_OPTION(type, field, ENUM, form, "auto", "auto|cells|cbt|fields",                          \
                "How rows lie in the file: losslessly cell by cell, as `cbt import` has them, or " \
                "as records of fields."),                                                          \
        FILE_OPTION(type, field, STRING, columns, NULL, "NAMES",                                   \
                    "Of fields: NAME or NAME=FAMILY:QUALIFIER, joined by commas."),                \
        FILE_OPTION(                                                                               \
            type, field, STRING, types, NULL, "TYPES",                                             \
            "Of fields: NAME=TYPE, joined by commas; string, int64, double, base64, hex."),        \
        FILE_OPTION(type, field, STRING, family, NULL, "NAME",                                     \
                    "The column family of fields of which nothing else is said."),                 \
        FILE_OPTION(type, field, STRING, delimiter, ",", "BYTE",                                   \
                    "What stands between the fields of CSV; tab for a tab."),                      \
        FILE_OPTION(type, field, BOOLEAN, value_timestamps, "false", "",                           \
                    "In the form cbt values end with @ and their timestamp in microseconds.")

/* The kind's name, as commands have it: "csv", "jsonl", "avro". */
const char *file_kind_name(enum row_kind kind);

/* All but the default timestamp. What it points to is the arena's, or the options'. `row_key` and
 * `timestamp` are NULL if they were not given. INVALID_ARGUMENT. */
status file_options_resolve(const struct file_options *options, enum row_kind kind,
                            const char *row_key, const char *timestamp, struct arena *arena,
                            struct row_format *out);

/* Appends what is said of the file, for a checkpoint's identity. */
void file_options_append(const struct file_options *options, struct buffer *out);

#endif
