/* See edits_file.h. */
#include "replica/edits_file.h"

#include "os/file.h"
#include "trestle/catalog.pb-c.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { MESSAGE_MEMORY = 64 << 20 };

/* --- one difference --- */

struct writing {
    struct buffer *out;
    struct arena *arena; /* of a message */
    size_t count;
};

static void append_key(struct writing *writing, const char *key, const char *text)
{
    buffer_append_format(writing->out, "\"%s\": ", key);
    json_encode_string(bytes_of(text), writing->out);
    buffer_append_bytes(writing->out, bytes_of(", "));
}

static void append_message(struct writing *writing, const char *key,
                           const ProtobufCMessage *message)
{
    const struct json_style style = {.compact = true};
    buffer_append_format(writing->out, "\"%s\": ", key);
    json_encode(message, &style, writing->out);
    buffer_append_bytes(writing->out, bytes_of(", "));
}

static void begin(struct writing *writing, const char *kind, const char *name)
{
    buffer_append_bytes(writing->out, bytes_of(writing->count++ == 0 ? "\n  {" : ",\n  {"));
    append_key(writing, "kind", kind);
    append_key(writing, "name", name);
}

/* In place of the last ", ". */
static void end(struct writing *writing)
{
    if (writing->out->failed)
        return;
    writing->out->size -= 2;
    buffer_append_byte(writing->out, '}');
}

/* --- tables --- */

static status append_table(struct writing *writing, const char *key,
                           const struct shared_table *table)
{
    ProtobufCMessage *message;
    if (table == NULL)
        return status_ok();
    arena_reset(writing->arena);
    TRY(proto_decode(&catalog__table__descriptor, table->record, writing->arena, &message));
    append_message(writing, key, message);
    return status_ok();
}

static bool is_same_table(const struct shared_table *a, const struct shared_table *b)
{
    return a != NULL && b != NULL && a->uid == b->uid && bytes_equal(a->record, b->record);
}

/* Any of the two may be NULL. */
static status write_table(struct writing *writing, const struct shared_table *here,
                          const struct shared_table *there)
{
    const struct shared_table *any = here != NULL ? here : there;
    if (is_same_table(here, there))
        return status_ok();
    begin(writing, "table", any->name);
    buffer_append_format(writing->out, "\"uid\": \"%" PRIu64 "\", ", any->uid);
    TRY(append_table(writing, "here", here));
    TRY(append_table(writing, "there", there));
    end(writing);
    return status_ok();
}

static status write_tables(struct writing *writing, const struct schema_snapshot *here,
                           const struct schema_snapshot *there)
{
    const struct shared_table *own = here->tables.items, *others = there->tables.items;
    for (size_t i = 0; i < here->tables.count; i++)
        TRY(write_table(writing, &own[i], schema_snapshot_table(there, own[i].name)));
    for (size_t i = 0; i < there->tables.count; i++)
        if (schema_snapshot_table(here, others[i].name) == NULL)
            TRY(write_table(writing, NULL, &others[i]));
    return status_ok();
}

/* --- resources --- */

static status append_resource(struct writing *writing, const char *key,
                              const struct resource *resource)
{
    ProtobufCMessage *message;
    if (resource == NULL)
        return status_ok();
    arena_reset(writing->arena);
    TRY(resource_decode(resource, writing->arena, &message));
    append_message(writing, key, message);
    return status_ok();
}

static bool is_same_resource(const struct resource *a, const struct resource *b)
{
    return a != NULL && b != NULL && a->version == b->version && bytes_equal(a->body, b->body) &&
           bytes_equal(a->extra, b->extra);
}

static status write_resource(struct writing *writing, const struct resource *here,
                             const struct resource *there)
{
    const struct resource *any = here != NULL ? here : there;
    if (is_same_resource(here, there))
        return status_ok();
    begin(writing, resource_type(any->kind)->label, any->name);
    TRY(append_resource(writing, "here", here));
    TRY(append_resource(writing, "there", there));
    end(writing);
    return status_ok();
}

static status write_resources(struct writing *writing, const struct schema_snapshot *here,
                              const struct schema_snapshot *there)
{
    struct resource *const *own = here->resources.items, *const *others = there->resources.items;
    for (size_t i = 0; i < here->resources.count; i++)
        TRY(write_resource(writing, own[i],
                           schema_snapshot_resource(there, own[i]->kind, own[i]->name)));
    for (size_t i = 0; i < there->resources.count; i++)
        if (schema_snapshot_resource(here, others[i]->kind, others[i]->name) == NULL)
            TRY(write_resource(writing, NULL, others[i]));
    return status_ok();
}

status edits_append_differences(const struct schema_snapshot *here,
                                const struct schema_snapshot *there, struct buffer *out,
                                size_t *count)
{
    struct writing writing = {.out = out, .arena = arena_create(MESSAGE_MEMORY)};
    status s = writing.arena == NULL ? status_out_of_memory() : status_ok();
    if (status_is_ok(s))
        s = write_resources(&writing, here, there);
    if (status_is_ok(s))
        s = write_tables(&writing, here, there);
    if (status_is_ok(s) && out->failed)
        s = status_out_of_memory();
    arena_destroy(writing.arena);
    *count = writing.count;
    return s;
}

/* --- the file --- */

static status write_all(int fd, bytes text)
{
    while (text.size > 0) {
        ssize_t written = write(fd, text.data, text.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return status_from_errno(errno, "cannot write the file of edits");
        text = bytes_make(text.data + written, text.size - (size_t)written);
    }
    return fsync(fd) == 0 ? status_ok() : status_from_errno(errno, "cannot sync the file of edits");
}

static status write_beside(const char *path, bytes text)
{
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%s.part", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return status_from_errno(errno, "cannot make %s", beside);
    status s = write_all(fd, text);
    close(fd);
    TRY(s);
    if (rename(beside, path) != 0)
        return status_from_errno(errno, "cannot name %s", path);
    return file_sync_parent(path);
}

status edits_file_write(const struct edits_file *file, const struct schema_snapshot *here,
                        const struct schema_snapshot *there, size_t *count)
{
    char path[PATH_MAX];
    struct buffer out = {0};
    *count = 0;
    int size = snprintf(path, sizeof path - 8, "%s/edits-of-epoch-%" PRIu64 ".json",
                        file->directory, file->epoch);
    if (size < 0 || (size_t)size >= sizeof path - 8)
        return status_make(STATUS_INVALID_ARGUMENT, "the data directory's name is too long");
    if (access(path, F_OK) == 0)
        return file_sync_parent(path);
    buffer_append_format(&out, "{\"epoch\": \"%" PRIu64 "\", \"follows\": %u, \"differences\": [",
                         file->epoch, file->follows);
    status s = edits_append_differences(here, there, &out, count);
    buffer_append_bytes(&out, bytes_of("]}\n"));
    if (status_is_ok(s) && out.failed)
        s = status_out_of_memory();
    if (status_is_ok(s) && *count > 0)
        s = write_beside(path, buffer_bytes(&out));
    buffer_free(&out);
    return s;
}
