/* The values that a request binds to sites of its GQL text: see gql_private.h. */
#include "datastore/gql/gql_private.h"

#include <stdlib.h>

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* A request may bind as many names as fit into it, and its text may have as many sites: they are
 * looked up in a sorted list. Of several with one name the last counts, as in all maps. */
struct gql_name_index {
    const char *name;
    const Ds__GqlQueryParameter *parameter;
    size_t place;
};

static int compare_names(const void *left, const void *right)
{
    const struct gql_name_index *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static bool is_reserved(const char *name)
{
    size_t size = strlen(name);
    return size >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + size - 2, "__", 2) == 0;
}

/* [A-Za-z_$][A-Za-z_$0-9]*, as sites have it. */
static status check_name(const char *name, struct arena *arena)
{
    struct buffer site = {0};
    struct gql_token token;
    buffer_append_format(&site, "@%s", name);
    bytes text = arena_copy(arena, buffer_bytes(&site));
    bool failed = site.failed || text.data == NULL;
    buffer_free(&site);
    if (failed)
        return status_out_of_memory();
    struct gql_lexer lexer = {.text = text, .arena = arena};
    status s = gql_next(&lexer, &token);
    bool is_name = status_is_ok(s) && token.kind == GQL_NAMED_BINDING && lexer.at == text.size;
    status_free(s);
    if (!is_name)
        return INVALID("GQL query parameter name \"%.200s\" contains an invalid character.", name);
    return is_reserved(name) ? INVALID("The GQL query parameter name \"%.200s\" is reserved.", name)
                             : status_ok();
}

/* Whether the parameter holds something; a map's entry may have none at all. */
static bool is_bound(const Ds__GqlQueryParameter *parameter)
{
    if (parameter == NULL)
        return false;
    if (parameter->parameter_type_case == DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_VALUE)
        return parameter->value != NULL &&
               parameter->value->value_type_case != DS__VALUE__VALUE_TYPE__NOT_SET;
    return parameter->parameter_type_case == DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_CURSOR;
}

static status prepare_names(struct gql_parser *parser)
{
    const Ds__GqlQuery *gql = parser->gql;
    parser->names = arena_alloc(parser->arena, gql->n_named_bindings * sizeof *parser->names);
    if (parser->names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < gql->n_named_bindings; i++) {
        const Ds__GqlQuery__NamedBindingsEntry *entry = gql->named_bindings[i];
        TRY(check_name(entry->key, parser->arena));
        if (!is_bound(entry->value))
            return INVALID("The binding \"%.200s\" has neither a value nor a cursor.", entry->key);
        parser->names[i] =
            (struct gql_name_index){.name = entry->key, .parameter = entry->value, .place = i};
    }
    if (gql->n_named_bindings > 0)
        qsort(parser->names, gql->n_named_bindings, sizeof *parser->names, compare_names);
    return status_ok();
}

status gql_bindings_prepare(struct gql_parser *parser)
{
    const Ds__GqlQuery *gql = parser->gql;
    TRY(prepare_names(parser));
    parser->positions_used = arena_zalloc(parser->arena, gql->n_positional_bindings * sizeof(bool));
    if (parser->positions_used == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < gql->n_positional_bindings; i++)
        if (!is_bound(gql->positional_bindings[i]))
            return INVALID("The binding %zu has neither a value nor a cursor.", i + 1);
    return status_ok();
}

/* The last of this name, or NULL. */
static const Ds__GqlQueryParameter *find_name(const struct gql_parser *parser, const char *name)
{
    size_t low = 0, high = parser->gql->n_named_bindings;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(parser->names[middle].name, name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low > 0 && strcmp(parser->names[low - 1].name, name) == 0;
    return found ? parser->names[low - 1].parameter : NULL;
}

static const Ds__GqlQueryParameter *find_position(struct gql_parser *parser, const char *digits)
{
    unsigned long long position = strtoull(digits, NULL, 10);
    if (position == 0 || position > parser->gql->n_positional_bindings)
        return NULL;
    parser->positions_used[position - 1] = true;
    return parser->gql->positional_bindings[position - 1];
}

static status refuse_site(const struct gql_token *token)
{
    if (token->kind == GQL_NAMED_BINDING)
        return INVALID("Absent named binding: %.200s.", token->text);
    if (strtoull(token->text, NULL, 10) == 0)
        return INVALID("Invalid binding site @%.200s.", token->text);
    return INVALID("Absent positional binding: %.200s.", token->text);
}

status gql_binding(struct gql_parser *parser, const Ds__GqlQueryParameter **out)
{
    const struct gql_token *token = &parser->token;
    *out = token->kind == GQL_NAMED_BINDING ? find_name(parser, token->text)
                                            : find_position(parser, token->text);
    return *out == NULL ? refuse_site(token) : gql_advance(parser);
}

status gql_bindings_check(const struct gql_parser *parser)
{
    for (size_t i = 0; i < parser->gql->n_positional_bindings; i++)
        if (!parser->positions_used[i])
            return INVALID("Unused positional binding: %zu.", i + 1);
    return status_ok();
}
