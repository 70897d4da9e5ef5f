/* CSV: what is read, what is refused, what is written. */
#include "formats/csv.h"

#include "base/testing/testing.h"

#include <stdio.h>

/* Records as "line:field|field;", mistakes as "line:!;". */
static status show(bytes text, char delimiter, struct buffer *out)
{
    struct input *input;
    struct csv_reader *reader;
    bool is_end = false;
    assert_ok(input_open_bytes(text, &input));
    status s = csv_reader_create(input, delimiter, &reader);
    while (status_is_ok(s) && !is_end) {
        struct csv_record record;
        s = csv_next(reader, &record, &is_end);
        if (is_end || (!status_is_ok(s) && s.code != STATUS_INVALID_ARGUMENT))
            break;
        buffer_append_format(out, "%d:", (int)record.line);
        for (size_t i = 0; status_is_ok(s) && i < record.count; i++) {
            buffer_append_bytes(out, bytes_of(i > 0 ? "|" : ""));
            buffer_append_bytes(out, record.fields[i]);
        }
        buffer_append_bytes(out, bytes_of(status_is_ok(s) ? ";" : "!;"));
        status_free(s);
        s = status_ok();
    }
    csv_reader_destroy(reader);
    input_close(input);
    return s;
}

static void check(bytes text, char delimiter, const char *expected)
{
    struct buffer out = {0};
    assert_ok(show(text, delimiter, &out));
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void records_are_read(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"\n\r\n\n", ""},
        {"a,b\nc,d", "1:a|b;2:c|d;"},
        {"a,b\r\nc,d\r\n", "1:a|b;2:c|d;"},
        {"a,\n,b\n,\n", "1:a|;2:|b;3:|;"},
        {"\n\na\n\nb\n", "3:a;5:b;"},
        {"\"a,b\",\"c \"\"d\"\"\"\n", "1:a,b|c \"d\";"},
        {"\"a\nb\r\nc\",d\ne\n", "1:a\nb\r\nc|d;4:e;"},
        {"\"\"\n\"\",\"\"\r\n", "1:;2:|;"},
        {"a\rb,\"c\"\r\n", "1:a\rb|c;"},
        {" a , b \n", "1: a | b ;"},
        {"\xef\xbb\xbf"
         "a\n\xef\xbb\xbf"
         "b\n",
         "1:a;2:\xef\xbb\xbf"
         "b;"},
        {"\xff\xfe,x\n", "1:\xff\xfe|x;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(bytes_of(cases[i].text), ',', cases[i].expected);
    check(bytes_of("a;b,c;\"d;e\"\n"), ';', "1:a|b,c|d;e;");
    check(bytes_of("a\tb\n"), '\t', "1:a|b;");
}

static void a_wrong_record_spoils_no_other(void **state)
{
    (void)state;
    check(bytes_of("a\n\"b\"c,d\ne\n"), ',', "1:a;2:!;3:e;");
    check(bytes_of("a\nb\"c\",d\ne\n"), ',', "1:a;2:!;3:e;");
    check(bytes_of("a\n\"b\nc\nd"), ',', "1:a;2:!;");
}

/* Chunks end anywhere: within a field, between the quotes of a pair, in a line's end. */
static void long_texts_are_read(void **state)
{
    enum { CHUNK = 64 << 10 };
    static const char ending[] = "x\"\"y\n\",z\r\n\r\nw\n";
    struct buffer text = {0}, out = {0};
    (void)state;
    for (size_t around = CHUNK - sizeof ending; around < CHUNK + 2; around++) {
        buffer_clear(&text);
        buffer_clear(&out);
        buffer_append_byte(&text, '"');
        while (text.size < around)
            buffer_append_byte(&text, 'a');
        buffer_append_bytes(&text, bytes_of(ending));
        assert_ok(show(buffer_bytes(&text), ',', &out));
        static const char expected[] = "x\"y\n|z;4:w;";
        assert_int_equal(out.size, around - 1 + 2 + strlen(expected));
        assert_memory_equal(out.data + out.size - strlen(expected), expected, strlen(expected));
    }
    buffer_free(&text);
    buffer_free(&out);
}

static void quotes_are_written_where_they_are_needed(void **state)
{
    static const struct {
        const char *field, *expected;
    } cases[] = {
        {"", ""},
        {"plain text", "plain text"},
        {"a,b", "\"a,b\""},
        {"a;b", "a;b"},
        {"\"", "\"\"\"\""},
        {"say \"so\"", "\"say \"\"so\"\"\""},
        {"a\nb", "\"a\nb\""},
        {"a\r", "\"a\r\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = {0};
        csv_append_field(bytes_of(cases[i].field), ',', &out);
        buffer_append_byte(&out, '\0');
        assert_string_equal((const char *)out.data, cases[i].expected);
        buffer_free(&out);
    }
}

static void a_record_without_end_is_refused(void **state)
{
    struct input *input;
    struct csv_reader *reader;
    struct csv_record record;
    bool is_end;
    (void)state;
    for (size_t most = 5; most < 7; most++) {
        assert_ok(input_open_bytes(bytes_of("a\n\"bcd\nef"), &input));
        input_limit_lines(input, most);
        assert_ok(csv_reader_create(input, ',', &reader));
        assert_ok(csv_next(reader, &record, &is_end));
        status s = csv_next(reader, &record, &is_end);
        assert_status(s, most < 6 ? STATUS_RESOURCE_EXHAUSTED : STATUS_INVALID_ARGUMENT);
        csv_reader_destroy(reader);
        input_close(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read),
        cmocka_unit_test(a_wrong_record_spoils_no_other),
        cmocka_unit_test(long_texts_are_read),
        cmocka_unit_test(quotes_are_written_where_they_are_needed),
        cmocka_unit_test(a_record_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
