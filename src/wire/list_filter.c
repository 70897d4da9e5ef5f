/* See list_filter.h. */
#include "wire/list_filter.h"

#include "google/protobuf/any.pb-c.h"
#include "wire/json_private.h"

#include <strings.h>

struct term {
    bytes path;
    bytes value;
    bool is_word; /* without a value: of a boolean */
};

/* --- parsing --- */

static bool is_between(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '(' || c == ')';
}

static void skip_between(const char **at)
{
    while (is_between(**at))
        (*at)++;
}

/* A text in quotes, where a backslash stands before what it is to be taken for. */
static bool take_quoted(const char **at, struct arena *arena, bytes *out)
{
    char *made = arena_string(arena, bytes_of(*at));
    size_t size = 0;
    const char *c = *at + 1;
    if (made == NULL)
        return false;
    for (; *c != '\0' && *c != '"'; c++) {
        if (*c == '\\' && c[1] != '\0')
            c++;
        made[size++] = *c;
    }
    *out = bytes_make(made, size);
    *at = c + (*c == '"');
    return *c == '"';
}

static bool take_value(const char **at, struct arena *arena, bytes *out)
{
    if (**at == '"')
        return take_quoted(at, arena, out);
    const char *start = *at;
    while (**at != '\0' && !is_between(**at))
        (*at)++;
    *out = bytes_make(start, (size_t)(*at - start));
    return out->size > 0;
}

static bytes take_word(const char **at)
{
    bytes word = bytes_make(*at, strcspn(*at, " \t\n=:\"()"));
    *at += word.size;
    skip_between(at);
    return word;
}

/* `done` and `NOT done`, of which the first word has been taken. */
static bool take_boolean(const char **at, bytes word, struct term *out)
{
    bool is_not = bytes_equal(word, bytes_of("NOT"));
    if (is_not)
        word = take_word(at);
    *out = (struct term){.path = word, .value = bytes_of(is_not ? "false" : "true"), .is_word = 1};
    return word.size > 0;
}

/* The next term; false at the end, or, with `*is_wrong`, where none is. */
static bool next_term(const char **at, struct arena *arena, struct term *out, bool *is_wrong)
{
    skip_between(at);
    *is_wrong = false;
    if (**at == '\0')
        return false;
    bytes word = take_word(at);
    if (bytes_equal(word, bytes_of("AND")))
        word = take_word(at);
    if (**at != '=' && **at != ':') {
        *is_wrong = !take_boolean(at, word, out);
        return !*is_wrong;
    }
    (*at)++;
    skip_between(at);
    *out = (struct term){.path = word};
    *is_wrong = word.size == 0 || !take_value(at, arena, &out->value);
    return !*is_wrong;
}

static bytes take_segment(bytes *path)
{
    const uint8_t *dot = path->size == 0 ? NULL : memchr(path->data, '.', path->size);
    bytes segment = *path;
    if (dot != NULL)
        segment.size = (size_t)(dot - path->data);
    *path = bytes_from(*path, dot == NULL ? path->size : segment.size + 1);
    return segment;
}

/* NULL if the type has none of the name. */
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type, bytes name)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        size_t size = strlen(field->name);
        bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        if (bytes_equal(name, bytes_of(field->name)) ||
            (is_list && field->name[size - 1] == 's' &&
             bytes_equal(name, bytes_make(field->name, size - 1))))
            return field;
    }
    return NULL;
}

static status no_filter(const char *filter)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "filter: terms as 'done = false' and 'metadata.common.state = PROCESSING', "
                       "with AND between them, are understood, not '%s'",
                       filter);
}

/* The first field of the path is there, and is what the term makes of it. Behind it may be an Any,
 * of whatever. */
static bool is_known(const ProtobufCMessageDescriptor *type, struct term term)
{
    const ProtobufCFieldDescriptor *field = field_of(type, take_segment(&term.path));
    return field != NULL && (!term.is_word || field->type == PROTOBUF_C_TYPE_BOOL);
}

status list_filter_check(const ProtobufCMessageDescriptor *type, const char *filter,
                         struct arena *arena)
{
    const char *at = filter;
    struct term term;
    bool is_wrong;
    while (next_term(&at, arena, &term, &is_wrong))
        if (!is_known(type, term))
            return no_filter(filter);
    return is_wrong ? no_filter(filter) : status_ok();
}

/* --- fitting --- */

static status fits_message(const ProtobufCMessage *message, struct term term, struct arena *arena,
                           bool *out);

static bool fits_enum(const ProtobufCEnumDescriptor *type, int value, bytes wanted)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);
    return found != NULL && strlen(found->name) == wanted.size &&
           strncasecmp(found->name, (const char *)wanted.data, wanted.size) == 0;
}

static bool fits_value(const ProtobufCFieldDescriptor *field, const void *at, bytes wanted)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return bytes_equal(bytes_of(*(const char *const *)at), wanted);
    case PROTOBUF_C_TYPE_BOOL:
        return bytes_equal(bytes_of(*(const protobuf_c_boolean *)at ? "true" : "false"), wanted);
    case PROTOBUF_C_TYPE_ENUM:
        return fits_enum(field->descriptor, *(const int *)at, wanted);
    default:
        return false;
    }
}

/* The entry of a map of strings whose key is what remains of the path. */
static bool fits_entry(const ProtobufCMessage *entry, const struct term *term)
{
    const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
    return entry->descriptor->n_fields == 2 &&
           fits_value(&fields[0], (const char *)entry + fields[0].offset, term->path) &&
           fits_value(&fields[1], (const char *)entry + fields[1].offset, term->value);
}

static bool fits_list(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                      const struct term *term)
{
    size_t count =
        *(const size_t *)(const void *)((const char *)message + field->quantifier_offset);
    const char *const *items =
        *(const char *const *const *)(const void *)((const char *)message + field->offset);
    for (size_t i = 0; i < count; i++) {
        const void *item = items[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE ? fits_entry(item, term)
                                                   : fits_value(field, &items[i], term->value))
            return true;
    }
    return false;
}

static status fits_any(const Pb__Any *any, struct term term, struct arena *arena, bool *out)
{
    const ProtobufCMessageDescriptor *type = json_type_of_url(bytes_of(any->type_url));
    ProtobufCMessage *message;
    if (type == NULL)
        return status_ok();
    TRY(proto_decode(type, proto_bytes(any->value), arena, &message));
    return fits_message(message, term, arena, out);
}

/* As deep as the path has segments. */
static status fits_message(const ProtobufCMessage *message, struct term term, struct arena *arena,
                           bool *out)
{
    const ProtobufCFieldDescriptor *field = field_of(message->descriptor, take_segment(&term.path));
    if (field == NULL)
        return status_ok();
    bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (is_list &&
        (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING))
        *out = fits_list(field, message, &term);
    else if (!is_list && field->type != PROTOBUF_C_TYPE_MESSAGE)
        *out = fits_value(field, (const char *)message + field->offset, term.value);
    if (is_list || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return status_ok();
    const ProtobufCMessage *inner = proto_sub_message(field, message);
    if (inner == NULL)
        return status_ok();
    if (inner->descriptor == &pb__any__descriptor)
        return fits_any((const Pb__Any *)inner, term, arena, out);
    return fits_message(inner, term, arena, out);
}

status list_filter_fits(const char *filter, const ProtobufCMessage *message, struct arena *arena,
                        bool *out)
{
    struct term term;
    bool is_wrong;
    *out = true;
    while (*out && next_term(&filter, arena, &term, &is_wrong)) {
        *out = false;
        TRY(fits_message(message, term, arena, out));
    }
    return status_ok();
}
