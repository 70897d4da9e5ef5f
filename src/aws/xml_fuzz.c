/* Fuzzer: any bytes as XML. A whole element lies within the input, and is none any more when it is
 * cut; its children lie within it, and follow each other; text that is read, and written again, is
 * the same.
 *
 * Input: an element <R>, or something else. */
#include "aws/xml.h"
#include "base/testing/fuzzing.h"

static bool is_within(bytes inner, bytes outer)
{
    return inner.data >= outer.data && inner.size <= outer.size &&
           inner.data + inner.size <= outer.data + outer.size;
}

static void check_text(bytes inner)
{
    struct buffer text = {0}, written = {0}, again = {0};
    if (xml_text(inner, &text)) {
        for (size_t i = 0; i < text.size; i++)
            if (text.data[i] == '<' || text.data[i] == '&')
                buffer_append_format(&written, "&#%u;", text.data[i]);
            else
                buffer_append_byte(&written, text.data[i]);
        CHECK(xml_text(buffer_bytes(&written), &again));
        CHECK(bytes_equal(buffer_bytes(&again), buffer_bytes(&text)));
    }
    buffer_free(&text);
    buffer_free(&written);
    buffer_free(&again);
}

static void check_children(bytes content)
{
    bytes rest = content, inner;
    while (xml_child(&rest, "k", &inner)) {
        CHECK(is_within(inner, content) && is_within(rest, content));
        CHECK(inner.data + inner.size <= rest.data);
        check_text(inner);
    }
}

static void check_cuts(bytes text, bytes content)
{
    enum { CUTS = 16 };
    bytes ignored;
    size_t inner = (size_t)(content.data + content.size - text.data);
    for (size_t i = 0; i <= CUTS; i++)
        CHECK(!xml_root(bytes_make(text.data, inner * i / CUTS), "R", &ignored) || inner == 0 ||
              content.size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes text = bytes_make(data, size), content;
    check_text(text);
    check_children(text);
    if (!xml_root(text, "R", &content))
        return 0;
    CHECK(is_within(content, text));
    check_children(content);
    check_cuts(text, content);
    return 0;
}
