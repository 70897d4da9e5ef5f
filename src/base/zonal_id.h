/* The form of a zone's id, and of the ids of what lies in zones (instances, clusters):
 * [a-z]([-a-z0-9]*[a-z0-9])?. How long it may be its user knows. */
#ifndef TRESTLE_BASE_ZONAL_ID_H
#define TRESTLE_BASE_ZONAL_ID_H

#include <stdbool.h>
#include <string.h>

static inline bool zonal_id_has_form(const char *id)
{
    size_t size = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return size > 0 && id[size] == '\0' && id[0] >= 'a' && id[0] <= 'z' && id[size - 1] != '-';
}

#endif
