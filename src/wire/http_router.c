/* See http_router.h. There are a hundred rules, and a request looks at each: that takes
 * microseconds, and REST is not where they count. */
#include "wire/http_router.h"

#include "wire/json.h"

#include <stdlib.h>

enum { MOST_SEGMENTS = 32, MOST_VARIABLES = 2 };

enum segment_kind { LITERAL, ONE, REST };

struct segment {
    enum segment_kind kind;
    bytes text;
};

struct segments {
    size_t count;
    bytes list[MOST_SEGMENTS];
};

/* A field of the request, and the segments that are its value. */
struct variable {
    bytes name;   /* "table.name" */
    size_t first; /* segment */
    size_t after; /* it: how many segments follow */
};

/* A rule's path, taken apart. All texts are parts of the rule's. */
struct template
{
    struct http_route route; /* first: a route is its template */
    size_t count;
    struct segment segments[MOST_SEGMENTS];
    size_t literals;
    bytes verb; /* ":getIamPolicy"; empty: none */
    size_t variable_count;
    struct variable variables[MOST_VARIABLES];
};

struct http_router {
    size_t count;
    struct template templates[];
};

/* --- paths --- */

/* The parts between slashes; false if there are too many. */
static bool split(bytes path, struct segments *out)
{
    for (out->count = 0; out->count < MOST_SEGMENTS;) {
        const uint8_t *slash = path.size == 0 ? NULL : memchr(path.data, '/', path.size);
        size_t size = slash == NULL ? path.size : (size_t)(slash - path.data);
        out->list[out->count++] = bytes_make(path.data, size);
        if (slash == NULL)
            return true;
        path = bytes_from(path, size + 1);
    }
    return false;
}

static bool ends_with(bytes text, bytes end)
{
    return text.size >= end.size &&
           (end.size == 0 || memcmp(text.data + text.size - end.size, end.data, end.size) == 0);
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_percent_decode(bytes text, bool is_query, struct buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '%') {
            int high = text.size - i > 2 ? hex_value(text.data[i + 1]) : -1;
            int low = text.size - i > 2 ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        buffer_append_byte(out, c);
    }
    return true;
}

/* --- templates --- */

static struct segment segment_of(bytes text)
{
    enum segment_kind kind = bytes_equal(text, bytes_of("*"))    ? ONE
                             : bytes_equal(text, bytes_of("**")) ? REST
                                                                 : LITERAL;
    return (struct segment){.kind = kind, .text = text};
}

static bool add_segments(struct template *template, const char *start, const char *end)
{
    struct segments parts;
    start += start < end && *start == '/';
    if (start == end)
        return true;
    if (!split(bytes_make(start, (size_t)(end - start)), &parts) ||
        template->count + parts.count > MOST_SEGMENTS)
        return false;
    for (size_t i = 0; i < parts.count; i++) {
        struct segment segment = segment_of(parts.list[i]);
        template->literals += segment.kind == LITERAL;
        template->segments[template->count++] = segment;
    }
    return true;
}

/* "{name=projects/x}", or "{name}", which is one segment. */
static bool parse_variable(struct template *template, const char *open, const char *close)
{
    static const char any[] = "*";
    const char *equals = memchr(open, '=', (size_t)(close - open));
    const char *end = equals == NULL ? close : equals;
    struct variable *variable = &template->variables[template->variable_count];
    if (template->variable_count++ == MOST_VARIABLES)
        return false;
    variable->name = bytes_make(open + 1, (size_t)(end - open - 1));
    variable->first = template->count;
    if (!(equals == NULL ? add_segments(template, any, any + strlen(any))
                         : add_segments(template, equals + 1, close)))
        return false;
    variable->after = template->count; /* for now: the segment behind it */
    return true;
}

/* "/v2/" "{name=projects/x}" "/tables" ":verb". There is always a variable. */
static bool parse_template(const char *text, struct template *out)
{
    const char *open = strchr(text, '{'), *close = text;
    while (open != NULL && open > close) {
        const char *literal = close;
        close = strchr(open, '}');
        if (close == NULL || !add_segments(out, literal, open - 1) ||
            !parse_variable(out, open, close))
            return false;
        open = strchr(++close, '{');
    }
    const char *verb = strchr(close, ':');
    const char *end = verb == NULL ? close + strlen(close) : verb;
    if (out->variable_count == 0 || open != NULL || !add_segments(out, close, end))
        return false;
    for (size_t i = 0; i < out->variable_count; i++)
        out->variables[i].after = out->count - out->variables[i].after;
    out->verb = verb == NULL ? bytes_make(NULL, 0) : bytes_of(verb);
    out->literals += verb != NULL;
    return true;
}

/* --- matching --- */

static bool fits(const struct segment *segment, bytes text)
{
    return segment->kind == LITERAL ? bytes_equal(segment->text, text) : text.size > 0;
}

/* Compares from both ends, so that two asterisks get what is between. */
static bool matches(const struct template *template, const struct segments *path)
{
    size_t rest = 0;
    while (rest < template->count && template->segments[rest].kind != REST)
        rest++;
    bool is_open = rest < template->count;
    if (is_open ? path->count < template->count : path->count != template->count)
        return false;
    for (size_t i = 0; i < template->count; i++) {
        size_t at = i < rest ? i : path->count - (template->count - i);
        if (!fits(&template->segments[i], path->list[i == rest ? rest : at]))
            return false;
    }
    return true;
}

/* Takes a template's verb off the path; false if it does not end with it. */
static bool split_path(const struct template *template, bytes path, struct segments *out)
{
    if (path.size == 0 || path.data[0] != '/' || !ends_with(path, template->verb))
        return false;
    path.size -= template->verb.size;
    return path.size > 0 && split(bytes_from(path, 1), out);
}

status http_router_find(const struct http_router *router, const char *verb, bytes path,
                        const struct http_route **out)
{
    const struct template *best = NULL;
    for (size_t i = 0; i < router->count; i++) {
        const struct template *template = &router->templates[i];
        struct segments segments;
        if (strcmp(template->route.rule->verb, verb) == 0 &&
            (best == NULL || template->literals > best->literals) &&
            split_path(template, path, &segments) && matches(template, &segments))
            best = template;
    }
    *out = best == NULL ? NULL : &best->route;
    return best != NULL ? status_ok() : status_make(STATUS_NOT_FOUND, "Method not found.");
}

static status bind(const struct http_route *route, const struct variable *variable,
                   const struct segments *segments, struct buffer *wire)
{
    struct buffer value = {0};
    bytes first = segments->list[variable->first];
    bytes last = segments->list[segments->count - variable->after - 1];
    size_t size = (size_t)(last.data + last.size - first.data);
    status s = http_percent_decode(bytes_make(first.data, size), false, &value)
                   ? json_decode_text(route->request, variable->name, buffer_bytes(&value), wire)
                   : status_make(STATUS_INVALID_ARGUMENT, "The path is not well encoded.");
    if (status_is_ok(s) && value.failed) {
        status_ignore(s);
        s = status_out_of_memory();
    }
    buffer_free(&value);
    return s;
}

status http_route_bind(const struct http_route *route, bytes path, struct buffer *wire)
{
    const struct template *template = (const struct template *)(const void *)route;
    struct segments segments;
    if (!split_path(template, path, &segments))
        return status_make(STATUS_NOT_FOUND, "Method not found.");
    for (size_t i = 0; i < template->variable_count; i++)
        TRY(bind(route, &template->variables[i], &segments, wire));
    return status_ok();
}

/* --- making one --- */

static const ProtobufCMethodDescriptor *
find_method(const ProtobufCServiceDescriptor *const *services, size_t service_count,
            const char *path)
{
    for (size_t i = 0; i < service_count; i++) {
        size_t size = strlen(services[i]->name);
        if (strncmp(path + 1, services[i]->name, size) == 0 && path[1 + size] == '/')
            return protobuf_c_service_descriptor_get_method_by_name(services[i], path + size + 2);
    }
    return NULL;
}

status http_router_create(const struct http_rule *rules, size_t rule_count,
                          const ProtobufCServiceDescriptor *const *services, size_t service_count,
                          struct http_router **out)
{
    *out = NULL;
    struct http_router *router = calloc(1, sizeof *router + rule_count * sizeof *router->templates);
    if (router == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rule_count; i++) {
        struct template *template = &router->templates[router->count];
        const ProtobufCMethodDescriptor *method =
            find_method(services, service_count, rules[i].method);
        if (method == NULL)
            continue;
        template->route = (struct http_route){&rules[i], method->input, method->output};
        if (!parse_template(rules[i].path, template)) {
            http_router_destroy(router);
            return status_make(STATUS_INTERNAL, "cannot read the HTTP rule %s", rules[i].path);
        }
        router->count++;
    }
    *out = router;
    return status_ok();
}

void http_router_destroy(struct http_router *router)
{
    free(router);
}
