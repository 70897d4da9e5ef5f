/* See file_position.h. */
#include "transfer/file_position.h"

#include <sys/stat.h>

enum { LINE_BITS = 40 };

uint64_t file_position_tag(const struct file_position *position)
{
    return position->file << LINE_BITS | position->line;
}

uint64_t file_of_tag(uint64_t tag)
{
    return tag >> LINE_BITS;
}

uint64_t line_of_tag(uint64_t tag)
{
    return tag & ((1ull << LINE_BITS) - 1);
}

json_t *file_position_save(const struct file_position *position)
{
    return json_pack("{s:I, s:I, s:I}", "file", (json_int_t)position->file, "line",
                     (json_int_t)position->line, "timestamp_us",
                     (json_int_t)position->timestamp_us);
}

status file_position_restore(const json_t *saved, uint64_t files, struct file_position *out)
{
    json_int_t file, line, timestamp_us;
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)saved, "{s:I, s:I, s:I}", "file", &file, "line", &line,
                    "timestamp_us", &timestamp_us) != 0 ||
        file < 0 || (uint64_t)file > files || line < 0)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    *out = (struct file_position){
        .file = (uint64_t)file, .line = (uint64_t)line, .timestamp_us = timestamp_us};
    return status_ok();
}

uint64_t file_size(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
}
