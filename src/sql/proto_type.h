/* Messages and enums of schema bundles: CAST(fam['q'] AS `bundle.pkg.Message`).field. */
#ifndef TRESTLE_SQL_PROTO_TYPE_H
#define TRESTLE_SQL_PROTO_TYPE_H

#include "sql/catalog.h"

/* The type with that path in a bundle's FileDescriptorSet, *out NULL if there is none. In the
 * arena. */
status sql_named_type_find(bytes descriptor_set, const char *bundle, const char *name,
                           struct arena *arena, const struct sql_type **out);

/* --- messages --- */

struct sql_proto_field {
    uint32_t number;
    int32_t wire_type; /* FieldDescriptorProto.Type */
    bool is_repeated;
    bool tells_presence;         /* has_…: BOOL */
    const struct sql_type *type; /* an array if it is repeated */
};

/* A field of a message, or `has_` and a field's name; *out NULL if there is none. In the arena. */
status sql_proto_field_find(const struct sql_named_type *message, const char *name,
                            struct arena *arena, const struct sql_proto_field **out);

/* The value of a field in a message's bytes. A number, a text that is not there is 0, or empty; a
 * message that is not there is NULL. OUT_OF_RANGE "Corrupted protocol buffer". */
status sql_proto_field_read(const struct sql_proto_field *field, bytes message, struct arena *arena,
                            struct sql_value *out);

/* --- enums --- */

/* The value's name, or its number if it has none. */
void sql_enum_append(struct buffer *out, const struct sql_named_type *enum_, int64_t value);

/* OUT_OF_RANGE for a number, or a name, that the enum does not have. */
status sql_enum_check(const struct sql_named_type *enum_, int64_t value);
status sql_enum_parse(const struct sql_named_type *enum_, bytes name, struct sql_value *out);

#endif
