/* See lost_rows.h. */
#include "cmd/lost_rows.h"

#include <errno.h>
#include <unistd.h>

static status cannot(const struct lost_rows_report *report, const char *what)
{
    return status_from_errno(errno, "cannot %s %s, where what is lost would be named", what,
                             report->path);
}

static status open_file(struct lost_rows_report *report)
{
    if (report->file != NULL)
        return status_ok();
    report->file = fopen(report->path, "ae");
    return report->file == NULL ? cannot(report, "open") : status_ok();
}

/* Tabs stand between: in a key they are \x09. */
static void append_line(struct buffer *line, const char *table, bytes from, bytes to,
                        const char *words)
{
    buffer_append_format(line, "%s\t", table);
    buffer_append_readable(line, from, from.size);
    buffer_append_byte(line, '\t');
    buffer_append_readable(line, to, to.size);
    buffer_append_format(line, "\t%s\n", words);
}

static status write_line(struct lost_rows_report *report, const struct buffer *line)
{
    if (line->failed)
        return status_out_of_memory();
    bool is_written = fwrite(line->data, 1, line->size, report->file) == line->size &&
                      fflush(report->file) == 0 && fsync(fileno(report->file)) == 0;
    return is_written ? status_ok() : cannot(report, "write");
}

status lost_rows_tell(struct lost_rows_report *report, const char *table, bytes from, bytes to,
                      const char *words)
{
    struct buffer line = {0};
    report->count++;
    printf("%s: %s\n", report->is_trial ? "would lose" : "lost", words);
    if (report->is_trial)
        return status_ok();
    TRY(open_file(report));
    append_line(&line, table, from, to, words);
    status s = write_line(report, &line);
    buffer_free(&line);
    return s;
}

void lost_rows_close(struct lost_rows_report *report)
{
    if (report->file != NULL)
        fclose(report->file);
    report->file = NULL;
}
