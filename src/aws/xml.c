/* See xml.h. */
#include "aws/xml.h"

#include "base/utf8.h"

/* --- tags --- */

enum tag_kind { TAG_OPEN, TAG_CLOSE, TAG_EMPTY };

struct tag {
    enum tag_kind kind;
    bytes name;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(bytes *text)
{
    while (text->size > 0 && is_space(text->data[0]))
        *text = bytes_from(*text, 1);
}

/* Cuts off the text before the mark; `text` goes on behind it. False: the mark is not there. */
static bool cut_at(bytes *text, const char *mark, bytes *before)
{
    size_t size = strlen(mark);
    const uint8_t *at = text->size == 0 ? NULL : memmem(text->data, text->size, mark, size);
    if (at == NULL)
        return false;
    *before = bytes_make(text->data, (size_t)(at - text->data));
    *text = bytes_from(*text, before->size + size);
    return true;
}

static bool skip_comment(bytes *text)
{
    bytes comment;
    *text = bytes_from(*text, strlen("<!--"));
    return cut_at(text, "-->", &comment);
}

/* Up to the next tag, which a comment is not. False: there is none, or a comment has no end. */
static bool skip_to_tag(bytes *text, bytes *before)
{
    const uint8_t *begin = text->data;
    for (;;) {
        const uint8_t *at = text->size == 0 ? NULL : memchr(text->data, '<', text->size);
        if (at == NULL)
            return false;
        *text = bytes_from(*text, (size_t)(at - text->data));
        *before = bytes_make(begin, (size_t)(at - begin));
        if (!bytes_start_with(*text, bytes_of("<!--")))
            return true;
        if (!skip_comment(text))
            return false;
    }
}

/* The tag's end is the first > that is in no attribute's value. */
static bool cut_tag(bytes *text, bytes *inner)
{
    uint8_t quote = 0;
    for (size_t i = 1; i < text->size; i++) {
        uint8_t c = text->data[i];
        if (quote != 0) {
            quote = c == quote ? 0 : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '<') {
            return false;
        } else if (c == '>') {
            *inner = bytes_make(text->data + 1, i - 1);
            *text = bytes_from(*text, i + 1);
            return true;
        }
    }
    return false;
}

/* Names begin as words do: no tag of another kind (<!, <?) is one. */
static bool is_name(bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool begins = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
        bool goes_on = c == '-' || c == '.' || c == ':' || (c >= '0' && c <= '9');
        if (!begins && (i == 0 || !goes_on))
            return false;
    }
    return name.size > 0;
}

static bool read_tag(bytes inner, struct tag *out)
{
    out->kind = TAG_OPEN;
    if (inner.size > 0 && inner.data[0] == '/') {
        out->kind = TAG_CLOSE;
        inner = bytes_from(inner, 1);
    } else if (inner.size > 0 && inner.data[inner.size - 1] == '/') {
        out->kind = TAG_EMPTY;
        inner.size--;
    }
    size_t size = 0;
    while (size < inner.size && !is_space(inner.data[size]))
        size++;
    out->name = bytes_make(inner.data, size);
    return is_name(out->name);
}

/* `before`: what stands between here and the tag. */
static bool next_tag(bytes *text, bytes *before, struct tag *out)
{
    bytes inner;
    return skip_to_tag(text, before) && cut_tag(text, &inner) && read_tag(inner, out);
}

/* --- elements --- */

struct open_tags {
    bytes names[XML_MOST_DEPTH];
    size_t count;
};

/* False: it closes what is not open, or is too deep. */
static bool follow(struct open_tags *open, const struct tag *tag)
{
    if (tag->kind == TAG_EMPTY)
        return true;
    if (tag->kind == TAG_CLOSE)
        return open->count > 0 && bytes_equal(open->names[--open->count], tag->name);
    if (open->count == XML_MOST_DEPTH)
        return false;
    open->names[open->count++] = tag->name;
    return true;
}

struct element {
    bytes before; /* it, with comments in it */
    bytes name;
    bytes content;
};

/* The next element, `text` going on behind it. False: there is none, or it is not whole. */
static bool take_element(bytes *text, struct element *out)
{
    struct open_tags open = {.count = 0};
    struct tag tag;
    bytes before;
    if (!next_tag(text, &out->before, &tag) || !follow(&open, &tag))
        return false;
    out->name = tag.name;
    out->content = bytes_make(text->data, 0);
    while (open.count > 0) {
        const uint8_t *begin = out->content.data;
        if (!next_tag(text, &before, &tag) || !follow(&open, &tag))
            return false;
        out->content.size = (size_t)(before.data + before.size - begin);
    }
    return true;
}

static bool is_blank(bytes text)
{
    skip_space(&text);
    while (bytes_start_with(text, bytes_of("<!--"))) {
        if (!skip_comment(&text))
            return false;
        skip_space(&text);
    }
    return text.size == 0;
}

static bool skip_head(bytes *text)
{
    bytes head;
    if (bytes_start_with(*text, bytes_of("\xef\xbb\xbf")))
        *text = bytes_from(*text, 3);
    return !bytes_start_with(*text, bytes_of("<?xml")) || cut_at(text, "?>", &head);
}

bool xml_root(bytes text, const char *name, bytes *content)
{
    struct element root;
    if (!skip_head(&text) || !take_element(&text, &root) || !is_blank(root.before) ||
        !is_blank(text) || !bytes_equal(root.name, bytes_of(name)))
        return false;
    *content = root.content;
    return true;
}

bool xml_child(bytes *content, const char *name, bytes *inner)
{
    struct element child;
    while (take_element(content, &child))
        if (bytes_equal(child.name, bytes_of(name))) {
            *inner = child.content;
            return true;
        }
    return false;
}

bool xml_first(bytes content, const char *name, bytes *inner)
{
    return xml_child(&content, name, inner);
}

/* --- text --- */

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads the code between &# and the semicolon. */
static bool read_code(bytes digits, uint32_t *code)
{
    int base = digits.size > 0 && digits.data[0] == 'x' ? 16 : 10;
    digits = bytes_from(digits, base == 16);
    *code = 0;
    for (size_t i = 0; i < digits.size; i++) {
        int digit = digit_of(digits.data[i]);
        if (digit >= base || *code > 0x10ffff)
            return false;
        *code = *code * (uint32_t)base + (uint32_t)digit;
    }
    bool is_surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return digits.size > 0 && *code > 0 && *code <= 0x10ffff && !is_surrogate;
}

static bool append_entity(bytes name, struct buffer *out)
{
    static const struct {
        const char *name;
        uint8_t character;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    uint32_t code;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes_equal(name, bytes_of(known[i].name))) {
            buffer_append_byte(out, known[i].character);
            return true;
        }
    if (name.size == 0 || name.data[0] != '#' || !read_code(bytes_from(name, 1), &code))
        return false;
    utf8_append(out, code);
    return true;
}

bool xml_text(bytes inner, struct buffer *out)
{
    bytes plain, entity;
    if (inner.size > 0 && memchr(inner.data, '<', inner.size) != NULL)
        return false;
    while (cut_at(&inner, "&", &plain)) {
        buffer_append_bytes(out, plain);
        if (!cut_at(&inner, ";", &entity) || !append_entity(entity, out))
            return false;
    }
    buffer_append_bytes(out, inner);
    return !out->failed;
}
