/* See error_place.h. */
#include "bigtable/error_place.h"

status error_in_field(const char *field, status s)
{
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status placed = status_make(s.code, "Error in field '%s' : %s", field, status_message(s));
    status_free(s);
    return placed;
}

status error_in_element(size_t index, status s)
{
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status placed = status_make(s.code, "Error in element #%zu : %s", index, status_message(s));
    status_free(s);
    return placed;
}

status error_in_list(const char *field, size_t index, status s)
{
    return error_in_field(field, error_in_element(index, s));
}
