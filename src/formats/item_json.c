/* Items as DynamoDB's JSON, {"Id":{"N":"1"}}, and as plain JSON. See item.h. */
#include "formats/item_private.h"

#include "base/utf8.h"
#include "wire/grpc_text.h"
#include "wire/json.h"
#include "wire/json_text.h"

#define BAD_STRING "the string before is not UTF-8, or has a bad escape"

struct item_reader {
    struct json_reader json;
    const uint8_t *start;
    struct arena *arena;
    unsigned depth; /* of lists and maps around what is read */
};

static status refuse(const struct item_reader *reader, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "byte %zu: %s",
                       (size_t)(reader->json.at - reader->start) + 1, what);
}

/* --- strings --- */

/* Replaces the escapes in a string. */
static status unescape(struct item_reader *reader, bytes text, bytes *out)
{
    struct buffer buffer = {0};
    bool is_valid = json_unescape(text, &buffer);
    *out = arena_copy(reader->arena, buffer_bytes(&buffer));
    bool has_memory = !buffer.failed && out->data != NULL;
    buffer_free(&buffer);
    if (!is_valid)
        return refuse(reader, BAD_STRING);
    return has_memory ? status_ok() : status_out_of_memory();
}

/* Without an escape it is a part of the text itself. */
static status read_text(struct item_reader *reader, bytes text, bytes *out)
{
    if (text.size > 0 && memchr(text.data, '\\', text.size) != NULL)
        return unescape(reader, text, out);
    *out = text;
    return utf8_is_valid(text) ? status_ok() : refuse(reader, BAD_STRING);
}

static status take_string(struct item_reader *reader, const char *what, bytes *out)
{
    bytes text;
    if (json_peek(&reader->json) != JSON_STRING ||
        json_take_scalar(&reader->json, &text) != JSON_STRING)
        return refuse(reader, what);
    return read_text(reader, text, out);
}

static status take_name(struct item_reader *reader, bytes *out)
{
    TRY(take_string(reader, "a name in quotes is expected", out));
    return json_take(&reader->json, ':') ? status_ok() : refuse(reader, "':' is expected");
}

/* --- scalars --- */

static status read_string(struct item_reader *reader, struct item_value *out)
{
    return take_string(reader, "a string is expected", &out->text);
}

static status read_number(struct item_reader *reader, struct item_value *out)
{
    struct item_number number;
    TRY(take_string(reader, "a number in quotes is expected", &out->text));
    status s = item_number_parse(out->text, &number);
    if (status_is_ok(s))
        return s;
    status placed = refuse(reader, status_message(s));
    status_free(s);
    return placed;
}

static status read_binary(struct item_reader *reader, struct item_value *out)
{
    bytes text;
    size_t size;
    TRY(take_string(reader, "base64 in quotes is expected", &text));
    uint8_t *to = arena_alloc(reader->arena, base64_decoded_most(text.size));
    if (to == NULL)
        return status_out_of_memory();
    if (!base64_decode(text, to, &size))
        return refuse(reader, "the string before is not base64");
    out->text = bytes_make(to, size);
    return status_ok();
}

static status read_bool(struct item_reader *reader, struct item_value *out)
{
    bytes text;
    enum json_kind kind = json_peek(&reader->json);
    if ((kind != JSON_TRUE && kind != JSON_FALSE) ||
        json_take_scalar(&reader->json, &text) == JSON_BAD)
        return refuse(reader, "true or false is expected");
    out->boolean = kind == JSON_TRUE;
    return status_ok();
}

static status read_null(struct item_reader *reader, struct item_value *out)
{
    TRY(read_bool(reader, out));
    return out->boolean ? status_ok() : refuse(reader, "NULL can be nothing but true");
}

/* --- what has elements --- */

typedef status read_function(struct item_reader *reader, struct item_value *out);

static status read_typed(struct item_reader *reader, struct item_value *out);

static status read_list_elements(struct item_reader *reader, read_function *read_element,
                                 enum item_type element_type, struct item_value *out)
{
    size_t capacity = 0;
    if (!json_take(&reader->json, '['))
        return refuse(reader, "'[' is expected");
    if (json_take(&reader->json, ']'))
        return status_ok();
    do {
        if (!item_make_room(out, &capacity, reader->arena))
            return status_out_of_memory();
        out->elements[out->count] = (struct item_value){.type = element_type};
        TRY(read_element(reader, &out->elements[out->count]));
        out->count++;
    } while (json_take(&reader->json, ','));
    return json_take(&reader->json, ']') ? status_ok() : refuse(reader, "',' or ']' is expected");
}

static status read_member(struct item_reader *reader, struct item_value *out)
{
    bytes name;
    TRY(take_name(reader, &name));
    TRY(read_typed(reader, out));
    out->name = name;
    return status_ok();
}

static status read_members(struct item_reader *reader, struct item_value *out)
{
    size_t capacity = 0;
    if (!json_take(&reader->json, '{'))
        return refuse(reader, "'{' is expected");
    if (json_take(&reader->json, '}'))
        return status_ok();
    do {
        if (!item_make_room(out, &capacity, reader->arena))
            return status_out_of_memory();
        TRY(read_member(reader, &out->elements[out->count]));
        out->count++;
    } while (json_take(&reader->json, ','));
    if (!json_take(&reader->json, '}'))
        return refuse(reader, "',' or '}' is expected");
    return item_sort_members(out) ? status_ok()
                                  : refuse(reader, "a name is twice in the map before");
}

static status read_string_set(struct item_reader *reader, struct item_value *out)
{
    return read_list_elements(reader, read_string, ITEM_STRING, out);
}

static status read_number_set(struct item_reader *reader, struct item_value *out)
{
    return read_list_elements(reader, read_number, ITEM_NUMBER, out);
}

static status read_binary_set(struct item_reader *reader, struct item_value *out)
{
    return read_list_elements(reader, read_binary, ITEM_BINARY, out);
}

static status read_list(struct item_reader *reader, struct item_value *out)
{
    return read_list_elements(reader, read_typed, ITEM_NULL, out);
}

static read_function *const readers[] = {
    [ITEM_STRING] = read_string,
    [ITEM_NUMBER] = read_number,
    [ITEM_BINARY] = read_binary,
    [ITEM_BOOL] = read_bool,
    [ITEM_NULL] = read_null,
    [ITEM_STRING_SET] = read_string_set,
    [ITEM_NUMBER_SET] = read_number_set,
    [ITEM_BINARY_SET] = read_binary_set,
    [ITEM_LIST] = read_list,
    [ITEM_MAP] = read_members,
};

enum { TYPES = sizeof readers / sizeof *readers };

/* --- values --- */

static status find_type(const struct item_reader *reader, bytes name, enum item_type *out)
{
    for (unsigned i = 0; i < TYPES; i++) {
        *out = (enum item_type)i;
        if (bytes_equal(name, bytes_of(item_type_name(*out))))
            return status_ok();
    }
    return refuse(reader, "the name before is no type of DynamoDB");
}

/* {"S":…}: the type's name, and the value. */
static status read_typed(struct item_reader *reader, struct item_value *out)
{
    bytes name;
    *out = (struct item_value){0};
    if (!json_take(&reader->json, '{'))
        return refuse(reader, "'{' is expected");
    TRY(take_name(reader, &name));
    TRY(find_type(reader, name, &out->type));
    if (reader->depth == ITEM_MOST_DEPTH)
        return refuse(reader, "more than 32 levels of lists and maps");
    bool is_deeper = out->type == ITEM_LIST || out->type == ITEM_MAP;
    reader->depth += is_deeper;
    TRY(readers[out->type](reader, out));
    reader->depth -= is_deeper;
    return json_take(&reader->json, '}') ? status_ok() : refuse(reader, "'}' is expected");
}

static status read_all(struct item_reader *reader, read_function *read, struct item_value *out)
{
    TRY(read(reader, out));
    json_peek(&reader->json); /* over white space */
    return reader->json.at == reader->json.end ? status_ok()
                                               : refuse(reader, "something follows the value");
}

static struct item_reader reader_of(bytes text, struct arena *arena)
{
    return (struct item_reader){.json = {.at = text.data, .end = bytes_from(text, text.size).data},
                                .start = text.data,
                                .arena = arena};
}

status item_read_json(bytes text, struct arena *arena, struct item_value *out)
{
    struct item_reader reader = reader_of(text, arena);
    return read_all(&reader, read_typed, out);
}

status item_read_json_map(bytes text, struct arena *arena, struct item_value *out)
{
    struct item_reader reader = reader_of(text, arena);
    *out = (struct item_value){.type = ITEM_MAP};
    return read_all(&reader, read_members, out);
}

status item_take_json_map(struct json_reader *json, const uint8_t *start, struct arena *arena,
                          struct item_value *out)
{
    struct item_reader reader = {.json = *json, .start = start, .arena = arena};
    *out = (struct item_value){.type = ITEM_MAP};
    TRY(read_members(&reader, out));
    *json = reader.json;
    return status_ok();
}

/* --- writing --- */

static void write_base64(bytes binary, struct buffer *out)
{
    static const char padding[] = {'=', '='};
    buffer_append_byte(out, '"');
    base64_encode(binary, out);
    buffer_append(out, padding, (3 - binary.size % 3) % 3);
    buffer_append_byte(out, '"');
}

typedef void write_function(const struct item_value *value, struct buffer *out);

static void write_elements(const struct item_value *value, write_function *write,
                           struct buffer *out)
{
    bool is_map = value->type == ITEM_MAP;
    buffer_append_byte(out, is_map ? '{' : '[');
    for (size_t i = 0; i < value->count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        if (is_map) {
            json_encode_string(value->elements[i].name, out);
            buffer_append_byte(out, ':');
        }
        write(&value->elements[i], out);
    }
    buffer_append_byte(out, is_map ? '}' : ']');
}

/* Writes what stands behind the type's name: numbers are strings there. */
static void write_inner(const struct item_value *value, struct buffer *out)
{
    switch (value->type) {
    case ITEM_STRING:
    case ITEM_NUMBER:
        json_encode_string(value->text, out);
        break;
    case ITEM_BINARY:
        write_base64(value->text, out);
        break;
    case ITEM_BOOL:
        buffer_append_bytes(out, bytes_of(value->boolean ? "true" : "false"));
        break;
    case ITEM_NULL:
        buffer_append_bytes(out, bytes_of("true"));
        break;
    case ITEM_LIST:
    case ITEM_MAP:
        write_elements(value, item_write_json, out);
        break;
    default:
        write_elements(value, write_inner, out);
    }
}

void item_write_json(const struct item_value *value, struct buffer *out)
{
    buffer_append_format(out, "{\"%s\":", item_type_name(value->type));
    write_inner(value, out);
    buffer_append_byte(out, '}');
}

/* JSON has no "+1", ".5" or "007", which are numbers to DynamoDB. */
static void write_plain_number(bytes text, struct buffer *out)
{
    struct item_number number;
    if (json_is_number(text)) {
        buffer_append_bytes(out, text);
        return;
    }
    status_ignore(item_number_parse(text, &number));
    item_number_append_plain(&number, out);
}

void item_write_plain(const struct item_value *value, struct buffer *out)
{
    switch (value->type) {
    case ITEM_NUMBER:
        write_plain_number(value->text, out);
        break;
    case ITEM_NULL:
        buffer_append_bytes(out, bytes_of("null"));
        break;
    case ITEM_STRING:
    case ITEM_BINARY:
    case ITEM_BOOL:
        write_inner(value, out);
        break;
    default:
        write_elements(value, item_write_plain, out);
    }
}
