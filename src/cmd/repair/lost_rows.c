/* See lost_rows.h. */
#include "cmd/repair/lost_rows.h"

#include "store/files.h"

#include <errno.h>
#include <unistd.h>

static status cannot(const struct lost_rows_report *report, const char *what)
{
    return status_from_errno(errno, "cannot %s %s, where what is lost would be named", what,
                             report->path);
}

/* Opens the file; its name is on the disk afterwards, too. */
static status open_file(struct lost_rows_report *report)
{
    if (report->file != NULL)
        return status_ok();
    report->file = fopen(report->path, "ae");
    if (report->file == NULL)
        return cannot(report, "open");
    return files_sync_parent(files_of_system(), report->path);
}

/* Tabs stand between: in a key they are \x09. */
static void append_line(struct buffer *line, const struct lost_range *range, const char *prefix)
{
    buffer_append_format(line, "%s\t", range->table);
    buffer_append_readable(line, range->from, range->from.size);
    buffer_append_byte(line, '\t');
    buffer_append_readable(line, range->to, range->to.size);
    buffer_append_format(line, "\t%s%s\n", prefix, range->words);
}

static status write_line(struct lost_rows_report *report, const struct buffer *line)
{
    if (line->failed)
        return status_out_of_memory();
    TRY(open_file(report));
    bool is_written = fwrite(line->data, 1, line->size, report->file) == line->size &&
                      fflush(report->file) == 0 && fsync(fileno(report->file)) == 0;
    return is_written ? status_ok() : cannot(report, "write");
}

static status add_line(struct lost_rows_report *report, const struct lost_range *range,
                       const char *prefix)
{
    struct buffer line = {0};
    append_line(&line, range, prefix);
    status s = write_line(report, &line);
    buffer_free(&line);
    return s;
}

status lost_rows_name(struct lost_rows_report *report, const struct lost_range *range)
{
    return report->is_trial ? status_ok() : add_line(report, range, "");
}

void lost_rows_print(struct lost_rows_report *report, const struct lost_range *range)
{
    report->count++;
    printf("%s: %s\n", report->is_trial ? "would lose" : "lost", range->words);
}

status lost_rows_take_back(struct lost_rows_report *report, const struct lost_range *range)
{
    printf("not given up: %s\n", range->words);
    return add_line(report, range, "not given up: ");
}

void lost_rows_close(struct lost_rows_report *report)
{
    if (report->file != NULL)
        fclose(report->file);
    report->file = NULL;
}
