/* See names.h. */
#include "bigtable/names.h"

#include "base/limits.h"

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

char *name_of_table(struct arena *arena, const char *instance, const char *table_id)
{
    size_t size = strlen(instance) + strlen("/tables/") + strlen(table_id) + 1;
    char *name = arena_alloc(arena, size);
    if (name != NULL)
        snprintf(name, size, "%s/tables/%s", instance, table_id);
    return name;
}

const char *name_table_id(const char *table_name)
{
    return strrchr(table_name, '/') + 1;
}
