/* See database_name.h. */
#include "datastore/database_name.h"

/* A collection and an id off the front of the text, which ends with them or goes on behind a '/'.
 * `*id` NULL: it has ended before. False if it is not that collection, or has no id. */
static bool take_pair(const char **text, const char *collection, struct arena *arena,
                      const char **id, bool *is_short)
{
    size_t size = strlen(collection);
    *id = NULL;
    if (**text == '\0')
        return true;
    if (strncmp(*text, collection, size) != 0 || (*text)[size] != '/')
        return false;
    *text += size + 1;
    const char *end = strchrnul(*text, '/');
    if (end == *text || (*end == '/' && end[1] == '\0'))
        return false;
    *id = arena_string(arena, bytes_make(*text, (size_t)(end - *text)));
    *is_short = *is_short || *id == NULL;
    *text = *end == '/' ? end + 1 : end;
    return true;
}

status ds_database_name_parse(const char *name, struct arena *arena, struct ds_database_name *out)
{
    const char *rest = name;
    bool is_short = false;
    *out = (struct ds_database_name){0};
    bool is_name = take_pair(&rest, "projects", arena, &out->project, &is_short) &&
                   take_pair(&rest, "databases", arena, &out->database, &is_short) &&
                   take_pair(&rest, "collectionGroups", arena, &out->kind, &is_short) &&
                   take_pair(&rest, "indexes", arena, &out->index, &is_short) && *rest == '\0';
    if (is_short)
        return status_out_of_memory();
    if (!is_name || out->database == NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Invalid name '%s': expected "
                           "projects/{project}/databases/{database}/collectionGroups/{kind}, with "
                           "/indexes/{index} for an index",
                           name);
    if (strcmp(out->database, "(default)") == 0)
        out->database = "";
    return status_ok();
}
