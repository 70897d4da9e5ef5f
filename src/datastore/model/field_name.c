/* See field_name.h. */
#include "datastore/model/field_name.h"

#include "datastore/model/validate.h"

#include <ctype.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

enum { PARENT_SEGMENTS = 6, FIELD_SEGMENTS = 8 };

static const char *const literals[FIELD_SEGMENTS] = {"projects",         NULL, "databases", NULL,
                                                     "collectionGroups", NULL, "fields",    NULL};

/* --- segments --- */

static status refuse(const char *name, size_t count)
{
    return INVALID("Invalid name '%s': expected projects/{project}/databases/{database}/"
                   "collectionGroups/{kind}%s",
                   name, count == FIELD_SEGMENTS ? "/fields/{property}" : "");
}

static status split(const char *name, size_t count, struct arena *arena, const char **segments)
{
    const char *rest = name;
    for (size_t i = 0; i < count; i++) {
        size_t size = strcspn(rest, "/");
        bool is_last = i + 1 == count;
        segments[i] = arena_string(arena, bytes_make((const uint8_t *)rest, size));
        if (segments[i] == NULL)
            return status_out_of_memory();
        if (size == 0 || (rest[size] == '/') == is_last ||
            (literals[i] != NULL && strcmp(segments[i], literals[i]) != 0))
            return refuse(name, count);
        rest += is_last ? size : size + 1;
    }
    return status_ok();
}

static bool is_reserved(const char *name)
{
    return strncmp(name, "__", 2) == 0;
}

static status take_parent(const char *const *segments, struct ds_field_name *out)
{
    bool is_default = strcmp(segments[3], "(default)") == 0;
    out->database = (struct ds_database){segments[1], is_default ? "" : segments[3]};
    out->kind = segments[5];
    if (is_reserved(out->kind))
        return INVALID("The kind \"%s\" is reserved.", out->kind);
    return ds_kind_check(out->kind);
}

/* --- paths --- */

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static status refuse_path(const char *path)
{
    return INVALID("Invalid field path '%s': names with dots between, in backticks if they have "
                   "other characters than letters, digits and underscores",
                   path);
}

/* Takes a name from the front of `*rest`; false if there is none. */
static bool take_name(const char **rest, struct buffer *out)
{
    const char *at = *rest;
    bool is_quoted = *at == '`';
    at += is_quoted;
    while (is_quoted ? *at != '`' && *at != '\0' : is_plain(*at)) {
        if (is_quoted && *at == '\\' && *++at == '\0')
            return false;
        buffer_append_byte(out, (uint8_t)*at++);
    }
    if (is_quoted && *at++ != '`')
        return false;
    *rest = at;
    return out->size > 0;
}

static status add_name(const char **rest, const char *path, struct arena *arena,
                       struct ds_property_path *out)
{
    struct buffer name = {0};
    bool is_name = take_name(rest, &name);
    const char *kept = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    if (kept == NULL)
        return status_out_of_memory();
    if (!is_name || (**rest != '\0' && **rest != '.'))
        return refuse_path(path);
    out->names[out->count++] = kept;
    return ds_property_name_check(kept);
}

static status parse_path(const char *path, struct arena *arena, struct ds_property_path *out)
{
    const char *rest = path;
    out->names = arena_alloc(arena, (strlen(path) / 2 + 1) * sizeof *out->names);
    out->count = 0;
    if (out->names == NULL)
        return status_out_of_memory();
    TRY(add_name(&rest, path, arena, out));
    while (*rest++ == '.')
        TRY(add_name(&rest, path, arena, out));
    return status_ok();
}

/* --- writing names --- */

static bool needs_quotes(const char *name)
{
    bool needs = isdigit((unsigned char)name[0]);
    for (const char *at = name; *at != '\0'; at++)
        needs = needs || !is_plain(*at);
    return needs;
}

static void append_name(struct buffer *out, const char *name)
{
    bool is_quoted = needs_quotes(name);
    if (is_quoted)
        buffer_append_byte(out, '`');
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == '`' || *at == '\\')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*at);
    }
    if (is_quoted)
        buffer_append_byte(out, '`');
}

static status keep(struct buffer *made, struct arena *arena, const char **out)
{
    *out = made->failed ? NULL : arena_string(arena, buffer_bytes(made));
    buffer_free(made);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status make_names(const char *const *segments, struct arena *arena,
                         struct ds_field_name *out)
{
    struct buffer database = {0}, name = {0}, property = {0};
    buffer_append_format(&database, "projects/%s/databases/%s", segments[1], segments[3]);
    buffer_append_format(&name, "projects/%s/databases/%s/collectionGroups/%s", segments[1],
                         segments[3], out->kind);
    for (size_t i = 0; i < out->path.count; i++) {
        buffer_append_format(&name, "%s", i == 0 ? "/fields/" : ".");
        append_name(&name, out->path.names[i]);
        buffer_append_format(&property, i == 0 ? "%s" : ".%s", out->path.names[i]);
    }
    status s = keep(&database, arena, &out->database_name);
    if (status_is_ok(s))
        s = keep(&name, arena, &out->name);
    else
        buffer_free(&name);
    if (status_is_ok(s))
        return keep(&property, arena, &out->property);
    buffer_free(&property);
    return s;
}

status ds_field_parse(const char *name, struct arena *arena, struct ds_field_name *out)
{
    const char *segments[FIELD_SEGMENTS];
    *out = (struct ds_field_name){.kind = NULL};
    TRY(split(name, FIELD_SEGMENTS, arena, segments));
    TRY(take_parent(segments, out));
    TRY(parse_path(segments[FIELD_SEGMENTS - 1], arena, &out->path));
    return make_names(segments, arena, out);
}

status ds_field_parent_parse(const char *name, struct arena *arena, struct ds_field_name *out)
{
    const char *segments[PARENT_SEGMENTS];
    *out = (struct ds_field_name){.kind = NULL};
    TRY(split(name, PARENT_SEGMENTS, arena, segments));
    TRY(take_parent(segments, out));
    return make_names(segments, arena, out);
}
