/* See names.h. */
#include "bigtable/names.h"

#include "base/limits.h"
#include "control/resource.h"

#include <stdio.h>

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_id_character(char c)
{
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
}

static bool all_id_characters(const char *id)
{
    while (is_id_character(*id))
        id++;
    return *id == '\0';
}

/* Moves past `literal` and then a segment of at least one character; NULL if that is not there. */
static const char *skip_segment(const char *name, const char *literal)
{
    size_t length = strlen(literal);
    if (strncmp(name, literal, length) != 0)
        return NULL;
    name += length;
    size_t segment = strcspn(name, "/");
    return segment == 0 ? NULL : name + segment;
}

static const char *skip_instance(const char *name)
{
    const char *at = skip_segment(name, "projects/");
    return at == NULL ? NULL : skip_segment(at, "/instances/");
}

status name_check_instance(const char *name)
{
    const char *end = skip_instance(name);
    if (end != NULL && *end == '\0')
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid instance name '%s': expected "
                       "projects/<project>/instances/<instance>",
                       name);
}

status name_check_table(const char *name)
{
    const char *end = skip_instance(name);
    if (end != NULL)
        end = skip_segment(end, "/tables/");
    if (end != NULL && *end == '\0')
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid table name '%s': expected "
                       "projects/<project>/instances/<instance>/tables/<table>",
                       name);
}

status name_check_table_id(const char *id)
{
    if ((is_alphanumeric(id[0]) || id[0] == '_') && all_id_characters(id) &&
        strlen(id) <= LIMIT_TABLE_ID_BYTES)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid table id '%s': must match [_a-zA-Z0-9][-_.a-zA-Z0-9]* and have at "
                       "most %d characters",
                       id, LIMIT_TABLE_ID_BYTES);
}

status name_check_family(const char *id)
{
    if (id[0] != '\0' && all_id_characters(id) && strlen(id) <= LIMIT_FAMILY_NAME_BYTES)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid column family id '%s': must match [-_.a-zA-Z0-9]+ and have at most "
                       "%d characters",
                       id, LIMIT_FAMILY_NAME_BYTES);
}

status name_check_resource_id(const char *label, const char *id)
{
    if ((is_alphanumeric(id[0]) || id[0] == '_') && all_id_characters(id) &&
        strlen(id) <= LIMIT_RESOURCE_ID_BYTES)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid %s id '%s': must match [_a-zA-Z0-9][-_.a-zA-Z0-9]* and have at "
                       "most %d characters",
                       label, id, LIMIT_RESOURCE_ID_BYTES);
}

static bool is_lower_case(char c)
{
    return c >= 'a' && c <= 'z';
}

status name_check_zonal_id(const char *label, const char *id, size_t most)
{
    size_t size = strlen(id);
    bool fits = size > 0 && size <= most && is_lower_case(id[0]) && id[size - 1] != '-';
    for (size_t i = 0; i < size && fits; i++)
        fits = is_lower_case(id[i]) || (id[i] >= '0' && id[i] <= '9') || id[i] == '-';
    if (fits)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid %s id '%s': must match [a-z][-a-z0-9]*[a-z0-9] and have at most "
                       "%zu characters",
                       label, id, most);
}

static bool has_form(const char *name, const char *form)
{
    for (;;) {
        size_t there = strcspn(name, "/"), wanted = strcspn(form, "/");
        bool fits = *form == '{' ? there > 0 : there == wanted && memcmp(name, form, there) == 0;
        if (!fits || (name[there] == '\0') != (form[wanted] == '\0'))
            return false;
        if (form[wanted] == '\0')
            return true;
        name += there + 1;
        form += wanted + 1;
    }
}

status name_check_form(const char *label, const char *name, const char *form)
{
    if (has_form(name, form))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid %s name '%s': expected %s", label, name,
                       form);
}

char *name_join(struct arena *arena, const char *parent, const char *collection, const char *id)
{
    size_t size = strlen(parent) + strlen(collection) + strlen(id) + sizeof "//";
    char *name = arena_alloc(arena, size);
    if (name != NULL)
        snprintf(name, size, "%s/%s/%s", parent, collection, id);
    return name;
}

char *name_under(struct arena *arena, const char *parent, const char *name)
{
    size_t size = strlen(parent) + strlen(name) + sizeof "/";
    char *whole = arena_alloc(arena, size);
    if (whole != NULL)
        snprintf(whole, size, "%s/%s", parent, name);
    return whole;
}

char *name_parent(struct arena *arena, const char *name)
{
    return arena_string(arena, bytes_make(name, resource_parent_size(name)));
}

char *name_of_table(struct arena *arena, const char *instance, const char *table_id)
{
    return name_join(arena, instance, "tables", table_id);
}

const char *name_id(const char *name)
{
    return strrchr(name, '/') + 1;
}
