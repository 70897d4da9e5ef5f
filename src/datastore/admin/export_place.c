/* See export_place.h. */
#include "datastore/admin/export_place.h"

#include "base/siphash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { MOST_PART = 200 /* file systems have 255 */, MOST_URL = 1500, MOST_NAME = 80 };

__attribute__((format(printf, 3, 4))) static status
format_text(struct arena *arena, const char **out, const char *format, ...)
{
    va_list arguments;
    char scratch[2 * MOST_URL + 4096];
    va_start(arguments, format);
    int size = vsnprintf(scratch, sizeof scratch, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof scratch)
        return status_make(STATUS_INVALID_ARGUMENT, "The name of a file is too long.");
    *out = arena_string(arena, bytes_make(scratch, (size_t)size));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* --- parts --- */

static bool is_part(bytes part)
{
    if (part.size == 0 || part.size > MOST_PART || bytes_equal(part, bytes_of(".")) ||
        bytes_equal(part, bytes_of("..")))
        return false;
    for (size_t i = 0; i < part.size; i++)
        if (part.data[i] < ' ' || part.data[i] == 0x7f)
            return false;
    return true;
}

/* Up to the next slash. */
static bytes next_part(const char *path)
{
    const char *end = strchr(path, '/');
    return bytes_make(path, end == NULL ? strlen(path) : (size_t)(end - path));
}

/* One part or more. */
static bool is_path(const char *path)
{
    for (;;) {
        bytes part = next_part(path);
        if (!is_part(part))
            return false;
        if (path[part.size] == '\0')
            return true;
        path += part.size + 1;
    }
}

/* --- URLs --- */

static status refuse(const char *url, const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT, "\"%.*s\" is no place for an export: %s", MOST_URL,
                       url, why);
}

/* The path behind gs://, without slashes at its end. */
static status take_path(const char *directory, const char *url, struct arena *arena,
                        const char **out)
{
    if (directory == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "This server has no directory for exports: start it with "
                           "--export-directory");
    size_t size = strlen(url);
    if (size > MOST_URL)
        return refuse(url, "it is too long");
    if (strncmp(url, "gs://", 5) != 0)
        return refuse(url, "it is not of the form gs://BUCKET/PATH");
    while (size > 5 && url[size - 1] == '/')
        size--;
    *out = arena_string(arena, bytes_make(url + 5, size - 5));
    if (*out == NULL)
        return status_out_of_memory();
    return is_path(*out) ? status_ok() : refuse(url, "a part of it cannot be the name of a file");
}

static status set_place(const char *directory, const char *path, struct arena *arena,
                        struct ds_export_place *out)
{
    out->directory = directory;
    TRY(format_text(arena, &out->url, "gs://%s", path));
    TRY(format_text(arena, &out->path, "%s/%s", directory, path));
    out->name = strrchr(out->path, '/') + 1;
    return status_ok();
}

/* 2026-11-21T22:53:43_93800: as Google names exports that have no name. */
static status time_name(int64_t now_us, struct arena *arena, const char **out)
{
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm parts;
    char text[32];
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return format_text(arena, out, "%s_%05" PRId64, text, now_us % 1000000 / 10);
}

status ds_export_place(const char *directory, const char *url, int64_t now_us, struct arena *arena,
                       struct ds_export_place *out)
{
    const char *path, *name;
    TRY(take_path(directory, url, arena, &path));
    if (strchr(path, '/') == NULL) {
        TRY(time_name(now_us, arena, &name));
        TRY(format_text(arena, &path, "%s/%s", path, name));
    }
    return set_place(directory, path, arena, out);
}

status ds_import_place(const char *directory, const char *url, struct arena *arena,
                       struct ds_export_place *out)
{
    const char *path;
    TRY(take_path(directory, url, arena, &path));
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return refuse(url, "it does not name the overall metadata of one");
    const char *file = slash + 1;
    path = arena_string(arena, bytes_make(path, (size_t)(slash - path)));
    if (path == NULL)
        return status_out_of_memory();
    TRY(set_place(directory, path, arena, out));
    size_t size = strlen(file), suffix = sizeof DS_OVERALL_SUFFIX - 1;
    if (size <= suffix || strcmp(file + size - suffix, DS_OVERALL_SUFFIX) != 0)
        return refuse(url, "it does not end with " DS_OVERALL_SUFFIX);
    out->name = arena_string(arena, bytes_make(file, size - suffix));
    return out->name == NULL ? status_out_of_memory() : status_ok();
}

/* --- files --- */

static status check_file(const char *file)
{
    if (is_path(file))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "An export names a file that cannot be one of its own: \"%.*s\"", MOST_URL,
                       file);
}

status ds_export_file(const struct ds_export_place *place, const char *file, struct arena *arena,
                      const char **out)
{
    TRY(check_file(file));
    return format_text(arena, out, "%s/%s", place->path, file);
}

status ds_export_file_url(const struct ds_export_place *place, const char *file,
                          struct arena *arena, const char **out)
{
    TRY(check_file(file));
    return format_text(arena, out, "%s/%s", place->url, file);
}

status ds_overall_file(const struct ds_export_place *place, struct arena *arena, const char **out)
{
    return format_text(arena, out, "%s" DS_OVERALL_SUFFIX, place->name);
}

static void append_safe(struct buffer *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < ' ' || c == 0x7f || c == '/' || c == '%')
            buffer_append_format(out, "%%%02X", c);
        else
            buffer_append_byte(out, c);
    }
}

/* A name that is too long is told from others by its fingerprint. */
static void shorten(struct buffer *out, const char *text)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, bytes_of(text));
    struct fingerprint print = siphash_finish(&hash);
    out->size = MOST_NAME - 18;
    while (out->size > 0 && (out->data[out->size] & 0xc0) == 0x80) /* no half of a character */
        out->size--;
    buffer_append_format(out, "%%~%016" PRIx64, print.words[0]);
}

status ds_file_name_of(const char *text, struct arena *arena, const char **out)
{
    struct buffer name = {0};
    append_safe(&name, text);
    if (name.size > MOST_NAME && !name.failed)
        shorten(&name, text);
    *out = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    return *out == NULL ? status_out_of_memory() : status_ok();
}
