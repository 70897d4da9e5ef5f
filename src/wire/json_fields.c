/* Partial answers: the parameter `fields`. See json_private.h.
 *
 *     fields  =  item { "," item }
 *     item    =  segment { "/" segment } [ "(" fields ")" ]        "." is as good as "/"
 *     segment =  a field's name | a key of a map | "*" for any */
#include "wire/json_private.h"

#include <stdlib.h>

enum {
    MOST_LEVELS = 32,
    MOST_TEXT = 4 << 10,
    NODES_BYTES = 1 << 20, /* of memory */
    MOST_SHOWN = 100,      /* characters in a message */
};

struct json_fields {
    struct arena *arena;
    struct json_node root;
};

struct parser {
    struct arena *arena;
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *item; /* where the path begins that is told of in a message */
};

/* What a segment is a name in. */
struct scope {
    enum { IN_MESSAGE, IN_MAP, IN_ANYTHING, IN_NOTHING } kind;
    const ProtobufCMessageDescriptor *type; /* of the message, of the map's entries */
};

static status no_such_path(const struct parser *parser)
{
    size_t size = (size_t)(parser->at - parser->item);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Error expanding 'fields' parameter. Cannot find matching fields for path "
                       "'%.*s'.",
                       size > MOST_SHOWN ? MOST_SHOWN : (int)size, (const char *)parser->item);
}

static status malformed(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Error expanding 'fields' parameter. It is to "
                                                "be like 'a,b/c,d(e,f/g)', at most 4096 bytes.");
}

static struct scope scope_of_field(const ProtobufCFieldDescriptor *field, bool is_element)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return (struct scope){IN_NOTHING, NULL};
    if (json_is_map(field) && !is_element)
        return (struct scope){IN_MAP, field->descriptor};
    if (json_form_of(field->descriptor) == FORM_ANY)
        return (struct scope){IN_ANYTHING, NULL};
    if (json_is_scalar_form(field->descriptor))
        return (struct scope){IN_NOTHING, NULL};
    return (struct scope){IN_MESSAGE, field->descriptor};
}

/* Takes the scope to what the segment names in it; false if that is nothing. */
static bool enter(struct scope *scope, bytes segment)
{
    const ProtobufCFieldDescriptor *field;
    bool is_any = bytes_equal(segment, bytes_of("*"));
    switch (scope->kind) {
    case IN_MESSAGE:
        field = is_any ? NULL : json_find_field(scope->type, segment);
        if (is_any)
            *scope = (struct scope){IN_ANYTHING, NULL};
        else if (field != NULL)
            *scope = scope_of_field(field, false);
        return is_any || field != NULL;
    case IN_MAP:
        *scope = scope_of_field(&scope->type->fields[1], true);
        return true;
    case IN_ANYTHING:
        return true;
    default:
        return false;
    }
}

static bool is_mark(uint8_t byte)
{
    return byte != '\0' && strchr(",/.()", byte) != NULL;
}

static bool take(struct parser *parser, char mark)
{
    bool is_there = parser->at < parser->end && *parser->at == (uint8_t)mark;
    parser->at += is_there;
    return is_there;
}

static bytes take_segment(struct parser *parser)
{
    const uint8_t *start = parser->at;
    while (parser->at < parser->end && !is_mark(*parser->at))
        parser->at++;
    return bytes_make(start, (size_t)(parser->at - start));
}

/* The child of that name, made if it is not there; NULL without memory. */
static struct json_node *child(struct parser *parser, struct json_node *node, bytes name)
{
    for (struct json_node *each = node->first; each != NULL; each = each->next)
        if (bytes_equal(each->name, name))
            return each;
    struct json_node *made = arena_zalloc(parser->arena, sizeof *made);
    if (made == NULL)
        return NULL;
    made->name = name;
    made->next = node->first;
    node->first = made;
    return made;
}

static status parse_list(struct parser *parser, struct json_node *node, struct scope scope,
                         unsigned levels);

static status parse_item(struct parser *parser, struct json_node *node, struct scope scope,
                         unsigned levels)
{
    do {
        bytes segment = take_segment(parser);
        if (segment.size == 0 || levels-- == 0)
            return malformed();
        if (!enter(&scope, segment))
            return no_such_path(parser);
        node = child(parser, node, segment);
        if (node == NULL)
            return status_out_of_memory();
    } while (take(parser, '/') || take(parser, '.'));
    if (take(parser, '('))
        return parse_list(parser, node, scope, levels);
    node->is_whole = true;
    return status_ok();
}

/* To the end, or in the midst of an item to the parenthesis that closes it. */
static status parse_list(struct parser *parser, struct json_node *node, struct scope scope,
                         unsigned levels)
{
    bool is_inner = levels < MOST_LEVELS;
    do {
        parser->item = parser->at;
        TRY(parse_item(parser, node, scope, levels));
    } while (take(parser, ','));
    if (is_inner ? !take(parser, ')') : parser->at < parser->end)
        return malformed();
    return status_ok();
}

status json_fields_parse(const ProtobufCMessageDescriptor *type, bytes text,
                         struct json_fields **out)
{
    *out = NULL;
    if (text.size > MOST_TEXT)
        return malformed();
    struct arena *arena = arena_create(NODES_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    struct json_fields *fields = arena_zalloc(arena, sizeof *fields);
    bytes copy = arena_copy(arena, text);
    status s = status_out_of_memory();
    if (fields != NULL && copy.size == text.size) {
        struct parser parser = {.arena = arena, .at = copy.data, .end = copy.data + copy.size};
        status_ignore(s); /* there is */
        fields->arena = arena;
        s = parse_list(&parser, &fields->root, (struct scope){IN_MESSAGE, type}, MOST_LEVELS);
    }
    if (status_is_ok(s))
        *out = fields;
    else
        arena_destroy(arena);
    return s;
}

void json_fields_destroy(struct json_fields *fields)
{
    if (fields != NULL)
        arena_destroy(fields->arena);
}

const struct json_node *json_fields_root(const struct json_fields *fields)
{
    return fields == NULL ? NULL : &fields->root;
}

/* --- while an answer is written --- */

static const struct json_node *find(const struct json_node *node, bytes key, const char *field)
{
    for (const struct json_node *each = node->first; each != NULL; each = each->next)
        if (bytes_equal(each->name, bytes_of("*")) ||
            (field != NULL ? json_is_called(field, each->name) : bytes_equal(each->name, key)))
            return each;
    return NULL;
}

static bool narrow(const struct json_node **node, bytes key, const char *field)
{
    if (*node == NULL)
        return true;
    const struct json_node *found = find(*node, key, field);
    if (found != NULL)
        *node = found->is_whole ? NULL : found;
    return found != NULL;
}

bool json_wants_field(const struct json_node **node, const char *name)
{
    return narrow(node, bytes_make(NULL, 0), name);
}

bool json_wants_key(const struct json_node **node, bytes key)
{
    return narrow(node, key, NULL);
}
