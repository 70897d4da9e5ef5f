/* The words of options that say how fields become rows. See fields.h. */
#include "formats/fields.h"

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

static const char *const type_names[] = {
    [FIELD_STRING] = "string", [FIELD_INT64] = "int64", [FIELD_DOUBLE] = "double",
    [FIELD_BASE64] = "base64", [FIELD_HEX] = "hex",
};

static bool is_type(bytes name, enum field_type *out)
{
    for (unsigned i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        *out = (enum field_type)i;
        if (bytes_equal(name, bytes_of(type_names[i])))
            return true;
    }
    return false;
}

static status find_type(bytes name, enum field_type *out)
{
    return is_type(name, out)
               ? status_ok()
               : INVALID("%.*s is no type: string, int64, double, base64 and hex are",
                         (int)name.size, (const char *)name.data);
}

enum field_type field_layout_type(const struct field_layout *layout, bytes name)
{
    for (size_t i = 0; i < layout->type_count; i++)
        if (bytes_equal(layout->types[i].name, name))
            return layout->types[i].type;
    return FIELD_STRING;
}

/* --- lists: "a=b,c" --- */

static bytes up_to(bytes text, char byte, bytes *rest)
{
    const uint8_t *at = text.size == 0 ? NULL : memchr(text.data, byte, text.size);
    size_t size = at == NULL ? text.size : (size_t)(at - text.data);
    *rest = bytes_from(text, at == NULL ? size : size + 1);
    return bytes_make(text.data, size);
}

static size_t count_elements(bytes text)
{
    size_t count = 1;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == ',';
    return count;
}

/* --- columns --- */

/* "name", or "name=family:qualifier". */
static status parse_column(bytes text, const char *family, struct arena *arena,
                           struct field_column *out)
{
    bytes where, name = up_to(text, '=', &where);
    *out = (struct field_column){.name = name, .family = family, .qualifier = name};
    if (name.size == 0)
        return INVALID("--columns: a name is empty");
    if (name.size == text.size)
        return family != NULL ? status_ok()
                              : INVALID("--columns: %.*s has no family: NAME=FAMILY:QUALIFIER "
                                        "says one, as price=o:price, or --family",
                                        (int)name.size, (const char *)name.data);
    bytes in = up_to(where, ':', &out->qualifier);
    if (in.size == 0 || in.size == where.size)
        return INVALID("--columns: %.*s is not of the form family:qualifier", (int)where.size,
                       (const char *)where.data);
    out->family = arena_string(arena, in);
    return out->family == NULL ? status_out_of_memory() : status_ok();
}

static status parse_columns(bytes text, struct arena *arena, struct field_layout *out)
{
    out->columns = arena_alloc(arena, count_elements(text) * sizeof *out->columns);
    if (out->columns == NULL)
        return status_out_of_memory();
    while (text.size > 0) {
        bytes element = up_to(text, ',', &text);
        TRY(parse_column(element, out->family, arena, &out->columns[out->column_count]));
        out->column_count++;
    }
    return out->column_count > 0 ? status_ok() : INVALID("--columns: there are none");
}

/* --- types --- */

static status parse_types(bytes text, struct arena *arena, struct field_layout *out)
{
    out->types = arena_alloc(arena, count_elements(text) * sizeof *out->types);
    if (out->types == NULL)
        return status_out_of_memory();
    while (text.size > 0) {
        bytes type, element = up_to(text, ',', &text);
        struct field_typed *typed = &out->types[out->type_count++];
        typed->name = up_to(element, '=', &type);
        if (typed->name.size == 0 || typed->name.size == element.size)
            return INVALID("--types: %.*s is not of the form name=type", (int)element.size,
                           (const char *)element.data);
        TRY(find_type(type, &typed->type));
    }
    return status_ok();
}

/* --- the row key's template --- */

/* Takes ":type" off the end of a name, which may have colons itself. */
static void take_type(struct field_part *part)
{
    size_t size = part->text.size;
    enum field_type type;
    while (size > 0 && part->text.data[size - 1] != ':')
        size--;
    if (size == 0 || !is_type(bytes_from(part->text, size), &type))
        return;
    part->type = type;
    part->text.size = size - 1;
}

/* "{name}" or "{name:type}", from behind its opening brace. */
static status parse_field(bytes *rest, struct field_part *out)
{
    if (rest->size == 0 || memchr(rest->data, '}', rest->size) == NULL)
        return INVALID("--row-key: a brace is not closed");
    bytes inner = up_to(*rest, '}', rest);
    *out = (struct field_part){.is_field = true, .text = inner};
    take_type(out);
    return out->text.size > 0 ? status_ok() : INVALID("--row-key: a name is empty");
}

/* Literal text up to the next field; of a doubled brace the first one is part of it. */
static status parse_literal(bytes *rest, struct field_part *out)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] != '{' && rest->data[size] != '}')
        size++;
    *out = (struct field_part){.text = bytes_make(rest->data, size)};
    bool is_doubled = size + 1 < rest->size && rest->data[size] == rest->data[size + 1];
    if (is_doubled)
        out->text.size++;
    else if (size < rest->size && rest->data[size] == '}')
        return INVALID("--row-key: there is a '}' that closes nothing; \"}}\" stands for one");
    *rest = bytes_from(*rest, size + (is_doubled ? 2 : 0));
    return status_ok();
}

static status parse_part(bytes *rest, struct field_part *out)
{
    bool is_field = rest->data[0] == '{' && !bytes_start_with(*rest, bytes_of("{{"));
    if (!is_field)
        return parse_literal(rest, out);
    *rest = bytes_from(*rest, 1);
    return parse_field(rest, out);
}

static status parse_row_key(bytes text, struct arena *arena, struct field_layout *out)
{
    bool has_field = false;
    if (text.size == 0)
        return INVALID("--row-key: it is empty");
    out->key = arena_alloc(arena, text.size * sizeof *out->key); /* a part has a byte at least */
    if (out->key == NULL)
        return status_out_of_memory();
    while (text.size > 0) {
        TRY(parse_part(&text, &out->key[out->key_count]));
        has_field |= out->key[out->key_count++].is_field;
    }
    return has_field ? status_ok()
                     : INVALID("--row-key: all rows would have the same; a field is {name}");
}

status field_layout_parse(const struct field_words *words, struct arena *arena,
                          struct field_layout *out)
{
    *out = (struct field_layout){.family = words->family, .timestamp = words->timestamp};
    if (words->row_key != NULL)
        TRY(parse_row_key(bytes_of(words->row_key), arena, out));
    if (words->columns != NULL)
        TRY(parse_columns(bytes_of(words->columns), arena, out));
    return words->types == NULL ? status_ok() : parse_types(bytes_of(words->types), arena, out);
}
