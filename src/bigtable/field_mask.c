/* See field_mask.h. */
#include "bigtable/field_mask.h"

bool field_path_is(const char *path, const char *field)
{
    for (; *field != '\0'; path++, field++) {
        bool is_camel = field[0] == '_' && field[1] >= 'a' && field[1] <= 'z' &&
                        path[0] == field[1] - 'a' + 'A';
        if (is_camel)
            field++;
        else if (*path != *field)
            return false;
    }
    return *path == '\0';
}
