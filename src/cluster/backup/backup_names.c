/* Names of backups and of their directories.
 *
 * projects/P/instances/I/clusters/C/backups/B is the directory P,I,C,B; bytes that are not letters,
 * digits, or one of . _ - : are written %XX. */
#include "base/check.h"
#include "cluster/backup/backup_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 4, LONGEST_NAME = 255 /* of a file, on most file systems */ };

static const char *const collections[PARTS] = {"projects/", "/instances/", "/clusters/",
                                               "/backups/"};

const char *path_join(struct buffer *path, const char *directory, const char *name)
{
    buffer_clear(path);
    buffer_append_bytes(path, bytes_of(directory));
    buffer_append_byte(path, '/');
    buffer_append(path, name, strlen(name) + 1);
    return path->failed ? NULL : (const char *)path->data;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("._-:", c) != NULL);
}

/* --- to a directory's name --- */

/* Appends what stands before the next slash; returns what is left, NULL if there was nothing. */
static const char *append_part(const char *from, struct buffer *out)
{
    const char *at = from;
    for (; *at != 0 && *at != '/'; at++) {
        if (is_plain(*at))
            buffer_append_byte(out, (uint8_t)*at);
        else
            buffer_append_format(out, "%%%02X", (unsigned char)*at);
    }
    return at == from ? NULL : at;
}

static bool append_parts(const char *backup, struct buffer *out)
{
    for (int i = 0; i < PARTS; i++) {
        size_t size = strlen(collections[i]);
        if (strncmp(backup, collections[i], size) != 0)
            return false;
        if (i > 0)
            buffer_append_byte(out, ',');
        backup = append_part(backup + size, out);
        if (backup == NULL)
            return false;
    }
    return *backup == 0 && out->size <= LONGEST_NAME;
}

status backup_directory_name(const char *backup, struct buffer *out)
{
    if (!append_parts(backup, out))
        return status_make(STATUS_INVALID_ARGUMENT, "not the name of a backup: %s", backup);
    buffer_append_byte(out, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- and back --- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool decode(const char *name, struct buffer *out)
{
    int part = 0;
    buffer_append_bytes(out, bytes_of(collections[part]));
    for (; *name != 0; name++) {
        int high = *name == '%' ? hex_value(name[1]) : -1;
        int low = high >= 0 ? hex_value(name[2]) : -1;
        if (*name == ',' && ++part < PARTS) {
            buffer_append_bytes(out, bytes_of(collections[part]));
        } else if (low >= 0) {
            buffer_append_byte(out, (uint8_t)(high << 4 | low));
            name += 2;
        } else if (is_plain(*name)) {
            buffer_append_byte(out, (uint8_t)*name);
        } else {
            return false;
        }
    }
    buffer_append_byte(out, 0);
    return part == PARTS - 1 && !out->failed;
}

bool backup_name_of_directory(const char *name, struct buffer *out)
{
    struct buffer again = {0};
    bool is_name = decode(name, out);
    if (is_name) {
        status s = backup_directory_name((const char *)out->data, &again);
        is_name = status_is_ok(s) && strcmp((const char *)again.data, name) == 0;
        status_free(s);
    }
    buffer_free(&again);
    return is_name;
}

/* --- removing --- */

struct removal {
    struct files *files;
    const char *directory;
    struct buffer path;
};

static bool is_ours(const char *name)
{
    size_t size = strlen(name);
    return strcmp(name, "MANIFEST.new") == 0 ||
           (size > 4 && isdigit((unsigned char)name[0]) && strcmp(name + size - 4, ".sst") == 0);
}

static status remove_file(void *context, const char *name)
{
    struct removal *removal = context;
    if (!is_ours(name))
        return status_ok();
    if (path_join(&removal->path, removal->directory, name) == NULL)
        return status_out_of_memory();
    return files_remove(removal->files, (const char *)removal->path.data);
}

static status remove_manifest(struct removal *removal)
{
    if (path_join(&removal->path, removal->directory, "MANIFEST") == NULL)
        return status_out_of_memory();
    TRY(files_remove(removal->files, (const char *)removal->path.data));
    return files_sync_directory(removal->files, removal->directory);
}

status backup_remove_directory(struct files *files, const char *directory)
{
    struct removal removal = {.files = files, .directory = directory};
    status s = remove_manifest(&removal);
    if (status_is_ok(s))
        s = files_list(files, directory, remove_file, &removal);
    if (status_is_ok(s))
        s = files_remove_directory(files, directory);
    buffer_free(&removal.path);
    return s;
}
