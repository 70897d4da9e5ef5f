/* See descriptor_set.h. Types are looked up by full name (".package.Message.Nested") in an array of
 * all that a set has. */
#include "bigtable/descriptor_set.h"

#include "trestle/descriptors.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

/* FieldDescriptorProto.Type and .Label */
enum { TYPE_GROUP = 10, TYPE_MESSAGE = 11, TYPE_ENUM = 14 };
enum { LABEL_REQUIRED = 2, LABEL_REPEATED = 3 };

/* Numbers of fields; those in between are protobuf's own. */
enum { LARGEST_NUMBER = 536870911, FIRST_RESERVED = 19000, LAST_RESERVED = 19999 };

struct named_type {
    const char *name;
    const Descriptors__Message *message; /* or */
    const Descriptors__Enum *enumeration;
};

struct type_index {
    struct arena *arena;
    const Descriptors__Set *set;
    struct named_type *types; /* by name */
    size_t count;
    size_t room;
};

/* --- collecting --- */

static char *join(struct arena *arena, const char *scope, const char *name)
{
    size_t size = strlen(scope) + strlen(name) + sizeof ".";
    char *joined = arena_alloc(arena, size);
    if (joined != NULL)
        snprintf(joined, size, "%s.%s", scope, name);
    return joined;
}

static status add_type(struct type_index *index, const char *scope, const char *name,
                       struct named_type type)
{
    type.name = join(index->arena, scope, name);
    if (type.name == NULL)
        return status_out_of_memory();
    if (*name == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "proto_descriptors: a type has no name");
    if (index->count == index->room) {
        size_t room = index->room == 0 ? 16 : 2 * index->room;
        struct named_type *larger = arena_alloc(index->arena, room * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        if (index->count > 0)
            memcpy(larger, index->types, index->count * sizeof *larger);
        index->types = larger;
        index->room = room;
    }
    index->types[index->count++] = type;
    return status_ok();
}

static status add_enums(struct type_index *index, const char *scope,
                        Descriptors__Enum *const *enums, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(add_type(index, scope, enums[i]->name, (struct named_type){.enumeration = enums[i]}));
    return status_ok();
}

/* The decoder bounds how deep messages are nested. */
static status add_messages(struct type_index *index, const char *scope,
                           Descriptors__Message *const *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Descriptors__Message *message = messages[i];
        TRY(add_type(index, scope, message->name, (struct named_type){.message = message}));
        const char *inner = index->types[index->count - 1].name;
        TRY(add_messages(index, inner, message->nested_type, message->n_nested_type));
        TRY(add_enums(index, inner, message->enum_type, message->n_enum_type));
    }
    return status_ok();
}

static status add_file(struct type_index *index, const Descriptors__File *file)
{
    const char *scope = *file->package == '\0' ? "" : join(index->arena, "", file->package);
    if (scope == NULL)
        return status_out_of_memory();
    TRY(add_messages(index, scope, file->message_type, file->n_message_type));
    return add_enums(index, scope, file->enum_type, file->n_enum_type);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named_type *)a)->name, ((const struct named_type *)b)->name);
}

static status make_index(bytes set, struct arena *arena, struct type_index *out)
{
    ProtobufCMessage *message;
    status s = proto_decode(&descriptors__set__descriptor, set, arena, &message);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        status_free(s);
        return status_make(STATUS_INVALID_ARGUMENT,
                           "proto_descriptors is no serialised FileDescriptorSet");
    }
    TRY(s);
    *out = (struct type_index){.arena = arena, .set = (const void *)message};
    for (size_t i = 0; i < out->set->n_file; i++)
        TRY(add_file(out, out->set->file[i]));
    if (out->count > 0)
        qsort(out->types, out->count, sizeof *out->types, compare_names);
    return status_ok();
}

static const struct named_type *find_type(const struct type_index *index, const char *name)
{
    struct named_type wanted = {.name = name};
    if (index->count == 0)
        return NULL;
    return bsearch(&wanted, index->types, index->count, sizeof wanted, compare_names);
}

/* --- one set --- */

/* Pointers in order, so that a set of a hundred thousand of something is not searched as often. */
static status sort_copy(struct arena *arena, const void *items, size_t count,
                        int (*compare)(const void *, const void *), const void ***out)
{
    *out = arena_alloc(arena, count * sizeof(**out));
    if (*out == NULL)
        return status_out_of_memory();
    if (count > 0) {
        memcpy(*out, items, count * sizeof(**out));
        qsort(*out, count, sizeof(**out), compare);
    }
    return status_ok();
}

static bool is_among(const void **sorted, size_t count, const void *wanted,
                     int (*compare)(const void *, const void *))
{
    return count > 0 && bsearch(&wanted, sorted, count, sizeof(*sorted), compare) != NULL;
}

/* An element that stands there twice; NULL: none does. */
static const void *find_twin(const void **sorted, size_t count,
                             int (*compare)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++)
        if (compare(&sorted[i - 1], &sorted[i]) == 0)
            return sorted[i];
    return NULL;
}

static int compare_files(const void *a, const void *b)
{
    const Descriptors__File *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static status check_imports(const Descriptors__File *file, const void **files, size_t count)
{
    for (size_t i = 0; i < file->n_dependency; i++) {
        const Descriptors__File wanted = {.name = file->dependency[i]};
        if (!is_among(files, count, &wanted, compare_files))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "proto_descriptors: '%s' imports '%s', which is not there",
                               file->name, file->dependency[i]);
    }
    return status_ok();
}

static status check_files(const Descriptors__Set *set, struct arena *arena)
{
    const void **files;
    if (set->n_file == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "proto_descriptors has no files");
    TRY(sort_copy(arena, set->file, set->n_file, compare_files, &files));
    const Descriptors__File *twin = find_twin(files, set->n_file, compare_files);
    if (twin != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "proto_descriptors has two files of the name '%s'", twin->name);
    for (size_t i = 0; i < set->n_file; i++)
        TRY(check_imports(set->file[i], files, set->n_file));
    return status_ok();
}

static status check_names_are_single(const struct type_index *index)
{
    for (size_t i = 1; i < index->count; i++)
        if (strcmp(index->types[i - 1].name, index->types[i].name) == 0)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "proto_descriptors has two types of the name '%s'",
                               index->types[i].name + 1);
    return status_ok();
}

static bool is_resolved(const struct type_index *index, const Descriptors__Field *field)
{
    bool wants_message = field->type == TYPE_MESSAGE || field->type == TYPE_GROUP;
    if (!wants_message && field->type != TYPE_ENUM)
        return true;
    const struct named_type *type = find_type(index, field->type_name);
    return type != NULL && (type->message != NULL) == wants_message;
}

static int compare_numbers(const void *a, const void *b)
{
    const Descriptors__Field *const *left = a, *const *right = b;
    return (*left)->number < (*right)->number ? -1 : (*left)->number > (*right)->number;
}

static int compare_field_names(const void *a, const void *b)
{
    const Descriptors__Field *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static status bad_member(const struct named_type *type, const char *member, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "proto_descriptors: '%s.%s' %s", type->name + 1,
                       member, what);
}

static status check_number(const struct named_type *type, const Descriptors__Field *field)
{
    int32_t number = field->number;
    if (number > 0 && number <= LARGEST_NUMBER &&
        (number < FIRST_RESERVED || number > LAST_RESERVED))
        return status_ok();
    return bad_member(type, field->name, "has a number that no field may have");
}

static bool is_in_oneof(const Descriptors__Field *field)
{
    return field->in_oneof_case == DESCRIPTORS__FIELD__IN_ONEOF_ONEOF_INDEX;
}

static status check_single(const struct named_type *type, struct arena *arena)
{
    const Descriptors__Message *message = type->message;
    const void **fields;
    TRY(sort_copy(arena, message->field, message->n_field, compare_numbers, &fields));
    const Descriptors__Field *twin = find_twin(fields, message->n_field, compare_numbers);
    if (twin != NULL)
        return bad_member(type, twin->name, "has the number of another field");
    TRY(sort_copy(arena, message->field, message->n_field, compare_field_names, &fields));
    twin = find_twin(fields, message->n_field, compare_field_names);
    return twin == NULL ? status_ok() : bad_member(type, twin->name, "is there twice");
}

static status check_message(const struct type_index *index, const struct named_type *type)
{
    const Descriptors__Message *message = type->message;
    for (size_t i = 0; i < message->n_field; i++) {
        const Descriptors__Field *field = message->field[i];
        TRY(check_number(type, field));
        if (!is_resolved(index, field))
            return bad_member(type, field->name, "is of a type that is not there");
        if (is_in_oneof(field) &&
            (field->oneof_index < 0 || (size_t)field->oneof_index >= message->n_oneof_decl))
            return bad_member(type, field->name, "is in a oneof that is not there");
    }
    return check_single(type, index->arena);
}

static int compare_value_names(const void *a, const void *b)
{
    const Descriptors__Enum__Value *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static status check_enum(const struct type_index *index, const struct named_type *type)
{
    const Descriptors__Enum *enumeration = type->enumeration;
    const void **values;
    if (enumeration->n_value == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "proto_descriptors: '%s' has no values",
                           type->name + 1);
    TRY(sort_copy(index->arena, enumeration->value, enumeration->n_value, compare_value_names,
                  &values));
    const Descriptors__Enum__Value *twin =
        find_twin(values, enumeration->n_value, compare_value_names);
    return twin == NULL ? status_ok() : bad_member(type, twin->name, "is there twice");
}

status descriptor_set_check(bytes set, struct arena *arena)
{
    struct type_index index;
    TRY(make_index(set, arena, &index));
    TRY(check_files(index.set, arena));
    TRY(check_names_are_single(&index));
    for (size_t i = 0; i < index.count; i++)
        TRY(index.types[i].message != NULL ? check_message(&index, &index.types[i])
                                           : check_enum(&index, &index.types[i]));
    return status_ok();
}

/* --- a set after another --- */

static status incompatible(const struct named_type *type, const char *member, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "The schema bundle would not be backward compatible: '%s%s%s' %s",
                       type->name + 1, *member == '\0' ? "" : ".", member, what);
}

static status check_field(const struct named_type *type, const Descriptors__Field *before,
                          const Descriptors__Field *after)
{
    if (after == NULL)
        return incompatible(type, before->name, "is gone");
    if (strcmp(before->name, after->name) != 0)
        return incompatible(type, before->name, "has another name");
    if (before->type != after->type || strcmp(before->type_name, after->type_name) != 0)
        return incompatible(type, before->name, "has another type");
    if ((before->label == LABEL_REPEATED) != (after->label == LABEL_REPEATED))
        return incompatible(type, before->name, "is repeated, or is not any more");
    return status_ok();
}

static const Descriptors__Field *find_numbered(const void **fields, size_t count,
                                               const Descriptors__Field *wanted)
{
    const void *key = wanted;
    const Descriptors__Field *const *found =
        count == 0 ? NULL : bsearch(&key, fields, count, sizeof(*fields), compare_numbers);
    return found == NULL ? NULL : *found;
}

/* A reader that requires a field cannot read what was written without it. */
static status check_required(const struct named_type *before, const struct named_type *after,
                             struct arena *arena)
{
    const void **fields;
    size_t count = before->message->n_field;
    TRY(sort_copy(arena, before->message->field, count, compare_numbers, &fields));
    for (size_t i = 0; i < after->message->n_field; i++) {
        const Descriptors__Field *field = after->message->field[i];
        const Descriptors__Field *former = find_numbered(fields, count, field);
        if (field->label == LABEL_REQUIRED && (former == NULL || former->label != LABEL_REQUIRED))
            return incompatible(after, field->name, "is required now");
    }
    return status_ok();
}

/* Of a oneof one member at most is read: what was written with two fields that were no alternatives
 * loses one of them. `firsts` has, for each oneof, the first former field that is in it. */
static status check_oneof(const struct named_type *type, const Descriptors__Field *before,
                          const Descriptors__Field *after, const Descriptors__Field **firsts)
{
    if (!is_in_oneof(after))
        return status_ok();
    const Descriptors__Field **first = &firsts[after->oneof_index];
    if (*first == NULL)
        *first = before;
    if (*first == before || (is_in_oneof(before) && is_in_oneof(*first) &&
                             before->oneof_index == (*first)->oneof_index))
        return status_ok();
    return incompatible(type, before->name, "is in a oneof with what it could stand beside");
}

static status check_fields(const struct named_type *before, const struct named_type *after,
                           struct arena *arena)
{
    const void **fields;
    size_t count = after->message->n_field;
    const Descriptors__Field **firsts =
        arena_zalloc(arena, after->message->n_oneof_decl * sizeof *firsts);
    if (firsts == NULL)
        return status_out_of_memory();
    TRY(sort_copy(arena, after->message->field, count, compare_numbers, &fields));
    for (size_t i = 0; i < before->message->n_field; i++) {
        const Descriptors__Field *field = before->message->field[i];
        const Descriptors__Field *successor = find_numbered(fields, count, field);
        TRY(check_field(before, field, successor));
        TRY(check_oneof(before, field, successor, firsts));
    }
    return check_required(before, after, arena);
}

static int compare_values(const void *a, const void *b)
{
    const Descriptors__Enum__Value *const *left = a, *const *right = b;
    if ((*left)->number != (*right)->number)
        return (*left)->number < (*right)->number ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

static status check_values(const struct named_type *before, const struct named_type *after,
                           struct arena *arena)
{
    const void **values;
    size_t count = after->enumeration->n_value;
    TRY(sort_copy(arena, after->enumeration->value, count, compare_values, &values));
    for (size_t i = 0; i < before->enumeration->n_value; i++)
        if (!is_among(values, count, before->enumeration->value[i], compare_values))
            return incompatible(before, before->enumeration->value[i]->name, "is gone");
    return status_ok();
}

static status check_type(const struct named_type *before, const struct named_type *after,
                         struct arena *arena)
{
    if (after == NULL || (before->message == NULL) != (after->message == NULL))
        return incompatible(before, "", "is gone");
    return before->message != NULL ? check_fields(before, after, arena)
                                   : check_values(before, after, arena);
}

status descriptor_set_check_successor(bytes before, bytes after, struct arena *arena)
{
    struct type_index old, next;
    TRY(make_index(before, arena, &old));
    TRY(make_index(after, arena, &next));
    for (size_t i = 0; i < old.count; i++)
        TRY(check_type(&old.types[i], find_type(&next, old.types[i].name), arena));
    return status_ok();
}
