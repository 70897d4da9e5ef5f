/* See export_metadata.h. */
#include "datastore/admin/export_metadata.h"

#include "datastore/admin/export_place.h"
#include "datastore/admin/log_file.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

#define VERSION "3"

/* --- names --- */

static status name_part(const char *prefix, const char *text, struct arena *arena, const char **out)
{
    const char *name;
    TRY(ds_file_name_of(text, arena, &name));
    size_t size = strlen(prefix) + strlen(name) + 1;
    char *part = arena_alloc(arena, size);
    if (part == NULL)
        return status_out_of_memory();
    snprintf(part, size, "%s%s", prefix, name);
    *out = part;
    return status_ok();
}

static status describe_namespace(const char *name_space, struct arena *arena,
                                 Export__EntitySet *set, const char **part)
{
    *part = "all_namespaces";
    set->namespace_type = EXPORT__ENTITY_SET__NAMESPACE_TYPE__ALL_NAMESPACES;
    if (name_space == NULL)
        return status_ok();
    *part = "default_namespace";
    set->namespace_type = EXPORT__ENTITY_SET__NAMESPACE_TYPE__DEFAULT_NAMESPACE;
    if (*name_space == '\0')
        return status_ok();
    set->namespace_type = EXPORT__ENTITY_SET__NAMESPACE_TYPE__ONE_NAMESPACE;
    set->namespace_ = name_space;
    return name_part("namespace_", name_space, arena, part);
}

static status describe_kind(const char *kind, struct arena *arena, Export__EntitySet *set,
                            const char **part)
{
    *part = "all_kinds";
    set->kind_type = EXPORT__ENTITY_SET__KIND_TYPE__ALL_KINDS;
    if (kind == NULL)
        return status_ok();
    set->kind_type = EXPORT__ENTITY_SET__KIND_TYPE__ONE_KIND;
    set->kind = kind;
    return name_part("kind_", kind, arena, part);
}

status ds_set_describe(const char *name_space, const char *kind, struct arena *arena,
                       Export__EntitySet **set, const char **file)
{
    const char *format = "%s/%s/%s_%s.export_metadata", *outer, *inner;
    PROTO_NEW(arena, *set, EXPORT__ENTITY_SET__INIT);
    TRY(describe_namespace(name_space, arena, *set, &outer));
    TRY(describe_kind(kind, arena, *set, &inner));
    size_t size = 2 * (strlen(outer) + strlen(inner)) + strlen(format);
    char *path = arena_alloc(arena, size);
    if (path == NULL)
        return status_out_of_memory();
    snprintf(path, size, format, outer, inner, outer, inner);
    *file = path;
    return status_ok();
}

/* --- writing --- */

status ds_overall_encode(const Export__OverallExportMetadata *metadata, struct buffer *out)
{
    struct log_writer writer = {0};
    struct buffer encoded = {0};
    proto_encode(&metadata->base, &encoded);
    status s = encoded.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s))
        s = log_append(&writer, bytes_of(VERSION), out);
    if (status_is_ok(s))
        s = log_append(&writer, buffer_bytes(&encoded), out);
    buffer_free(&encoded);
    return status_is_ok(s) && out->failed ? status_out_of_memory() : s;
}

status ds_metadata_encode(const Export__ExportMetadata *metadata, struct buffer *out)
{
    proto_encode(&metadata->base, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- reading --- */

static status read_memory(void *context, uint8_t *to, size_t size, size_t *got)
{
    bytes *left = context;
    *got = size < left->size ? size : left->size;
    if (*got > 0)
        memcpy(to, left->data, *got);
    *left = bytes_from(*left, *got);
    return status_ok();
}

static status decode(const ProtobufCMessageDescriptor *type, bytes wire, struct arena *arena,
                     ProtobufCMessage **out)
{
    status s = proto_decode(type, wire, arena, out);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status damage = status_make(STATUS_DATA_LOSS, "Metadata of an export: %s", status_message(s));
    status_free(s);
    return damage;
}

static status next_record(struct log_reader *reader, bytes *out)
{
    bool found;
    TRY(log_read(reader, out, &found));
    return found ? status_ok()
                 : status_make(STATUS_DATA_LOSS, "The overall metadata of an export ends too soon");
}

static status read_overall(struct log_reader *reader, struct arena *arena,
                           Export__OverallExportMetadata **out)
{
    bytes record;
    ProtobufCMessage *message;
    TRY(next_record(reader, &record));
    if (!bytes_equal(record, bytes_of(VERSION)))
        return status_make(STATUS_DATA_LOSS, "An export of an unknown version");
    TRY(next_record(reader, &record));
    TRY(decode(&export__overall_export_metadata__descriptor, record, arena, &message));
    *out = (Export__OverallExportMetadata *)message;
    return status_ok();
}

status ds_overall_decode(bytes file, struct arena *arena, Export__OverallExportMetadata **out)
{
    struct log_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return status_out_of_memory();
    reader->source = read_memory;
    reader->context = &file;
    reader->most = DS_MOST_METADATA;
    status s = read_overall(reader, arena, out);
    log_reader_free(reader);
    free(reader);
    return s;
}

status ds_metadata_decode(bytes file, struct arena *arena, Export__ExportMetadata **out)
{
    ProtobufCMessage *message;
    TRY(decode(&export__export_metadata__descriptor, file, arena, &message));
    *out = (Export__ExportMetadata *)message;
    return status_ok();
}
