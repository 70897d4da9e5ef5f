/* See item_template.h. */
#include "formats/item_template.h"

#include "formats/item_cells.h"
#include "os/digest.h"

static const char *const form_names[] = {
    [ITEM_PART_PLAIN] = "plain",
    [ITEM_PART_ESCAPED] = "escaped",
    [ITEM_PART_ORDERED] = "ordered",
    [ITEM_PART_HASH] = "hash",
};

enum { FORMS = sizeof form_names / sizeof *form_names };

/* --- parsing --- */

struct parsing {
    bytes text;
    size_t at;
    struct buffer literal; /* that is being read */
    struct arena *arena;
    struct item_template *out; /* with room for all parts */
};

static status add_part(struct parsing *parsing, enum item_part_form form, bytes text)
{
    const struct item_part part = {.form = form, .text = arena_copy(parsing->arena, text)};
    if (part.text.data == NULL)
        return status_out_of_memory();
    parsing->out->parts[parsing->out->count++] = part;
    return status_ok();
}

static status end_literal(struct parsing *parsing)
{
    if (parsing->literal.failed)
        return status_out_of_memory();
    if (parsing->literal.size == 0)
        return status_ok();
    status s = add_part(parsing, ITEM_PART_TEXT, buffer_bytes(&parsing->literal));
    buffer_clear(&parsing->literal);
    return s;
}

/* "Name" or "Name:form"; `*form` is 0 for one that there is not. */
static bytes split_form(bytes inner, enum item_part_form *form)
{
    size_t colon = inner.size;
    while (colon > 0 && inner.data[colon - 1] != ':')
        colon--;
    *form = colon == 0 ? ITEM_PART_PLAIN : ITEM_PART_TEXT;
    if (colon == 0)
        return inner;
    for (unsigned i = ITEM_PART_PLAIN; i < FORMS; i++)
        if (bytes_equal(bytes_from(inner, colon), bytes_of(form_names[i])))
            *form = (enum item_part_form)i;
    return bytes_make(inner.data, colon - 1);
}

static status take_attribute(struct parsing *parsing)
{
    bytes rest = bytes_from(parsing->text, parsing->at + 1);
    const uint8_t *end = rest.size == 0 ? NULL : memchr(rest.data, '}', rest.size);
    enum item_part_form form;
    if (end == NULL)
        return ITEM_INVALID("byte %zu: '{' has no '}'", parsing->at + 1);
    size_t size = (size_t)(end - rest.data);
    bytes name = split_form(bytes_make(rest.data, size), &form);
    if (form == ITEM_PART_TEXT)
        return ITEM_INVALID("byte %zu: behind ':' stands plain, escaped, ordered or hash",
                            parsing->at + 1);
    if (name.size == 0)
        return ITEM_INVALID("byte %zu: the braces have no attribute in them", parsing->at + 1);
    TRY(end_literal(parsing));
    parsing->at += size + 2;
    return add_part(parsing, form, name);
}

static status take_byte(struct parsing *parsing)
{
    uint8_t byte = parsing->text.data[parsing->at];
    bool is_brace = byte == '{' || byte == '}';
    bool is_double = is_brace && parsing->at + 1 < parsing->text.size &&
                     parsing->text.data[parsing->at + 1] == byte;
    if (byte == '{' && !is_double)
        return take_attribute(parsing);
    if (byte == '}' && !is_double)
        return ITEM_INVALID("byte %zu: '}' has no '{'; a brace itself is \"}}\"", parsing->at + 1);
    buffer_append_byte(&parsing->literal, byte);
    parsing->at += 1 + is_double;
    return status_ok();
}

static status parse_all(struct parsing *parsing)
{
    while (parsing->at < parsing->text.size)
        TRY(take_byte(parsing));
    return end_literal(parsing);
}

status item_template_parse(bytes text, struct arena *arena, struct item_template *out)
{
    struct parsing parsing = {.text = text, .arena = arena, .out = out};
    size_t most = 1; /* each brace may end a part and begin one */
    for (size_t i = 0; i < text.size; i++)
        most += 2 * (text.data[i] == '{');
    out->count = 0;
    out->parts = arena_alloc(arena, most * sizeof *out->parts);
    if (out->parts == NULL)
        return status_out_of_memory();
    status s = parse_all(&parsing);
    buffer_free(&parsing.literal);
    return s;
}

bool item_template_names(const struct item_template *template, bytes attribute)
{
    for (size_t i = 0; i < template->count; i++)
        if (template->parts[i].form != ITEM_PART_TEXT &&
            bytes_equal(template->parts[i].text, attribute))
            return true;
    return false;
}

/* --- putting in --- */

bytes item_without_prefix(const struct item_prefixes *prefixes, bytes attribute, bytes text)
{
    for (size_t i = 0; i < prefixes->count; i++)
        if (bytes_equal(prefixes->all[i].attribute, attribute) &&
            bytes_start_with(text, prefixes->all[i].prefix))
            return bytes_from(text, prefixes->all[i].prefix.size);
    return text;
}

static bool is_unreserved(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || (byte != 0 && strchr("-_.~", byte) != NULL);
}

static void append_escaped(bytes text, struct buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        if (is_unreserved(text.data[i]))
            buffer_append_byte(out, text.data[i]);
        else
            buffer_append_format(out, "%%%02X", text.data[i]);
    }
}

static status append_hash(bytes text, struct buffer *out)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_compute(DIGEST_SHA256, text, digest, &size));
    buffer_append_format(out, "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
    return status_ok();
}

static status append_formed(enum item_part_form form, bytes text, struct buffer *out)
{
    if (form == ITEM_PART_HASH)
        return append_hash(text, out);
    if (form == ITEM_PART_ESCAPED)
        append_escaped(text, out);
    else
        buffer_append_bytes(out, text);
    return status_ok();
}

static status append_attribute(const struct item_part *part, const struct item_prefixes *prefixes,
                               const struct item_value *item, struct buffer *out)
{
    const struct item_value *value;
    struct buffer plain = {0};
    TRY(item_find_key(item, part->text, &value));
    if (value->type == ITEM_NUMBER && part->form == ITEM_PART_ORDERED)
        return item_append_key(value, true, out);
    status s = item_append_key(value, false, &plain);
    if (status_is_ok(s)) {
        bytes text = item_without_prefix(prefixes, part->text, buffer_bytes(&plain));
        s = append_formed(part->form, text, out);
    }
    out->failed |= plain.failed;
    buffer_free(&plain);
    return s;
}

status item_template_append(const struct item_template *template,
                            const struct item_prefixes *prefixes, const struct item_value *item,
                            struct buffer *out)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct item_part *part = &template->parts[i];
        if (part->form == ITEM_PART_TEXT)
            buffer_append_bytes(out, part->text);
        else
            TRY(append_attribute(part, prefixes, item, out));
    }
    return status_ok();
}
