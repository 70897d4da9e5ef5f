/* See row_key_schema.h. */
#include "bigtable/row_key_schema.h"

#include "bigtable/value_type.h"
#include "wire/proto.h"

#include <strings.h>

/* --- fields --- */

static status missing_encoding(const char *type)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Missing encoding for %s", type);
}

static bool has_number_encoding(const BtAdmin__Type__Int64__Encoding *encoding)
{
    return encoding != NULL &&
           encoding->encoding_case != BT_ADMIN__TYPE__INT64__ENCODING__ENCODING__NOT_SET;
}

static bool has_time_encoding(const BtAdmin__Type__Timestamp__Encoding *encoding)
{
    return encoding != NULL &&
           encoding->encoding_case ==
               BT_ADMIN__TYPE__TIMESTAMP__ENCODING__ENCODING_UNIX_MICROS_INT64 &&
           has_number_encoding(encoding->unix_micros_int64);
}

/* Other scalar types have no encoding that they could name. */
static status check_type(const BtAdmin__Type__Struct__Field *field)
{
    const BtAdmin__Type *type = field->type;
    switch (type == NULL ? BT_ADMIN__TYPE__KIND__NOT_SET : type->kind_case) {
    case BT_ADMIN__TYPE__KIND_BYTES_TYPE: {
        const BtAdmin__Type__Bytes__Encoding *encoding = type->bytes_type->encoding;
        bool is_said = encoding != NULL && encoding->encoding_case !=
                                               BT_ADMIN__TYPE__BYTES__ENCODING__ENCODING__NOT_SET;
        return is_said ? status_ok() : missing_encoding("BYTES");
    }
    case BT_ADMIN__TYPE__KIND_STRING_TYPE: {
        const BtAdmin__Type__String__Encoding *encoding = type->string_type->encoding;
        bool is_said = encoding != NULL && encoding->encoding_case !=
                                               BT_ADMIN__TYPE__STRING__ENCODING__ENCODING__NOT_SET;
        return is_said ? status_ok() : missing_encoding("STRING");
    }
    case BT_ADMIN__TYPE__KIND_INT64_TYPE:
        return has_number_encoding(type->int64_type->encoding) ? status_ok()
                                                               : missing_encoding("INT64");
    case BT_ADMIN__TYPE__KIND_TIMESTAMP_TYPE:
        return has_time_encoding(type->timestamp_type->encoding) ? status_ok()
                                                                 : missing_encoding("TIMESTAMP");
    default:
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Field '%s' of the row key schema must be BYTES, STRING, INT64 or "
                           "TIMESTAMP",
                           field->field_name);
    }
}

static status refuse_name(const char *name, const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Field '%s' of the row key schema %s", name, why);
}

/* SQL looks for names without regard to case. */
static status check_name(const BtAdmin__Type__Struct *schema, size_t index)
{
    const char *name = schema->fields[index]->field_name;
    if (name[0] == '\0')
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Field %zu of the row key schema must have a name", index + 1);
    if (strcasecmp(name, "_key") == 0 || strcasecmp(name, "_timestamp") == 0)
        return refuse_name(name, "has a reserved name");
    for (size_t i = 0; i < index; i++)
        if (strcasecmp(name, schema->fields[i]->field_name) == 0)
            return refuse_name(name, "is there twice");
    return status_ok();
}

status row_key_schema_check_families(const BtAdmin__Type__Struct *schema,
                                     const struct family *families, size_t count)
{
    if (schema == NULL)
        return status_ok();
    for (size_t i = 0; i < schema->n_fields; i++)
        for (size_t k = 0; k < count; k++) {
            const char *name = schema->fields[i]->field_name;
            bytes family = families[k].name;
            if (family.size == strlen(name) &&
                strncasecmp(name, (const char *)family.data, family.size) == 0)
                return refuse_name(name, "has the name of a column family");
        }
    return status_ok();
}

status row_key_schema_check(const BtAdmin__Type__Struct *schema, const struct family *families,
                            size_t count)
{
    if (schema == NULL)
        return status_ok();
    for (size_t i = 0; i < schema->n_fields; i++) {
        TRY(check_name(schema, i));
        TRY(check_type(schema->fields[i]));
    }
    TRY(struct_encoding_check(schema));
    return row_key_schema_check_families(schema, families, count);
}

/* --- changes --- */

static bool is_same(const BtAdmin__Type__Struct *a, const BtAdmin__Type__Struct *b)
{
    struct buffer left = {0}, right = {0};
    proto_encode(&a->base, &left);
    proto_encode(&b->base, &right);
    bool is =
        !left.failed && !right.failed && bytes_equal(buffer_bytes(&left), buffer_bytes(&right));
    buffer_free(&left);
    buffer_free(&right);
    return is;
}

bool row_key_schema_is_same(const BtAdmin__Type__Struct *a, const BtAdmin__Type__Struct *b)
{
    return a == NULL || b == NULL ? a == b : is_same(a, b);
}

status row_key_schema_check_change(const BtAdmin__Type__Struct *before,
                                   const BtAdmin__Type__Struct *after, bool ignore_warnings)
{
    if (before == NULL || (after != NULL && is_same(before, after)))
        return status_ok();
    if (after != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Row key schema in-place modification is not allowed.");
    if (!ignore_warnings)
        return status_make(
            STATUS_INVALID_ARGUMENT,
            "Row key schema cannot be cleared without setting ignore_warnings to true.");
    return status_ok();
}
