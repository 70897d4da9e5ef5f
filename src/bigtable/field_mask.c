/* See field_mask.h. */
#include "bigtable/field_mask.h"

#include "wire/proto.h"

bool field_path_is(const char *path, const char *field)
{
    for (; *field != '\0'; path++, field++) {
        bool is_camel = field[0] == '_' && field[1] >= 'a' && field[1] <= 'z' &&
                        path[0] == field[1] - 'a' + 'A';
        if (is_camel)
            field++;
        else if (*path != *field)
            return false;
    }
    return *path == '\0';
}

/* The path in the proto's spelling; NULL without memory. */
static char *proto_spelling(const char *path, struct arena *arena)
{
    char *spelling = arena_alloc(arena, 2 * strlen(path) + 1);
    char *to = spelling;
    if (spelling == NULL)
        return NULL;
    for (; *path != '\0'; path++) {
        bool is_capital = *path >= 'A' && *path <= 'Z';
        if (is_capital)
            *to++ = '_';
        *to++ = is_capital ? (char)(*path - 'A' + 'a') : *path;
    }
    *to = '\0';
    return spelling;
}

static bool is_allowed(const char *path, const char *const *allowed)
{
    for (; *allowed != NULL; allowed++) {
        size_t size = strlen(*allowed);
        if (strncmp(path, *allowed, size) == 0 && (path[size] == '\0' || path[size] == '.'))
            return true;
    }
    return false;
}

static status bad_path(const char *path)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid path '%s' in update_mask", path);
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  bytes name)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (bytes_equal(bytes_of(type->fields[i].name), name))
            return &type->fields[i];
    return NULL;
}

/* Below a message that `source` has not, its fields are as in one in which nothing is set. */
static status apply_path(const char *path, const ProtobufCMessage *source, ProtobufCMessage *target,
                         struct arena *arena)
{
    for (const char *at = path;; at++) {
        bytes name = bytes_make(at, strcspn(at, "."));
        const ProtobufCFieldDescriptor *field = find_field(target->descriptor, name);
        at += name.size;
        if (field == NULL)
            return bad_path(path);
        if (*at == '\0') {
            proto_copy_field(field, source, target);
            return status_ok();
        }
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_REPEATED)
            return bad_path(path);
        source = source == NULL ? NULL : proto_sub_message(field, source);
        target = proto_set_sub_message(field, target, arena);
        if (target == NULL)
            return status_out_of_memory();
    }
}

status field_mask_apply(const Pb__FieldMask *mask, const char *const *allowed,
                        const ProtobufCMessage *source, ProtobufCMessage *target,
                        struct arena *arena)
{
    if (mask == NULL || mask->n_paths == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "A non-empty 'update_mask' must be specified");
    for (size_t i = 0; i < mask->n_paths; i++) {
        char *path = proto_spelling(mask->paths[i], arena);
        if (path == NULL)
            return status_out_of_memory();
        if (!is_allowed(path, allowed))
            return bad_path(mask->paths[i]);
        TRY(apply_path(path, source, target, arena));
    }
    return status_ok();
}

/* Whether a message with this field alone would have bytes on the wire. */
static bool is_set(const char *name, const ProtobufCMessage *message, struct arena *arena)
{
    const ProtobufCFieldDescriptor *field = find_field(message->descriptor, bytes_of(name));
    ProtobufCMessage *alone = arena_alloc(arena, message->descriptor->sizeof_message);
    if (alone == NULL || field == NULL)
        return false;
    protobuf_c_message_init(message->descriptor, alone);
    proto_copy_field(field, message, alone);
    return protobuf_c_message_get_packed_size(alone) > 0;
}

status field_mask_apply_set(const Pb__FieldMask *mask, const char *const *allowed,
                            const ProtobufCMessage *source, ProtobufCMessage *target,
                            struct arena *arena)
{
    bool is_absent = mask == NULL || mask->n_paths == 0;
    bool is_star = !is_absent && mask->n_paths == 1 && strcmp(mask->paths[0], "*") == 0;
    if (!is_absent && !is_star)
        return field_mask_apply(mask, allowed, source, target, arena);
    for (; *allowed != NULL; allowed++)
        if (is_star || is_set(*allowed, source, arena))
            TRY(apply_path(*allowed, source, target, arena));
    return status_ok();
}
