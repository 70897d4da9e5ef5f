/* See change_position.h. */
#include "transfer/change_position.h"

#include "os/file.h"

enum { POSITION_MOST = 64 << 20 /* bytes */ };

status change_position_read(const char *path, struct buffer *out)
{
    status s = file_read(path, POSITION_MOST, 0, out);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    if (out->size > 0)
        return status_ok();
    buffer_free(out);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "%s is empty, and keeps no place: remove it to begin", path);
}
