/* XML of a bucket's answers: what is whole, what is in it, what is refused. */
#include "aws/xml.h"

#include "base/testing/testing.h"

#include <stdio.h>

static bool is_root(const char *text)
{
    bytes content;
    return xml_root(bytes_of(text), "R", &content);
}

static void a_whole_element_is_one(void **state)
{
    static const char *const whole[] = {
        "<R></R>",
        "<R/>",
        "<R a='>' b=\"'/\">text</R>",
        "<?xml version='1.0'?>\n<R xmlns=\"http://x/\"><a/><b>1</b></R>\n",
        "\xef\xbb\xbf<R></R>",
        "<!-- a --> <R><!-- <b> --><a></a ></R> <!-- c -->",
        "<R><R></R></R>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!is_root(whole[i]))
            fail_msg("%s is not taken for a whole element", whole[i]);
}

static void other_texts_are_no_root(void **state)
{
    static const char *const other[] = {
        "",
        "R",
        "<R>",
        "<R></R",
        "<R></S>",
        "<S></S>",
        "<R></R>x",
        "x<R></R>",
        "<R></R><R></R>",
        "<R><a></R></a>",
        "<R><a></R>",
        "</R>",
        "<R a='></R>",
        "<R><!-- </R>",
        "<?xml <R></R>",
        "<R a=<></R>",
        "<R>< a/></R>",
        "<R><1/></R>",
        "<!DOCTYPE R><R></R>",
        "<R><![CDATA[a]]></R>",
        "<R></R><!-- ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (is_root(other[i]))
            fail_msg("%s is taken for a whole element", other[i]);
}

/* Wherever it is cut, it is none. */
static void a_cut_one_is_none(void **state)
{
    const char *whole = "<R><a b='c'>1 &amp; 2</a><!-- d --><e/></R>";
    bytes content;
    (void)state;
    assert_true(is_root(whole));
    for (size_t size = 0; size < strlen(whole); size++)
        assert_false(xml_root(bytes_make(whole, size), "R", &content));
}

static void depth_has_a_bound(void **state)
{
    struct buffer text = {0};
    bytes content;
    (void)state;
    for (size_t depth = 0; depth < XML_MOST_DEPTH; depth++)
        buffer_append_format(&text, "<R>");
    for (size_t depth = 0; depth < XML_MOST_DEPTH; depth++)
        buffer_append_format(&text, "</R>");
    assert_true(xml_root(buffer_bytes(&text), "R", &content));
    assert_true(xml_root(content, "R", &content));
    buffer_clear(&text);
    for (size_t depth = 0; depth <= XML_MOST_DEPTH; depth++)
        buffer_append_format(&text, "<R>");
    for (size_t depth = 0; depth <= XML_MOST_DEPTH; depth++)
        buffer_append_format(&text, "</R>");
    assert_false(xml_root(buffer_bytes(&text), "R", &content));
    buffer_free(&text);
}

static void children_are_those_of_the_element_alone(void **state)
{
    bytes content, inner, rest;
    (void)state;
    assert_true(xml_root(bytes_of("<R><o><k>0</k></o>x<k>1</k><k/><k>2</k></R>"), "R", &content));
    rest = content;
    assert_true(xml_child(&rest, "k", &inner) && bytes_equal(inner, bytes_of("1")));
    assert_true(xml_child(&rest, "k", &inner) && inner.size == 0);
    assert_true(xml_child(&rest, "k", &inner) && bytes_equal(inner, bytes_of("2")));
    assert_false(xml_child(&rest, "k", &inner));
    assert_true(xml_first(content, "o", &inner) && xml_first(inner, "k", &inner));
    assert_true(bytes_equal(inner, bytes_of("0")));
    assert_false(xml_first(content, "z", &inner));
}

static void text_is_what_entities_stand_for(void **state)
{
    static const char *const bad[] = {
        "&",     "&a",   "&a;",      "&;",         "&#;",
        "&#x;",  "&#0;", "&#xd800;", "&#x110000;", "&#99999999999999999999;",
        "&#1a;", "<a/>"};
    struct buffer out = {0};
    (void)state;
    assert_true(xml_text(bytes_of("a&amp;&lt;&gt;&quot;&apos;&#65;&#x41;&#xe9;;"), &out));
    buffer_append_byte(&out, 0);
    assert_string_equal((const char *)out.data, "a&<>\"'AA\xc3\xa9;");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (xml_text(bytes_of(bad[i]), &out))
            fail_msg("%s is taken for text", bad[i]);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_element_is_one),
        cmocka_unit_test(other_texts_are_no_root),
        cmocka_unit_test(a_cut_one_is_none),
        cmocka_unit_test(depth_has_a_bound),
        cmocka_unit_test(children_are_those_of_the_element_alone),
        cmocka_unit_test(text_is_what_entities_stand_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
