/* The checkpoint of an import: a line of JSON, replaced as a whole. */
#include "cmd/import.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

/* --- writing --- */

static status write_all(int fd, const char *path, const char *text)
{
    size_t size = strlen(text);
    while (size > 0) {
        ssize_t count = write(fd, text, size);
        if (count < 0)
            return status_from_errno(errno, "cannot write %s", path);
        text += count;
        size -= (size_t)count;
    }
    return fsync(fd) == 0 ? status_ok() : status_from_errno(errno, "cannot sync %s", path);
}

static status replace_file(const char *path, const char *text)
{
    struct buffer fresh = {0};
    buffer_append_format(&fresh, "%s.new%c", path, 0);
    if (fresh.failed)
        return status_out_of_memory();
    const char *name = (const char *)fresh.data;
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    status s =
        fd < 0 ? status_from_errno(errno, "cannot write %s", name) : write_all(fd, name, text);
    if (fd >= 0)
        close(fd);
    if (status_is_ok(s) && rename(name, path) != 0)
        s = status_from_errno(errno, "cannot replace %s", path);
    buffer_free(&fresh);
    return s;
}

status import_state_write(const char *path, const char *identity, const struct import_state *state)
{
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "import", identity, "file",
                  (json_int_t)state->file, "line", (json_int_t)state->line, "items",
                  (json_int_t)state->counts.items, "rejected", (json_int_t)state->counts.rejected,
                  "bytes", (json_int_t)state->counts.bytes, "rejects_bytes",
                  (json_int_t)state->rejects_bytes, "timestamp_us", (json_int_t)state->default_us);
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    status s = text == NULL ? status_out_of_memory() : replace_file(path, text);
    free(text);
    json_decref(json);
    return s;
}

/* --- reading --- */

static status damaged(const char *path, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the checkpoint %s %s; without it the import begins anew",
                       path, what);
}

static status take(const char *path, const json_t *json, const char *identity,
                   struct import_state *out)
{
    const char *found;
    json_int_t file, line, items, rejected, bytes, rejects_bytes, timestamp_us;
    /* jansson does not change what it unpacks. */
    if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "import",
                    &found, "file", &file, "line", &line, "items", &items, "rejected", &rejected,
                    "bytes", &bytes, "rejects_bytes", &rejects_bytes, "timestamp_us",
                    &timestamp_us) != 0)
        return damaged(path, "cannot be read");
    if (strcmp(found, identity) != 0)
        return status_make(
            STATUS_FAILED_PRECONDITION,
            "the checkpoint %s is of another import, or of other options: %s. Remove "
            "it, or name another by --checkpoint",
            path, found);
    *out = (struct import_state){.file = (uint64_t)file,
                                 .line = (uint64_t)line,
                                 .counts = {.items = (uint64_t)items,
                                            .rejected = (uint64_t)rejected,
                                            .bytes = (uint64_t)bytes},
                                 .rejects_bytes = (uint64_t)rejects_bytes,
                                 .default_us = timestamp_us};
    return status_ok();
}

status import_state_read(const char *path, const char *identity, struct import_state *out,
                         bool *found)
{
    struct buffer text = {0};
    json_error_t error;
    *found = false;
    *out = (struct import_state){0};
    status s = file_read(path, MOST_BYTES, 0, &text);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    json_t *json = json_loadb((const char *)text.data, text.size, 0, &error);
    buffer_free(&text);
    if (json == NULL)
        return damaged(path, "is no JSON");
    s = take(path, json, identity, out);
    *found = status_is_ok(s);
    json_decref(json);
    return s;
}
