/* Values in GQL's text: literals, the functions that make values, bindings. See gql_private.h. */
#include "datastore/gql/gql_private.h"

#include "wire/grpc_text.h"
#include "wire/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

static status refuse(const struct gql_parser *parser, const struct gql_token *token,
                     const char *words)
{
    return gql_refuse(parser->lexer.text, token, words);
}

status gql_allow_literal(struct gql_parser *parser, const struct gql_token *token)
{
    if (parser->gql->allow_literals)
        return status_ok();
    return INVALID("Disallowed literal: %.*s.",
                   token->image.size > 200 ? 200 : (int)token->image.size,
                   (const char *)token->image.data);
}

/* A value of a type, in the arena. */
static status new_value(struct gql_parser *parser, Ds__Value__ValueTypeCase type, Ds__Value **out)
{
    PROTO_NEW(parser->arena, *out, DS__VALUE__INIT);
    (*out)->value_type_case = type;
    return status_ok();
}

/* --- numbers --- */

static status parse_integer(struct gql_parser *parser, const struct gql_token *token, int64_t *out)
{
    errno = 0;
    *out = strtoll(token->text, NULL, 10);
    return errno == ERANGE ? refuse(parser, token, "The integer does not fit into 64 bits")
                           : status_ok();
}

status gql_integer(struct gql_parser *parser, int64_t *out)
{
    struct gql_token token = parser->token;
    TRY(gql_need(parser, GQL_INTEGER));
    return parse_integer(parser, &token, out);
}

static status parse_double(struct gql_parser *parser, const struct gql_token *token, double *out)
{
    *out = strtod(token->text, NULL);
    return isfinite(*out) ? status_ok() : refuse(parser, token, "The number is too large");
}

/* --- functions --- */

static bool sees_string(struct gql_parser *parser)
{
    bool is_single = gql_sees(parser, GQL_SINGLE_QUOTED);
    return gql_sees(parser, GQL_DOUBLE_QUOTED) || is_single;
}

/* A string, which `out` is then. */
static status need_string(struct gql_parser *parser, struct gql_token *out)
{
    *out = parser->token;
    if (!sees_string(parser))
        return gql_unexpected(parser);
    return gql_advance(parser);
}

/* ("…") */
static status string_argument(struct gql_parser *parser, struct gql_token *out)
{
    TRY(gql_need(parser, GQL_OPEN));
    TRY(need_string(parser, out));
    return gql_need(parser, GQL_CLOSE);
}

/* `WORD("…"),`, if it comes next; a kind may have the same name. */
static status partition_part(struct gql_parser *parser, const char *word, const char **out)
{
    struct gql_token part;
    bool is_call = false;
    if (gql_is_word(&parser->token, word))
        TRY(gql_is_call(parser, &is_call));
    if (!is_call)
        return status_ok();
    TRY(gql_advance(parser));
    TRY(string_argument(parser, &part));
    *out = part.text;
    return gql_need(parser, GQL_COMMA);
}

static status key_partition(struct gql_parser *parser, Ds__Key *key)
{
    Ds__PartitionId *partition;
    PROTO_NEW(parser->arena, partition, DS__PARTITION_ID__INIT);
    partition->project_id = parser->database->project;
    partition->database_id = parser->database->id;
    partition->namespace_id = parser->name_space;
    key->partition_id = partition;
    TRY(partition_part(parser, "PROJECT", &partition->project_id));
    return partition_part(parser, "NAMESPACE", &partition->namespace_id);
}

static status key_id(struct gql_parser *parser, Ds__Key__PathElement *element)
{
    struct gql_token token = parser->token;
    if (gql_sees(parser, GQL_INTEGER)) {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
        TRY(gql_integer(parser, &element->id));
        return element->id > 0 ? status_ok()
                               : refuse(parser, &token, "A key's id must be greater than 0");
    }
    TRY(need_string(parser, &token));
    element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    element->name = token.text;
    return token.text[0] != '\0' ? status_ok()
                                 : refuse(parser, &token, "A key's name must not be empty");
}

/* The elements, and the parenthesis behind them. */
static status key_path(struct gql_parser *parser, Ds__Key *key)
{
    struct vector path = {0};
    for (bool more = true; more;) {
        Ds__Key__PathElement *element;
        PROTO_NEW(parser->arena, element, DS__KEY__PATH_ELEMENT__INIT);
        TRY(gql_name(parser, &element->kind));
        TRY(gql_need(parser, GQL_COMMA));
        TRY(key_id(parser, element));
        TRY(vector_add(&path, parser->arena, &element, sizeof(Ds__Key__PathElement *)));
        TRY(gql_take(parser, GQL_COMMA, &more));
    }
    key->n_path = path.count;
    key->path = path.items;
    return gql_need(parser, GQL_CLOSE);
}

static status key_value(struct gql_parser *parser, const struct gql_token *name, Ds__Value **out)
{
    TRY(gql_allow_literal(parser, name));
    TRY(new_value(parser, DS__VALUE__VALUE_TYPE_KEY_VALUE, out));
    PROTO_NEW(parser->arena, (*out)->key_value, DS__KEY__INIT);
    TRY(gql_need(parser, GQL_OPEN));
    TRY(key_partition(parser, (*out)->key_value));
    return key_path(parser, (*out)->key_value);
}

/* The URL's alphabet alone, and no padding. */
static bool is_base64url(const char *text)
{
    for (; *text != '\0'; text++)
        if (!isascii(*text) || (!isalnum(*text) && *text != '-' && *text != '_'))
            return false;
    return true;
}

static status blob_value(struct gql_parser *parser, const struct gql_token *name, Ds__Value **out)
{
    struct gql_token text;
    TRY(gql_allow_literal(parser, name));
    TRY(new_value(parser, DS__VALUE__VALUE_TYPE_BLOB_VALUE, out));
    TRY(string_argument(parser, &text));
    bytes encoded = bytes_of(text.text);
    uint8_t *data = arena_alloc(parser->arena, base64_decoded_most(encoded.size));
    size_t size;
    if (data == NULL)
        return status_out_of_memory();
    if (!is_base64url(text.text) || !base64_decode(encoded, data, &size))
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid blob text: \"%.200s\".", text.text);
    (*out)->blob_value = (ProtobufCBinaryData){.len = size, .data = data};
    return status_ok();
}

/* Of RFC 3339 as json.h reads it, at most six decimals, and no +00:00 or -00:00 for Z. */
static bool parse_datetime(const char *text, Pb__Timestamp *out)
{
    const char *point = strchr(text, '.');
    size_t size = strlen(text);
    if (point != NULL && strspn(point + 1, "0123456789") > 6)
        return false;
    if (size > 6 && strcmp(text + size - 5, "00:00") == 0 && text[size - 6] != 'T' &&
        text[size - 6] != 't')
        return false;
    return json_parse_timestamp(bytes_of(text), &out->seconds, &out->nanos);
}

static status datetime_value(struct gql_parser *parser, const struct gql_token *name,
                             Ds__Value **out)
{
    struct gql_token text;
    TRY(gql_allow_literal(parser, name));
    TRY(new_value(parser, DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE, out));
    PROTO_NEW(parser->arena, (*out)->timestamp_value, PB__TIMESTAMP__INIT);
    TRY(string_argument(parser, &text));
    if (!parse_datetime(text.text, (*out)->timestamp_value))
        return refuse(parser, &text, "A datetime must be as in RFC 3339, with at most 6 decimals");
    return status_ok();
}

status gql_value_list(struct gql_parser *parser, Ds__Value **out)
{
    struct vector values = {0};
    TRY(new_value(parser, DS__VALUE__VALUE_TYPE_ARRAY_VALUE, out));
    PROTO_NEW(parser->arena, (*out)->array_value, DS__ARRAY_VALUE__INIT);
    TRY(gql_enter(parser));
    TRY(gql_need(parser, GQL_OPEN));
    for (bool more = true; more;) {
        Ds__Value *value;
        TRY(gql_value(parser, &value));
        TRY(vector_add(&values, parser->arena, &value, sizeof(Ds__Value *)));
        TRY(gql_take(parser, GQL_COMMA, &more));
    }
    parser->depth--;
    (*out)->array_value->n_values = values.count;
    (*out)->array_value->values = values.items;
    return gql_need(parser, GQL_CLOSE);
}

static status function_value(struct gql_parser *parser, Ds__Value **out)
{
    struct gql_token name = parser->token;
    TRY(gql_advance(parser));
    if (gql_is_word(&name, "KEY"))
        return key_value(parser, &name, out);
    if (gql_is_word(&name, "ARRAY"))
        return gql_value_list(parser, out);
    if (gql_is_word(&name, "BLOB"))
        return blob_value(parser, &name, out);
    if (gql_is_word(&name, "DATETIME"))
        return datetime_value(parser, &name, out);
    return INVALID("Unknown function \"%.200s\".", name.text);
}

/* --- any value --- */

static status bound_value(struct gql_parser *parser, Ds__Value **out)
{
    const Ds__GqlQueryParameter *parameter;
    struct gql_token site = parser->token;
    TRY(gql_binding(parser, &parameter));
    if (parameter->parameter_type_case != DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_VALUE)
        return refuse(parser, &site, "A value is wanted, and the site is bound to a cursor");
    *out = parameter->value;
    return status_ok();
}

/* Parses one token that is a literal. */
static status simple_value(struct gql_parser *parser, Ds__Value__ValueTypeCase type,
                           Ds__Value **out)
{
    struct gql_token token = parser->token;
    TRY(gql_allow_literal(parser, &token));
    TRY(new_value(parser, type, out));
    if (type == DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
        TRY(parse_integer(parser, &token, &(*out)->integer_value));
    else if (type == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE)
        TRY(parse_double(parser, &token, &(*out)->double_value));
    else if (type == DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE)
        (*out)->boolean_value = token.kind == GQL_TRUE;
    else if (type == DS__VALUE__VALUE_TYPE_STRING_VALUE)
        (*out)->string_value = token.text;
    return gql_advance(parser);
}

status gql_value(struct gql_parser *parser, Ds__Value **out)
{
    static const struct {
        enum gql_kind kind;
        Ds__Value__ValueTypeCase type;
    } simple[] = {
        {GQL_INTEGER, DS__VALUE__VALUE_TYPE_INTEGER_VALUE},
        {GQL_DOUBLE, DS__VALUE__VALUE_TYPE_DOUBLE_VALUE},
        {GQL_SINGLE_QUOTED, DS__VALUE__VALUE_TYPE_STRING_VALUE},
        {GQL_DOUBLE_QUOTED, DS__VALUE__VALUE_TYPE_STRING_VALUE},
        {GQL_TRUE, DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE},
        {GQL_FALSE, DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE},
        {GQL_NULL, DS__VALUE__VALUE_TYPE_NULL_VALUE},
    };
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++)
        if (gql_sees(parser, simple[i].kind))
            return simple_value(parser, simple[i].type, out);
    if (gql_sees(parser, GQL_NAMED_BINDING) || gql_sees(parser, GQL_POSITIONAL_BINDING))
        return bound_value(parser, out);
    if (gql_sees(parser, GQL_NAME))
        return function_value(parser, out);
    return gql_unexpected(parser);
}
