/* The manifest of a backup: the line "trestle backup 1", a message (proto/trestle/backup.proto),
 * and four bytes, the CRC-32C of all that comes before them, big-endian. */
#include "cluster/backup/backup_private.h"

#include "base/crc32c.h"
#include "trestle/backup.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>

static const char PREFIX[] = "trestle backup ";
static const char HEAD[] = "trestle backup 1\n";
enum { HEAD_SIZE = sizeof HEAD - 1, SUM_SIZE = 4, MOST_BYTES = BACKUP_MEMORY / 2 };

uint64_t manifest_size_bytes(const struct manifest *manifest)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < manifest->file_count; i++)
        sum += manifest->files[i].sum.size;
    return sum;
}

void manifest_free(struct manifest *manifest)
{
    schema_destroy(manifest->schema);
    manifest->schema = NULL;
}

/* --- writing --- */

static status files_to_messages(const struct manifest *manifest, struct arena *arena,
                                Backup__Manifest *message)
{
    message->files = arena_alloc(arena, manifest->file_count * sizeof *message->files);
    if (message->files == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < manifest->file_count; i++) {
        PROTO_NEW(arena, message->files[i], BACKUP__FILE__INIT);
        message->files[i]->name = manifest->files[i].name;
        message->files[i]->size = manifest->files[i].sum.size;
        message->files[i]->crc32c = manifest->files[i].sum.crc32c;
    }
    message->n_files = manifest->file_count;
    return status_ok();
}

static status split_keys_to_message(const struct manifest *manifest, struct arena *arena,
                                    Backup__Manifest *message)
{
    message->split_keys = arena_alloc(arena, manifest->split_count * sizeof *message->split_keys);
    if (message->split_keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < manifest->split_count; i++)
        message->split_keys[i] = proto_data(manifest->split_keys[i]);
    message->n_split_keys = manifest->split_count;
    return status_ok();
}

static status encode(const struct manifest *manifest, struct arena *arena, struct buffer *table,
                     struct buffer *out)
{
    Backup__Manifest message = BACKUP__MANIFEST__INIT;
    TRY(catalog_encode_table(&manifest->table, table));
    message.table = proto_data(buffer_bytes(table));
    message.newest_us = manifest->newest_us;
    message.start_us = manifest->start_us;
    message.end_us = manifest->end_us;
    message.program = TRESTLE_VERSION;
    message.extra = proto_data(manifest->extra);
    TRY(files_to_messages(manifest, arena, &message));
    TRY(split_keys_to_message(manifest, arena, &message));
    buffer_append(out, HEAD, HEAD_SIZE);
    proto_encode(&message.base, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status append_sum(struct buffer *out)
{
    uint32_t sum = crc32c_of(buffer_bytes(out));
    for (int shift = 24; shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)(sum >> shift));
    return out->failed ? status_out_of_memory() : status_ok();
}

static status write_with(struct files *files, const char *path, const struct manifest *manifest,
                         struct arena *arena)
{
    struct buffer table = {0};
    struct buffer content = {0};
    status s = encode(manifest, arena, &table, &content);
    if (status_is_ok(s))
        s = append_sum(&content);
    if (status_is_ok(s))
        s = files_replace(files, path, buffer_bytes(&content));
    buffer_free(&table);
    buffer_free(&content);
    return s;
}

status manifest_write(struct files *files, const char *directory, const struct manifest *manifest)
{
    struct buffer path = {0};
    struct arena *arena = arena_create(BACKUP_MEMORY);
    bool has_memory = arena != NULL && path_join(&path, directory, "MANIFEST") != NULL;
    status s = has_memory ? write_with(files, (const char *)path.data, manifest, arena)
                          : status_out_of_memory();
    arena_destroy(arena);
    buffer_free(&path);
    return s;
}

/* --- reading --- */

static status damaged(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the manifest is damaged: %s", what);
}

/* A file name with a slash could lead out of the directory: an attack. */
static bool file_is_sound(const Backup__File *file)
{
    return file->name[0] != 0 && strchr(file->name, '/') == NULL;
}

static status files_from_messages(const Backup__Manifest *message, struct arena *arena,
                                  struct manifest *out)
{
    out->files = arena_alloc(arena, message->n_files * sizeof *out->files);
    if (out->files == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_files; i++) {
        const Backup__File *file = message->files[i];
        if (!file_is_sound(file))
            return damaged("a file has no proper name");
        out->files[i] = (struct backup_file){.name = file->name,
                                             .sum = {.size = file->size, .crc32c = file->crc32c}};
    }
    out->file_count = message->n_files;
    return status_ok();
}

static status split_keys_from_message(const Backup__Manifest *message, struct arena *arena,
                                      struct manifest *out)
{
    bytes *keys = arena_alloc(arena, message->n_split_keys * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_split_keys; i++) {
        bytes before = i == 0 ? bytes_make(NULL, 0) : keys[i - 1];
        keys[i] = proto_bytes(message->split_keys[i]);
        if (bytes_compare(before, keys[i]) >= 0)
            return damaged("its tablets are not in order");
    }
    out->split_keys = keys;
    out->split_count = message->n_split_keys;
    return status_ok();
}

static status from_message(const Backup__Manifest *message, struct arena *arena,
                           struct manifest *out)
{
    TRY(catalog_decode_table(proto_bytes(message->table), arena, &out->table, &out->schema));
    out->newest_us = message->newest_us;
    out->start_us = message->start_us;
    out->end_us = message->end_us;
    out->extra = proto_bytes(message->extra);
    TRY(files_from_messages(message, arena, out));
    return split_keys_from_message(message, arena, out);
}

/* The message between head and sum. */
static status unwrap(bytes content, bytes *out)
{
    if (!bytes_start_with(content, bytes_of(PREFIX)) || content.size < HEAD_SIZE + SUM_SIZE)
        return damaged("it does not begin as one");
    if (!bytes_start_with(content, bytes_of(HEAD)))
        return status_make(STATUS_FAILED_PRECONDITION, "a later release wrote this backup");
    bytes summed = bytes_make(content.data, content.size - SUM_SIZE);
    uint32_t expected = 0;
    for (size_t i = 0; i < SUM_SIZE; i++)
        expected = expected << 8 | content.data[summed.size + i];
    if (crc32c_of(summed) != expected)
        return damaged("its checksum is wrong");
    *out = bytes_from(summed, HEAD_SIZE);
    return status_ok();
}

static status decode(bytes content, struct arena *arena, struct manifest *out)
{
    ProtobufCMessage *base;
    bytes message;
    bytes copy = arena_copy(arena, content);
    if (copy.data == NULL)
        return status_out_of_memory();
    TRY(unwrap(copy, &message));
    status s = proto_decode(&backup__manifest__descriptor, message, arena, &base);
    if (status_is_ok(s))
        s = from_message((const Backup__Manifest *)(void *)base, arena, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return damaged("it does not parse");
}

status manifest_read(struct files *files, const char *directory, struct arena *arena,
                     struct manifest *out)
{
    struct buffer path = {0};
    struct buffer content = {0};
    *out = (struct manifest){0};
    status s = status_out_of_memory();
    if (path_join(&path, directory, "MANIFEST") != NULL)
        s = files_read(files, (const char *)path.data, MOST_BYTES, &content);
    if (status_is_ok(s))
        s = decode(buffer_bytes(&content), arena, out);
    buffer_free(&path);
    buffer_free(&content);
    return s;
}
