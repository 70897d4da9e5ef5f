/* See file_options.h. */
#include "cmd/transfer/file_options.h"

const char *file_kind_name(enum row_kind kind)
{
    static const char *const names[] = {
        [ROWS_CSV] = "csv", [ROWS_JSONL] = "jsonl", [ROWS_AVRO] = "avro"};
    return names[kind];
}

static status find_delimiter(const char *text, char *out)
{
    bool is_tab = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0;
    *out = is_tab ? '\t' : text[0];
    bool is_one = is_tab || (text[0] != '\0' && text[1] == '\0');
    return is_one && strchr("\"\r\n", *out) == NULL
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT,
                             "--delimiter is one byte, and neither a quote nor a line's end");
}

status file_options_resolve(const struct file_options *options, enum row_kind kind,
                            const char *row_key, const char *timestamp, struct arena *arena,
                            struct row_format *out)
{
    const struct field_words words = {.row_key = row_key,
                                      .columns = options->columns,
                                      .types = options->types,
                                      .family = options->family,
                                      .timestamp = timestamp};
    *out = (struct row_format){.kind = kind,
                               .form = (enum row_form)options->form,
                               .has_value_timestamps = options->value_timestamps};
    TRY(find_delimiter(options->delimiter, &out->delimiter));
    if (out->form == ROWS_CBT && kind != ROWS_CSV)
        return status_make(STATUS_INVALID_ARGUMENT, "the form cbt is one of CSV");
    return field_layout_parse(&words, arena, &out->layout);
}

static const char *or_nothing(const char *text)
{
    return text == NULL ? "" : text;
}

void file_options_append(const struct file_options *options, struct buffer *out)
{
    buffer_append_format(out, "; form %d, \"%s\" %s; %s; %s%s", options->form, options->delimiter,
                         or_nothing(options->columns), or_nothing(options->types),
                         or_nothing(options->family), options->value_timestamps ? " @" : "");
}
