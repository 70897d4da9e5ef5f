/* Structured row keys: see key_schema.h.
 *
 *     singleton       the one part's bytes
 *     delimited       parts with a delimiter between them, which must not occur in a part
 *     ordered code    parts joined by 00 01; 00 in a part is written 00 FF, an empty part 00 00;
 *                     empty parts at the end are left out, but if all are empty the key is 00 00
 *
 * Numbers are big-endian, of 8 bytes and not negative, since the order of keys is that of their
 * parts; or in the ordered code of signed integers (ordered_code.h). */
#include "sql/plan/key_schema.h"

#include "base/utf8.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "sql/plan/ordered_code.h"
#include "wire/proto.h"

enum key_encoding { ENCODING_SINGLETON, ENCODING_DELIMITED, ENCODING_ORDERED };

struct key_part {
    const char *name;
    const struct sql_type *type;
    bool is_ordered; /* a number in the ordered code */
};

struct sql_key_schema {
    enum key_encoding encoding;
    bytes delimiter;
    struct key_part *parts;
    size_t count;
    bool has_nulls; /* a view's: see sql_key_schema_of_view */
};

/* --- reading a schema --- */

static bool is_ordered_number(const BtAdmin__Type__Int64__Encoding *encoding)
{
    return encoding != NULL &&
           encoding->encoding_case == BT_ADMIN__TYPE__INT64__ENCODING__ENCODING_ORDERED_CODE_BYTES;
}

static status read_part(const BtAdmin__Type__Struct__Field *field, struct key_part *out)
{
    const BtAdmin__Type *type = field->type;
    out->name = field->field_name;
    switch (type == NULL ? BT_ADMIN__TYPE__KIND__NOT_SET : type->kind_case) {
    case BT_ADMIN__TYPE__KIND_BYTES_TYPE:
        out->type = &sql_bytes;
        return status_ok();
    case BT_ADMIN__TYPE__KIND_STRING_TYPE:
        out->type = &sql_string;
        return status_ok();
    case BT_ADMIN__TYPE__KIND_INT64_TYPE:
        out->type = &sql_int64;
        out->is_ordered = is_ordered_number(type->int64_type->encoding);
        return status_ok();
    case BT_ADMIN__TYPE__KIND_TIMESTAMP_TYPE: {
        const BtAdmin__Type__Timestamp__Encoding *encoding = type->timestamp_type->encoding;
        out->type = &sql_timestamp;
        out->is_ordered = encoding != NULL && is_ordered_number(encoding->unix_micros_int64);
        return status_ok();
    }
    default:
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Row keys with a field of the type of %s cannot be queried", out->name);
    }
}

static status read_encoding(const BtAdmin__Type__Struct__Encoding *encoding,
                            struct sql_key_schema *out)
{
    switch (encoding == NULL ? BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING__NOT_SET
                             : encoding->encoding_case) {
    case BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_SINGLETON:
        out->encoding = ENCODING_SINGLETON;
        return status_ok();
    case BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_DELIMITED_BYTES:
        out->encoding = ENCODING_DELIMITED;
        out->delimiter = proto_bytes(encoding->delimited_bytes->delimiter);
        return status_ok();
    case BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_ORDERED_CODE_BYTES:
        out->encoding = ENCODING_ORDERED;
        return status_ok();
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "Missing encoding for STRUCT");
    }
}

status sql_key_schema_read(bytes row_key_schema, struct arena *arena,
                           const struct sql_key_schema **out)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__type__struct__descriptor, row_key_schema, arena, &message));
    const BtAdmin__Type__Struct *structure = (const void *)message;
    struct sql_key_schema *schema = arena_zalloc(arena, sizeof *schema);
    struct key_part *parts = arena_zalloc(arena, structure->n_fields * sizeof *parts);
    if (schema == NULL || parts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < structure->n_fields; i++)
        TRY(read_part(structure->fields[i], &parts[i]));
    schema->parts = parts;
    schema->count = structure->n_fields;
    *out = schema;
    return read_encoding(structure->encoding, schema);
}

status sql_key_schema_of_view(const struct sql_field *fields, size_t count, struct arena *arena,
                              const struct sql_key_schema **out)
{
    struct sql_key_schema *schema = arena_zalloc(arena, sizeof *schema);
    struct key_part *parts = arena_zalloc(arena, count * sizeof *parts);
    *out = schema;
    if (schema == NULL || parts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct key_part){fields[i].name, fields[i].type, !sql_is_text(fields[i].type)};
    *schema = (struct sql_key_schema){
        .encoding = ENCODING_ORDERED, .parts = parts, .count = count, .has_nulls = true};
    return status_ok();
}

size_t sql_key_schema_count(const struct sql_key_schema *schema)
{
    return schema->count;
}

bool sql_key_schema_has_order(const struct sql_key_schema *schema)
{
    return schema->encoding != ENCODING_DELIMITED;
}

struct sql_field sql_key_schema_part(const struct sql_key_schema *schema, size_t index)
{
    return (struct sql_field){schema->parts[index].name, schema->parts[index].type};
}

/* --- reading keys --- */

static status bad_key(const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "A row key of the table does not have the form of its row_key_schema: %s",
                       why);
}

static status read_number(const struct key_part *part, bytes text, struct sql_value *out)
{
    uint64_t number = 0;
    int64_t ordered = 0;
    if (part->is_ordered) {
        bool is_number = text.size > 0 && ordered_code_read(text, &ordered) == text.size;
        *out = sql_of_int64(ordered);
        return is_number ? status_ok() : bad_key("a number is none in the ordered code");
    }
    if (text.size != sizeof number)
        return bad_key("a number has not 8 bytes");
    for (size_t i = 0; i < text.size; i++)
        number = number << 8 | text.data[i];
    *out = sql_of_int64((int64_t)number);
    return out->int64 >= 0 ? status_ok() : bad_key("a big-endian number is negative");
}

static status read_value(const struct key_part *part, bytes text, struct sql_value *out)
{
    *out = sql_of_text(text);
    switch (part->type->kind) {
    case SQL_STRING:
        return utf8_is_valid(text) ? status_ok() : bad_key("a string is no UTF-8");
    case SQL_TIMESTAMP:
        TRY(read_number(part, text, out));
        return out->int64 >= SQL_TIMESTAMP_MIN && out->int64 <= SQL_TIMESTAMP_MAX
                   ? status_ok()
                   : bad_key("a timestamp is out of range");
    case SQL_INT64:
        return read_number(part, text, out);
    default:
        return status_ok();
    }
}

/* Where the delimiter is next; the size of the rest if it is not there. */
static size_t find_delimiter(bytes rest, bytes delimiter)
{
    const uint8_t *found =
        rest.size == 0 ? NULL : memmem(rest.data, rest.size, delimiter.data, delimiter.size);
    return found == NULL ? rest.size : (size_t)(found - rest.data);
}

static status decode_delimited(const struct sql_key_schema *schema, bytes key,
                               struct sql_value *parts)
{
    for (size_t i = 0; i < schema->count; i++) {
        bool is_last = i + 1 == schema->count;
        size_t size = find_delimiter(key, schema->delimiter);
        if ((size == key.size) != is_last)
            return bad_key("it has not as many delimiters");
        TRY(read_value(&schema->parts[i], bytes_make(key.data, size), &parts[i]));
        if (!is_last)
            key = bytes_from(key, size + schema->delimiter.size);
    }
    return status_ok();
}

/* One part of an ordered code, without its escapes, up to 00 01 or the end. */
static status unescape(bytes *key, struct arena *arena, bytes *out)
{
    uint8_t *text = arena_alloc(arena, key->size);
    size_t size = 0, at = 0;
    if (text == NULL)
        return status_out_of_memory();
    for (; at < key->size; at++) {
        if (key->data[at] != 0) {
            text[size++] = key->data[at];
            continue;
        }
        uint8_t next = at + 1 < key->size ? key->data[at + 1] : 0;
        if (next == 0x01)
            break;
        if (next != 0xff)
            return bad_key("a zero byte is not escaped");
        text[size++] = 0;
        at++;
    }
    *out = bytes_make(text, size);
    *key = bytes_from(*key, at);
    return status_ok();
}

/* An empty part is 00 00 there, or, at the end, nothing. */
static status take_part(bytes *key, struct arena *arena, bytes *out)
{
    bool is_empty = key->size >= 2 && key->data[0] == 0 && key->data[1] == 0;
    if (!is_empty) {
        TRY(unescape(key, arena, out));
        return out->size > 0 || key->size == 0 ? status_ok()
                                               : bad_key("an empty part is not written as 00 00");
    }
    *out = bytes_make(NULL, 0);
    *key = bytes_from(*key, 2);
    bool ends = key->size == 0 || (key->size >= 2 && key->data[0] == 0 && key->data[1] == 1);
    return ends ? status_ok() : bad_key("a zero byte is not escaped");
}

static bool is_all_zeros(bytes text)
{
    size_t zeros = 0;
    while (zeros < text.size && text.data[zeros] == 0)
        zeros++;
    return zeros == text.size;
}

/* The value of a part without its escapes. */
static status read_ordered(const struct sql_key_schema *schema, const struct key_part *part,
                           bytes text, struct sql_value *out)
{
    if (!schema->has_nulls)
        return read_value(part, text, out);
    if (text.size == 0) {
        *out = sql_null();
        return status_ok();
    }
    if (sql_is_text(part->type) && is_all_zeros(text))
        text.size--;
    return read_value(part, text, out);
}

static status decode_ordered(const struct sql_key_schema *schema, bytes key, struct arena *arena,
                             struct sql_value *parts)
{
    for (size_t i = 0; i < schema->count; i++) {
        bytes text;
        TRY(take_part(&key, arena, &text));
        TRY(read_ordered(schema, &schema->parts[i], text, &parts[i]));
        if (key.size > 0)
            key = bytes_from(key, 2);
    }
    return key.size == 0 ? status_ok() : bad_key("it has more parts");
}

status sql_key_decode(const struct sql_key_schema *schema, bytes key, struct arena *arena,
                      struct sql_value *parts)
{
    switch (schema->encoding) {
    case ENCODING_SINGLETON:
        return schema->count == 0 ? status_ok() : read_value(&schema->parts[0], key, &parts[0]);
    case ENCODING_DELIMITED:
        return decode_delimited(schema, key, parts);
    case ENCODING_ORDERED:
        break;
    }
    return decode_ordered(schema, key, arena, parts);
}

/* --- writing keys --- */

static void append_number(struct buffer *out, const struct key_part *part, int64_t value)
{
    if (part->is_ordered) {
        ordered_code_append(out, value);
        return;
    }
    for (int shift = 56; shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)((uint64_t)value >> shift));
}

/* Each 00 is followed by FF: there are few. */
static void append_escaped(struct buffer *out, bytes text)
{
    if (text.size == 0)
        buffer_append(out, "\0\0", 2);
    while (text.size > 0) {
        const uint8_t *zero = memchr(text.data, 0, text.size);
        size_t size = zero == NULL ? text.size : (size_t)(zero - text.data) + 1;
        buffer_append(out, text.data, size);
        if (zero != NULL)
            buffer_append_byte(out, 0xff);
        text = bytes_from(text, size);
    }
}

static void append_text(const struct sql_key_schema *schema, bytes text, struct buffer *out)
{
    if (schema->encoding != ENCODING_ORDERED) {
        buffer_append_bytes(out, text);
        return;
    }
    if (schema->has_nulls && is_all_zeros(text))
        buffer_append(out, "\0\xff", 2);
    if (!schema->has_nulls || text.size > 0)
        append_escaped(out, text);
}

static void append_part(const struct sql_key_schema *schema, size_t index,
                        const struct sql_value *value, struct buffer *out)
{
    const struct key_part *part = &schema->parts[index];
    struct buffer number = {0};
    if (value->is_null) {
        append_escaped(out, bytes_make(NULL, 0));
        return;
    }
    if (sql_is_text(part->type)) {
        append_text(schema, value->text, out);
        return;
    }
    append_number(&number, part, value->int64);
    append_text(schema, buffer_bytes(&number), out);
    out->failed = out->failed || number.failed;
    buffer_free(&number);
}

/* What stands between a part and the next. */
static void append_joint(const struct sql_key_schema *schema, struct buffer *out)
{
    if (schema->encoding == ENCODING_ORDERED)
        buffer_append(out, "\0\1", 2);
    else
        buffer_append_bytes(out, schema->delimiter);
}

static void append_parts(const struct sql_key_schema *schema, const struct sql_value *parts,
                         size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            append_joint(schema, out);
        append_part(schema, i, &parts[i], out);
    }
}

void sql_key_append(const struct sql_key_schema *schema, const struct sql_value *parts,
                    struct buffer *out)
{
    size_t count = schema->count;
    while (count > 1 && parts[count - 1].is_null)
        count--;
    append_parts(schema, parts, count, out);
}

/* --- spans of keys --- */

/* Parts whose values are known, and the next one. */
struct span {
    const struct sql_key_schema *schema;
    const struct sql_value *parts;
    size_t count;
};

static bool is_last(const struct span *span)
{
    return span->count + 1 == span->schema->count;
}

/* From a prefix to what comes after all that begins with it; empty if nothing does. */
static void pass_prefix(struct buffer *prefix)
{
    while (prefix->size > 0 && prefix->data[prefix->size - 1] == 0xff)
        prefix->size--;
    if (prefix->size > 0)
        prefix->data[prefix->size - 1]++;
}

/* Empty parts at the end of an ordered code may be missing, with their joints. */
static size_t count_sure(const struct span *span)
{
    size_t count = span->count;
    bool may_lack = span->schema->encoding == ENCODING_ORDERED && !span->schema->has_nulls;
    while (may_lack && count > 0 && sql_is_text(span->schema->parts[count - 1].type) &&
           span->parts[count - 1].text.size == 0)
        count--;
    return count;
}

/* What the next part stands behind, if it is not empty. */
static void append_known(const struct span *span, struct buffer *out)
{
    append_parts(span->schema, span->parts, span->count, out);
    if (span->count > 0 && span->count < span->schema->count)
        append_joint(span->schema, out);
}

/* The first key with the known parts. */
static void first_key(const struct span *span, struct buffer *out)
{
    size_t sure = count_sure(span);
    bool is_all_empty = sure == 0 && span->count == span->schema->count;
    if (span->schema->encoding == ENCODING_ORDERED && is_all_empty)
        append_text(span->schema, bytes_make(NULL, 0), out);
    else if (span->schema->encoding == ENCODING_ORDERED)
        append_parts(span->schema, span->parts, sure, out);
    else
        append_known(span, out);
}

/* A part that is not the last ends with a joint, or, in an ordered code, with the key. */
static void pass_part(const struct span *span, bool is_whole, struct buffer *out)
{
    if (is_whole) {
        buffer_append_byte(out, 0);
    } else if (span->schema->encoding == ENCODING_ORDERED) {
        buffer_append(out, "\0\2", 2);
    } else {
        append_joint(span->schema, out);
        pass_prefix(out);
    }
}

/* What comes after all keys with the known parts. */
static void after_keys(const struct span *span, struct buffer *out)
{
    append_parts(span->schema, span->parts, span->count, out);
    if (span->count > 0)
        pass_part(span, span->count == span->schema->count, out);
}

/* Whether what any key has there comes after the value: big-endian numbers are not negative. */
static bool is_below_all(const struct span *span, const struct sql_value *value)
{
    const struct key_part *part = &span->schema->parts[span->count];
    return !sql_is_text(part->type) && !part->is_ordered && value->int64 < 0;
}

static void lower_end(const struct span *span, const struct sql_part_bound *bound,
                      struct buffer *out)
{
    bool is_text = sql_is_text(span->schema->parts[span->count].type);
    bool is_least = is_text && bound->value->text.size == 0 && !bound->is_open;
    if (is_least || is_below_all(span, bound->value)) {
        first_key(span, out);
        return;
    }
    append_known(span, out);
    append_part(span->schema, span->count, bound->value, out);
    if (!bound->is_open)
        return;
    if (!is_text)
        pass_prefix(out);
    else if (span->schema->encoding != ENCODING_DELIMITED || is_last(span))
        pass_part(span, is_last(span), out);
}

/* Up to a part that stands before a delimiter. With bytes that do not come after the delimiter's
 * first the order of keys is another than that of their parts: what is before the first such byte
 * bounds both. */
static void delimited_end(const struct span *span, const struct sql_part_bound *bound,
                          struct buffer *out)
{
    bytes text = bound->value->text;
    size_t size = 0;
    while (size < text.size && text.data[size] > span->schema->delimiter.data[0])
        size++;
    buffer_append_bytes(out, bytes_make(text.data, size));
    if (size < text.size)
        pass_prefix(out);
    else if (!bound->is_open)
        pass_part(span, false, out);
}

static void upper_end(const struct span *span, const struct sql_part_bound *bound,
                      struct buffer *out, bool *is_empty)
{
    bool is_text = sql_is_text(span->schema->parts[span->count].type);
    bool is_least = is_text && bound->value->text.size == 0 && bound->is_open;
    *is_empty = is_least || is_below_all(span, bound->value);
    append_known(span, out);
    if (is_text && span->schema->encoding == ENCODING_DELIMITED && !is_last(span)) {
        delimited_end(span, bound, out);
        return;
    }
    append_part(span->schema, span->count, bound->value, out);
    if (bound->is_open)
        return;
    if (is_text)
        pass_part(span, is_last(span), out);
    else
        pass_prefix(out);
}

status sql_key_span(const struct sql_key_schema *schema, const struct sql_value *parts,
                    size_t count, const struct sql_part_bound *lower,
                    const struct sql_part_bound *upper, struct buffer *from, struct buffer *to,
                    bool *is_empty)
{
    const struct span span = {schema, parts, count};
    bool has_next = count < schema->count;
    *is_empty = false;
    if (has_next && lower->value != NULL)
        lower_end(&span, lower, from);
    else
        first_key(&span, from);
    if (has_next && upper->value != NULL)
        upper_end(&span, upper, to, is_empty);
    else
        after_keys(&span, to);
    return from->failed || to->failed ? status_out_of_memory() : status_ok();
}
