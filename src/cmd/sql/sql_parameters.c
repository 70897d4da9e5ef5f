/* See sql_parameters.h. A text means as a value of a type what CAST makes of it, which sql/ knows.
 */
#include "cmd/sql/sql_parameters.h"

#include "base/utf8.h"
#include "base/vector.h"
#include "bigtable/query_messages.h"
#include "sql/functions/cast.h"
#include "sql/syntax/lexer.h"
#include "sql/time/zone.h"
#include "wire/proto.h"

#include <ctype.h>

enum { ARENA_LIMIT = 512 << 20 };

/* --- types --- */

/* BYTES, ARRAY<BYTES>. */
static status find_type(bytes name, struct arena *arena, const struct sql_type **out)
{
    static const char array[] = "ARRAY<";
    size_t prefix = strlen(array);
    bool is_array = name.size > prefix + 1 && name.data[name.size - 1] == '>' &&
                    strncasecmp((const char *)name.data, array, prefix) == 0;
    bytes simple = is_array ? bytes_make(name.data + prefix, name.size - prefix - 1) : name;
    const struct sql_type *type = sql_type_named(simple);
    if (type == NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "\"%.*s\" is no type of a parameter: BOOL, INT64, FLOAT32, FLOAT64, "
                           "STRING, BYTES, DATE, TIMESTAMP, or ARRAY<one of these>",
                           (int)name.size, (const char *)name.data);
    *out = is_array ? sql_array_of(arena, type) : type;
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* --- values --- */

static int hex_of(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* Unescapes \xHH and \\, and nothing else. */
static status unescape(bytes text, struct arena *arena, bytes *out)
{
    uint8_t *to = arena_alloc(arena, text.size);
    size_t size = 0;
    if (to == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t *at = text.data + i;
        size_t left = text.size - i;
        if (*at != '\\') {
            to[size++] = *at;
        } else if (left >= 2 && at[1] == '\\') {
            to[size++] = '\\';
            i++;
        } else if (left >= 4 && at[1] == 'x' && hex_of(at[2]) >= 0 && hex_of(at[3]) >= 0) {
            to[size++] = (uint8_t)(hex_of(at[2]) << 4 | hex_of(at[3]));
            i += 3;
        } else {
            return status_make(STATUS_INVALID_ARGUMENT,
                               "a backslash in BYTES must be \\\\ or begin \\xHH");
        }
    }
    *out = bytes_make(to, size);
    return status_ok();
}

static status cast_text(bytes text, const struct sql_type *type, struct arena *arena,
                        struct sql_value *out)
{
    const struct sql_type *types[] = {&sql_string};
    struct sql_session session = {.zones = sql_zones_create()};
    struct sql_call call = {.arena = arena, .type = type, .types = types, .session = &session};
    struct sql_value given = sql_of_text(text);
    if (session.zones == NULL)
        return status_out_of_memory();
    status s = sql_cast_value(&call, &sql_string, type, &given, out);
    sql_zones_destroy(session.zones);
    return s;
}

static status read_simple(bytes text, const struct sql_type *type, struct arena *arena,
                          struct sql_value *out)
{
    if (type->kind == SQL_BYTES) {
        *out = sql_of_text(bytes_make(NULL, 0));
        return unescape(text, arena, &out->text);
    }
    if (!utf8_is_valid(text))
        return status_make(STATUS_INVALID_ARGUMENT, "the value is not UTF-8");
    if (type->kind == SQL_STRING) {
        *out = sql_of_text(text);
        return status_ok();
    }
    return cast_text(text, type, arena, out);
}

/* --- arrays --- */

/* Reads one element: NULL, a literal in quotes, or what is written up to the next comma. */
static status read_element(struct lexer *lexer, struct token *token, const struct sql_type *type,
                           struct sql_value *out)
{
    struct token first = *token, last = *token;
    size_t parts = 0;
    for (; !token_is_symbol(token, ",") && !token_is_symbol(token, "]"); parts++) {
        if (token->kind == TOKEN_END)
            return status_make(STATUS_INVALID_ARGUMENT, "an array ends with ]");
        last = *token;
        TRY(lexer_next(lexer, token));
    }
    bool is_quoted = first.kind == TOKEN_STRING || first.kind == TOKEN_BYTES;
    if (parts == 0 || (parts > 1 && is_quoted))
        return status_make(STATUS_INVALID_ARGUMENT, "elements of arrays are separated by commas");
    if (token_is_word(&first, "NULL") && parts == 1) {
        *out = sql_null();
        return status_ok();
    }
    if (is_quoted && type->kind == SQL_BYTES) {
        *out = sql_of_text(first.text);
        return status_ok();
    }
    bytes written = bytes_make(lexer->text.data + first.at, last.end - first.at);
    return read_simple(is_quoted ? first.text : written, type, lexer->arena, out);
}

static status read_array(bytes text, const struct sql_type *type, struct arena *arena,
                         struct sql_value *out)
{
    struct lexer lexer = {.text = text, .arena = arena};
    struct vector items = {0};
    struct token token;
    struct sql_value item;
    TRY(lexer_next(&lexer, &token));
    if (!token_is_symbol(&token, "["))
        return status_make(STATUS_INVALID_ARGUMENT, "an array begins with [");
    TRY(lexer_next(&lexer, &token));
    while (!token_is_symbol(&token, "]")) {
        TRY(read_element(&lexer, &token, type->element, &item));
        TRY(vector_add(&items, arena, &item, sizeof item));
        if (token_is_symbol(&token, ","))
            TRY(lexer_next(&lexer, &token));
    }
    TRY(lexer_next(&lexer, &token));
    if (token.kind != TOKEN_END)
        return status_make(STATUS_INVALID_ARGUMENT, "an array ends with ]");
    *out = sql_of_items(items.items, items.count);
    return status_ok();
}

/* --- a parameter --- */

/* Values become messages where results do: a message of values with this one is written and read.
 */
static status make_message(const struct sql_type *type, const struct sql_value *value,
                           struct arena *arena, Bt__Value **out)
{
    struct buffer wire = {0};
    ProtobufCMessage *message;
    query_value_append(&wire, type, value);
    bytes kept = wire.failed ? bytes_make(NULL, 0) : arena_copy(arena, buffer_bytes(&wire));
    buffer_free(&wire);
    if (kept.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&bt__proto_rows__descriptor, kept, arena, &message));
    *out = ((const Bt__ProtoRows *)(const void *)message)->values[0];
    return status_ok();
}

static status fill(struct shell_parameter *parameter, bytes name, bytes type_name, bytes text)
{
    struct arena *arena = parameter->arena;
    const struct sql_type *type;
    struct sql_value value = sql_null();
    parameter->name = arena_string(arena, name);
    bytes kept = arena_copy(arena, text);
    if (parameter->name == NULL || (text.data != NULL && kept.data == NULL))
        return status_out_of_memory();
    TRY(find_type(type_name, arena, &type));
    if (text.data != NULL && type->kind == SQL_ARRAY)
        TRY(read_array(kept, type, arena, &value));
    else if (text.data != NULL)
        TRY(read_simple(kept, type, arena, &value));
    TRY(query_type_to_message(type, arena, &parameter->type));
    return make_message(type, &value, arena, &parameter->value);
}

static bool is_name(bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] != '_' && !isalnum(name.data[i]))
            return false;
    return name.size > 0 && !isdigit(name.data[0]);
}

status shell_parameters_set(struct shell_parameters *parameters, bytes name, bytes type,
                            bytes value)
{
    if (!is_name(name))
        return status_make(STATUS_INVALID_ARGUMENT, "\"%.*s\" is no name of a parameter",
                           (int)name.size, (const char *)name.data);
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct shell_parameter *parameter =
        arena == NULL ? NULL : arena_zalloc(arena, sizeof *parameter);
    if (parameter == NULL) {
        arena_destroy(arena);
        return status_out_of_memory();
    }
    parameter->arena = arena;
    status s = fill(parameter, name, type, value);
    if (!status_is_ok(s)) {
        arena_destroy(arena);
        return s;
    }
    shell_parameters_unset(parameters, name);
    parameter->next = parameters->first;
    parameters->first = parameter;
    parameters->count++;
    return status_ok();
}

status shell_parameters_set_from(struct shell_parameters *parameters, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is not NAME=TYPE:VALUE", text);
    const char *type = equals + 1, *colon = strchrnul(type, ':');
    bytes value = *colon == '\0' ? bytes_make(NULL, 0) : bytes_of(colon + 1);
    return shell_parameters_set(parameters, bytes_make(text, (size_t)(equals - text)),
                                bytes_make(type, (size_t)(colon - type)), value);
}

bool shell_parameters_unset(struct shell_parameters *parameters, bytes name)
{
    for (struct shell_parameter **at = &parameters->first; *at != NULL; at = &(*at)->next) {
        struct shell_parameter *parameter = *at;
        if (!bytes_equal(bytes_of(parameter->name), name))
            continue;
        *at = parameter->next;
        arena_destroy(parameter->arena);
        parameters->count--;
        return true;
    }
    return false;
}

void shell_parameters_free(struct shell_parameters *parameters)
{
    while (parameters->first != NULL)
        shell_parameters_unset(parameters, bytes_of(parameters->first->name));
}
