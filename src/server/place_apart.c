/* See place_apart.h. */
#include "server/place_apart.h"

#include "os/file.h"

#include <string.h>

/* One that cannot be looked at now, such as a share that is gone, is where it was. */
static bool is_within(const char *inner, const char *outer)
{
    bool is;
    status_ignore(path_is_within(inner, outer, &is));
    return is;
}

static status check_not_within(const char *directory, const char *data_directory)
{
    return is_within(directory, data_directory)
               ? status_make(STATUS_INVALID_ARGUMENT,
                             "%s is in the data directory %s, and would be lost with it", directory,
                             data_directory)
               : status_ok();
}

status place_check_apart(const char *place, const char *data_directory)
{
    if (strstr(place, "://") != NULL)
        return status_ok();
    TRY(check_not_within(place, data_directory));
    return is_within(data_directory, place)
               ? status_make(STATUS_INVALID_ARGUMENT, "%s has the data directory %s in it", place,
                             data_directory)
               : status_ok();
}

status backups_check_apart(const char *directory, const char *data_directory)
{
    struct buffer usual = {0};
    buffer_append_format(&usual, "%s/backups%c", data_directory, 0);
    bool is_usual = !usual.failed && is_within(directory, (const char *)usual.data) &&
                    is_within((const char *)usual.data, directory);
    status s = usual.failed ? status_out_of_memory()
               : is_usual   ? status_ok()
                            : check_not_within(directory, data_directory);
    buffer_free(&usual);
    return s;
}
