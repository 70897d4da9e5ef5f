/* See names.h. */
#include "bigtable/names.h"

#include "base/limits.h"
#include "base/zonal_id.h"
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

/* How many there are of them at the beginning. */
static size_t id_characters(const char *id)
{
    size_t count = 0;
    while (is_id_character(id[count]))
        count++;
    return count;
}

static bool all_id_characters(const char *id)
{
    return id[id_characters(id)] == '\0';
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

/* --- ids, refused in production's words --- */

static status wrong_size(const char *collection, size_t least, size_t most, const char *id)
{
    char shown[64] = "";
    if (*id != '\0')
        snprintf(shown, sizeof shown, " '%.40s%s'", id, strlen(id) > 40 ? "..." : "");
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid id for collection %s : Length should be between [%zu,%zu], but "
                       "found %zu%s",
                       collection, least, most, strlen(id), shown);
}

static status wrong_form(const char *collection, const char *form, const char *id)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid id for collection %s : Should match %s but found '%s'", collection,
                       form, id);
}

static bool is_of_size(const char *id, size_t most)
{
    size_t size = strnlen(id, most + 1);
    return size > 0 && size <= most;
}

status name_check_table_id(const char *id)
{
    if (!is_of_size(id, LIMIT_TABLE_ID_BYTES))
        return wrong_size("tables", 1, LIMIT_TABLE_ID_BYTES, id);
    if ((is_alphanumeric(id[0]) || id[0] == '_') && all_id_characters(id))
        return status_ok();
    return wrong_form("tables", "[_a-zA-Z0-9][-_.a-zA-Z0-9]*", id);
}

static __attribute__((noinline)) status refuse_family(const char *id)
{
    if (!is_of_size(id, LIMIT_FAMILY_NAME_BYTES))
        return wrong_size("columnFamilies", 1, LIMIT_FAMILY_NAME_BYTES, id);
    return wrong_form("columnFamilies", "[-_.a-zA-Z0-9]+", id);
}

/* Each mutation names one, so what is right is looked at once, and refusing is out of the way. */
status name_check_family(const char *id)
{
    size_t size = id_characters(id);
    bool is_right = id[size] == '\0' && size > 0 && size <= LIMIT_FAMILY_NAME_BYTES;
    return is_right ? status_ok() : refuse_family(id);
}

status name_check_resource_id(const char *label, const char *id, size_t most)
{
    if ((is_alphanumeric(id[0]) || id[0] == '_') && all_id_characters(id) && strlen(id) <= most)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid %s id '%s': must match [_a-zA-Z0-9][-_.a-zA-Z0-9]* and have at "
                       "most %zu characters",
                       label, id, most);
}

/* The least that is told is production's; here one character is enough. */
status name_check_zonal_id(const char *collection, const char *id, size_t most)
{
    enum { LEAST = 6 };
    if (!is_of_size(id, most))
        return wrong_size(collection, LEAST, most, id);
    return zonal_id_has_form(id) ? status_ok()
                                 : wrong_form(collection, "[a-z][-a-z0-9]*[a-z0-9]", id);
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
