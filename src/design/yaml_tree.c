/* See yaml_tree.h. libyaml's documents are graphs, in which an alias is the node of its anchor:
 * they are copied as trees.
 *
 * Before libyaml loads a document it is asked for its events, one by one, up to the first that is
 * too deep, or one too many: what it takes grows with the square of the depth, and of the number of
 * anchors (a text of 100,000 opening brackets, or of 50,000 anchors, took minutes). */
#include "design/yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

struct copying {
    yaml_document_t *document;
    struct arena *arena;
    size_t values;
    size_t depth;
};

status yaml_error(const struct yaml_value *at, const char *format, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return status_make(STATUS_INVALID_ARGUMENT, "%zu:%zu: %s", at->line, at->column, words);
}

static status copy_value(struct copying *copying, int number, const struct yaml_value **out);

static const struct yaml_value **room_for(struct copying *copying, size_t count)
{
    return arena_alloc(copying->arena, count * sizeof(const struct yaml_value *));
}

static status copy_text(struct copying *copying, const yaml_node_t *node, struct yaml_value *value)
{
    bytes text = bytes_make(node->data.scalar.value, node->data.scalar.length);
    if (text.size > 0 && memchr(text.data, 0, text.size) != NULL)
        return yaml_error(value, "a text with a zero byte");
    value->kind = YAML_TEXT;
    value->text = arena_string(copying->arena, text);
    return value->text == NULL ? status_out_of_memory() : status_ok();
}

static status copy_list(struct copying *copying, const yaml_node_t *node, struct yaml_value *value)
{
    const yaml_node_item_t *first = node->data.sequence.items.start;
    value->kind = YAML_LIST;
    value->count = (size_t)(node->data.sequence.items.top - first);
    const struct yaml_value **items = room_for(copying, value->count);
    value->items = items;
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(copy_value(copying, first[i], &items[i]));
    return status_ok();
}

static status check_key(const struct yaml_value *const *keys, size_t at)
{
    if (keys[at]->kind != YAML_TEXT)
        return yaml_error(keys[at], "the name of a field is a text");
    for (size_t i = 0; i < at; i++)
        if (strcmp(keys[i]->text, keys[at]->text) == 0)
            return yaml_error(keys[at], "%s is there twice", keys[at]->text);
    return status_ok();
}

static status copy_map(struct copying *copying, const yaml_node_t *node, struct yaml_value *value)
{
    const yaml_node_pair_t *first = node->data.mapping.pairs.start;
    value->kind = YAML_MAP;
    value->count = (size_t)(node->data.mapping.pairs.top - first);
    if (value->count > YAML_FIELDS_MOST)
        return yaml_error(value, "more than %d fields", YAML_FIELDS_MOST);
    const struct yaml_value **keys = room_for(copying, value->count);
    const struct yaml_value **items = room_for(copying, value->count);
    value->keys = keys;
    value->items = items;
    if (keys == NULL || items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++) {
        TRY(copy_value(copying, first[i].key, &keys[i]));
        TRY(check_key(keys, i));
        TRY(copy_value(copying, first[i].value, &items[i]));
    }
    return status_ok();
}

static status copy_node(struct copying *copying, const yaml_node_t *node, struct yaml_value *value)
{
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return copy_text(copying, node, value);
    case YAML_SEQUENCE_NODE:
        return copy_list(copying, node, value);
    case YAML_MAPPING_NODE:
        return copy_map(copying, node, value);
    case YAML_NO_NODE:
        break;
    }
    return yaml_error(value, "nothing is here");
}

static status copy_value(struct copying *copying, int number, const struct yaml_value **out)
{
    const yaml_node_t *node = yaml_document_get_node(copying->document, number);
    struct yaml_value *value = arena_zalloc(copying->arena, sizeof *value);
    if (value == NULL)
        return status_out_of_memory();
    value->line = node->start_mark.line + 1;
    value->column = node->start_mark.column + 1;
    if (copying->depth == YAML_DEPTH_MOST)
        return yaml_error(value, "more than %d levels", YAML_DEPTH_MOST);
    if (++copying->values > YAML_VALUES_MOST)
        return yaml_error(value, "more than %d values", YAML_VALUES_MOST);
    copying->depth++;
    status s = copy_node(copying, node, value);
    copying->depth--;
    *out = value;
    return s;
}

static status error_of(const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return status_out_of_memory();
    const struct yaml_value at = {.line = parser->problem_mark.line + 1,
                                  .column = parser->problem_mark.column + 1};
    return yaml_error(&at, "no YAML: %s%s%s", parser->problem != NULL ? parser->problem : "?",
                      parser->context != NULL ? ", " : "",
                      parser->context != NULL ? parser->context : "");
}

/* The next document, copied; NULL: there is none. */
static status read_document(yaml_parser_t *parser, struct arena *arena,
                            const struct yaml_value **out)
{
    yaml_document_t document;
    struct copying copying = {.document = &document, .arena = arena};
    *out = NULL;
    if (!yaml_parser_load(parser, &document))
        return error_of(parser);
    bool is_empty = yaml_document_get_root_node(&document) == NULL;
    status s = is_empty ? status_ok() : copy_value(&copying, 1, out);
    yaml_document_delete(&document);
    return s;
}

static status read_only_document(yaml_parser_t *parser, struct arena *arena,
                                 const struct yaml_value **out)
{
    const struct yaml_value start = {.line = 1, .column = 1}, *second;
    TRY(read_document(parser, arena, out));
    if (*out == NULL)
        return yaml_error(&start, "nothing is described");
    TRY(read_document(parser, arena, &second));
    return second == NULL ? status_ok() : yaml_error(second, "a second document");
}

/* --- bounds --- */

static int levels_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return 1;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return -1;
    default:
        return 0;
    }
}

static bool is_value(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT || event->type == YAML_ALIAS_EVENT ||
           levels_of(event) > 0;
}

static bool has_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL;
    default:
        return false;
    }
}

struct extent {
    size_t depth;
    size_t values;
    size_t anchors;
};

static status add_event(const yaml_event_t *event, struct extent *extent)
{
    const struct yaml_value at = {.line = event->start_mark.line + 1,
                                  .column = event->start_mark.column + 1};
    if (is_value(event) && extent->depth == YAML_DEPTH_MOST)
        return yaml_error(&at, "more than %d levels", YAML_DEPTH_MOST);
    extent->depth = (size_t)((ptrdiff_t)extent->depth + levels_of(event));
    extent->values += is_value(event);
    if (extent->values > YAML_VALUES_MOST)
        return yaml_error(&at, "more than %d values", YAML_VALUES_MOST);
    extent->anchors += has_anchor(event);
    if (extent->anchors > YAML_ANCHORS_MOST)
        return yaml_error(&at, "more than %d anchors", YAML_ANCHORS_MOST);
    return status_ok();
}

/* Text that is no YAML is left to the loader to refuse. */
static status bound(yaml_parser_t *parser, void *context)
{
    struct extent extent = {0};
    bool is_end = false;
    (void)context;
    while (!is_end) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return parser->error == YAML_MEMORY_ERROR ? status_out_of_memory() : status_ok();
        is_end = event.type == YAML_STREAM_END_EVENT;
        status s = add_event(&event, &extent);
        yaml_event_delete(&event);
        TRY(s);
    }
    return status_ok();
}

/* --- all --- */

static status parse(bytes text, status (*use)(yaml_parser_t *parser, void *context), void *context)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return status_out_of_memory();
    yaml_parser_set_input_string(&parser, text.data, text.size);
    status s = use(&parser, context);
    yaml_parser_delete(&parser);
    return s;
}

struct loading {
    struct arena *arena;
    const struct yaml_value **out;
};

static status load(yaml_parser_t *parser, void *context)
{
    const struct loading *loading = context;
    return read_only_document(parser, loading->arena, loading->out);
}

status yaml_tree_read(bytes text, struct arena *arena, const struct yaml_value **out)
{
    struct loading loading = {arena, out};
    TRY(parse(text, bound, NULL));
    return parse(text, load, &loading);
}
