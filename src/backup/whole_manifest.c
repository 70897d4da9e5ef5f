/* The manifest of a whole backup: the line "trestle whole backup 1", a message
 * (proto/trestle/backup.proto), and the SHA-256 of all before it. One of a part of a server begins
 * with a 2: a release that knows no parts would restore it as if it were all. */
#include "backup/whole_private.h"
#include "backup/whole_scope.h"

#include "aws/bucket.h"
#include "trestle/backup.pb-c.h"
#include "wire/proto.h"

#include <stdlib.h>

static const char PREFIX[] = "trestle whole backup ";
static const char HEAD[] = "trestle whole backup 1\n";
static const char HEAD_OF_PART[] = "trestle whole backup 2\n";
enum { HEAD_SIZE = sizeof HEAD - 1, MOST_BYTES = WHOLE_MEMORY / 4 };

uint64_t whole_size(const struct whole_backup *backup)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < backup->file_count; i++)
        sum += backup->files[i].size;
    return sum;
}

static status append_digest(struct buffer *out)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    if (out->failed)
        return status_out_of_memory();
    TRY(digest_compute(DIGEST_SHA256, buffer_bytes(out), digest, &size));
    buffer_append(out, digest, size);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- writing --- */

static status files_to_messages(const struct whole_backup *backup, struct arena *arena,
                                Backup__WholeBackup *message)
{
    message->files = arena_alloc(arena, backup->file_count * sizeof *message->files);
    if (message->files == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < backup->file_count; i++) {
        const struct whole_file *file = &backup->files[i];
        Backup__WholeFile *each;
        PROTO_NEW(arena, each, BACKUP__WHOLE_FILE__INIT);
        each->name = file->name;
        each->size = file->size;
        each->sha256 = proto_data(bytes_make(file->sha256, WHOLE_DIGEST_SIZE));
        each->tail_crc32c = file->tail_crc32c;
        message->files[i] = each;
    }
    message->n_files = backup->file_count;
    return status_ok();
}

status whole_encode(const struct whole_backup *backup, struct arena *arena, struct buffer *out)
{
    Backup__WholeBackup message = BACKUP__WHOLE_BACKUP__INIT;
    message.server = backup->server;
    message.version = backup->version;
    message.instant_us = backup->instant_us;
    message.start_us = backup->start_us;
    message.end_us = backup->end_us;
    message.program = backup->program;
    message.settings = backup->settings;
    message.is_scheduled = backup->is_scheduled;
    message.archive_stream = backup->archive_stream;
    message.closed_ranges = backup->closed_ranges;
    message.scope = whole_is_part(backup) ? backup->scope : "";
    TRY(files_to_messages(backup, arena, &message));
    buffer_append(out, whole_is_part(backup) ? HEAD_OF_PART : HEAD, HEAD_SIZE);
    proto_encode(&message.base, out);
    return append_digest(out);
}

/* --- reading --- */

static status damaged(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the manifest is damaged: %s", what);
}

/* A name that leads out of the directory would be an attack. */
static bool is_sound(const Backup__WholeFile *file)
{
    return file->name[0] != 0 && file->name[0] != '.' && strchr(file->name, '/') == NULL &&
           file->sha256.len == WHOLE_DIGEST_SIZE;
}

static status files_from_messages(const Backup__WholeBackup *message, struct arena *arena,
                                  struct whole_backup *out)
{
    out->files = arena_alloc(arena, message->n_files * sizeof *out->files);
    if (out->files == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_files; i++) {
        const Backup__WholeFile *file = message->files[i];
        if (!is_sound(file))
            return damaged("a file has no proper name or digest");
        out->files[i] = (struct whole_file){
            .name = file->name, .size = file->size, .tail_crc32c = file->tail_crc32c};
        memcpy(out->files[i].sha256, file->sha256.data, WHOLE_DIGEST_SIZE);
    }
    out->file_count = message->n_files;
    return status_ok();
}

/* The message between head and digest. */
static status unwrap(bytes content, bytes *out)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    if (!bytes_start_with(content, bytes_of(PREFIX)) ||
        content.size < HEAD_SIZE + WHOLE_DIGEST_SIZE)
        return damaged("it does not begin as one");
    if (!bytes_start_with(content, bytes_of(HEAD)) &&
        !bytes_start_with(content, bytes_of(HEAD_OF_PART)))
        return status_make(STATUS_FAILED_PRECONDITION, "a later release wrote this backup");
    bytes summed = bytes_make(content.data, content.size - WHOLE_DIGEST_SIZE);
    TRY(digest_compute(DIGEST_SHA256, summed, digest, &size));
    if (memcmp(digest, content.data + summed.size, WHOLE_DIGEST_SIZE) != 0)
        return damaged("its digest is wrong");
    *out = bytes_from(summed, HEAD_SIZE);
    return status_ok();
}

static status from_message(bytes content, struct arena *arena, struct whole_backup *out)
{
    ProtobufCMessage *base;
    TRY(proto_decode(&backup__whole_backup__descriptor, content, arena, &base));
    const Backup__WholeBackup *message = (const void *)base;
    *out = (struct whole_backup){.server = message->server,
                                 .version = message->version,
                                 .instant_us = message->instant_us,
                                 .start_us = message->start_us,
                                 .end_us = message->end_us,
                                 .program = message->program,
                                 .settings = message->settings,
                                 .is_scheduled = message->is_scheduled,
                                 .archive_stream = message->archive_stream,
                                 .closed_ranges = message->closed_ranges,
                                 .scope = message->scope};
    return files_from_messages(message, arena, out);
}

static status decode(bytes content, struct arena *arena, struct whole_backup *out)
{
    bytes message;
    bytes copy = arena_copy(arena, content);
    if (copy.data == NULL)
        return status_out_of_memory();
    TRY(unwrap(copy, &message));
    status s = from_message(message, arena, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return damaged("it does not parse");
}

status whole_read(struct place *place, const char *name, struct arena *arena,
                  struct whole_backup *out)
{
    struct buffer content = {0};
    char object[OBJECT_NAME_SIZE];
    *out = (struct whole_backup){0};
    TRY(manifest_object(name, object));
    status s = place_get(place, object, MOST_BYTES, &content);
    if (status_is_ok(s))
        s = place_check_plain(place, object, buffer_bytes(&content));
    if (status_is_ok(s))
        s = decode(buffer_bytes(&content), arena, out);
    buffer_free(&content);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_NOT_FOUND, "there is no whole backup \"%s\" in %s", name,
                       place_title(place));
}

status whole_read_named(struct place *place, const char *name, struct arena *arena,
                        struct whole_backup *out)
{
    status s = whole_read(place, name, arena, out);
    if (s.code != STATUS_DATA_LOSS && s.code != STATUS_FAILED_PRECONDITION)
        return s;
    status named =
        status_make(s.code, "the whole backup %s cannot be read: %s", name, status_message(s));
    status_free(s);
    return named;
}

/* --- names --- */

struct names {
    struct arena *arena;
    const char **names;
    size_t count;
    size_t capacity;
};

static status add_name(void *context, const struct place_entry *entry)
{
    struct names *names = context;
    if (entry->is_folder || strcmp(entry->name, "LOCK") == 0) /* a server's, of tables' backups */
        return status_ok();
    if (names->count == names->capacity) {
        size_t capacity = names->capacity == 0 ? 16 : 2 * names->capacity;
        const char **larger = arena_alloc(names->arena, capacity * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        if (names->count > 0)
            memcpy(larger, names->names, names->count * sizeof *larger);
        names->names = larger;
        names->capacity = capacity;
    }
    const char *copy = arena_string(names->arena, bytes_of(entry->name));
    if (copy == NULL)
        return status_out_of_memory();
    names->names[names->count++] = copy;
    return status_ok();
}

status whole_names(struct place *place, struct arena *arena, const char *const **out, size_t *count)
{
    struct names names = {.arena = arena};
    status s = place_list(place, WHOLE_BACKUPS, add_name, &names);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_NOT_FOUND, "there are no whole backups in %s",
                           place_title(place));
    }
    TRY(s);
    *out = names.names;
    *count = names.count;
    return status_ok();
}

/* --- is it still there? --- */

struct looking {
    const char *name;
    bool is_there;
};

static status look_at_name(void *context, const struct place_entry *entry)
{
    struct looking *looking = context;
    looking->is_there = looking->is_there || strcmp(entry->name, looking->name) == 0;
    return status_ok();
}

status whole_look_for(const char *place, const char *name, bool *is_there)
{
    struct looking looking = {.name = name};
    struct place *opened;
    TRY(place_of_name(files_of_system(), place, &opened));
    status s = place_list(opened, WHOLE_BACKUPS, look_at_name, &looking);
    place_close(opened);
    if (status_is_ok(s))
        *is_there = looking.is_there;
    return s;
}
